"""Device kernels: work by type, op and direction of copies."""

from __future__ import annotations

import ast
import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kineto_documents import document, kernel, load_document
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.categories import category
from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.device_kernels import NO_OP, device_kernels
from mindtorch_prof.analysis.graph_capture import with_captured_ops
from mindtorch_prof.analysis.groups import groups
from mindtorch_prof.load import load
from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, Trace


def test_work_is_grouped_by_type_and_op_and_overlaps_count_once() -> None:
    trace = make_trace(
        ("aten::mm", 0, 10),
        device=make_device(
            ("ampere_sgemm_128x64_tn", 10, 30, 7, DEVICE_KERNEL, 0),
            ("ampere_sgemm_128x64_tn", 20, 40, 8, DEVICE_KERNEL, 0),
            ("Memset (Device)", 40, 45, 7, DEVICE_SET, -1),
            ("Memcpy HtoD", 45, 55, 7, DEVICE_COPY, -1),
            ("ncclDevKernel_AllReduce", 50, 60, 9, DEVICE_KERNEL, -1),
        ),
    )
    (kernels,) = device_kernels(trace)
    assert {row.name: (row.count, row.time_us * 1000) for row in kernels.by_type} == {
        "matmul": (2, 30),
        "memory fill": (1, 5),
        "copy between memories": (1, 10),
        "communication": (1, 10),
    }
    assert {row.name: row.time_us * 1000 for row in kernels.by_op} == {"aten::mm": 30, NO_OP: 20}
    # of the durations of all work: 20 + 20 of 20 + 20 + 5 + 10 + 10
    assert [row.share for row in kernels.by_op] == pytest.approx([40 / 65, 25 / 65])
    assert kernels.by_op[0].mean_us == pytest.approx(0.02)


def test_copies_have_bytes_and_bandwidth_by_direction() -> None:
    copies = [
        kernel("Memcpy HtoD (Pinned -> Device)", at, 2.0, cat="gpu_memcpy", bytes=6000) for at in (0.0, 10.0)
    ]
    unknown = kernel("Memcpy DtoH (Device -> Pinned)", 20.0, 1.0, cat="gpu_memcpy")
    (kernels,) = device_kernels(load_document(document([*copies, unknown])))
    first, second = kernels.copies
    assert (first.count, first.nbytes, first.time_us, first.gb_per_s) == (2, 12000, 4.0, 3.0)
    assert (second.count, second.nbytes, second.gb_per_s) == (1, None, None)


@pytest.mark.parametrize(
    ("name", "with_fills"),
    [
        ("h100_qwen_infer_stack_memory", True),
        ("mi300_resnet_ddp_act_checkpoint", False),  # the table was made by a version that leaves them out
    ],
)
def test_kernel_time_by_op_is_that_of_tracelens(name: str, with_fills: bool, ecosystem: Path) -> None:
    expected: dict[str, float] = defaultdict(float)
    with (ecosystem / "expected" / name / "ops_summary.csv").open() as file:
        for row in csv.DictReader(file):
            expected[row["name"]] += float(row["total_direct_kernel_time_sum"])
    trace = load(ecosystem / "traces" / f"{name}.json.gz").trace
    if not with_fills:
        trace = without_fills(trace)
    (kernels,) = device_kernels(trace)
    found = {row.name: row.time_us for row in kernels.by_op}
    assert {op: found.get(op) for op in expected} == {
        op: pytest.approx(time, rel=1e-5, abs=0.03) for op, time in expected.items()
    }


