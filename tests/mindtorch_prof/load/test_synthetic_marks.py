"""Marks of synthetic events in files: written and read back, whatever the order of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kineto_documents import document, event, load_document
from synthetic_traces import linear_with_synthetic_ops, synthetic_traces

from mindtorch_prof import load
from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.load.synthetic_marks import mark_of, without_gaps
from mindtorch_prof.trace import Trace
from mindtorch_prof.tree import tree


def same_rows(loaded: Trace, trace: Trace) -> None:
    shown = lambda t: [t.names[n] for n in t.name.tolist()]
    assert shown(loaded) == shown(trace)
    assert (None if loaded.synthetic is None else loaded.synthetic.tolist()) == (
        trace.synthetic.tolist() if trace.n_synthetic else None
    )
    assert loaded.end_ns.tolist() == (trace.end_ns + trace.origin_ns - loaded.origin_ns).tolist()
    mine, theirs = tree(loaded), tree(trace)
    for column in ("parent", "self_ns", "memory", "self_memory", "loose"):
        assert getattr(mine, column).tolist() == getattr(theirs, column).tolist()


def _sorted_and_distinct(trace: Trace) -> bool:
    """Whether the times alone say which event is the outer one: a file says no more than that."""
    keys = list(zip(trace.thread.tolist(), trace.start_ns.tolist(), (-trace.end_ns).tolist()))
    return keys == sorted(keys) and len({*keys}) == len(keys)


@given(synthetic_traces(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_a_written_trace_has_its_synthetic_events_again_in_whatever_order_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, traces: tuple[Trace, Trace], random: Any
) -> None:
    trace = traces[1]
    assume(_sorted_and_distinct(traces[0]))
    path = tmp_path_factory.mktemp("marks") / "trace.json"
    export_chrome_trace(trace, path)
    same_rows(load(path, strict=True).trace, trace)
    content = json.loads(path.read_text())
    marked = [e["args"]["Synthetic"] for e in content["traceEvents"] if "Synthetic" in e.get("args", {})]
    assert len(marked) == trace.n_synthetic
    random.shuffle(content["traceEvents"])
    path.write_text(json.dumps(content))
    same_rows(load(path, strict=True).trace, trace)


def test_the_file_says_how_deep_a_synthetic_event_stands_and_which_allocates(tmp_path: Path) -> None:
    export_chrome_trace(linear_with_synthetic_ops(), tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    marks = [(e["args"].get("Synthetic"), e["args"].get("Allocates")) for e in ops]
    assert [(e["name"], e["dur"], *mark) for e, mark in zip(ops, marks)][1:5] == [
        ("aten::linear", 10, None, None),
        ("aten::t", 0, 1, None),
        ("aten::transpose", 0, 2, None),
        ("aten::addmm", 0, 1, 1),
    ]  # fmt: skip
    assert {e["ts"] for e in ops[1:5]} == {ops[1]["ts"]}


def test_a_file_without_marks_has_no_column() -> None:
    assert load_document(document([event("aten::add", 1, 2)])).trace.synthetic is None


def test_a_synthetic_event_without_its_recorded_one_is_left_out_and_counted() -> None:
    ops = [
        event("aten::add", 1.0, 2.0, **{"External id": 1}),
        event("aten::t", 5.0, 0, **{"External id": 9, "Synthetic": 1}),
    ]
    loaded = load_document(document(ops))
    assert [loaded.trace.names[n] for n in loaded.trace.name.tolist()] == ["aten::add"]
    assert loaded.trace.synthetic is None
    assert loaded.health.line() == "1 dropped; 1 dropped: synthetic, without the event that they stand in"


@pytest.mark.parametrize("value", ["yes", 0, -3, 128, True, None, [1]])
def test_what_another_program_means_by_the_argument_is_no_mark(value: Any) -> None:
    assert mark_of({"Synthetic": value}, 0) == 0
    ops = [
        event("aten::add", 1.0, 2.0, **{"External id": 1}),
        event("x", 1.0, 0, **{"External id": 2, "Synthetic": value}),
    ]
    assert len(load_document(document(ops)).trace) == 2


def test_an_event_that_has_a_duration_is_not_synthetic() -> None:
    assert (
        mark_of({"Synthetic": 1}, 0.5),
        mark_of({"Synthetic": 1}, 0.0),
        mark_of({"Synthetic": 2, "Allocates": 1}, 0),
    ) == (0, 1, -2)


def test_below_a_missing_level_events_move_up() -> None:
    marks = np.array([0, 2, 3, -2, 0, 0, 3], np.int8)
    assert without_gaps(marks).tolist() == [0, 1, 2, -2, 0, 0, 1]
