"""The answers that live profiles and loaded files share."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.load.open_trace import Loaded
from mindtorch_prof.torch_api.facade import EventAnswers, RecordingAnswers
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
