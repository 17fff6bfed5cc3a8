"""Links: kernels to the ops that launched them, calls to their callers, events to those around them."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import kineto_documents as documents
import numpy as np
import pytest
from average_rows import row
from hypothesis import given
from hypothesis import strategies as st
from kineto_documents import event_names, load_document

from mindtorch_prof.load import load
from mindtorch_prof.load.categories import MOST_KEYS
from mindtorch_prof.load.collect import Collector
from mindtorch_prof.load.kernel_links import flow_sources, forward_threads


@pytest.mark.parametrize(
    ("style", "device"), [("cuda", "cuda"), ("2021", "cuda"), ("rocm", "cuda"), ("xpu", "xpu")]
)
def test_device_time_is_charged_to_the_op_that_launched_it(style: str, device: str) -> None:
    loaded = load_document(documents.gpu(style), strict=True)
    addmm, linear, copy = (row(loaded, f"aten::{n}") for n in ("addmm", "linear", "copy_"))
    assert (addmm.self_device_time_total, addmm.device_time_total) == (150.0, 150.0)
    assert (linear.self_device_time_total, linear.device_time_total) == (0.0, 150.0)
    assert copy.self_device_time_total == 40.0
    assert addmm.self_cpu_time_total == 40.0  # less what the runtime calls took
    assert addmm.use_device == device
    gemm = row(loaded, "gemm", device=True)
    assert (gemm.count, gemm.self_device_time_total, gemm.cpu_time_total) == (2, 150.0, 0)
    event = next(e for e in loaded.events() if e.name == "aten::addmm")
    assert [(k.name, k.device, k.duration) for k in event.kernels] == [("gemm", 0, 100.0), ("gemm", 0, 50.0)]
    table = loaded.key_averages().table()
    assert f"Self {device.upper()}" in table
    assert f"Self {device.upper()} time total: 200.000us" in table


def test_kernels_of_a_graph_are_charged_to_what_launched_the_graph() -> None:
    loaded = load_document(documents.gpu())
    device = loaded.trace.device
    graphed = list(device.names).index("graphed")
    (at,) = np.flatnonzero(device.name == graphed).tolist()
    assert loaded.trace.names[loaded.trace.name[device.launch[at]]] == "cudaGraphLaunch"
    assert loaded.trace.names[loaded.trace.name[device.op[at]]] == "step"


def test_arrows_tie_kernels_where_numbers_do_not() -> None:
    loaded = load_document(documents.gpu("ascend"))
    assert row(loaded, "aten::linear").device_time_total == 100.0
    assert row(loaded, "MatMul", device=True).count == 1
    assert loaded.trace.settings.device == "npu"


def test_rounded_times_of_old_files_are_made_to_nest() -> None:
    document = documents.gpu("2021")
    start = document["traceEvents"][0]["ts"]
    document["traceEvents"].append(documents.event("aten::t", start + 75, 6, "Operator", str(documents.PID)))
    loaded = load_document(document)
    assert loaded.events()[0].cpu_children[-1].name == "aten::t"
    assert row(loaded, "aten::t").cpu_time_total == 5.0
    assert "at most 1 us" in loaded.health.line()


def test_events_that_overlap_keep_times_that_add_up() -> None:
    loaded = load_document(
        [documents.event("a", 0.0, 10.0), documents.event("b", 5.0, 10.0), documents.event("c", 6.0, 2.0)]
    )
    by_name = {row.key: row for row in loaded.key_averages()}
    assert [by_name[n].self_cpu_time_total for n in "abc"] == [10.0, 8.0, 2.0]
    assert loaded.health.repaired == 1
    assert "overlap" in loaded.health.line()


def test_an_external_id_that_is_the_correlation_id_does_not_charge_an_op_that_ended_long_before() -> None:
    numbers = {"External id": 2, "correlation": 2}
    loaded = load_document(
        documents.document(
            [
                documents.event("aten::detach", 0.0, 10.0, **{"External id": 2}),
                documents.event("aten::copy_", 100.0, 50.0, **{"External id": 9}),
                documents.event("cudaMemcpyAsync", 110.0, 5.0, "cuda_runtime", **numbers),
                documents.kernel("Memcpy HtoD", 120.0, 7.0, cat="gpu_memcpy", **numbers),
            ]
        )
    )
    assert row(loaded, "aten::copy_").self_device_time_total == 7.0
    assert row(loaded, "aten::detach").self_device_time_total == 0


@pytest.mark.parametrize("name", ["alexnet", "simple_add"])
def test_copies_are_charged_to_the_innermost_op_around_their_launch(name: str, ecosystem: Path) -> None:
    path = ecosystem / "critical_path" / f"{name}.json.gz"
    events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
    calls = {e["args"]["correlation"]: e for e in events if e["cat"] == "cuda_runtime"}
    expected: dict[str, float] = defaultdict(float)
    for event in events:
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            at = calls[event["args"]["correlation"]]["ts"]
            around = [
                e for e in events if e["cat"] == "cpu_op" and e["ts"] <= at <= e["ts"] + e["dur"]
            ]  # all on one thread
            expected[max(around, key=lambda e: (e["ts"], -e["dur"]))["name"]] += event["dur"]
    times = {r.key: r.self_device_time_total for r in load(path).key_averages() if r.key.startswith("aten::")}
    assert {name: time for name, time in times.items() if time} == pytest.approx(expected)


def test_numbers_that_events_share_do_not_mix_up_devices() -> None:
    document = documents.gpu()
    late = [documents.event("aten::later", 1300.0, 10.0, **{"External id": 2})]
    late.append(documents.kernel("late", 1310.0, 3.0, correlation=77, **{"External id": 2}))
    document["traceEvents"] += late
    loaded = load_document(document)
    by_name = {row.key: row.self_device_time_total for row in loaded.key_averages()}
    assert (by_name["aten::addmm"], by_name["aten::later"]) == (150.0, 3.0)
    assert "External ids that several events share" in loaded.health.line()


def test_callers_that_name_each_other_do_not_hang() -> None:
    calls = [
        documents.event(f"f{i}", 1.0, 9.0, "python_function", **{"Python id": i, "Python parent id": 3 - i})
        for i in (1, 2)
    ]
    loaded = load_document([*calls, documents.event("op", 2.0, 1.0)], python_functions=True)
    assert set(event_names(loaded)) == {"f1", "f2", "op"}


def test_without_forward_ops_backward_events_belong_to_the_thread_with_most_events() -> None:
    idle = [documents.event("idle", 100.0 * n, 10.0, tid=1) for n in range(2)]
    backward = {"Sequence number": 5, "Fwd thread id": 1}
    busy = [documents.event("MulBackward0", 100.0 * n, 10.0, tid=2, **backward) for n in range(5)]
    trace = load_document([*idle, *busy]).trace
    assert trace.forward_thread.tolist() == [0, 0, 2, 2, 2, 2, 2]


FLOW = st.tuples(
    st.integers(0, 1), st.integers(0, 3), st.booleans(), st.integers(0, 2), st.integers(0, 4)
)  # category, id, whether it begins, thread, time
TARGET = st.tuples(
    st.integers(0, 2), st.integers(0, 4), st.sampled_from([-1, -1, 5])
)  # thread, time, correlation


@given(st.lists(FLOW, max_size=12), st.lists(TARGET, max_size=6))
def test_flows_lead_from_their_last_beginning_to_what_starts_at_their_end(
    flows: list[tuple[int, int, bool, int, int]], targets: list[tuple[int, int, int]]
) -> None:
    begins = {(cat, flow): (thread, time) for cat, flow, begin, thread, time in flows if begin}
    ends = {(thread, time): (cat, flow) for cat, flow, begin, thread, time in flows if not begin}
    expected = [
        (row, 100 + source[0], source[1])
        for row, (thread, time, correlation) in enumerate(targets)
        if correlation < 0 and (source := begins.get(ends.get((thread, time), (-1, -1)))) is not None
    ]
    types = {"category": np.int32, "flow": np.int64, "begins": bool, "thread": np.int32, "start": np.int64}
    columns = {
        name: np.array([flow[place] for flow in flows], kind)
        for place, (name, kind) in enumerate(types.items())
    }
    thread, start, correlation = np.array(targets, np.int64).reshape(-1, 3).T
    rows = flow_sources(columns, np.arange(100, 103), thread, start, correlation)
    assert list(zip(*[column.tolist() for column in rows])) == expected


def test_ids_of_flows_are_told_apart_as_json_tells_them_apart() -> None:
    collector = Collector()
    ids = [1, 1.0, "1", 2**62, 2**70, "1", -3, None, 2**70]
    numbers = [collector._flow_number(None, each) for each in ids]
    groups = [
        [place for place, number in enumerate(numbers) if number == each] for each in dict.fromkeys(numbers)
    ]
    assert groups == [[0, 1], [2, 5], [3], [4, 8], [6], [7]]


def test_flows_of_more_categories_than_are_remembered_are_told_apart() -> None:
    events = []
    for n in range(MOST_KEYS + 3):
        flow = {"cat": f"flow {n}", "id": 1, "name": "flow"}
        events += [
            documents.event(f"op {n}", 10.0 * n, 5.0),
            {"ph": "s", "pid": documents.PID, "tid": documents.PID, "ts": 10.0 * n + 1, **flow},
            {"ph": "f", "bp": "e", "pid": 0, "tid": 7, "ts": 10.0 * n + 6, **flow},
            documents.kernel("k", 10.0 * n + 6, 1.0),
        ]
    loaded = load_document(events)
    ops = loaded.trace.device.op.tolist()
    assert [loaded.trace.names[loaded.trace.name[row]] for row in ops[-5:]] == [
        f"op {n}" for n in range(MOST_KEYS - 2, MOST_KEYS + 3)
    ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 3)), max_size=20))
def test_a_forward_thread_is_the_one_where_most_ops_of_its_number_ran(
    rows: list[tuple[int, int, int]],
) -> None:
    thread, sequence, number = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    thread = thread + 10
    expected = [0] * len(thread)
    forward = {}
    for at in reversed(range(len(thread))):
        if number[at] == 0:
            forward[sequence[at]] = thread[at]
    backward = np.flatnonzero(number > 0)
    for wanted in {*number[backward].tolist()}:
        own = [at for at in backward if number[at] == wanted]
        threads = sorted(forward[sequence[at]] for at in own if sequence[at] in forward)
        default = thread[own[0]] if forward else max(sorted({*thread}), key=thread.tolist().count)
        for at in own:
            expected[at] = max(dict.fromkeys(threads), key=threads.count, default=default)
    assert forward_threads(thread, sequence, number).tolist() == expected
