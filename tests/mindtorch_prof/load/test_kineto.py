"""Kineto files: what was written is what is read, torch's own files included."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import fact_files
import kineto_documents as documents
import numpy as np
import pytest
import record_loaded_trace
from average_rows import row, rows
from fact_files import FACTS
from hypothesis import given
from hypothesis import strategies as st
from kineto_documents import load_document

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.load.kineto import _outer_first
from mindtorch_prof.trace import Frames
from mindtorch_v2.profiler import profile, record_function, schedule

GROUPINGS: tuple[dict[str, Any], ...] = (
    {},
    {"group_by_input_shape": True},
    {"group_by_input_shape": False, "group_by_stack_n": 3},
)


def rows_of(frames: Frames, keep: np.ndarray) -> Frames:
    """Some of the calls, whose callers are among them."""
    new_row = np.append(np.cumsum(keep) - 1, -1)
    names = ("name", "start_ns", "end_ns", "thread", "module", *(() if frames.line is None else ("line",)))
    columns = {name: getattr(frames, name)[keep] for name in names}
    return replace(frames, parent=new_row[frames.parent[keep]], **columns)


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def train(prof: Any = None) -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)
    )
    for _ in range(3):
        with record_function('a "quoted" span, déjà vu'):
            y = net(torch.ones(2, 3, 8, 8))
        torch.cat([Scaled.apply(y), y]).sum().backward()
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        if prof is not None:
            prof.step()


@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=4)))
def test_a_recording_is_the_same_after_it_was_written_and_read(
    flags: tuple[bool, ...], tmp_path: Path
) -> None:
    names = ("record_shapes", "profile_memory", "with_stack", "with_flops")
    with profile(**dict(zip(names, flags))) as prof:  # type: ignore[arg-type]
        train()
    # of the recording thread alone: a file orders threads by the numbers that the system gave them
    trace = prof.profiler._results.trace
    own = trace.frames.thread == trace.settings.thread
    prof.profiler._show(replace(trace, frames=rows_of(trace.frames, own)))
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    loaded = load(path, strict=True)
    for how in GROUPINGS:
        # in a file, calls that begin or end together are a nanosecond apart, to show which is outside
        read, written = loaded.results, prof.profiler._results
        assert rows(read.key_averages(*how.values())) == rows(written.key_averages(*how.values()))
        assert read.key_averages(*how.values()).table() == written.key_averages(*how.values()).table()
        counts = lambda averages: [(row.key, row.count) for row in averages]
        assert counts(loaded.key_averages(**how)) == counts(prof.key_averages(**how))
    names_of = lambda events: [(e.name, e.sequence_nr, e.fwd_thread, e.thread, e.scope) for e in events]
    assert names_of(loaded.events()) == names_of(prof.events())
    parents = lambda events: [e.cpu_parent.name if e.cpu_parent else None for e in events]
    assert parents(loaded.events()) == parents(prof.events())


def test_steps_metadata_and_flags_are_read_back(tmp_path: Path) -> None:
    with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1), record_shapes=True) as prof:
        prof.add_metadata("note", "thrice")
        train(prof)
        prof.add_metadata_json("distributedInfo", '{"rank": 3, "world_size": 8}')
        prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    loaded = load(str(tmp_path / "t.json.gz"))
    settings = loaded.trace.settings
    assert (settings.rank, settings.world_size) == (3, 8)
    assert settings.record_shapes
    assert not settings.profile_memory
    assert settings.source.endswith("t.json.gz")
    assert row(loaded, "ProfilerStep*").count == 2
    assert [n for n in loaded.trace.names if n.startswith("ProfilerStep")] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]


def recorded() -> tuple[Any, dict[str, Any]]:
    tables = fact_files.read("torch_trace_tables.json.gz")
    return load(FACTS / "torch_trace.json.gz", strict=True), tables


def check_against_torch(loaded: Any, recorded: dict[str, Any]) -> None:
    for name, how in record_loaded_trace.GROUPS.items():
        averages = loaded.key_averages(**how)
        mine = [[getattr(r, field) for field in record_loaded_trace.FIELDS] for r in averages]
        theirs = recorded[name]["rows"]
        assert [r[:2] for r in mine] == [r[:2] for r in theirs]
        for a, b in zip(mine, theirs):
            assert a[4:] == b[4:]
            # torch adds floats, we add whole nanoseconds
            assert a[2:4] == pytest.approx(b[2:4], abs=1e-6 * b[1])
        table = averages.table(sort_by="cpu_time_total", row_limit=20)
        assert_equal_but_for_rounding(table, recorded[name]["table"])


def assert_equal_but_for_rounding(mine: str, theirs: str) -> None:
    """The same text, with times that may differ by one in their last digit."""
    number = re.compile(r"(-?\d+\.\d+)(us|ms|s|%)")
    assert number.sub("#", mine) == number.sub("#", theirs)
    for a, b in zip(number.findall(mine), number.findall(theirs)):
        assert float(a[0]) == pytest.approx(float(b[0]), abs=0.0011 if a[1] != "%" else 0.011)


def test_the_table_of_a_file_is_the_one_that_torch_printed() -> None:
    check_against_torch(*recorded())


@pytest.mark.parametrize(
    "settings", [{}, {"record_shapes": True, "profile_memory": True, "with_flops": True}]
)
def test_torch_prints_the_table_that_its_file_gives(
    torch_reference: ModuleType, settings: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "live.json"
    recorded = json.loads(json.dumps(record_loaded_trace.run(str(path), **settings)))
    check_against_torch(load(path), recorded)


def test_events_exported_from_a_list_open(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        train()
    prof.events()._like(list(prof.events())).export_chrome_trace(str(tmp_path / "events.json"))
    prof.key_averages().export_chrome_trace(str(tmp_path / "averages.json"))
    loaded = load(tmp_path / "events.json")
    counts = {r.key: r.count for r in loaded.key_averages()}
    assert counts == {r.key: r.count for r in prof.key_averages()}
    assert {r.key for r in load(tmp_path / "averages.json").key_averages()} == set(counts)


def test_two_processes_with_the_same_thread_numbers_stay_apart() -> None:
    events = [documents.event("a", 0.0, 10.0), documents.event("b", 2.0, 20.0) | {"pid": 7}]
    loaded = load_document(events, strict=True)
    assert len(set(loaded.trace.thread.tolist())) == 2
    assert sorted(loaded.trace.settings.thread_pids.values()) == [7, documents.PID]


MANY = 20_000


def crowd(case: str) -> list[dict[str, Any]]:
    """Files that take for ever where each level, each repeated number or each deep call costs a pass."""
    if case == "equal slices":
        memory = {
            "ph": "i",
            "name": "[memory]",
            "pid": documents.PID,
            "tid": documents.PID,
            "ts": 20.0,
            "args": {"Bytes": 8},
        }
        return [documents.event(f"a{i % 3}", 1.0, 9.0) for i in range(MANY)] + [memory] * 1000
    if case == "slices inside each other":
        return [documents.event("a", float(i), 2.0 * (MANY - i)) for i in range(MANY)]
    if case == "calls inside each other":
        ids = [{"Python id": i + 1, "Python parent id": i or None} for i in range(MANY)]
        calls = [
            documents.event("f", float(i), 2.0 * (MANY - i), "python_function", **ids[i]) for i in range(MANY)
        ]
        return [*calls, documents.event("a", MANY - 1.0, 1.0)]
    if case == "stairs":
        return [documents.event("a", float(i), 5.0) for i in range(MANY)]
    same = {"External id": 7, "correlation": 5}
    ops = [documents.event("a", 10.0 * i, 9.0, **same) for i in range(MANY)]
    return ops + [documents.kernel("k", 10.0 * i + 5, 1.0, **same) for i in range(MANY)]


@pytest.mark.parametrize(
    "case", ["equal slices", "slices inside each other", "calls inside each other", "stairs", "equal numbers"]
)
def test_no_file_is_too_deep(case: str) -> None:
    loaded = load_document(crowd(case))
    rows = loaded.key_averages(group_by_stack_n=2)
    assert all(row.self_cpu_time_total >= 0 for row in rows)
    assert loaded.total_average().count > 0


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), max_size=40
    )
)
def test_rows_are_ordered_by_all_keys_and_stay_in_order_where_those_are_equal(
    rows_: list[tuple[int, int, int, int]],
) -> None:
    thread, start, length, own = np.array(rows_, np.int64).reshape(-1, 4).T
    order = _outer_first((thread, start), length, own)
    key = lambda place: (rows_[place][0], rows_[place][1], -rows_[place][2], rows_[place][3])
    assert order.tolist() == sorted(range(len(rows_)), key=key)


def test_launch_calls_keep_the_names_of_their_kernels() -> None:
    call = documents.event("hipLaunchKernel", 1.0, 1.0, "cuda_runtime", kernel="gemm", correlation=3, cid=107)
    trace = load_document(documents.document([call])).trace
    assert trace.extra is not None
    assert dict(trace.extra_table[trace.extra[0]]) == {"kernel": "gemm"}


def test_of_events_with_equal_times_the_one_that_began_first_contains_the_other() -> None:
    # readers put events with the same keys together: the order of rows is not that of the file
    events = [
        documents.event("aten::relu", 0, 5, **{"External id": 1}),
        documents.event("TBackward0", 10, 5, **{"External id": 2, "Sequence number": 7, "Fwd thread id": 1}),
        documents.event("aten::t", 10, 5, **{"External id": 3}),
    ]
    loaded = load_document(documents.document(events))
    node, inner = (event for event in loaded.events() if event.time_range.start == 10)
    assert (node.name, inner.name) == ("TBackward0", "aten::t")
    assert inner.cpu_parent is node
    assert (node.self_cpu_time_total, inner.self_cpu_time_total) == (0.0, 5.0)


def test_of_events_with_equal_times_an_op_contains_the_runtime_call_whatever_their_numbers() -> None:
    events = [
        documents.event("cudaLaunchKernel", 10, 5, "cuda_runtime", **{"External id": 3, "correlation": 3}),
        documents.event("aten::t", 10, 5, **{"External id": 8}),
    ]
    op, call = load_document(documents.document(events)).events()
    assert (op.name, call.name) == ("aten::t", "cudaLaunchKernel")
    assert call.cpu_parent is op
