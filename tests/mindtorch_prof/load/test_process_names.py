"""Tests of mindtorch_prof.load.process_names: metadata events become names of threads and processes."""

from __future__ import annotations

from typing import Any

from mindtorch_prof.load.process_names import ProcessNames


def event(name: str, pid: Any, tid: Any = 0, /, **args: Any) -> Any:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def test_the_last_name_of_a_thread_or_process_counts() -> None:
    names = ProcessNames()
    names.add([event("thread_name", 1, 7, name="first"), event("process_name", "1", name=" python ")])
    names.add([event("thread_name", "1", 7, name="second"), event("process_labels", 1, labels="CPU")])
    assert names.threads == {(1, 7): "second"}
    assert names.processes == {1: "python"}
    assert names.labels == {1: "CPU"}


def test_metadata_that_names_nothing_is_left_out() -> None:
    names = ProcessNames()
    names.add([event("process_name", [1], name="x"), event("thread_name", 1, {}, name="x")])
    names.add([event("process_sort_index", 1, sort_index=3), {"ph": "M", "name": "process_name", "pid": 1}])
    assert (names.threads, names.processes, names.labels) == ({}, {}, {})
