"""Sketches: small, complete, and sets that add up in any order."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from fleet_jobs import GLOO, NCCL, make_job
from hypothesis import given
from hypothesis import strategies as st
from trace_file_builder import TraceFileBuilder, rank_steps

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.fleet.packing import PackingError, packed
from mindtorch_prof.fleet.sketch import Missing, Sketch, merge, merge_all, sketch_of
from mindtorch_prof.load import load
from mindtorch_prof.rewrite.merge import merge_traces


def sketch(path: Path | str, digest: str = "") -> Sketch:
    return sketch_of(load(path).trace, digest or str(path), str(path))


@pytest.fixture(scope="module")
def sketches(tmp_path_factory: pytest.TempPathFactory) -> list[Sketch]:
    folder = tmp_path_factory.mktemp("ranks")
    make_job(folder, GLOO, 4, 2)
    ranks = [sketch(path) for path in sorted(folder.glob("*.gz"))]
    copy = Sketch((replace(ranks[0].ranks[0], files=("copy.json",)),))
    return [*ranks, copy, Sketch(missing=(Missing("x.json", None, "empty"),)), Sketch()]


@given(data=st.data())
def test_merging_is_associative_commutative_and_idempotent(
    data: st.DataObject, sketches: list[Sketch]
) -> None:
    order = data.draw(st.permutations(range(len(sketches))))
    cut = data.draw(st.integers(0, len(order)))
    parts = [sketches[place] for place in order]
    whole = merge_all(sketches).to_bytes()
    assert reduce(merge, parts).to_bytes() == whole
    assert merge(merge_all(parts[:cut]), merge_all(parts[cut:])).to_bytes() == whole
    assert merge_all([*parts, parts[0]]).to_bytes() == whole


def test_a_sketch_comes_back_from_its_bytes(sketches: list[Sketch]) -> None:
    data = merge_all([*sketches, sketch(NCCL)]).to_bytes()
    assert Sketch.from_bytes(data).to_bytes() == data
    with pytest.raises(PackingError, match="version 99"):
        Sketch.from_bytes(packed({"version": 99}, {}))


@pytest.mark.parametrize("path", [GLOO, NCCL])
def test_a_sketch_has_some_kilobytes(path: Path) -> None:
    assert 1_000 < len(sketch(path).to_bytes()) < 40_000


def test_the_device_of_a_step_is_broken_down_as_for_a_single_trace() -> None:
    trace = load(NCCL).trace
    device = sketch(NCCL).ranks[0].device
    assert device is not None
    (whole,) = device_breakdown(trace)
    (step,) = whole.steps
    assert device.span_ns.tolist() == [step.span_ns]
    assert device.computation_ns.tolist() == [step.computation_ns]
    assert device.exposed_communication_ns.tolist() == [step.exposed_communication_ns]
    assert device.idle_ns.tolist() == [step.idle_ns]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_device_of_an_ascend_step_is_broken_down_as_torch_npu_does(rank: int, ecosystem: Path) -> None:
    folder = ecosystem / f"ascend/text_level1/rank{rank}_ascend_pt"
    with (folder / "ASCEND_PROFILER_OUTPUT/step_trace_time.csv").open() as file:
        (expected,) = csv.DictReader(file)
    (found,) = sketch(folder).ranks
    steps = found.device
    assert steps is not None
    assert {
        "Computing": steps.computation_ns[0] / 1000,
        "Communication(Not Overlapped)": steps.exposed_communication_ns[0] / 1000,
        "Communication": steps.communication_ns[0] / 1000,
        "Free": (steps.idle_ns[0] + steps.exposed_copy_ns[0]) / 1000,
    } == {
        name: pytest.approx(float(expected[name]), abs=0.05)
        for name in ("Computing", "Communication(Not Overlapped)", "Communication", "Free")
    }


def test_the_ranks_of_a_merged_file_are_those_of_its_parts(tmp_path: Path) -> None:
    paths = [rank_steps(rank, work).dump(tmp_path / f"{rank}.json") for rank, work in enumerate([90, 150])]
    merge_traces(paths, tmp_path / "all.json")
    merged = sketch(tmp_path / "all.json").ranks
    assert [rank.rank for rank in merged] == [0, 1]
    for part, path in zip(merged, paths):
        alone = sketch(path).ranks[0]
        assert part.phases is not None
        assert alone.phases is not None
        assert part.phases.own_ns.tolist() == alone.phases.own_ns.tolist()
        assert len(part.collectives) == len(alone.collectives) == 6
        assert np.diff(part.collectives.arrival_ns).tolist() == np.diff(alone.collectives.arrival_ns).tolist()
        assert part.kernels.total_ns.tolist() == alone.kernels.total_ns.tolist()


def test_the_peak_of_memory_does_not_count_what_was_there_before(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    trace.op("aten::mm", 0, 10)
    for at, size in enumerate([-500, 300, 200, -300, 50]):
        trace.memory(at, size, 0)
    path = trace.close(20).dump(tmp_path / "rank0.json")
    assert sketch(path).ranks[0].peak_memory == 500
    assert sketch(path).ranks[0].peak_device_memory == -1


def test_the_number_of_a_rank_may_come_from_the_name_of_its_file(tmp_path: Path) -> None:
    trace = TraceFileBuilder()
    trace.op("aten::mm", 0, 10)
    names = ["job_rank12.json", "rank-3.json", "other.json"]
    random.shuffle(names)
    ranks = {name: sketch(trace.dump(tmp_path / name)).ranks[0].named_rank for name in names}
    assert ranks == {"job_rank12.json": 12, "rank-3.json": 3, "other.json": None}


def test_a_number_beyond_64_bits_is_no_rank(tmp_path: Path) -> None:
    trace = TraceFileBuilder(rank=2**63)
    trace.op("aten::mm", 0, 10)
    assert sketch(trace.dump(tmp_path / "t.json")).ranks[0].rank is None
