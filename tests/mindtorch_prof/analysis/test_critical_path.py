"""Critical path: times by kind that add up, ops, what-ifs, slack; and what HTA finds in the same traces."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof.analysis.critical_path import NO_OP, CriticalPath, critical_path
from mindtorch_prof.analysis.dependencies import KINDS
from mindtorch_prof.load import load
from mindtorch_prof.rewrite.merge import merge_traces
from mindtorch_prof.torch_api.results import Results

HTA = json.loads((Path(__file__).parents[1] / "facts" / "hta_critical_paths.json").read_text())
FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
event, kernel = documents.event, documents.kernel


def step(number: int, at: float, work: float) -> list[dict[str, Any]]:
    """10 us of host, a kernel of `work` us that starts 5 us after its launch, and a synchronisation that
    returns 2 us after its end."""
    end = at + 10 + work
    return [
        event(f"ProfilerStep#{number}", at, 12 + work + 3, "user_annotation"),
        event("aten::mm", at + 2, 8, **{"External id": 10 + number}),
        event(
            "cudaLaunchKernel", at + 5, 2, "cuda_runtime", correlation=number, **{"External id": 10 + number}
        ),
        kernel("gemm", at + 10, work, correlation=number, **{"External id": 10 + number}),
        event("cudaDeviceSynchronize", at + 11, end + 2 - at - 11, "cuda_runtime", correlation=100 + number),
    ]


def steps(*works: float) -> CriticalPath:
    rows = [row for i, work in enumerate(works) for row in step(i + 1, 1000 * i, work)]
    return critical_path(documents.load_document(documents.document(rows)))


def test_the_times_by_kind_add_up_to_the_length_of_the_step() -> None:
    path = steps(50)
    assert path.step == 1
    assert path.length_us == path.host_us == 65.0
    # host: 2 us before the op, 3 in it before the launch, 3 after the synchronisation has returned
    expected = {"host": 8.0, "launch": 5.0, "kernel": 50.0, "sync": 2.0}
    assert path.by_kind == dict.fromkeys(path.by_kind, 0.0) | expected
    assert sum(path.by_kind.values()) == path.length_us


def test_an_op_on_the_path_has_its_host_and_device_time_and_what_the_step_takes_without_it() -> None:
    path = steps(50)
    mm = path.ops[0]
    assert (mm.name, mm.path_us, mm.count) == ("aten::mm", 58.0, 1)
    assert (mm.by_kind["host"], mm.by_kind["launch"], mm.by_kind["kernel"]) == (3.0, 5.0, 50.0)
    # the step's own time stays: 2 us before the op, 2 us until the synchronisation returns, 3 us after it
    assert mm.without_us == path.without("aten::mm") == 7.0


def test_the_kernel_alone_can_be_left_out() -> None:
    path = steps(50)
    # 11 us until the synchronisation, which returns at once, and 3 us after it
    assert path.without("gemm") == 14.0
    with pytest.raises(KeyError):
        path.without("aten::nothing")


def test_without_a_step_the_one_of_median_length_is_taken() -> None:
    assert steps(50, 90, 70).step == 3
    assert steps(50, 90).step == 1


def test_a_chosen_step_and_an_annotation_give_their_windows() -> None:
    rows = [row for i, work in enumerate((50, 90)) for row in step(i + 1, 1000 * i, work)]
    trace = documents.load_document(documents.document(rows))
    assert critical_path(trace, step=2).length_us == 105.0
    assert critical_path(trace, annotation="aten::mm", instance=1).window == "aten::mm (2 of 2)"
    for wrong, message in (
        ({"step": 7}, "no step 7; expected one of 1, 2"),
        ({"annotation": "nothing"}, "no event's name contains 'nothing'"),
        ({"annotation": "aten::mm", "instance": 2}, "there are 2 events"),
    ):
        with pytest.raises(ValueError, match=message):
            critical_path(trace, **wrong)  # type: ignore[arg-type]


def test_a_recording_without_steps_is_analysed_whole() -> None:
    trace = documents.load_document(
        documents.document([event("aten::mm", 5, 10), event("aten::add", 20, 10)])
    )
    path = critical_path(trace)
    assert (path.step, path.length_us) == (None, 25.0)
    assert [(op.name, op.path_us) for op in path.ops] == [
        ("aten::mm", 10.0),
        ("aten::add", 10.0),
        (NO_OP, 5.0),
    ]
    assert path.ops[0].without_us == 15.0


@pytest.mark.parametrize(("begin", "without"), [(6, 36.0), (60, 60.0)])
def test_an_annotation_around_nearly_all_counts_with_its_own_time_only(begin: float, without: float) -> None:
    """It names the recording rather than a part of it."""
    path = critical_path(
        documents.load_document(
            documents.document(
                [
                    event("aten::add", 0, 5),
                    event("main", begin, 100 - begin, "user_annotation"),
                    event("aten::mm", 70, 30),
                ]
            )
        ),
        what_if=9,
    )
    main = next(op for op in path.ops if op.name == "main")
    assert (main.path_us, main.without_us) == (70 - begin, without)


def test_work_beside_the_path_may_take_longer_by_its_slack() -> None:
    rows = [
        event("aten::mm", 0, 100, **{"External id": 1}),
        event("cudaLaunchKernel", 5, 2, "cuda_runtime", correlation=1),
        kernel("gemm", 10, 30, correlation=1),
    ]
    path = critical_path(documents.load_document(documents.document(rows)))
    assert path.by_kind["host"] == 100.0
    assert [(op.name, op.busy_us, op.slack_us) for op in path.off_path] == [("aten::mm", 30.0, 60.0)]


def test_segments_follow_each_other_from_start_to_end() -> None:
    path = steps(50)
    assert path.segments[0].start_us == 0.0
    for before, after in zip(path.segments, path.segments[1:]):
        assert after.start_us == before.start_us + before.duration_us
    assert path.segments[-1].start_us + path.segments[-1].duration_us == path.length_us
    assert [segment.kind for segment in path.segments] == ["host", "host", "launch", "kernel", "sync", "host"]


def test_an_op_that_does_not_matter_saves_nothing() -> None:
    rows = [*step(1, 0, 50), event("aten::add", 1, 1, tid=9)]
    path = critical_path(documents.load_document(documents.document(rows)))
    assert path.without("aten::add") == path.length_us


def test_a_recording_of_this_library_has_a_path(recorded_training: Results) -> None:
    path = critical_path(recorded_training)
    assert path.step is not None
    assert sum(path.by_kind.values()) == pytest.approx(path.length_us)
    assert path.by_kind["host"] == pytest.approx(path.length_us)


# ---------------------------------------------------------------------------------------------------- HTA


def test_alexnet_has_the_path_that_hta_finds(ecosystem: Path) -> None:
    facts = HTA["critical_path/alexnet.json.gz"]["us"]
    path = critical_path(
        load(ecosystem / "critical_path" / "alexnet.json.gz"), annotation=FORWARD, instance=1
    )
    assert path.by_kind["launch"] == facts["critical_path_kernel_launch_delay gpu_kernel_launch_overhead"]
    assert path.by_kind["gap"] == facts["critical_path_kernel_kernel_delay gpu_kernel_kernel_overhead"]
    device = path.by_kind["kernel"] + path.by_kind["copy"]
    assert device == facts["critical_path_operator gpu_compute_bound"]
    assert len(path.device_rows) == HTA["critical_path/alexnet.json.gz"]["kernels"]
    # HTA leaves out the host's time between ops, and how long a synchronisation takes to return
    between = next(op for op in path.ops if op.name == FORWARD)
    inside_ops = path.by_kind["host"] - between.by_kind["host"]
    assert inside_ops == facts["critical_path_operator cpu_bound"]


def test_simple_add_differs_from_hta_because_the_device_was_done_before_the_host_asked(
    ecosystem: Path,
) -> None:
    overlay = json.loads(
        gzip.decompress((ecosystem / "critical_path" / "simple_add_expected_overlay.json.gz").read_bytes())
    )["traceEvents"]
    path = critical_path(
        load(ecosystem / "critical_path" / "simple_add.json.gz"), annotation=FORWARD, instance=1
    )
    trace, window = path.results.trace, path.graph.window
    inside = [
        e
        for e in overlay
        if e.get("args", {}).get("critical") == 1 and window.start_ns <= e["ts"] * 1000 <= window.end_ns
    ]
    theirs = {(e["name"], e["ts"] * 1000) for e in inside if e["cat"] in ("cpu_op", "cuda_runtime")}
    kernels = [e for e in inside if e["cat"] in ("kernel", "gpu_memset", "gpu_memcpy")]
    assert (len(theirs), len(kernels)) == (154, 6)
    ours = {(trace.names[trace.name[row]], int(trace.start_ns[row])) for row in path.rows.tolist()}
    assert theirs <= ours  # the host is on both paths as far as HTA's follows it
    # HTA's path ends in six kernels, since it counts no time between ops; by the file's times they ended
    # 235 us before the host waited for them
    assert len(path.device_rows) == 0
    (sync,) = [
        e
        for e in overlay
        if e["name"] == "cudaDeviceSynchronize" and window.end_ns - 10**6 < e["ts"] * 1000 <= window.end_ns
    ]
    assert sync["ts"] - max(e["ts"] + e["dur"] for e in kernels) == 235
    least = min(op.slack_us for op in path.off_path)
    assert 235 <= least < 300


def test_kernels_of_graph_launches_are_on_the_path_though_hta_loses_them(ecosystem: Path) -> None:
    name = "graphs/vllm_piecewise/graph_execution.json.gz"
    path = critical_path(load(ecosystem / name))
    device = path.results.trace.device
    assert HTA[name]["kernels"] == 87  # one of each graph
    assert len(path.device_rows) > 400
    graph_kernels = np.unique(device.launch[path.device_rows], return_counts=True)[1]
    assert graph_kernels.max() > 5
    assert path.by_kind["kernel"] > 15 * HTA[name]["kernel_us"]
    assert any("graph launches" in note for note in path.notes)
    assert any("busy with work that the trace does not hold" in note for note in path.notes)


def test_the_kernels_of_an_inference_step_are_those_of_hta(ecosystem: Path) -> None:
    name = "traces/h100_qwen_infer_stack_memory.json.gz"
    path = critical_path(load(ecosystem / name))
    own = np.setdiff1d(path.device_rows, path.graph.earlier)
    device = path.results.trace.device
    kernel_us = (device.end_ns - device.start_ns)[own].sum() / 1000
    assert kernel_us == pytest.approx(HTA[name]["kernel_us"], rel=0.04)
    assert path.earlier_us == pytest.approx(14195.541)  # the step begins by waiting for the one before it


@pytest.mark.parametrize("name", [name for name in HTA if "simple" not in name])
def test_the_path_explains_the_whole_step_on_recorded_traces(name: str, ecosystem: Path) -> None:
    path = critical_path(load(ecosystem / name))
    assert sum(path.by_kind.values()) == pytest.approx(path.length_us)
    assert path.length_us == pytest.approx((path.graph.end_ns - path.graph.window.start_ns) / 1000)
    assert sum(op.path_us for op in path.ops) == pytest.approx(path.length_us)
    for op in path.ops:
        assert sum(op.by_kind.values()) == pytest.approx(op.path_us)
        assert op.without_us is None or 0 <= op.without_us <= path.length_us


def test_a_rank_has_the_same_path_in_a_merged_file(ecosystem: Path, tmp_path: Path) -> None:
    files = [str(ecosystem / "ranks" / "dlrm_8" / f"rank{i}.pt.trace.json.gz") for i in (0, 7)]
    merge_traces(files, tmp_path / "merged.json")
    path = critical_path(load(tmp_path / "merged.json"))  # of two steps the shorter one, which is rank 7's
    assert path.by_kind == pytest.approx(critical_path(load(files[1])).by_kind)


def test_the_collectives_of_an_ascend_step_are_on_its_path(ecosystem: Path) -> None:
    folder = ecosystem / "ascend" / "text_level1" / "rank0_ascend_pt"
    path = critical_path(load(folder))
    # all of them, as the capture's own step_trace_time.csv says: the computing stream waits for each
    assert path.by_kind["communication"] == pytest.approx(105_991.878, abs=0.001)
    assert sum(path.by_kind.values()) == pytest.approx(path.length_us)


# ------------------------------------------------------------------------------------------ what if


def plain_length(path: CriticalPath, weight: list[int]) -> int:
    """The longest path to the end by looking at every edge, node by node."""
    graph = path.graph.graph
    into: dict[int, list[tuple[int, int]]] = defaultdict(list)  # by node: (edge, node before)
    for node in range(graph.n_nodes):
        if not graph.begins[node]:
            into[node].append((node, node - 1))
    for number, (source, target) in enumerate(zip(graph.source.tolist(), graph.target.tolist())):
        into[target].append((graph.n_nodes + number, source))
    length = [0] * graph.n_nodes
    for node in np.argsort(graph.rank, kind="stable").tolist():
        length[node] = max((length[before] + weight[edge] for edge, before in into[node]), default=0)
    return length[path.graph.sink]


@st.composite
def programs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Ops that launch kernels on two streams, which wait for each other, graphs, and waits for the device."""
    events, at, free = [], 1, {7: 0, 9: 0}
    for number in range(draw(st.integers(1, 6))):
        name, stream = (
            draw(st.sampled_from(["aten::mm", "aten::add", "nccl:all_reduce"])),
            draw(st.sampled_from([7, 9])),
        )
        call = draw(st.sampled_from(["cudaLaunchKernel", "cudaGraphLaunch"]))
        ids = {"External id": number + 1, "correlation": 2 * number + 2}
        events.append(event(name, at, 12, **ids))
        if draw(st.booleans()):  # the stream waits for an event of the other one
            wait, other = {"correlation": 2 * number + 1}, 16 - stream
            events.append(event("cudaStreamWaitEvent", at + 1, 1, "cuda_runtime", **wait))
            events.append(
                kernel("Stream Wait Event", at + 1, 0, stream, "cuda_sync", wait_on_stream=other, **wait)
            )
            free[stream] = max(free.values())
        events.append(event(call, at + 2, 6, "cuda_runtime", **ids))
        for _ in range(2 if call == "cudaGraphLaunch" else 1):
            start = max(free[stream], at + 4) + draw(st.integers(0, 20))
            free[stream] = start + draw(st.integers(1, 60))
            kernel_name = "ncclDevKernel_AllReduce" if name.startswith("nccl") else f"{name} kernel"
            events.append(kernel(kernel_name, start, free[stream] - start, stream=stream, **ids))
        at += 15 + draw(st.integers(0, 30))
        if draw(st.booleans()):
            end = max(at + 2, *free.values()) + 1
            events.append(event("cudaDeviceSynchronize", at, end - at, "cuda_runtime"))
            at = end + 3
    return events


