"""Clocks: offsets and drifts that were put into files are found again, and what cannot be known is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fleet_jobs import GLOO, NCCL, make_job
from trace_file_builder import TraceFileBuilder

from mindtorch_prof import fleet


def test_offsets_are_found_within_microseconds(tmp_path: Path) -> None:
    truth = make_job(tmp_path, NCCL, 8, 3, "host:3:2000:forward", clock_us=80_000)
    clocks = fleet(tmp_path / "*.gz", workers=1).clock_rows()
    offsets = np.array([row["offset_us"] for row in clocks], float)
    assert np.abs(offsets - truth["offset_us"]).max() < 2
    assert max(float(row["residual_us"] or 0) for row in clocks) < 2


def test_drift_is_found_in_a_long_recording(tmp_path: Path) -> None:
    truth = make_job(tmp_path, GLOO, 4, 60, clock_us=5_000, drift_ppm=100, jitter=0.0)
    clocks = fleet(tmp_path / "*.gz", workers=1).clock_rows()
    drifts = np.array([row["drift_ppm"] for row in clocks], float)
    assert np.abs(drifts - truth["drift_ppm"]).max() < 5
    assert np.abs(truth["drift_ppm"]).max() > 20


def test_ranks_in_different_groups_are_connected_through_common_ones(tmp_path: Path) -> None:
    # 0 with 1, 1 with 2; rank 2's clock is 500 us ahead of rank 1's, and that 300 us ahead of rank 0's
    members = {"a": (0, 1), "b": (1, 2)}
    ahead = {0: 0.0, 1: 300.0, 2: 800.0}
    for rank in range(3):
        trace = TraceFileBuilder(rank)
        op = trace.op("aten::mm", 0, 2)
        for number in range(6):
            for group, ranks in members.items():
                if rank in ranks:
                    at = 1000 + 100 * number + (40 if group == "b" else 0) + ahead[rank]
                    trace.launch(op, 1, at, 20, name="ncclDevKernel_AllReduce")
                    trace.events[-2]["args"] |= {
                        "Collective name": "allreduce",
                        "Process Group Name": group,
                        "Seq": number,
                    }
        trace.close(5000).dump(tmp_path / f"rank{rank}.json")
    report = fleet(tmp_path, workers=1)
    assert [row["offset_us"] for row in report.clock_rows()] == pytest.approx([0, 300, 800])
    assert report.waits.skew_ns.max() == 0


def test_without_collectives_offsets_are_not_known(tmp_path: Path) -> None:
    for rank in range(2):
        trace = TraceFileBuilder(rank)
        trace.op("aten::mm", 0, 2)
        trace.close(50).dump(tmp_path / f"rank{rank}.json")
    report = fleet(tmp_path, workers=1)
    assert [row["offset_us"] for row in report.clock_rows()] == [None, None]
    assert not report.clocks.known
