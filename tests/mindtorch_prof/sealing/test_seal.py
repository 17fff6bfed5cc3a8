"""Tests of mindtorch_prof.sealing.seal: from rows of integers to a Trace."""

from __future__ import annotations

from raw_recordings import MAIN, NamedFunctions, raw_recording

from mindtorch_prof.sealing.seal import seal
from mindtorch_prof.settings import Settings


def test_events_are_sorted_by_thread_and_start_with_parents_first() -> None:
    trace = seal(
        raw_recording({MAIN: [(0, 20, 30, -1), (1, 20, 40, -1), (0, 50, 60, 4)], 6000: [(1, 1, 2, -1)]})
    )
    assert [trace.names[n] for n in trace.name] == ["aten::mul", "aten::mul", "aten::add", "aten::add"]
    assert trace.thread.tolist() == [6000, MAIN, MAIN, MAIN]
    assert trace.start_ns.tolist() == [1, 20, 20, 50]
    assert trace.sequence.tolist() == [-1, -1, -1, 4]


def test_a_recording_without_rows_is_an_empty_trace() -> None:
    trace = seal(raw_recording({MAIN: []}))
    assert (len(trace), trace.names, len(trace.memory)) == (0, (), 0)


def test_threads_have_the_names_of_those_that_run() -> None:
    trace = seal(
        raw_recording({MAIN: [(0, 1, 2, -1)]}, thread_names={MAIN: (MAIN + 1, "main"), 9: (10, "other")})
    )
    assert trace.settings.threads == {MAIN: (MAIN + 1, "main"), 9: (10, "other")}


def test_places_of_tensors_count_from_the_logs_of_all_threads() -> None:
    columns = ("key", "start", "end", "sequence", "inputs", "tensors")
    rows = {MAIN: [(0, 1, 2, -1, -1, 0)], 8000: [(0, 3, 4, -1, -1, 1), (0, 5, 6, -1, -1, -1)]}
    import numpy as np

    from mindtorch_prof.sealing.raw import TensorTables

    tables = TensorTables(0, np.empty((0, 2), np.int64), {}, (), {}, np.empty((0, 3), np.int64))
    logs = {("tensors", MAIN): [11, 12], ("tensors", 8000): [21, 22]}
    trace = seal(raw_recording(rows, columns=columns, logs=logs, tensor_tables=tables))
    assert trace.tensor_ids.first.tolist() == [0, 3, -1]
    assert trace.tensor_ids.tensor.tolist() == [11, 12, 21, 22]


def test_an_event_has_the_stack_of_the_calls_before_it() -> None:
    columns = ("key", "start", "end", "sequence", "calls")
    rows = {MAIN: [(0, 15, 16, -1, 2), (0, 25, 26, -1, 3)]}
    logs = {("calls", MAIN): [3, 1, 4, 10, 0, 20, 0, 30]}
    trace = seal(
        raw_recording(
            rows,
            columns=columns,
            logs=logs,
            functions=NamedFunctions("outer", "inner"),
            settings=Settings(with_stack=True),
        )
    )
    assert [trace.stacks[n] for n in trace.stack] == [("inner", "outer"), ("outer",)]
    assert [
        (trace.frames.names[n], s, e)
        for n, s, e in zip(trace.frames.name, trace.frames.start_ns, trace.frames.end_ns)
    ] == [
        ("outer", 1, 30),
        ("inner", 10, 20),
    ]
