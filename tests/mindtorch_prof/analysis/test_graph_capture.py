"""Graph capture: kernels of replays get the ops of the capture, by their order and checked by name."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.device_kernels import NO_OP, device_kernels
from mindtorch_prof.analysis.graph_capture import apply_match, match_capture, with_captured_ops
from mindtorch_prof.load import load
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.trace import DEVICE_COPY, DEVICE_KERNEL, RUNTIME, Trace


def captured(*graphs: list[tuple[str, str | None]], launch: str = "hipLaunchKernel") -> Trace:
    """The capture of graphs: (op, name of the kernel or None) of each launch."""
    rows: list[tuple[object, ...]] = []
    kernels: dict[int, str | None] = {}
    time = 0
    for graph in graphs:
        rows.append(("hipStreamBeginCapture", time, time + 1, 1, RUNTIME))
        for op, kernel in graph:
            time += 10
            rows += [
                ("block", time - 1, time + 7),
                (op, time, time + 6),
                (launch, time + 2, time + 3, 1, RUNTIME),
            ]
            kernels[time + 2] = kernel
        time += 10
        rows.append(("hipStreamEndCapture", time, time + 1, 1, RUNTIME))
        time += 10
    trace = make_trace(*rows)
    names = [
        kernels.get(int(start)) if kind == RUNTIME else None
        for start, kind in zip(trace.start_ns, trace.kind)
    ]
    table = [{"kernel": name} for name in names if name]
    extra = np.cumsum([name is not None for name in names]) - 1
    return replace(trace, extra=np.where([name is not None for name in names], extra, -1), extra_table=table)


def replayed(*replays: list[str]) -> Trace:
    """Graph launches and the kernels that each of them runs."""
    rows = [("hipGraphLaunch", 100 * i, 100 * i + 5, 1, RUNTIME) for i in range(len(replays))]
    work = [
        (
            kernel,
            100 * i + 10 * place,
            100 * i + 10 * place + 8,
            0,
            DEVICE_COPY if kernel == "copy" else DEVICE_KERNEL,
            -1,
        )
        for i, kernels in enumerate(replays)
        for place, kernel in enumerate(kernels, 1)
    ]
    device = make_device(*work)
    launch = np.repeat(np.arange(len(replays)), [len(kernels) for kernels in replays])
    return make_trace(*rows, device=replace(device, launch=launch))


def ops_of(trace: Trace) -> list[str | None]:
    return [trace.names[trace.name[row]] if row >= 0 else None for row in trace.device.op.tolist()]


def test_kernels_get_the_ops_that_launched_them_at_capture() -> None:
    capture = captured([("aten::mm", "gemm"), ("aten::add", "add")])
    execution = replayed(["gemm", "add"], ["gemm", "add"])
    trace = with_captured_ops(execution, capture)
    assert ops_of(trace) == ["aten::mm", "aten::add"] * 2
    assert trace.n_synthetic == 8  # two ops, each inside `block`, in two replays
    (kernels,) = device_kernels(trace)
    assert {row.name: row.count for row in kernels.by_op} == {"aten::mm": 2, "aten::add": 2}
    assert trace.start_ns[trace.synthetic != 0].tolist() == [0] * 4 + [100] * 4


def test_without_the_synthetic_ops_the_trace_is_the_recorded_one() -> None:
    execution = replayed(["gemm"])
    trace = as_recorded(with_captured_ops(execution, captured([("aten::mm", "gemm")])))
    assert [trace.names[i] for i in trace.name] == ["hipGraphLaunch"]
    assert trace.device.launch.tolist() == [0]
    assert trace.device.op.tolist() == [-1]


def test_of_graphs_that_look_the_same_the_next_one_is_taken() -> None:
    capture = captured([("layer0", "gemm")], [("layer1", "gemm")], [("head", "softmax")])
    execution = replayed(["gemm"], ["gemm"], ["softmax"], ["gemm"], ["gemm"])
    assert ops_of(with_captured_ops(execution, capture)) == ["layer0", "layer1", "head", "layer0", "layer1"]


def test_kernels_whose_names_disagree_are_refused() -> None:
    capture = captured([("aten::mm", "gemm"), ("aten::add", "add"), ("aten::mul", "mul")])
    execution = replayed(["gemm", "other", "mul"])
    match = match_capture(execution, capture)
    assert (match.kernels, match.matched, match.refused) == (3, 2, 1)
    assert match.disagreements == (("other", "add"),)
    assert "1 are not attributed, as names disagree (the first: other in the replay, add" in match.sentence()
    assert ops_of(apply_match(execution, capture, match)) == ["aten::mm", None, "aten::mul"]


def test_another_graph_is_refused_as_a_whole() -> None:
    match = match_capture(replayed(["a", "b", "c"]), captured([("aten::mm", "gemm"), ("aten::add", "add")]))
    assert (match.matched, match.refused) == (0, 3)


def test_branches_that_run_at_the_same_time_may_change_their_order() -> None:
    capture = captured([("left", "gemm"), ("right", "add"), ("left", "gemm")])
    assert ops_of(with_captured_ops(replayed(["add", "gemm", "gemm"]), capture)) == ["right", "left", "left"]


def test_a_capture_without_kernel_names_is_matched_by_order_and_says_so() -> None:
    capture = captured([("aten::mm", None), ("aten::add", None)], launch="cudaLaunchKernel")
    match = match_capture(replayed(["gemm", "add"]), capture)
    assert (match.matched, match.unnamed, match.refused) == (2, 2, 0)
    assert "by order alone" in match.sentence()
    assert match_capture(replayed(["gemm", "add", "mul"]), capture).matched == 0


def test_a_program_without_graphs_serves_as_a_capture() -> None:
    eager = make_trace(
        ("aten::zero_", 0, 5),
        ("aten::mm", 10, 15),
        ("aten::add", 20, 25),
        device=make_device(
            ("fill", 5, 8, 7, DEVICE_KERNEL, 0),
            ("gemm", 15, 18, 7, DEVICE_KERNEL, 1),
            ("add", 25, 28, 7, DEVICE_KERNEL, 2),
        ),
    )
    execution = replayed(["gemm", "add"], ["add", "gemm"])
    match = match_capture(execution, eager)
    assert (match.matched, match.refused) == (2, 2)
    assert ops_of(apply_match(execution, eager, match)) == ["aten::mm", "aten::add", None, None]


def test_a_trace_without_replays_stays_as_it_is() -> None:
    trace = make_trace(("aten::mm", 0, 5), device=make_device(("gemm", 1, 2, 7, DEVICE_KERNEL, 0)))
    capture = captured([("aten::mm", "gemm")])
    assert with_captured_ops(trace, capture) is trace
    assert "no graph launches" in match_capture(trace, capture).sentence()


def test_kernel_time_by_op_of_replays_is_that_of_tracelens(ecosystem: Path) -> None:
    folder = ecosystem / "graphs/vllm_piecewise"
    execution, capture = (load(folder / f"graph_{name}.json.gz").trace for name in ("execution", "capture"))
    match = match_capture(execution, capture)
    assert (match.replays, match.graphs, match.kernels, match.matched) == (25, 25, 361, 361)
    trace = apply_match(execution, capture, match)
    assert device_breakdown(execution)[0].without_op_share == pytest.approx(0.9605, abs=1e-4)
    assert device_breakdown(trace)[0].without_op_ns == 0
    (kernels,) = device_kernels(trace)
    found = {row.name: row.time_us for row in kernels.by_op}
    with (folder / "expected" / "ops_summary.csv").open() as file:
        expected = {row["name"]: float(row["total_direct_kernel_time_sum"]) for row in csv.DictReader(file)}
    assert found == {name: pytest.approx(time, abs=0.03) for name, time in expected.items()}
    assert NO_OP not in found
