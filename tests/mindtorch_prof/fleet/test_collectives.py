"""Matching of collectives: the figures of a real job, sequence numbers, and windows that differ."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleet_jobs import GLOO, make_job
from trace_file_builder import TraceFileBuilder

from mindtorch_prof import fleet
from mindtorch_prof.fleet.collectives import BY_ORDER, BY_SEQUENCE, BY_STEP, bus_factor, waits
from mindtorch_prof.fleet.report import FleetReport

Call = tuple[float, float, dict[str, Any]]  # start, end, arguments


def report(tmp_path: Path, *ranks: list[Call], step: bool = False) -> FleetReport:
    """Ranks with NCCL kernels."""
    for rank, calls in enumerate(ranks):
        trace = TraceFileBuilder(rank)
        if step:
            trace.step(1, 0, 900)
        op = trace.op("aten::mm", 0, 2)
        for start, end, arguments in calls:
            trace.launch(op, 1, start, end - start, name="ncclDevKernel_AllReduce_Sum_f32")
            trace.events[-2]["args"] |= {
                "Collective name": "allreduce",
                "dtype": "Float",
                "In msg nelems": 8,
                **arguments,
            }
        trace.close(1000).dump(tmp_path / f"rank{rank}.json")
    return fleet(tmp_path, workers=1)


def test_a_real_job_has_the_skews_that_its_publisher_sees(ecosystem: Path) -> None:
    job = fleet(ecosystem / "ranks" / "dlrm_8", workers=1)
    rows = job.collective_rows()
    assert [row["last_rank"] for row in rows] == [7, 7, 7, 7, 7, 5, 5, 4]
    assert rows[0]["skew_us"] == pytest.approx(7624, abs=2)
    assert [row["transfer_us"] for row in rows] == [10, 8, 7, 7, 86, 10, 20, 69]
    waits = {row["rank"]: row["wait_us"] for row in job.rank_rows()}
    assert waits[7] == pytest.approx(1533, abs=10)
    assert waits[1] == pytest.approx(11127, abs=10)
    assert job.collectives.matched_by == (BY_STEP,)


def test_on_the_clocks_of_files_the_figures_are_those_that_tracelens_defines(ecosystem: Path) -> None:
    # comm_latency, skew in start time, avg_wait_time, algo bw and bus bw, from the files themselves; its
    # GB/s are of 2**30 bytes
    folder = ecosystem / "ranks" / "dlrm_8"
    starts, lengths = [], []
    for rank in range(8):
        document = json.loads(gzip.decompress((folder / f"rank{rank}.pt.trace.json.gz").read_bytes()))
        kernels = [
            each
            for each in document["traceEvents"]
            if each.get("cat") == "kernel" and "nccl" in each["name"].lower()
        ]
        kernels.sort(key=lambda each: each["ts"])
        starts.append([each["ts"] for each in kernels])
        lengths.append([each["dur"] for each in kernels])
    start, length = np.array(starts), np.array(lengths)
    latency, wait = length.min(axis=0), start.max(axis=0) - start
    job = fleet(folder, workers=1)
    raw = waits(job.collectives, np.zeros(len(job.collectives.rank), np.int64))
    assert (raw.skew_ns / 1e3).tolist() == wait.max(axis=0).tolist()
    assert (raw.wait_ns.reshape(-1, 8).mean(axis=1) / 1e3).tolist() == pytest.approx(wait.mean(axis=0))
    rows = job.collective_rows()
    assert [row["transfer_us"] for row in rows] == latency.tolist()
    for row, us in zip(rows, latency.tolist()):
        assert isinstance(row["bytes"], int)
        factor = (2 if row["name"] == "all_reduce" else 1) * 7 / 8
        algorithm = row["bytes"] / 2**30 / (us / 1e6)
        assert row["algorithm_gb_s"] == pytest.approx(algorithm * 2**30 / 1e9)
        assert row["bus_gb_s"] == pytest.approx(algorithm * factor * 2**30 / 1e9)
    # what the clocks change: a few microseconds here, as all ranks are on one machine
    changes = [row["skew_us"] - us for row, us in zip(rows, wait.max(axis=0).tolist())]  # type: ignore[operator]
    assert max(map(abs, changes)) < 3


def test_sequence_numbers_match_though_windows_differ(tmp_path: Path) -> None:
    first = [(100.0 * n, 100.0 * n + 50, {"Seq": n, "Process Group Name": "a"}) for n in range(1, 6)]
    second = [(100.0 * n + 20, 100.0 * n + 50, {"Seq": n, "Process Group Name": "a"}) for n in range(3, 8)]
    job = report(tmp_path, first, second)
    assert job.collectives.matched_by == (BY_SEQUENCE,)
    assert [(row["seq"], row["skew_us"], row["last_rank"]) for row in job.collective_rows()] == [
        (n, 20.0, 1) for n in (3, 4, 5)
    ]
    assert job.collectives.unmatched == 4


def test_without_steps_and_numbers_equal_types_and_sizes_are_aligned(tmp_path: Path) -> None:
    sizes = [8, 16, 24, 32, 40]
    first = [(100.0 * n, 100.0 * n + 50, {"In msg nelems": size}) for n, size in enumerate(sizes, 1)]
    job = report(tmp_path, first, [(s + 10, e, a) for s, e, a in first[2:]])
    assert job.collectives.matched_by == (BY_ORDER,)
    assert [row["bytes"] for row in job.collective_rows()] == [96, 128, 160]
    assert {row["skew_us"] for row in job.collective_rows()} == {10.0}
    assert any("their windows differ" in note for note in job.notes)


def test_a_step_with_other_collectives_on_one_rank_is_left_out_and_said(tmp_path: Path) -> None:
    calls = [(100.0, 150.0, {}), (200.0, 250.0, {})]
    job = report(tmp_path, calls, calls[:1], step=True)
    assert len(job.collectives) == 0
    assert any("in 1 of 1 steps ranks recorded different collectives" in note for note in job.notes)


def test_a_recording_that_begins_a_step_later_is_matched_by_steps(tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 4, 6, "window:2:1", "host:1:4000:data")
    job = fleet(tmp_path / "*.gz", workers=1)
    assert job.steps == (101, 102, 103, 104, 105)
    rows = job.collective_rows()
    assert [row["ranks"] for row in rows] == [3] * 2 + [4] * 10
    assert {row["last_rank"] for row in rows[::2]} == {1}
    assert job.verdict.straggler == 1


def test_groups_with_one_name_and_other_ranks_are_kept_apart(tmp_path: Path) -> None:
    def calls(late: float, members: str) -> list[Call]:
        return [(100 + late, 200, {"Process Group Name": "tp", "Process Group Ranks": members})]

    job = report(tmp_path, calls(0, "[0, 1]"), calls(5, "[0, 1]"), calls(50, "[2, 3]"), calls(90, "[2, 3]"))
    assert sorted((row["ranks"], row["skew_us"]) for row in job.collective_rows()) == [(2, 5.0), (2, 40.0)]


def test_the_sends_of_a_pair_belong_to_its_receives_in_order(tmp_path: Path) -> None:
    def message(kind: str, peer: int, start: float, end: float) -> Call:
        other = "Dst Rank" if kind == "send" else "Src Rank"
        return start, end, {"Collective name": kind, other: peer}

    sender = [message("send", 1, 100, 110), message("send", 2, 120, 160), message("send", 1, 200, 210)]
    job = report(
        tmp_path,
        sender,
        [message("recv", 0, 50, 110), message("recv", 0, 150, 210)],
        [message("recv", 0, 150, 160)],
    )
    rows = sorted((row["skew_us"], row["ranks"], row["last_rank"]) for row in job.collective_rows())
    assert rows == [(30.0, 2, 2), (50.0, 2, 0), (50.0, 2, 0)]


def test_bus_bandwidth_counts_what_crosses_a_link() -> None:
    size = np.array([2, 8])
    assert bus_factor("all_reduce", size).tolist() == [1.0, 1.75]
    assert bus_factor("all_gather", size).tolist() == [0.5, 0.875]
    assert bus_factor("broadcast", size).tolist() == [1.0, 1.0]
