"""Dependencies: what waited for what, in traces small enough to be worked out by hand."""

from __future__ import annotations

from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis.dependencies import KINDS, Dependencies, Window, dependencies
from mindtorch_prof.analysis.longest_path import Lengths
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import Trace

CALLS = [
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaStreamWaitEvent",
    "cudaGraphLaunch",
    "hipMemcpy",
]
SYNCS = ["Stream Sync", "Context Sync", "Stream Wait Event", "Event Sync"]
WORK = ["gemm", "ncclDevKernel_AllReduce", "Memcpy DtoH (Device -> Pageable)"]
event, kernel = documents.event, documents.kernel
MAIN, OTHER = documents.PID, 8


def launch(
    at: float,
    start: float,
    length: float,
    number: int,
    *,
    stream: int = 7,
    name: str = "k",
    call: str = "cudaLaunchKernel",
    tid: int = MAIN,
) -> list[dict[str, Any]]:
    """A launch call of 2 us and the kernel that it launches."""
    return [
        event(call, at, 2, "cuda_runtime", tid, correlation=number),
        kernel(name, start, length, stream, correlation=number),
    ]


def graph_of(
    rows: list[dict[str, Any]], window: tuple[float, float] | None = None
) -> tuple[Dependencies, Trace]:
    trace = documents.load_document(documents.document(rows)).trace
    if window is None:
        begin, end = int(trace.start_ns.min()), int(trace.end_ns.max())
    else:
        begin, end = (round(time * 1000) for time in window)
    return dependencies(Results(trace), Window(begin, end, MAIN)), trace


def causes(graph: Dependencies, trace: Trace) -> dict[str, tuple[str, str, float]]:
    """For the start of each kernel, and the end of each call, that an edge between chains explains: its kind,
    the event that was waited for, and the microseconds."""
    count = graph.graph.n_nodes
    texts = {}
    for k, (source, target) in enumerate(zip(graph.graph.source.tolist(), graph.graph.target.tolist())):
        weight = int(graph.weight[count + k])
        if weight == int(graph.time_ns[target] - graph.time_ns[source]) and target != graph.sink:
            end = "end of " if graph.is_end[target] else ""
            texts[end + name_of(graph, trace, target)] = (
                KINDS[int(graph.kind[count + k])],
                name_of(graph, trace, source),
                weight / 1000,
            )
    return texts


def name_of(graph: Dependencies, trace: Trace, node: int) -> str:
    work, row = int(graph.node_device_row[node]), int(graph.node_row[node])
    if work >= 0:
        return trace.device.names[trace.device.name[work]]
    return trace.names[trace.name[row]] if row >= 0 else "the window's start"


def is_calibrated(graph: Dependencies) -> None:
    """No edge is longer than the time between its nodes, and the longest path to a node is its time."""
    count = graph.graph.n_nodes
    inner = np.flatnonzero(~graph.graph.begins)
    assert (graph.weight >= 0).all()
    assert (graph.weight[inner] <= graph.time_ns[inner] - graph.time_ns[inner - 1]).all()
    between = graph.time_ns[graph.graph.target] - graph.time_ns[graph.graph.source]
    assert (graph.weight[count:] <= between).all()
    lengths = Lengths(graph.graph).to_nodes(graph.weight)
    assert lengths.tolist() == (graph.time_ns - graph.window.start_ns).tolist()


