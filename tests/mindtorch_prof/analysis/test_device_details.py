"""Device details: grid, block, occupancy, bytes and bandwidth of device events."""

from __future__ import annotations

from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import load
from mindtorch_prof.analysis.groups import groups
from mindtorch_prof.analysis.tables import device_table, events_table


def test_kernels_and_copies_have_what_the_file_says(tmp_path: Path) -> None:
    launch = {"grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 1024}
    events = [
        documents.kernel("gemm", 10.0, 5.0, **launch, **{"est. achieved occupancy %": 25}),
        documents.kernel("Memcpy HtoD", 20.0, 4.0, cat="gpu_memcpy", bytes=8000),
        documents.kernel("old", 30.0, 4.0, grid="[2, 1, 1]", block="[64, 1, 1]"),
        documents.kernel("bare", 40.0, 4.0),
    ]
    sheet = device_table(load(documents.write(tmp_path / "t.json", events)))
    gemm, copy, old, bare = sheet.rows()
    assert (gemm["grid"], gemm["block"], gemm["threads"]) == ("4x2x1", "128x1x1", 1024)
    assert (gemm["registers"], gemm["shared_memory"], gemm["occupancy"]) == (32, 1024, 0.25)
    assert gemm["copied_bytes"] is gemm["bandwidth"] is None
    assert (copy["copied_bytes"], copy["bandwidth"]) == (8000, pytest.approx(2.0))
    assert (old["grid"], old["threads"]) == ("2x1x1", 128)
    assert bare["grid"] is bare["occupancy"] is None


def test_the_bandwidth_is_the_one_that_torch_wrote(ecosystem: Path) -> None:
    trace = load(ecosystem / "traces" / "v100_resnet50_train_2021.pt.trace.json.gz")
    sheet = device_table(trace)
    device = trace.trace.device
    checked = 0
    for row, extra in zip(sheet.rows(), device.extra.tolist()):
        written = device.extra_table[extra].get("memory bandwidth (GB/s)") if extra >= 0 else None
        if isinstance(written, float) and row["duration_us"] > 200:  # type: ignore[operator]  # whole us
            assert row["bandwidth"] == pytest.approx(written, rel=0.01)
            checked += 1
    assert checked > 5


def test_events_have_device_memory_where_it_was_recorded(ecosystem: Path) -> None:
    trace = load(ecosystem / "traces" / "h100_qwen_infer_stack_memory.json.gz")
    sheet = events_table(trace)
    roots = [row for row in sheet.rows() if row["parent"] is None]
    total = sum(row["device_memory_usage"] for row in roots)  # type: ignore[misc]
    assert total == sheet["self_device_memory_usage"].sum()
    assert sheet["device_memory_usage"].any()
    averages = groups(trace)
    assert (
        averages["self_device_memory_usage"].sum()
        == trace.trace.memory.nbytes[trace.trace.memory.on_device].sum()
    )
    assert "device_memory_usage" not in events_table(
        load(ecosystem / "traces" / "nvidia_ddp_train_nccl.json.gz")
    )
