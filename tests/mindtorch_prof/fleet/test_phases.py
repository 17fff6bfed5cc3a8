"""Phases: own time adds up to the step, phases are found by content, and waiting is nobody's own time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fleet_jobs import GLOO, NCCL
from trace_file_builder import OTHER, TraceFileBuilder

from mindtorch_prof.fleet.phases import NO_OP, RankPhases, rank_phases
from mindtorch_prof.fleet.rank_collectives import rank_collectives
from mindtorch_prof.load import load
from mindtorch_prof.tree import tree


def phases_of(path: Path | str) -> RankPhases:
    trace = load(path).trace
    nesting = tree(trace)
    phases = rank_phases(trace, nesting, rank_collectives(trace, nesting))
    assert phases is not None
    return phases


@pytest.mark.parametrize("path", [GLOO, NCCL])
def test_own_time_and_waiting_make_up_the_steps(path: Path) -> None:
    phases = phases_of(path)
    length = phases.end_ns - phases.start_ns
    assert (phases.own_ns.sum(axis=1) + phases.waiting_ns).tolist() == length.tolist()
    assert {"data", "forward", "backward", "optimizer"} <= set(phases.phases)


def test_the_time_of_ops_in_a_phase_adds_up_to_the_phase() -> None:
    phases = phases_of(GLOO)
    for place, phase in enumerate(phases.phases):
        cells = [n for n, cell in enumerate(phases.cells) if cell.phase == phase]
        assert np.allclose(phases.cell_ns[:, cells].sum(axis=1), phases.own_ns[:, place], rtol=0.02, atol=2e4)


def step_with(tmp_path: Path, *annotations: tuple[str, float, float], ops: bool = True) -> RankPhases:
    trace = TraceFileBuilder(0)
    trace.step(1, 0, 1000)
    for name, at, length in annotations:
        trace.op(name, at, length, cat="user_annotation")
    if ops:
        forward = {"Sequence number": 5, "Fwd thread id": 0}
        trace.op("aten::addmm", 300, 50, **forward)
        trace.op("autograd::engine::evaluate_function: AddmmBackward0", 400, 100)
        trace.op("AddmmBackward0", 405, 90, **{"Sequence number": 5, "Fwd thread id": 1})
    return phases_of(trace.close(1100).dump(tmp_path / "rank0.json"))


def own(phases: RankPhases) -> dict[str, float]:
    return dict(zip(phases.phases, (phases.own_ns.sum(axis=0) / 1000).tolist()))


def test_an_annotation_is_of_the_phase_that_runs_inside_it(tmp_path: Path) -> None:
    names = (
        ("load things", 0, 100),
        ("my model", 290, 80),
        ("apply", 600, 200),
        ("Optimizer.step#SGD.step", 700, 50),
    )
    phases = own(step_with(tmp_path, *names))
    assert phases["forward"] == 80  # the whole annotation around the op that has a backward node
    assert phases["backward"] == 100
    assert phases["optimizer"] == 200
    assert phases["load things"] == 100  # nothing tells: its own name


def test_an_annotation_around_everything_is_of_no_phase(tmp_path: Path) -> None:
    phases = own(step_with(tmp_path, ("train", 250, 600), ("Optimizer.step#SGD.step", 700, 50)))
    assert phases["train"] == 600 - 50 - 100 - 50
    assert (phases["forward"], phases["backward"], phases["optimizer"]) == (50, 100, 50)


def test_words_name_a_phase_that_has_no_telling_content(tmp_path: Path) -> None:
    phases = own(step_with(tmp_path, ("fetch_batch", 0, 100), ("zero_grad", 150, 20)))
    assert (phases["data"], phases["optimizer"]) == (100, 20)


def test_waiting_for_a_collective_is_not_own_time_but_an_op_meanwhile_is(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    trace.step(1, 0, 1000)
    trace.op("c10d::allreduce_", 100, 5)
    trace.op("gloo:all_reduce", 110, 500, tid=OTHER, cat="user_annotation")
    trace.op("aten::mm", 200, 100)
    phases = phases_of(trace.close(1100).dump(tmp_path / "rank0.json"))
    assert phases.waiting_ns.tolist() == [(510 - 100) * 1000]
    cells = {cell.op: int(time) for cell, time in zip(phases.cells, phases.cell_ns[0])}
    assert cells == {"aten::mm": 100_000, NO_OP: 490_000}


def test_an_op_around_a_whole_collective_waits_for_it(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    trace.step(1, 0, 1000)
    trace.op("my::sync_op", 90, 600)
    trace.op("c10d::allreduce_", 100, 5)
    trace.op("gloo:all_reduce", 110, 500, tid=OTHER, cat="user_annotation")
    phases = phases_of(trace.close(1100).dump(tmp_path / "rank0.json"))
    assert phases.waiting_ns.tolist() == [510_000]
    cells = {cell.op: int(time) for cell, time in zip(phases.cells, phases.cell_ns[0])}
    assert cells["my::sync_op"] == 600_000 - 510_000


def test_a_trace_without_steps_is_one_step(tmp_path: Path) -> None:
    trace = TraceFileBuilder(0)
    trace.op("aten::mm", 10, 100)
    phases = phases_of(trace.close(200).dump(tmp_path / "a.json"))
    assert phases.steps == (-1,)
    assert phases.own_ns.sum() == 100_000