@st.composite
def events(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Ops, calls, kernels and synchronisations at random, as no machine would record them."""
    rows = []
    for _ in range(draw(st.integers(0, 16))):
        what = draw(st.sampled_from(["op", "call", "call", "work", "work", "sync"]))
        at, length, number = draw(st.integers(0, 40)), draw(st.integers(0, 20)), draw(st.integers(1, 6))
        tid = draw(st.sampled_from([MAIN, OTHER]))
        if what == "op":
            name = draw(st.sampled_from(["aten::mm", "MmBackward0", "gloo:all_reduce"]))
            more = (
                {"Sequence number": number, "Fwd thread id": draw(st.integers(0, 1))}
                if draw(st.booleans())
                else {}
            )
            rows.append(event(name, at, length, tid=tid, **{"External id": number}, **more))
        elif what == "call":
            rows.append(
                event(draw(st.sampled_from(CALLS)), at, length, "cuda_runtime", tid, correlation=number)
            )
        elif what == "work":
            name, stream = draw(st.sampled_from(WORK)), draw(st.integers(7, 8))
            category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
            rows.append(kernel(name, at, length, stream, category, correlation=number))
        else:
            more = {
                "wait_on_stream": draw(st.integers(7, 8)),
                "wait_on_cuda_event_record_corr_id": draw(st.integers(-1, 6)),
            }
            rows.append(
                kernel(
                    draw(st.sampled_from(SYNCS)),
                    at,
                    length,
                    draw(st.integers(7, 8)),
                    "cuda_sync",
                    correlation=number,
                    **more,
                )
            )
    return rows


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(events(), st.integers(0, 40), st.integers(0, 40))
def test_whatever_a_trace_holds_the_longest_path_to_a_node_is_the_time_until_it(
    rows: list[dict[str, Any]], begin: int, length: int
) -> None:
    trace = documents.load_document(documents.document(rows)).trace
    for start, end in ((0, 10**9), (begin * 1000, (begin + length) * 1000)):
        is_calibrated(dependencies(Results(trace), Window(start, end, MAIN)))


def test_a_kernel_on_an_empty_stream_waits_for_its_launch() -> None:
    graph, trace = graph_of([event("aten::mm", 0, 20), *launch(5, 12, 3, 1)])
    assert causes(graph, trace)["k"] == ("launch", "cudaLaunchKernel", 7.0)


def test_a_kernel_that_was_queued_waits_for_the_one_before_it() -> None:
    rows = [event("aten::mm", 0, 20), *launch(2, 8, 10, 1, name="a"), *launch(6, 19, 5, 2, name="b")]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["b"] == ("gap", "a", 1.0)


def test_a_synchronisation_waits_for_the_last_kernel_of_its_stream() -> None:
    rows = [
        event("aten::item", 0, 60),
        *launch(2, 8, 30, 1, name="a"),
        *launch(5, 9, 40, 2, name="b", stream=20),
        event("cudaStreamSynchronize", 10, 35, "cuda_runtime", correlation=3),
        kernel("Stream Sync", 11, 33, 7, "cuda_sync", correlation=3),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["end of cudaStreamSynchronize"] == ("sync", "a", 7.0)


def test_a_synchronisation_of_the_device_waits_for_all_streams() -> None:
    rows = [
        event("aten::item", 0, 60),
        *launch(2, 8, 30, 1, name="a"),
        *launch(5, 9, 40, 2, name="b", stream=20),
        event("cudaDeviceSynchronize", 10, 45, "cuda_runtime", correlation=3),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["end of cudaDeviceSynchronize"] == ("sync", "b", 6.0)


def test_a_synchronisation_that_had_nothing_to_wait_for_takes_its_own_time() -> None:
    rows = [
        event("aten::item", 0, 60),
        *launch(2, 8, 3, 1),
        event("cudaDeviceSynchronize", 20, 9, "cuda_runtime", correlation=3),
    ]
    graph, trace = graph_of(rows)
    assert "end of cudaDeviceSynchronize" not in causes(graph, trace)
    own = np.flatnonzero(graph.kind[: graph.graph.n_nodes] == KINDS.index("sync"))
    assert graph.weight[own].tolist() == [9000]


def test_work_that_ends_after_the_synchronisation_that_waited_for_it_ends_with_it() -> None:
    rows = [
        event("aten::item", 0, 60),
        *launch(2, 8, 30, 1),
        event("cudaDeviceSynchronize", 10, 26, "cuda_runtime", correlation=3),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["end of cudaDeviceSynchronize"] == ("kernel", "k", 28.0)


def test_a_stream_waits_for_the_event_that_was_recorded_on_another() -> None:
    rows = [
        event("aten::mm", 0, 40),
        *launch(2, 8, 30, 1, name="a"),
        event("cudaEventRecord", 5, 1, "cuda_runtime", correlation=2),
        *launch(7, 39, 5, 3, name="after the record"),
        event("cudaStreamWaitEvent", 10, 1, "cuda_runtime", correlation=4),
        kernel(
            "Stream Wait Event",
            11,
            1,
            20,
            "cuda_sync",
            correlation=4,
            wait_on_stream=7,
            wait_on_cuda_event_record_corr_id=2,
        ),
        *launch(12, 40, 5, 5, name="b", stream=20),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["b"] == ("sync", "a", 2.0)


def test_a_row_of_waiting_on_a_stream_ends_with_the_work_that_was_waited_for() -> None:
    rows = [
        event("aten::mm", 0, 40),
        *launch(2, 8, 10, 1, name="a"),
        *launch(5, 10, 30, 2, name="hcom_allReduce", stream=20),
        kernel("EVENT_WAIT", 19, 22, 7, "cuda_sync"),
        *launch(8, 42, 5, 3, name="b"),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["b"] == ("sync", "hcom_allReduce", 2.0)


def test_without_rows_of_synchronisation_waits_follow_from_calls_and_times() -> None:
    rows = [event("aten::mm", 0, 90)]
    for i in range(6):  # the usual delay of a launch is 3 us
        rows += launch(10 * i, 10 * i + 3, 2, i, name=f"k{i}")
    rows += [
        *launch(60, 63, 30, 10, name="a"),
        event("cudaStreamWaitEvent", 65, 1, "cuda_runtime", correlation=11),
        *launch(67, 94, 5, 12, name="ncclAllReduce", stream=20),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["ncclAllReduce"] == ("sync", "a", 1.0)
    assert any("1 wait of a stream for another was inferred" in note for note in graph.notes)


def test_a_wait_that_the_launch_explains_is_not_inferred() -> None:
    rows = [event("aten::mm", 0, 90)]
    for i in range(6):
        rows += launch(10 * i, 10 * i + 3, 2, i, name=f"k{i}")
    rows += [
        *launch(60, 63, 5, 10, name="a"),
        event("cudaStreamWaitEvent", 65, 1, "cuda_runtime", correlation=11),
        *launch(67, 70, 5, 12, name="ncclAllReduce", stream=20),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["ncclAllReduce"] == ("launch", "cudaLaunchKernel", 3.0)


def test_kernels_of_a_graph_launch_follow_each_other() -> None:
    rows = [
        event("replay", 0, 20),
        event("cudaGraphLaunch", 5, 4, "cuda_runtime", correlation=1),
        kernel("a", 12, 10, 7, correlation=1),
        kernel("b", 23, 10, 7, correlation=1),
        kernel("c", 24, 4, 20, correlation=1),
        kernel("d", 35, 4, 20, correlation=1),
    ]
    graph, trace = graph_of(rows)
    found = causes(graph, trace)
    assert found["a"] == ("launch", "cudaGraphLaunch", 7.0)
    assert found["b"] == ("gap", "a", 1.0)
    assert found["c"] == ("gap", "a", 2.0)  # of another stream: the trace does not say more
    assert found["d"] == ("gap", "b", 2.0)
    assert any("1 graph launches" in note for note in graph.notes)


def test_a_kernel_that_starts_before_its_launch_waits_for_what_its_thread_did_before() -> None:
    graph, trace = graph_of([event("aten::mm", 0, 20), *launch(9, 8, 3, 1)])
    assert causes(graph, trace)["k"] == ("launch", "aten::mm", 8.0)
    assert any("before their launch" in note for note in graph.notes)


def test_a_kernel_without_a_launch_call_was_launched_before_the_next_one_of_its_stream() -> None:
    rows = [
        event("aten::mm", 0, 40),
        *launch(2, 6, 4, 1, name="a"),
        kernel("b", 26, 4, 7, correlation=99),
        *launch(22, 31, 4, 2, name="c"),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["b"] == ("launch", "cudaLaunchKernel", 4.0)
    assert any("1 of 3" in note and "no launch call" in note for note in graph.notes)


def test_work_from_before_the_window_is_waited_for() -> None:
    rows = [
        event("before", 0, 10),
        *launch(2, 8, 30, 1, name="a"),
        event("step", 20, 10),
        *launch(22, 39, 5, 2, name="b"),
    ]
    graph, trace = graph_of(rows, (20, 30))
    assert causes(graph, trace)["b"] == ("gap", "a", 1.0)
    assert [trace.device.names[trace.device.name[row]] for row in graph.earlier] == ["a"]
    assert graph.end_ns - graph.window.start_ns == 24_000
    is_calibrated(graph)


def test_the_thread_that_called_backward_waits_for_the_backward_thread() -> None:
    rows = [
        event("aten::mm", 0, 10),
        event("MmBackward0", 15, 30, tid=OTHER, **{"Sequence number": 1, "Fwd thread id": 1}),
        event("aten::add_", 50, 5),
    ]
    rows[0]["args"]["Sequence number"] = 1
    graph, trace = graph_of(rows)
    found = causes(graph, trace)
    assert found["MmBackward0"] == ("host", "aten::mm", 5.0)
    assert found["aten::add_"] == ("host", "MmBackward0", 5.0)
    is_calibrated(graph)


def test_a_copy_to_pageable_memory_holds_its_call() -> None:
    rows = [
        event("aten::item", 0, 40),
        event("cudaMemcpyAsync", 5, 30, "cuda_runtime", correlation=1),
        kernel("Memcpy DtoH (Device -> Pageable)", 9, 20, 7, "gpu_memcpy", correlation=1),
    ]
    graph, trace = graph_of(rows)
    assert causes(graph, trace)["end of cudaMemcpyAsync"] == ("sync", "Memcpy DtoH (Device -> Pageable)", 6.0)


def test_ranks_of_a_merged_file_do_not_wait_for_each_other() -> None:
    rows = [event("aten::mm", 0, 10), event("aten::mm", 2, 50) | {"pid": 99, "tid": 99}]
    graph, trace = graph_of(rows, (0, 60))
    assert set(trace.thread[graph.node_row[graph.node_row >= 0]].tolist()) == {MAIN}


@pytest.mark.parametrize("rows", [[], [kernel("k", 0, 5, correlation=1)]])
def test_a_trace_without_host_events_has_a_graph(rows: list[dict[str, Any]]) -> None:
    trace = documents.load_document(documents.document(rows)).trace
    is_calibrated(dependencies(Results(trace), Window(0, 5000, MAIN)))
