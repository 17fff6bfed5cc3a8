"""Collecting events: which are kept, repaired or left out, and that it is counted."""

from __future__ import annotations

from typing import Any

import kineto_documents as documents
import pytest
from average_rows import row
from kineto_documents import event_names, load_document


def test_begins_and_ends_are_paired() -> None:
    def mark(phase: str, at: float, **more: Any) -> dict[str, Any]:
        return {"ph": phase, "pid": 1, "tid": 1, "ts": at, **more}

    events = [
        mark("B", 0.0, name="outer", cat="cpu_op", args={"External id": 1}),
        mark("B", 2.0, name="inner", cat="cpu_op"),
        mark("E", 5.5),
        mark("E", 10.0),
    ]
    loaded = load_document(events, strict=True)
    assert (row(loaded, "outer").cpu_time_total, row(loaded, "outer").self_cpu_time_total) == (10.0, 6.5)


def test_counters_of_other_writers_are_kept() -> None:
    counter = {"ph": "C", "name": "queue", "pid": 1, "tid": 0, "ts": 5.0, "args": {"length": 3}}
    counters = load_document([*documents.cpu()["traceEvents"], counter]).trace.counters
    assert (counters.names, counters.time_ns.tolist(), counters.value.tolist()) == (("queue",), [5000], [3.0])


def test_events_that_lack_what_an_event_needs_are_counted_and_left_out() -> None:
    document = documents.cpu()
    document["traceEvents"] += [
        {"name": "no phase", "ts": 1},
        {"ph": "X", "name": "no time", "pid": 1, "tid": 1, "dur": 3},
        17,
        None,
        {"ph": "X", "name": "no duration", "pid": 1, "tid": 1, "ts": 1500.0},
        {"ph": "X", "name": "negative", "pid": 1, "tid": 1, "ts": 1600.0, "dur": -5, "cat": "cpu_op"},
        {"ph": "X", "cat": "cpu_op", "name": "texts", "pid": "1", "tid": "1", "ts": "1700.5", "dur": "2"},
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": ["a", "list"],
            "pid": [],
            "tid": {},
            "ts": 1800,
            "dur": 1,
            "args": [],
        },
    ]
    loaded = load_document(document)
    assert loaded.health.dropped == 4
    assert loaded.health.repaired == 3
    assert event_names(loaded)[4:] == ["no duration", "negative", "texts", "['a', 'list']"]
    assert all(event.self_cpu_time_total >= 0 for event in loaded.events())


@pytest.mark.parametrize("phase", [7, 1.5, None, True, ["X"], {"X": 1}])
def test_events_whose_phase_is_no_text_are_counted_and_left_out(phase: Any) -> None:
    odd = {**documents.event("odd", 1.0, 5.0), "ph": phase}
    del odd["dur"]
    loaded = load_document([odd, documents.event("after", 7.0, 5.0)])
    assert event_names(loaded) == ["after"]
    assert loaded.health.dropped == 1
    assert "no phase" in loaded.health.line()


def test_events_at_time_0_are_left_out_where_time_is_that_of_a_clock() -> None:
    document = documents.gpu("2021")
    document["traceEvents"] += [
        documents.kernel("lost", 0, 5, cat="Kernel"),
        documents.event("lost too", 0, 5, "Operator"),
    ]
    loaded = load_document(document)
    assert loaded.health.dropped == 2
    assert "at time 0" in loaded.health.line()
    assert "lost" not in event_names(loaded)
    short = load_document([documents.event("begins at 0", 0, 5), documents.event("later", 7, 5)])
    assert event_names(short) == ["begins at 0", "later"]
    assert short.health


def test_beginnings_and_ends_without_each_other_are_told() -> None:
    marks = [("E", 1.0, ""), ("B", 2.0, "open"), ("B", 3.0, "closed"), ("E", 4.0, "")]
    events = [{"ph": p, "ts": t, "name": n, "cat": "cpu_op", "pid": 1, "tid": 1} for p, t, n in marks]
    loaded = load_document(events)
    assert event_names(loaded) == ["open", "closed"]
    assert (loaded.health.dropped, loaded.health.repaired, loaded.health.unfinished) == (1, 1, 1)
