"""The answers that live profiles and loaded files share."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from synthetic_traces import linear_with_synthetic_ops

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.load.open_trace import Loaded
from mindtorch_prof.torch_api.facade import EventAnswers, FinishedRecording, RecordingAnswers
from mindtorch_prof.torch_api.results import Results
from mindtorch_v2.autograd import profiler, profiler_legacy
from mindtorch_v2.profiler import _KinetoProfile, profile


def work() -> None:
    (torch.ones(2, 2) + 1).sum()


def test_a_live_profile_and_its_file_give_the_same_averages(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        work()
    prof.export_chrome_trace(tmp_path / "trace.json")
    loaded = mindtorch_prof.load(tmp_path / "trace.json")
    for by_shape in (False, True):
        live, read = (source.key_averages(group_by_input_shape=by_shape) for source in (prof, loaded))
        assert [(row.key, row.count, row.input_shapes) for row in live] == [
            (row.key, row.count, row.input_shapes) for row in read
        ]


def test_a_live_profile_and_its_file_show_the_same_statistics(tmp_path: Path) -> None:
    with profile() as prof:
        for _ in range(5):
            work()
    prof.export_chrome_trace(tmp_path / "trace.json")
    loaded = mindtorch_prof.load(tmp_path / "trace.json")
    live, read = (source.key_averages(stats=True).table(legend=True) for source in (prof, loaded))
    assert live == read
    assert "p95" in live
    assert prof.key_averages().table() == loaded.key_averages().table()
    assert "p95" not in prof.key_averages().table()


def test_the_table_of_all_events_has_a_legend_on_request() -> None:
    with profiler.profile() as prof:
        work()
    assert prof.table(legend=True) == prof.function_events.table(legend=True) != prof.table()


@pytest.mark.parametrize("kind", [profiler.profile, profiler_legacy.profile])
def test_the_older_profiles_print_and_sum_up_their_events(kind: type[EventAnswers]) -> None:
    with kind() as prof:
        work()
    assert prof.table(row_limit=-1) == str(prof)
    assert repr(prof) == repr(prof.function_events)
    assert prof.total_average().count == len(prof.function_events)
    assert prof.total_average().key == "Total"
    assert prof.self_cpu_time_total == pytest.approx(prof.total_average().self_cpu_time_total)


def test_an_unfinished_profile_answers_as_torchs_does(tmp_path: Path) -> None:
    path = str(tmp_path / "stacks.txt")
    session, older, legacy = _KinetoProfile(), profiler.profile(), profiler_legacy.profile()
    with pytest.raises(AssertionError, match="Profiler must be initialized before getting key averages"):
        session.key_averages()
    with pytest.raises(AssertionError, match="Profiler must be initialized before exporting stacks"):
        session.export_stacks(path)
    assert older.key_averages() == []
    assert repr(older) == str(older) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="Nothing was recorded"):
        older.export_stacks(path)
    assert str(legacy) == "<unfinished profile.profiler_legacy.profile>"
    for ask in (legacy.key_averages, legacy.table, legacy.total_average):
        with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
            ask()


@pytest.mark.parametrize("name", ["key_averages", "export_chrome_trace", "export_stacks", "export_html"])
def test_a_question_is_declared_once(name: str) -> None:
    assert getattr(Loaded, name) is getattr(RecordingAnswers, name) is getattr(profile, name)
    if name == "key_averages":
        assert profiler.profile.key_averages is RecordingAnswers.key_averages
        assert list(inspect.signature(profiler_legacy.profile.key_averages).parameters) == [
            "self",
            "group_by_input_shape",
            "group_by_stack_n",
        ]


@pytest.mark.parametrize("kind", [profile, profiler.profile, profiler_legacy.profile])
def test_a_profile_answers_from_what_ran_alone(kind: type[profile], tmp_path: Path) -> None:
    with kind() as prof:
        torch.ones(2, 3).t()  # torch shows aten::transpose and aten::as_strided inside
    ran = prof.as_recorded()
    assert [event.name for event in ran.events() if event.name == "aten::t"] == ["aten::t"]
    assert "aten::transpose" in {row.key for row in prof.key_averages()}
    assert "aten::transpose" not in {row.key for row in ran.key_averages()}
    assert ran.self_cpu_time_total == pytest.approx(prof.key_averages().self_cpu_time_total)
    assert "synthetic" in prof.key_averages().table()
    assert "synthetic" not in ran.table()
    ran.export_chrome_trace(tmp_path / "ran.json")
    assert mindtorch_prof.load(tmp_path / "ran.json").trace.synthetic is None
    assert mindtorch_prof.load(tmp_path / "ran.json").table() == ran.table()
    assert [event.name for event in ran.experimental_event_tree()] == [
        event.name for event in ran.events() if event.cpu_parent is None
    ]


def test_what_ran_keeps_its_numbers_metadata_and_memory() -> None:
    shown = FinishedRecording(Results(linear_with_synthetic_ops()), {"note": "one"})
    ran = shown.as_recorded()
    assert [event.id for event in ran.events()] == [1, 2, 6, 7]
    assert ran._metadata == {"note": "one"}
    linear = next(row for row in ran.key_averages() if row.key == "aten::linear")
    assert (linear.count, linear.synthetic_count, linear.self_cpu_memory_usage) == (2, 0, 32)
    assert "in aten::linear" in ran.memory_summary()
    assert "in aten::addmm" in shown.memory_summary()
    assert repr(shown) == "<FinishedRecording a recording: 10 events (6 synthetic), 0 on devices>"
    assert ran.as_recorded().trace is ran.trace
