"""Device kernels: work by type, op and direction of copies."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kineto_documents import document, kernel, load_document
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.device_kernels import NO_OP, device_kernels
from mindtorch_prof.load import load
from mindtorch_prof.trace import DEVICE_ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET


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
    assert kernels.by_op[0].share == pytest.approx(30 / 50)
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
        kind = np.where(trace.device.kind == DEVICE_SET, DEVICE_ANNOTATION, trace.device.kind)
        trace = replace(trace, device=replace(trace.device, kind=kind))
    (kernels,) = device_kernels(trace)
    found = {row.name: row.time_us for row in kernels.by_op}
    assert {op: found.get(op) for op in expected} == {
        op: pytest.approx(time, rel=1e-5, abs=0.03) for op, time in expected.items()
    }


def test_shares_of_types_are_of_the_busy_time(ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz")
    (kernels,), (times,) = device_kernels(loaded), device_breakdown(loaded)
    assert sum(row.count for row in kernels.by_type) == times.events
    assert max(row.time_us for row in kernels.by_type) <= times.busy_us
    assert sum(row.time_us for row in kernels.by_type) >= times.busy_us
