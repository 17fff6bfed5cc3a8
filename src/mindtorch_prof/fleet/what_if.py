"""What if: own times of ranks by op in; the step time if every op took its median over ranks, and what each rank, op and stage costs, out.

A step that synchronises takes as long as its slowest rank works, and the communication that all share. So a step gets shorter by what
the slowest rank's work gets shorter: the largest own time over ranks, less the largest after the change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..arrays import FloatArray
from .job import Job
from .verdict import Tables

_Name = TypeVar("_Name", int, str)
_MOST = 10  # rows per list
IDLE = "(device idle, copies)"


@dataclass(frozen=True)
class WhatIf:
    """Times in microseconds per step. The parts are each one change alone; they need not add up."""

    step_us: float
    ideal_step_us: float  # every op takes its median over ranks
    by_rank: tuple[
        tuple[int, float], ...
    ]  # place of a rank, and what the step would be shorter if its ops alone took their medians
    by_op: tuple[tuple[str, float], ...]
    by_stage: tuple[tuple[str, float], ...]

    @property
    def slowdown(self) -> float:
        """Step time as a multiple of the ideal one."""
        return self.step_us / self.ideal_step_us if self.ideal_step_us else 1.0


def what_if(job: Job, table: Tables) -> WhatIf | None:
    """None: there are no steps that ranks have in common, or only one rank."""
    if len(table.places) < 2 or not table.step_ns.size:
        return None
    columns, stages, values = _columns(job, table)
    own = values.sum(axis=2)
    slowest = own.max(axis=0)
    medians = np.median(values, axis=0)  # step x column
    step = np.median(table.step_ns, axis=0)
    saved = np.clip(slowest - medians.sum(axis=1), 0.0, step)
    n_steps = len(step)

    def cost(reduced: FloatArray) -> float:
        """Microseconds per step that a change saves; reduced: rank x step, own times after it."""
        return float(np.maximum(slowest - reduced.max(axis=0), 0.0).sum()) / n_steps / 1e3

    ideal = np.broadcast_to(medians.sum(axis=1), own.shape)
    by_rank = [
        (int(table.places[place]), float(time) / n_steps / 1e3)
        for place, time in enumerate(_saved_by_rank(own, ideal[0], slowest))
    ]
    above = values - medians
    by_op = [(op, cost(own - above[:, :, columns == op].sum(axis=2))) for op in np.unique(columns).tolist()]
    by_stage = [
        (each, cost(own - above[:, :, stages == each].sum(axis=2))) for each in np.unique(stages).tolist()
    ]
    return WhatIf(
        float(step.sum()) / n_steps / 1e3,
        float((step - saved).sum()) / n_steps / 1e3,
        _top(by_rank),
        _top(by_op),
        _top(by_stage),
    )


def _columns(
    job: Job, table: Tables
) -> tuple[np.ndarray[tuple[int], np.dtype[np.str_]], np.ndarray[tuple[int], np.dtype[np.str_]], FloatArray]:
    """Names of ops and stages by column, and rank x step x column: own time. On a device what no kernel takes is a column of its own."""
    if not table.device.any():
        ops, stages = [cell.op for cell in table.cells], [cell.phase for cell in table.cells]
        return np.array(ops), np.array(stages), table.cell_ns
    exposed = job.by_step([rank.device_column("exposed_communication_ns") for rank in job.with_steps])
    own = np.maximum(table.step_ns - exposed, 0.0)
    # kernels may overlap; phases, which are unions, tell how long
    rest = np.maximum(own - table.device.sum(axis=2), 0.0)
    kernel_sum = np.maximum(table.kernel_ns.sum(axis=2, keepdims=True), 1.0)
    kernels = table.kernel_ns / kernel_sum * table.device.sum(axis=2, keepdims=True)
    values = np.concatenate([kernels, rest[:, :, None]], axis=2)
    return (
        np.array([*table.kernels, IDLE]),
        np.array(["computation"] * len(table.kernels) + ["idle and copies"]),
        values,
    )


def _saved_by_rank(own: FloatArray, ideal: FloatArray, slowest: FloatArray) -> FloatArray:
    """By rank what is saved in all steps if this rank alone had the ideal own time."""
    second = np.sort(own, axis=0)[-2]
    is_slowest = own == slowest
    only = is_slowest & (is_slowest.sum(axis=0) == 1)
    after = np.maximum(second, np.minimum(ideal, slowest))
    return np.asarray(np.where(only, slowest - after, 0.0).sum(axis=1))


def _top(rows: list[tuple[_Name, float]]) -> tuple[tuple[_Name, float], ...]:
    """The largest, without those that save nothing."""
    return tuple(sorted((row for row in rows if row[1] > 0), key=lambda row: (-row[1], row[0]))[:_MOST])
