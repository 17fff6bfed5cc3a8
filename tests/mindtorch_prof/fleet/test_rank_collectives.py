"""Collectives of one rank: kernels with and without arguments, and annotations of backends on the host."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from fleet_jobs import GLOO, NCCL
from trace_file_builder import OTHER, TraceFileBuilder

from mindtorch_prof.fleet.rank_collectives import RankCollectives, rank_collectives
from mindtorch_prof.load import load
from mindtorch_prof.tree import tree


def collectives_of(path: Path | str) -> RankCollectives:
    trace = load(path).trace
    return rank_collectives(trace, tree(trace))


def types_of(collectives: RankCollectives) -> list[str]:
    return [collectives.types[number] for number in collectives.type.tolist()]


def test_kernels_without_arguments_are_described_by_the_annotation_that_launched_them() -> None:
    collectives = collectives_of(NCCL)
    assert types_of(collectives) == ["all_to_all"] * 4 + [
        "all_reduce",
        "all_to_all",
        "all_reduce",
        "all_reduce",
    ]
    # as recorded: 6144 floats, 24 longs, 384 ints, 3392 ints, then floats
    assert collectives.nbytes.tolist() == [24576, 192, 1536, 13568, 1576964, 24576, 448, 907840]
    assert set(collectives.size.tolist()) == {8}
    assert (collectives.end_ns - collectives.start_ns).tolist() == [
        1000 * us for us in (10, 8, 7, 7, 86, 357, 468, 803)
    ]
    assert set(collectives.step.tolist()) == {10}


def test_a_rank_comes_to_a_collective_on_the_host_when_it_calls_it() -> None:
    collectives = collectives_of(GLOO)
    assert types_of(collectives) == ["all_reduce"] * 4
    assert sorted(collectives.nbytes.tolist()) == [526336, 526336, 1071144, 1071144]
    assert (collectives.arrival_ns <= collectives.start_ns).all()
    assert (collectives.arrival_ns < collectives.start_ns).any()
    assert collectives.groups == ("0",)
    assert collectives.members == ("[0, 1, 2, 3]",)
    assert np.unique(collectives.step).size == 2


def test_arguments_of_a_kernel_say_group_number_and_peer(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    op = trace.op("record_param_comms", 0, 5)
    trace.launch(op, 1, 10, 20, name="ncclDevKernel_Generic")
    trace.events[-2]["args"] |= {
        "Collective name": "_reduce_scatter_base", "Seq": 41, "Process Group Name": "7",
        "Process Group Ranks": "[0, 3]",
        "Group size": 2, "dtype": "BFloat16", "In msg nelems": 1000, "Out msg nelems": 500,
    }  # fmt: skip
    trace.launch(op, 30, 40, 20, name="ncclDevKernel_SendRecv")
    trace.events[-2]["args"] |= {
        "Collective name": "send",
        "dtype": "Float",
        "In msg nelems": 4,
        "Dst Rank": 5,
    }
    collectives = collectives_of(trace.close(100).dump(tmp_path / "a.json"))
    assert types_of(collectives) == ["reduce_scatter", "send"]
    assert collectives.seq.tolist() == [41, -1]
    assert collectives.nbytes.tolist() == [2000, 16]
    assert (collectives.sent.tolist(), collectives.received.tolist()) == ([2000, 16], [1000, -1])
    assert collectives.peer.tolist() == [-1, 5]
    assert [collectives.groups[n] for n in collectives.group.tolist()] == ["7", "default"]


@pytest.mark.parametrize("count", [2**63, 2**62, 10**25, float("inf"), "9" * 30])
def test_a_size_that_no_memory_has_is_not_known(tmp_path: Path, count: object) -> None:
    arguments = {
        "External id": 1, "correlation": 1, "device": 0, "stream": 7, "dtype": "Float",
        "Collective name": "allreduce", "In msg nelems": count, "Out msg nelems": 5, "Seq": count,
    }  # fmt: skip
    kernel = {
        "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7,
        "ts": 5, "dur": 2, "args": arguments,
    }  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [kernel]}))
    collectives = collectives_of(path)
    assert (collectives.sent.tolist(), collectives.received.tolist()) == ([-1], [20])


def test_a_backend_that_runs_in_the_caller_is_known_by_its_ops(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    trace.op("c10d::barrier", 5, 20)
    trace.op("c10d::allgather_", 30, 20, tid=OTHER)
    collectives = collectives_of(trace.close(100).dump(tmp_path / "a.json"))
    assert types_of(collectives) == ["barrier", "all_gather"]
    assert collectives.on_device.tolist() == [0, 0]


def test_durations_and_messages_of_a_real_rank_are_those_that_tracelens_publishes(ecosystem: Path) -> None:
    name = "mi300_resnet_ddp_act_checkpoint"
    collectives = collectives_of(ecosystem / "traces" / f"{name}.json.gz")
    duration = (collectives.end_ns - collectives.start_ns) / 1e3
    types = np.array([name.replace("_", "") for name in types_of(collectives)])
    with open(ecosystem / "expected" / name / "coll_analysis.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        nbytes = round(float(row["In msg size (MB)_first"]) * 1024**2)
        here = np.flatnonzero((types == row["Collective name"]) & (collectives.nbytes == nbytes))
        own = duration[here]
        assert len(here) == int(row["operation_count"])
        expected = [float(row[f"dur_{key}"]) for key in ("sum", "mean", "std", "min", "max")]
        assert [own.sum(), own.mean(), own.std(ddof=1), own.min(), own.max()] == pytest.approx(expected)
        assert {collectives.groups[group] for group in collectives.group[here]} == {row["Process Group Name"]}
        assert set(collectives.size[here].tolist()) == {round(float(row["Group size"]))}
    # its table leaves out kernels that were launched before the recording: nothing says what they are
    assert sum(int(row["operation_count"]) for row in rows) == np.count_nonzero(types != "unknown") == 12


def test_a_kernel_that_was_launched_before_the_recording_belongs_to_no_step(ecosystem: Path) -> None:
    collectives = collectives_of(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz")
    steps = collectives.step.tolist()
    assert steps == [-1] * 5 + [15] * 4 + [16] * 4 + [17] * 4