def test_shares_add_up_to_all_work_where_communication_overlaps_with_computation(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz")
    (kernels,), (times,) = device_kernels(loaded), device_breakdown(loaded)
    assert sum(row.count for row in kernels.by_type) == times.events
    assert max(row.time_us for row in kernels.by_type) <= times.busy_us
    assert sum(row.time_us for row in kernels.by_type) > times.busy_us
    for rows in (kernels.by_type, kernels.by_op, kernels.by_name):
        assert sum(row.share for row in rows) == pytest.approx(1)


def test_shares_of_ops_are_those_of_tracelens(ecosystem: Path) -> None:
    name = "mi300_resnet_ddp_act_checkpoint"
    expected: dict[str, float] = defaultdict(float)
    with (ecosystem / "expected" / name / "ops_summary.csv").open() as file:
        for row in csv.DictReader(file):
            expected[row["name"]] += float(row["Percentage (%)"]) / 100
    loaded = load(ecosystem / "traces" / f"{name}.json.gz")
    (kernels,) = device_kernels(without_fills(loaded.trace))
    shares = {row.name: row.share for row in kernels.by_op}
    listed = sum(shares.get(op, 0.0) for op in expected)  # its table leaves out communication
    assert {op: shares.get(op, 0.0) / listed for op in expected} == pytest.approx(dict(expected), abs=2e-4)


def test_shares_of_ops_are_those_of_show_where_all_work_has_a_launch(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz")
    shown = {str(row["name"]): row["self_device_share"] for row in groups(loaded, ["name"]).rows()}
    (kernels,) = device_kernels(loaded)
    assert {row.name: row.share for row in kernels.by_op} == pytest.approx(
        {row.name: shown[row.name] for row in kernels.by_op}
    )


# ---------------------------------------------------------------------------------------- tables of TraceLens


def durations_by_launcher(trace: Trace) -> dict[tuple[str, str, int], list[float]]:
    """Microseconds of the device's work by op, kernel and stream."""
    device = trace.device
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in np.flatnonzero(device.works).tolist():
        op = int(device.op[row])
        launcher = trace.names[trace.name[op]] if op >= 0 else ""
        key = launcher, device.names[device.name[row]], int(device.stream[row])
        found[key].append(int(device.end_ns[row] - device.start_ns[row]) / 1000)
    return found


def test_every_kernel_has_the_op_stream_and_times_of_tracelens_kernel_summary(ecosystem: Path) -> None:
    name = "h100_qwen_infer_stack_memory"
    ours = durations_by_launcher(load(ecosystem / "traces" / f"{name}.json.gz").trace)
    total = sum(map(sum, ours.values()))
    with (ecosystem / "expected" / name / "kernel_summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    compared = set()
    for row in rows:
        key = row["Parent cpu_op"], row["Kernel name"], int(row["Kernel stream"])
        times = ours[key]
        compared.add(key)
        figures = {
            name: float(row[f"Kernel duration (µs)_{name}"])
            for name in ("sum", "count", "mean", "min", "max")
        }
        assert figures == pytest.approx(
            {
                "sum": sum(times),
                "count": len(times),
                "mean": sum(times) / len(times),
                "min": min(times),
                "max": max(times),
            },
            abs=0.01,
        )
    # the table is of kernels alone: fills and copies are the rest
    others = {kernel for _, kernel, _ in set(ours) - compared}
    assert others == {"Memset (Device)", "Memcpy DtoH (Device -> Pinned)"}
    of_kernels = sum(sum(ours[key]) for key in compared)
    shares = [float(row["Percent of kernels time (%)"]) for row in rows]
    assert sum(shares) == pytest.approx(100, abs=0.01)
    assert shares[0] == pytest.approx(
        100 * sum(ours["aten::mm", rows[0]["Kernel name"], 7]) / of_kernels, rel=1e-3
    )
    assert of_kernels < total


# TraceLens' category of an op, and ours, which tell copies, indexing, losses and pooling from other work
SAME_CATEGORY = {
    "elementwise": {"pointwise", "copy", "creation", "loss"},
    "GEMM": {"matmul"},
    "reduce": {"reduction"},
    "CONV_fwd": {"convolution"},
    "CONV_bwd": {"convolution"},
    "NORM_fwd": {"normalization"},
    "NORM_bwd": {"normalization"},
    "RMSNorm": {"normalization"},
    "InferenceAttention": {"attention"},
    "multi_tensor_apply": {"optimizer"},
    "triton": {"pointwise"},
    "other": {"indexing", "attention", "copy", "creation", "pooling", "pointwise", "matmul"},
}
SUMMARIES = [
    ("traces/h100_qwen_infer_stack_memory.json.gz", "", "expected/h100_qwen_infer_stack_memory"),
    ("traces/mi300_resnet_ddp_act_checkpoint.json.gz", "", "expected/mi300_resnet_ddp_act_checkpoint"),
    (
        "graphs/vllm_piecewise/graph_execution.json.gz",
        "graphs/vllm_piecewise/graph_capture.json.gz",
        "graphs/vllm_piecewise/expected",
    ),
]


@pytest.mark.parametrize(("path", "capture", "folder"), SUMMARIES, ids=[each[2] for each in SUMMARIES])
def test_categories_and_their_times_are_those_of_tracelens(
    path: str, capture: str, folder: str, ecosystem: Path
) -> None:
    trace = load(ecosystem / path).trace
    if capture:
        trace = with_captured_ops(trace, load(ecosystem / capture).trace)
    (kernels,) = device_kernels(without_fills(trace) if "mi300" in path else trace)
    time_of = {row.name: row.time_us for row in kernels.by_op}
    ops: dict[str, set[str]] = defaultdict(set)
    with (ecosystem / folder / "ops_summary.csv").open() as file:
        for row in csv.DictReader(file):
            (theirs,) = ast.literal_eval(row["Categories"])
            ops[theirs].add(row["name"])
            assert category(row["name"]) in SAME_CATEGORY[theirs], row["name"]
    published: dict[str, float] = defaultdict(float)
    with (ecosystem / folder / "ops_summary_by_category.csv").open() as file:
        for row in csv.DictReader(file):
            published[row["op category"]] += 1000 * float(row["total_direct_kernel_time_ms"])
    assert {theirs: sum(time_of[name] for name in names) for theirs, names in ops.items()} == {
        theirs: pytest.approx(time, rel=1e-3, abs=0.5) for theirs, time in published.items()
    }


def without_fills(trace: Trace) -> Trace:
    """The trace as the version of TraceLens saw it that made the table: fills of memory were no work."""
    kind = np.where(trace.device.kind == DEVICE_SET, DEVICE_ANNOTATION, trace.device.kind)
    return replace(trace, device=replace(trace.device, kind=kind))


def test_a_copy_that_an_ascend_breakdown_leaves_out_keeps_its_duration_among_the_copies() -> None:
    work = make_device(
        ("MEMCPY_ASYNC", 0, 1000, 3, DEVICE_COPY, 0),
        ("MatMulV2", 2000, 3000, 2, DEVICE_KERNEL, 0),
        ("MEMCPY_ASYNC", 2500, 2600, 3, DEVICE_COPY, 0),
        ("MatMulV2", 3000, 4000, 2, DEVICE_KERNEL, 0),
    )
    trace = make_trace(("aten::mm", 0, 10), device=work, settings=Settings(device="npu"))
    (kernels,), (times,) = device_kernels(trace), device_breakdown(trace)
    assert [(row.count, row.time_us) for row in kernels.copies] == [(2, 1.1)]
    row = next(row for row in kernels.by_name if row.name == "MEMCPY_ASYNC")
    assert (row.count, row.time_us, row.mean_us) == (1, 0.1, 0.1)
    assert (times.span_ns, times.copy_ns, times.outer_copies_ns) == (2000, 100, 1000)
