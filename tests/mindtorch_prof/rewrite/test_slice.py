"""Slices of trace files: what was asked for stays with what belongs to it, and the file stays a trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_traces import linear_with_synthetic_ops
from trace_file_builder import MAIN, OTHER, START, STREAM, TraceFileBuilder, read_trace, training

import mindtorch_v2 as torch
from mindtorch_prof.load import load
from mindtorch_prof.recorded_health import KEY as HEALTH_KEY
from mindtorch_prof.rewrite.slice import NothingLeftError, Selection, slice_trace
from mindtorch_prof.trace import Health
from mindtorch_v2.profiler import profile, record_function


def sliced(trace: TraceFileBuilder, folder: Path, **wanted: Any) -> list[dict[str, Any]]:
    """The events that a selection leaves."""
    slice_trace(trace.dump(folder / "whole.json"), folder / "part.json", Selection(**wanted))
    return read_trace(folder / "part.json")["traceEvents"]


def counts(events: list[dict[str, Any]], phase: str = "X") -> Counter[str]:
    return Counter(event["name"] for event in events if event["ph"] == phase)


def test_without_conditions_nothing_is_lost_or_changed(tmp_path: Path) -> None:
    trace = training(3)
    trace.events.append(
        {"ph": "C", "name": "gpu power", "pid": 1, "tid": 1, "ts": START + 5, "args": {"W": 70}}
    )
    trace.events.append(
        {
            "ph": "X",
            "cat": "unheard_of",
            "name": "?",
            "pid": 9,
            "tid": 9,
            "ts": START + 5,
            "dur": 1,
            "more": [None],
        }
    )
    trace.top["unknown"] = {"deep": [1, {"x": "ü"}]}
    slice_trace(trace.dump(tmp_path / "a.json"), tmp_path / "b.json.gz", Selection())
    assert read_trace(tmp_path / "b.json.gz") == read_trace(tmp_path / "a.json")


def test_a_step_keeps_its_ops_memory_frames_and_the_kernels_it_launched(tmp_path: Path) -> None:
    events = sliced(training(4), tmp_path, steps=((1, 2),))
    names = counts(events)
    assert (names["aten::addmm"], names["AddmmBackward0"], names["gemm"], names["ProfilerStep#1"]) == (
        2,
        2,
        2,
        1,
    )
    assert "ProfilerStep#0" not in names
    assert counts(events, "i")["[memory]"] == 2
    assert counts(events, "s") == counts(events, "f") == {"ac2g": 2}
    assert counts(events, "M")["thread_name"] == 2
    kernels = [event["ts"] - START for event in events if event.get("cat") == "kernel"]
    assert kernels == [160, 260]


def test_what_encloses_the_selection_is_cut_to_it_and_says_so(tmp_path: Path) -> None:
    events = sliced(training(4), tmp_path, steps=((1, 1),))
    root = next(event for event in events if event["name"] == "train.py(1): <module>")
    assert (root["ts"] - START, root["dur"], root["args"]["clipped"]) == (100, 99, True)
    inner = [event for event in events if event["name"] == "train.py(5): step"]
    assert [("clipped" in event["args"], event["dur"]) for event in inner] == [(False, 97)]
    end = next(event for event in events if event["name"] == "Record Window End")
    assert end["ts"] - START == 199


def test_a_kernel_that_runs_after_the_step_stays_with_the_op_that_launched_it(tmp_path: Path) -> None:
    trace = training(2)
    late = trace.op("aten::late", 95, 2)
    trace.launch(late, 95, 500, 10, name="late kernel")
    assert counts(sliced(trace, tmp_path, steps=((0, 0),)))["late kernel"] == 1
    assert counts(sliced(trace, tmp_path, steps=((1, 1),)))["late kernel"] == 0


def test_time_is_counted_from_the_beginning_of_the_trace(tmp_path: Path) -> None:
    events = sliced(training(3), tmp_path, time_us=(100, 150))
    assert {"aten::linear", "aten::relu", "ProfilerStep#1"} <= set(counts(events))
    # what is cut at the same time begins a nanosecond apart, the outer ones first
    assert all(
        e["ts"] - START > 99.9 and e["ts"] - START + e["dur"] < 150.1
        for e in events
        if e["ph"] == "X" and e["cat"] != "kernel"
    )


def test_a_name_keeps_what_matches_all_inside_and_the_kernels_of_that(tmp_path: Path) -> None:
    events = sliced(training(3), tmp_path, name="^aten::linear$")
    assert counts(events) == {"aten::linear": 3, "aten::addmm": 3, "cudaLaunchKernel": 3, "gemm": 3}
    assert counts(events, "i")["[memory]"] == 3
    assert counts(sliced(training(3), tmp_path, name="gemm")) == {"gemm": 3}


def test_under_an_annotation_stays_what_its_process_does_meanwhile(tmp_path: Path) -> None:
    trace = training(3)
    trace.op("decode 7", 155, 30, cat="user_annotation")
    assert counts(sliced(trace, tmp_path, under=("decode *",)))["AddmmBackward0"] == 1
    assert "aten::relu" not in counts(sliced(trace, tmp_path, under=("decode *",)))


def test_threads_go_by_number_or_name_and_keep_their_kernels(tmp_path: Path) -> None:
    assert set(counts(sliced(training(2), tmp_path, threads=(str(OTHER),)))) == {"AddmmBackward0"}
    main = counts(sliced(training(2), tmp_path, threads=(f"thread {MAIN}",)))
    assert (main["gemm"], main["AddmmBackward0"]) == (2, 0)
    assert set(counts(sliced(training(2), tmp_path, threads=(str(STREAM),)))) == {"gemm"}


def test_short_slices_and_whole_categories_can_be_left_out(tmp_path: Path) -> None:
    events = sliced(training(2), tmp_path, min_us=10, drop=("python_function", "memory", "flows"))
    assert all(event["dur"] >= 10 for event in events if event["ph"] == "X")
    assert not {"s", "f"} & {event["ph"] for event in events}
    assert "[memory]" not in {event["name"] for event in events}
    assert "python_function" not in {event.get("cat") for event in events}


def test_a_frame_whose_caller_went_hangs_on_the_next_one_out(tmp_path: Path) -> None:
    trace = TraceFileBuilder()
    outer = trace.frame("outer", 0, 100, None)
    middle = trace.frame("middle", 10, 40, outer)
    trace.frame("inner", 11, 38, middle)
    events = {
        event["name"]: event
        for event in sliced(trace.close(100), tmp_path, drop=("middle",))
        if event["ph"] == "X"
    }
    assert events["inner"]["args"]["Python parent id"] == events["outer"]["args"]["Python id"]
    alone = sliced(trace, tmp_path, name="^inner$")
    assert next(e for e in alone if e["name"] == "inner")["args"]["Python parent id"] is None


def test_callers_in_a_circle_end_the_search_for_the_next_one_out(tmp_path: Path) -> None:
    trace = TraceFileBuilder()
    first = trace.frame("first", 0, 100, None)
    second = trace.frame("second", 10, 40, first)
    next(e for e in trace.events if e["name"] == "first")["args"]["Python parent id"] = second
    trace.frame("inner", 11, 38, second)
    events = sliced(trace.close(100), tmp_path, name="^inner$")
    assert next(e for e in events if e["name"] == "inner")["args"]["Python parent id"] is None


def test_begins_and_ends_stay_together(tmp_path: Path) -> None:
    trace = TraceFileBuilder()
    for name, at, until in (("a", 0, 50), ("b", 60, 90)):
        for phase, time in (("B", at), ("E", until)):
            trace.events.append(
                {"ph": phase, "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": START + time}
            )
    events = sliced(trace, tmp_path, time_us=(20, 80))
    assert [(e["ph"], e["ts"] - START) for e in events if e["ph"] in "BE"] == [
        ("B", 20),
        ("E", 50),
        ("B", 60),
        ("E", 80),
    ]


def test_a_live_profile_can_be_sliced(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        with record_function("kept"):
            torch.ones(3) + 1
        torch.ones(3) * 2
    done = slice_trace(prof, tmp_path / "part.json", Selection(under=("kept",)))
    names = counts(read_trace(tmp_path / "part.json")["traceEvents"])
    assert (names["aten::add"], names["aten::mul"]) == (1, 0)
    assert done.kept < done.events


def test_a_selection_that_leaves_nothing_says_what_there_is(tmp_path: Path) -> None:
    path = training(2, first=4).dump(tmp_path / "a.json")
    for wanted, text in (
        (Selection(steps=((9, 9),)), "it has 4, 5"),
        (Selection(under=("nobody",)), "nothing in it is called 'nobody'"),
        (Selection(ranks=(3,)), "has no rank 3; it names no ranks"),
        (Selection(name="nothing like it"), "no name matches"),
    ):
        with pytest.raises(NothingLeftError, match=text):
            slice_trace(path, tmp_path / "b.json", wanted)
    assert not (tmp_path / "b.json").exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slice")


@settings(max_examples=40)
@given(
    low=st.integers(0, 380),
    length=st.integers(1, 200),
    min_us=st.sampled_from([0, 3, 12]),
    drop=st.sampled_from([(), ("python_function",)]),
)
def test_any_window_gives_a_trace_that_nests_and_loads_with_paired_flows(
    folder: Path, low: int, length: int, min_us: int, drop: tuple[str, ...]
) -> None:
    wanted = {"time_us": (low, low + length), "min_us": min_us, "drop": drop}
    try:
        events = sliced(training(4), folder, **wanted)
    except NothingLeftError:
        return
    flows = Counter((e["id"], e["ph"]) for e in events if e["ph"] in "sf")
    assert all(flows[(number, "s")] == flows[(number, "f")] == 1 for number, _ in flows)
    ids = {e["args"]["Python id"] for e in events if e.get("cat") == "python_function"}
    assert all(
        e["args"]["Python parent id"] in ids | {None} for e in events if e.get("cat") == "python_function"
    )
    for tid in (MAIN, OTHER):
        ends: list[float] = []
        host = [
            e
            for e in events
            if e["ph"] == "X" and e["tid"] == tid and e["cat"] in ("cpu_op", "user_annotation")
        ]
        for event in sorted(host, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
            assert not ends or event["ts"] + event["dur"] <= ends[-1]
            ends.append(event["ts"] + event["dur"])
    loaded = load(str(folder / "part.json"))
    assert (
        sum(row.count for row in loaded.key_averages() if row.key == "aten::relu")
        == counts(events)["aten::relu"]
    )
    # cutting once more changes nothing: the window now begins with what is left
    assert len(events) <= len(training(4).events)


def test_slices_of_all_steps_hold_what_the_whole_holds(tmp_path: Path) -> None:
    whole, parts = counts(training(4).events), Counter[str]()
    for step in range(4):
        parts += counts(sliced(training(4), tmp_path, steps=((step, step),)))
    for name in ("aten::linear", "aten::addmm", "aten::relu", "AddmmBackward0", "gemm", "cudaLaunchKernel"):
        assert parts[name] == whole[name]


def shown(path: Path) -> list[tuple[str, int]]:
    """Names and marks of the events of a file."""
    trace = load(path, strict=True).trace
    marks = [0] * len(trace) if trace.synthetic is None else trace.synthetic.tolist()
    return list(zip([trace.names[number] for number in trace.name.tolist()], marks))


INSIDE = [
    ("aten::t", 1),
    ("aten::transpose", 2),
    ("aten::addmm", -1),
]  # a synthetic part of each aten::linear
LINEAR = [("aten::linear", 0), *INSIDE]


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ({}, [("forward", 0), *LINEAR, ("aten::t", 0), *LINEAR]),
        ({"time_us": (15.0, 40.0)}, LINEAR),
        ({"time_us": (5.0, 22.0)}, [("forward", 0), *LINEAR, ("aten::t", 0), *LINEAR]),  # both are cut
        ({"name": "addmm"}, LINEAR * 2),  # what ran stays with what is shown inside
        ({"name": "aten::t$"}, [*LINEAR, ("aten::t", 0), *LINEAR]),
        ({"min_us": 5.0}, [("forward", 0), ("aten::linear", 0), ("aten::linear", 0)]),
        ({"drop": ("aten::linear",)}, [("forward", 0), ("aten::t", 0)]),
        ({"drop": ("aten::t",)}, [("forward", 0), *[LINEAR[0], ("aten::transpose", 1), LINEAR[3]] * 2]),
    ],
)  # fmt: skip
def test_synthetic_events_stay_with_the_events_that_ran(
    tmp_path: Path, wanted: dict[str, Any], left: list[tuple[str, int]]
) -> None:
    slice_trace(linear_with_synthetic_ops(), tmp_path / "part.json", Selection(**wanted))
    assert shown(tmp_path / "part.json") == left


def test_a_synthetic_event_begins_where_the_cut_event_begins(tmp_path: Path) -> None:
    slice_trace(linear_with_synthetic_ops(), tmp_path / "part.json", Selection(time_us=(25.0, 40.0)))
    events = [e for e in read_trace(tmp_path / "part.json")["traceEvents"] if e.get("cat") == "cpu_op"]
    assert [event["name"] for event in events] == [name for name, _ in LINEAR]
    assert len({event["ts"] for event in events}) == 1
    assert [event["dur"] for event in events] == [5, 0, 0, 0]


def test_the_part_of_an_incomplete_file_says_what_the_whole_lacks(tmp_path: Path) -> None:
    trace = training(3)
    trace.top[HEALTH_KEY] = {"dropped": 12, "notes": ["the program was killed"]}
    whole = trace.dump(tmp_path / "whole.json")
    slice_trace(whole, tmp_path / "part.json", Selection(steps=((1, 1),)))
    assert load(tmp_path / "part.json").health == Health(dropped=12, notes=("the program was killed",))
    text = Path(whole).read_bytes()
    (tmp_path / "cut.json").write_bytes(text[: len(text) - 40])
    done = slice_trace(tmp_path / "cut.json", tmp_path / "part.json", Selection())
    notes = load(tmp_path / "part.json").health.notes
    assert notes == ("the program was killed", *(f"cut.json: {note}" for note in done.notes))
    assert done.notes