@settings(max_examples=60)
@given(programs(), st.floats(0, 1))
def test_what_the_step_takes_without_an_op_is_the_plain_longest_path(
    events: list[dict[str, Any]], kept: float
) -> None:
    path = critical_path(documents.load_document(documents.document(events)), what_if=99)
    graph, device = path.graph, path.results.trace.device
    assert plain_length(path, graph.weight.tolist()) == round(path.length_us * 1000)
    saved = 0.0
    for op in path.ops:
        chosen = path.model.edges_of(op.name)
        expected = plain_length(path, np.where(chosen, 0, graph.weight).tolist())
        assert op.without_us is not None
        assert round(op.without_us * 1000) == expected <= round(path.length_us * 1000)
    # disjoint parts of the work never save more together than the path is long
    for name in range(len(device.names)):
        rows = np.flatnonzero(device.name == name)
        is_work = np.isin(graph.kind, [KINDS.index(kind) for kind in ("kernel", "copy", "communication")])
        chosen = is_work & np.isin(graph.device_row, rows)
        weight = np.where(chosen, (graph.weight * kept).astype(np.int64), graph.weight)
        after = path.after_change(rows, np.full(len(rows), kept))
        assert round(after * 1000) == plain_length(path, weight.tolist())
        saved += path.length_us - after
    assert saved <= path.length_us + 1e-6
