"""What people ask of a profile: averages, rows, totals, exports, and that looking changes nothing."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.torch_api.function_events import FunctionEventAvg
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function


def small_profile(**settings: Any) -> profile:
    x, y = torch.ones(2, 3), torch.ones(4, 3)
    with profile(**settings) as prof:
        for _ in range(3):
            x + x
        y + y
        y.mul(x[0])
    return prof


def row(averages: Any, key: str) -> Any:
    return next(r for r in averages if r.key == key)


def test_key_averages_supports_group_by_input_shape() -> None:
    prof = small_profile(record_shapes=True)
    shapes = {
        str(r.input_shapes): r.count
        for r in prof.key_averages(group_by_input_shape=True)
        if r.key == "aten::add"
    }
    assert shapes == {"[[2, 3], [2, 3], []]": 3, "[[4, 3], [4, 3], []]": 1}
    assert row(prof.key_averages(), "aten::add").count == 4
    assert row(prof.key_averages(), "aten::add").input_shapes == ""


def first_caller(x: Any) -> None:
    x + x


def second_caller(x: Any) -> None:
    x + x


def test_key_averages_supports_group_by_stack_n() -> None:
    x = torch.ones(2)
    with profile(with_stack=True) as prof:
        first_caller(x)
        second_caller(x)
        second_caller(x)
    grouped = [r for r in prof.key_averages(group_by_stack_n=1) if r.key == "aten::add"]
    counts = {
        name: r.count for r in grouped for name in ("first_caller", "second_caller") if name in r.stack[0]
    }
    assert counts == {"first_caller": 1, "second_caller": 2}
    assert all(len(r.stack) == 1 for r in grouped)
    assert row(prof.key_averages(), "aten::add").count == 3
    assert row(prof.key_averages(), "aten::add").stack == []


def test_key_averages_table_unknown_sort_key_raises() -> None:
    averages = small_profile().key_averages()
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'no_such_key'"):
        averages.table(sort_by="no_such_key")


def test_key_averages_iter_returns_row_objects_with_torch_like_attrs() -> None:
    for r in small_profile(record_shapes=True, profile_memory=True, with_flops=True).key_averages():
        assert isinstance(r, FunctionEventAvg)
        assert r.count >= 1
        assert r.cpu_time == pytest.approx(r.cpu_time_total / r.count)
        assert 0 <= r.self_cpu_time_total <= r.cpu_time_total
        assert r.cpu_time_total_str.endswith("s")
        assert r.device_time_total == r.self_device_time_total == 0
        with pytest.warns(FutureWarning, match="`cuda_time_total` is deprecated"):
            assert r.cuda_time_total == 0
        assert isinstance(r.flops, int)


def test_key_averages_row_getitem_and_attr_consistency() -> None:
    averages = small_profile().key_averages()
    assert [r.key for r in averages] == [averages[i].key for i in range(len(averages))]
    by_index = [averages[i] for i in range(len(averages))]
    for one, other, again in zip(averages, by_index, averages):
        assert one is other is again
        assert one.cpu_time == other.cpu_time_total / other.count
    assert averages[-1] is list(averages)[-1]


def test_key_averages_exposes_self_cpu_time_total_aggregate() -> None:
    prof = small_profile()
    averages = prof.key_averages()
    assert averages.self_cpu_time_total == sum(r.self_cpu_time_total for r in averages) > 0
    assert averages.self_cpu_time_total == pytest.approx(prof.events().self_cpu_time_total)


def test_key_averages_total_average_returns_total_row() -> None:
    averages = small_profile().key_averages()
    total = averages.total_average()
    assert isinstance(total, FunctionEventAvg)
    assert total.key == "Total"
    for field in ("count", "cpu_time_total", "self_cpu_time_total"):
        assert getattr(total, field) == pytest.approx(sum(getattr(r, field) for r in averages))


def test_key_averages_empty_events_total_average_is_zero() -> None:
    with profile() as prof:
        pass
    for empty in (prof.key_averages(), prof.events()):
        total = empty.total_average()
        assert total.key == "Total"
        assert (
            total.count == total.cpu_time_total == total.self_cpu_time_total == total.device_time_total == 0
        )
        assert total.cpu_time == 0
        assert total.cpu_time_str == "0.000us"
        assert empty.self_cpu_time_total == 0
        assert empty.table() == ""


def test_key_averages_supported_export_stacks_metrics_matches_torch_shape() -> None:
    assert small_profile().key_averages().supported_export_stacks_metrics() == [
        "self_cpu_time_total",
        "self_cuda_time_total",
        "self_xpu_time_total",
        "self_privateuse1_time_total",
    ]


def test_key_averages_export_stacks_rejects_unsupported_metric(tmp_path: Path) -> None:
    averages = small_profile(with_stack=True).key_averages(group_by_stack_n=5)
    with pytest.raises(ValueError, match="metric should be one of: "):
        averages.export_stacks(str(tmp_path / "stacks.txt"), "cpu_time_total")
    assert not (tmp_path / "stacks.txt").exists()


def test_key_averages_export_stacks_writes_stack_lines(tmp_path: Path) -> None:
    x = torch.ones(400, 400)
    with profile(with_stack=True) as prof:
        first_caller(x)
    path = tmp_path / "stacks.txt"
    prof.key_averages(group_by_stack_n=50).export_stacks(str(path), "self_cpu_time_total")
    lines = path.read_text().splitlines()
    assert lines
    for line in lines:
        frames, value = line.rsplit(" ", 1)
        assert int(value) > 0
        assert " " not in frames
    assert any(line.split(" ")[0].split(";")[-1].endswith("first_caller") for line in lines)


def test_key_averages_export_chrome_trace_writes_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    with profile() as prof:
        with record_function('say "hi" \\ \n <ü>'):
            torch.ones(2) + 1
    prof.key_averages().export_chrome_trace(str(path))
    document = json.loads(path.read_bytes().decode("utf-8"))
    assert 'say "hi" \\ \n <ü>' in {event["name"] for event in document["traceEvents"]}


def test_key_averages_export_chrome_trace_contains_row_entries(tmp_path: Path) -> None:
    averages = small_profile().key_averages()
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    averages.export_chrome_trace(str(first))
    averages.export_chrome_trace(str(second))
    assert first.read_bytes() == second.read_bytes()
    entries = json.loads(first.read_text())["traceEvents"]
    assert [e["name"] for e in entries] == [r.key for r in averages]
    for entry, r in zip(entries, averages):
        assert {"name", "ph", "ts", "dur", "pid", "tid", "cat", "args"} <= entry.keys()
        assert entry["args"]["count"] == r.count


# -------------------------------------------------------------------------------- looking


def answers(prof: profile, tmp_path: Path) -> dict[str, Any]:
    """What there is to ask, by name; each gives something comparable."""

    def trace() -> Any:
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        return json.loads((tmp_path / "trace.json").read_text())["traceEvents"]

    return {
        "events": lambda: [(e.name, e.cpu_time_total, e.self_cpu_time_total, e.flops) for e in prof.events()],
        "tree": lambda: [(e.id, e.cpu_parent and e.cpu_parent.id) for e in prof.events()],
        "averages": lambda: prof.key_averages().to_dict(),
        "by shape": lambda: prof.key_averages(group_by_input_shape=True).table(sort_by="flops"),
        "table": lambda: prof.key_averages().table(sort_by="cpu_time_total"),
        "text": lambda: str(prof.events()),
        "total": lambda: vars(prof.events().total_average()),
        "trace": trace,
    }


def test_any_order_of_calls_gives_the_same_answers(tmp_path: Path) -> None:
    prof = small_profile(record_shapes=True, with_flops=True, profile_memory=True)
    questions = answers(prof, tmp_path)
    expected = {name: ask() for name, ask in questions.items()}
    trace = prof.profiler._results.trace  # type: ignore[union-attr]
    for number, order in enumerate(itertools.permutations(questions)):
        if number % 2017:
            continue
        fresh = small_profile()  # only to have a session; the numbers are those of the first
        fresh.profiler._show(trace)  # type: ignore[union-attr]
        asked = answers(fresh, tmp_path)
        assert {name: asked[name]() for name in order} == {name: expected[name] for name in order}


def test_averages_of_a_filtered_list_are_those_of_its_events() -> None:
    prof = small_profile()
    events = prof.events()
    chosen = type(events)([e for e in events if e.name == "aten::add"])
    assert [(r.key, r.count) for r in chosen.key_averages()] == [("aten::add", 4)]
    assert chosen.total_average().count == 4
    events_again = prof.events()
    assert len(events_again) == len(events)


def test_a_list_that_was_changed_answers_for_what_it_holds() -> None:
    events = small_profile().events()
    del events[1:]
    assert [r.count for r in events.key_averages()] == [1]


def test_averages_of_averages_add_up() -> None:
    averages = small_profile().key_averages()
    again = averages.key_averages()
    assert [(r.key, r.count, r.cpu_time_total) for r in again] == [
        (r.key, r.count, r.cpu_time_total) for r in averages
    ]


def test_rows_know_the_spread_of_their_times() -> None:
    averages = small_profile().key_averages()
    stats = row(averages, "aten::add").stats
    assert 0 < stats.min <= stats.p50 <= stats.p95 <= stats.max
    assert stats.std >= 0
    assert averages.to_dict()["max"][0] == averages[0].stats.max


def test_rows_add_up_as_in_torch() -> None:
    averages = small_profile().key_averages()
    adds = row(averages, "aten::add")
    both = FunctionEventAvg()
    both += adds
    both += adds
    assert (both.key, both.count, both.cpu_time_total) == ("aten::add", 8, 2 * adds.cpu_time_total)
    assert both.stats is None
    with pytest.raises(AssertionError, match="Expected keys to match, but got aten::mul vs aten::add"):
        both.add(row(averages, "aten::mul"))
    assert both != FunctionEventAvg()


def test_overload_names_are_shown_where_they_are_asked_for() -> None:
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    with profile(experimental_config=config) as prof:
        torch.ones(2) + torch.ones(2)
    assert row(prof.key_averages(group_by_overload_name=True), "aten::add").overload_name == "Tensor"
    assert row(prof.key_averages(), "aten::add").overload_name == ""
    assert all(e.overload_name == "" for e in small_profile().events())


def test_data_frames_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pandas is not installed; `pip install mindtorch_v2\[pandas\]`"):
        small_profile().key_averages().to_pandas()


def test_data_frames_have_a_row_an_event() -> None:
    pytest.importorskip("pandas", reason="runs with the extra `pandas`")
    prof = small_profile()
    assert len(prof.events().to_pandas()) == len(prof.events())
    assert list(prof.key_averages().to_pandas()["key"]) == [r.key for r in prof.key_averages()]


@pytest.mark.parametrize(
    "name", ["record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"]
)
@pytest.mark.parametrize("value", ["yes", [], object()])
def test_a_switch_that_is_no_truth_value_is_refused_and_leaves_nothing_on(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        profile(**{name: value}).start()  # type: ignore[arg-type]
    with profile() as prof:
        torch.ones(2)
    assert [event.name for event in prof.events()] == ["aten::ones", "aten::empty", "aten::fill_"]


@pytest.mark.parametrize("name", ["record_shapes", "with_flops"])
def test_shapes_and_flops_take_no_float_as_in_torch(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        profile(**{name: 2.5}).start()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [("verbose", "x"), ("profile_all_threads", []), ("trace_only", ""), ("custom_profiler_config", 3)],
)
def test_wrong_types_in_the_experimental_settings_are_refused_as_in_torch(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=name):
        _ExperimentalConfig(**{name: value})  # type: ignore[arg-type]
    assert _ExperimentalConfig(verbose=None, trace_only=1).trace_only  # type: ignore[arg-type]


def test_none_switches_memory_off_as_in_torch() -> None:
    with profile(profile_memory=None, with_stack=None) as prof:  # type: ignore[arg-type]
        torch.ones(2)
    assert len(prof.events()) == 3


@pytest.mark.parametrize("config", [{}, False, "x"])
def test_an_experimental_config_of_another_type_is_refused(config: object) -> None:
    with pytest.raises(AttributeError, match="must be an _ExperimentalConfig"):
        profile(experimental_config=config)  # type: ignore[arg-type]


def test_metadata_that_is_no_text_is_refused() -> None:
    with profile() as prof:
        pass
    for call in (prof.add_metadata, prof.add_metadata_json):
        for key, value in ((1, "2"), ("key", 2)):
            with pytest.raises(TypeError, match="metadata must be"):
                call(key, value)  # type: ignore[arg-type]


def test_a_second_stop_keeps_the_events() -> None:
    prof = profile()
    prof.start()
    torch.ones(2)
    prof.stop()
    prof.stop()
    assert len(prof.events()) == 3


def test_a_callback_that_cannot_write_its_file_does_not_end_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "t.json"  # a file is no folder
    steps = 0

    def train() -> profile:
        nonlocal steps
        with profile(
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1),
            on_trace_ready=lambda prof: prof.export_chrome_trace(str(target)),
        ) as prof:
            for _ in range(4):
                torch.ones(2)
                steps += 1
                prof.step()
        return prof

    with pytest.warns(UserWarning, match=r"t\.json: not written"):
        prof = train()
    assert steps == 4
    with pytest.raises(NotADirectoryError):
        prof.export_chrome_trace(str(target))


def test_the_exception_of_the_program_wins_over_that_of_its_callback() -> None:
    def fail(prof: object) -> None:
        raise OSError("of the callback")

    with (
        pytest.warns(UserWarning, match="of the callback"),
        pytest.raises(ValueError, match="of the program"),
        profile(on_trace_ready=fail),
    ):
        raise ValueError("of the program")


def test_a_worker_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without folders"):
        torch.profiler.tensorboard_trace_handler(str(tmp_path), worker_name="../x")


def test_a_range_that_was_not_entered_cannot_be_left() -> None:
    range_ = torch.profiler.record_function("x")
    with pytest.raises(AssertionError, match="Expected record to be set"):
        range_.__exit__(None, None, None)
    with range_:
        pass
    with profile():
        with range_:
            pass
        with pytest.raises(AssertionError, match="Expected record to be set"):
            range_.__exit__(None, None, None)


@pytest.mark.parametrize("device", ["bogus", "", "cpu0"])
def test_a_memory_timeline_of_an_unknown_device_is_refused(device: str, tmp_path: Path) -> None:
    with profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        torch.ones(2)
    with pytest.raises(RuntimeError, match="evice string"):
        prof.export_memory_timeline(str(tmp_path / "t.json"), device=device)
