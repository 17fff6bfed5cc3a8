"""The verdict: a job, its collectives and clocks in; which rank the others wait for, and why, out.

Two kinds of evidence. *Waits*: the rank comes to collectives last and waits least, in more steps (or collectives) than chance allows.
*Own time*: in nearly every step the rank spends more time of its own in a phase than the others. On the host the second needs no clocks
and is not moved by ranks that fight for a processor; on a device the first is needed, as the host may run ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..analysis.intervals import union_lengths
from ..arrays import BoolArray, FloatArray, IntArray
from ..number_formats import counted, format_time
from .clocks import Clocks
from .collectives import Collectives, Waits
from .evidence import (
    MIN_STEPS,
    SUPERIORITY,
    Difference,
    at_least,
    certain_excess,
    differences,
    least_total_by_chance,
    shifts,
    superiority,
    without_spikes,
)
from .job import Job
from .phases import NO_OP, OUTSIDE, Cell

HOST, DEVICE = "host", "device"
EXPLAINED = 0.8  # share of a rank's excess that a cause must explain to be named
THRESHOLD = 0.03  # share of the step that others wait for a rank, from which on it is called a straggler
_CHANCE_ON_DEVICE, _CHANCE_ON_HOST = (
    0.01,
    0.001,
)  # of the binomial test of waits; processes on a host disturb each other
_RESIDUALS = 2.0  # skew below so many residuals of the clocks may be the clocks'
_FEWEST_COLLECTIVES = 5


@dataclass(frozen=True)
class Verdict:
    """Which rank the others wait for, if any, and why."""

    place: int | None  # of the straggler in the job
    straggler: int | str | None  # its rank, or its file where ranks have no numbers
    phase: str | None  # named only if it explains enough of the excess
    where: str | None  # "host" or "device"
    explained: float  # share of the excess that the phase (or the device as a whole) holds, 0 to 1
    late_us: float  # per step, compared with the median rank
    share: float  # of the step
    annotation: str | None
    ops: tuple[str, ...]  # those that hold most of the excess, the largest first
    also: tuple[int, ...]  # places of further ranks that are late in the same way
    sentence: str


@dataclass(frozen=True)
class Tables:
    """What ranks are compared by. rank x step x column, in nanoseconds; ranks and steps are those of the job."""

    places: IntArray  # of the ranks in the job
    step_ns: FloatArray  # rank x step
    host_phases: tuple[str, ...]
    host: FloatArray  # own time on the host by phase, without spikes
    cells: tuple[Cell, ...]
    cell_ns: FloatArray  # own time by op, with spikes
    device_phases: tuple[str, ...]
    device: FloatArray  # computation by the phase that launched it
    kernels: tuple[str, ...]
    kernel_ns: FloatArray
    wait_ns: FloatArray  # rank x step: until the last rank came to the step's collectives
    units: FloatArray  # rank x unit: wait at each unit of the test, a step or a collective
    unit_is_step: bool

    @property
    def typical_step(self) -> float:
        return float(np.median(self.step_ns)) if self.step_ns.size else 0.0

    def steps(self, chosen: IntArray) -> Tables:
        """The same for some of the steps."""
        by_step = ["step_ns", "host", "cell_ns", "device", "kernel_ns", "wait_ns"]
        by_step += ["units"] if self.unit_is_step else []
        return replace(self, **{name: getattr(self, name)[:, chosen] for name in by_step})

    def ranks(self, chosen: IntArray) -> Tables:
        """The same for some of the ranks."""
        by_rank = ("places", "step_ns", "host", "cell_ns", "device", "kernel_ns", "wait_ns", "units")
        return replace(self, **{name: getattr(self, name)[chosen] for name in by_rank})


def tables(job: Job, collectives: Collectives, arrivals: Waits) -> Tables:
    """Gather what ranks are compared by."""
    ranks = job.with_steps
    places = np.array([rank.place for rank in ranks], np.int64)
    cells, cell_ns = job.cells(on_device=False)
    clean = without_spikes(cell_ns)
    phases = tuple(sorted({cell.phase for cell in cells}))
    host = np.stack(
        [clean[:, :, [cell.phase == phase for cell in cells]].sum(axis=2) for phase in phases]
        or [np.zeros(clean.shape[:2])],
        axis=2,
    )
    device_phases, device = _device_tables(job)
    kernels, kernel_ns = job.cells(on_device=True)
    wait = _waits_by_step(job, collectives, arrivals, places)
    in_steps = len(job.steps) >= MIN_STEPS and bool(wait.any())
    return Tables(
        places,
        job.step_ns.astype(float) if len(ranks) else np.zeros((0, 0)),
        phases or ("",),
        host,
        cells,
        cell_ns.astype(float),
        device_phases,
        device,
        tuple(cell.op for cell in kernels),
        kernel_ns.astype(float),
        wait,
        wait if in_steps else _waits_by_collective(collectives, arrivals, places),
        in_steps,
    )


def _device_tables(job: Job) -> tuple[tuple[str, ...], FloatArray]:
    names = sorted(
        {p for r in job.with_steps for s in r.sketches if s.phases is not None for p in s.phases.phases}
    )
    values = np.zeros((len(job.with_steps), len(job.steps), len(names)))
    for column, name in enumerate(names):
        by_rank = []
        for rank in job.with_steps:
            parts = [
                s.phases.device_ns[:, s.phases.phases.index(name)]
                if name in s.phases.phases
                else np.zeros(len(s.phases.steps), np.int64)
                for s in rank.sketches
                if s.phases is not None
            ]
            by_rank.append(np.concatenate(parts))
        values[:, :, column] = job.by_step(by_rank)
    return tuple(names), values


def _waits_by_step(job: Job, collectives: Collectives, arrivals: Waits, places: IntArray) -> FloatArray:
    """rank x step: the time in which the rank waited for the last one, waits at the same time counted once."""
    n_steps = len(job.steps)
    wait = np.zeros((len(job), n_steps))
    if not len(collectives) or not n_steps:
        return wait[places]
    step_of = {number: place for place, number in enumerate(job.steps)}
    step = np.array([step_of.get(number, -1) for number in collectives.step.tolist()], np.int64)
    if job.steps == (-1,):
        step = np.zeros(len(step), np.int64)
    step = step[collectives.collective]
    rows = np.flatnonzero(step >= 0)
    group = collectives.rank[rows] * n_steps + step[rows]
    begin = arrivals.arrival_ns[rows]
    lengths = union_lengths(group, begin, begin + arrivals.wait_ns[rows], len(job) * n_steps)
    return lengths.reshape(len(job), n_steps)[places].astype(float)


def _waits_by_collective(collectives: Collectives, arrivals: Waits, places: IntArray) -> FloatArray:
    """rank x collective, of the collectives in which all ranks take part; those at the same time on hosts count as one."""
    if not len(collectives) or not len(places):
        return np.zeros((len(places), 0))
    whole = np.flatnonzero(collectives.participants == len(places))
    rows = np.flatnonzero(np.isin(collectives.collective, whole))
    wait = arrivals.wait_ns[rows].reshape(len(whole), len(places)).T.astype(float)
    if not len(whole) or collectives.on_device[rows].any():
        return wait
    # on the host several may be under way, as the buckets of a backward pass: a rank is late for all of them once
    begin = arrivals.arrival_ns[rows]
    end = collectives.end_ns[rows] - (collectives.arrival_ns[rows] - begin)
    first, last = (column.reshape(wait.T.shape) for column in (begin, end))
    order = np.argsort(first.min(axis=1), kind="stable")
    until = np.maximum.accumulate(last.max(axis=1)[order])
    is_new = np.append(True, first.min(axis=1)[order][1:] > until[:-1])
    unit = np.empty(len(whole), np.int64)
    unit[order] = np.cumsum(is_new) - 1
    n_units = int(is_new.sum())
    rank = np.tile(np.arange(len(places)), len(whole))
    group = rank * n_units + np.repeat(unit, len(places))
    lengths = union_lengths(group, begin, begin + arrivals.wait_ns[rows], len(places) * n_units)
    return lengths.reshape(len(places), n_units).astype(float)


# ---------------------------------------------------------------------------------------------------- who


@dataclass(frozen=True)
class _Late:
    """A rank that is late, before the reason is looked for."""

    place: int  # row of the tables
    excess: float  # nanoseconds per step
    phase: Difference | None  # own time that shows it
    where: str | None


def find_straggler(
    table: Tables, clocks: Clocks, threshold: float = THRESHOLD
) -> tuple[_Late | None, tuple[int, ...]]:
    """The straggler and the rows of further ranks that are late in the same way."""
    if len(table.places) < 2 or not table.step_ns.size:
        return None, ()
    floor = threshold * table.typical_step
    has_device = bool(table.device.any())
    late = _by_waits(table, clocks, floor, has_device)
    if has_device:
        return late, () if late is None else _also_waited_for(table, clocks, floor, late.place)
    own = _by_own_time(table, floor)
    if not own:
        return late, ()
    first = own[0]
    also = tuple(dict.fromkeys(each.place for each in own if each.place != first.place))
    return _Late(first.place, first.shift, first, HOST), also


def _by_waits(table: Tables, clocks: Clocks, floor: float, has_device: bool) -> _Late | None:
    """The rank that waits least, if it does so more often than chance allows and the others wait long enough for it."""
    units = table.units
    chance = _CHANCE_ON_DEVICE if has_device else _CHANCE_ON_HOST
    n_ranks, n_units = units.shape
    if n_units < (MIN_STEPS if table.unit_is_step else _FEWEST_COLLECTIVES):
        return None
    total = units.sum(axis=1)
    place = int(np.argmin(total))
    least = int((units.argmin(axis=0) == place).sum())
    others = np.delete(units, place, axis=0)
    per_step = _longer_waits(table.wait_ns if table.wait_ns.any() else units, place)
    residual = np.nanmedian(clocks.residual_ns) if clocks.known else 0.0
    if per_step <= floor or per_step <= _RESIDUALS * residual:
        return None
    is_last_too_often = at_least(least, n_units, 1 / n_ranks) * n_ranks <= chance
    if has_device:
        # it comes last more often, or the others wait longer for it, than chance allows
        is_late = is_last_too_often or least_total_by_chance(units) <= chance
        # with few steps that cannot be told; a phase that takes longer in every one of them can
        is_late = is_late or _takes_longer(table, place, floor)
    else:
        # processes that fight for a processor are late by much, and for a while; only who is always late is meant
        is_late = is_last_too_often and superiority(others.reshape(-1), units[place]) >= SUPERIORITY
    if not is_late:
        return None
    return _Late(place, per_step, None, None)


def _also_waited_for(table: Tables, clocks: Clocks, floor: float, first: int) -> tuple[int, ...]:
    """Further ranks that the rest waits for: the one that waits least without those that are known."""
    places = [place for place in range(len(table.places)) if place != first]
    also: list[int] = []
    while len(places) > len(table.places) // 2 and len(places) > 2:
        late = _by_waits(table.ranks(np.array(places)), clocks, floor, has_device=True)
        if late is None:
            break
        also.append(places.pop(late.place))
    return tuple(also)


def _longer_waits(waits: FloatArray, place: int) -> float:
    """By how much the others wait longer than a rank: over steps a median, which one bad step does not move; over few the mean."""
    gap = np.median(np.delete(waits, place, axis=0), axis=0) - waits[place]
    return float(np.median(gap)) if waits.shape[1] >= MIN_STEPS else float(gap.mean())


def _takes_longer(table: Tables, place: int, floor: float) -> bool:
    """Whether a rank takes longer than all others in some phase, on the host or on the device."""
    return any(
        each.place == place for values in (table.host, table.device) for each in differences(values, floor)
    )


def _by_own_time(table: Tables, floor: float) -> list[Difference]:
    """Ranks whose own time on the host in a phase, or in an op of it, exceeds that of the others in nearly every step."""
    found = differences(table.host, floor)
    for each in differences(table.cell_ns, floor, of_ops=True):
        phase = table.host_phases.index(table.cells[each.column].phase)
        if not any(other.place == each.place and other.column == phase for other in found):
            found.append(Difference(each.place, phase, each.shift, each.certain, each.superiority, each.p))
    # a rank that waits more than the others is not the one they wait for
    waits = np.median(table.wait_ns, axis=1) if table.wait_ns.size else np.zeros(len(table.places))
    most = _clearly_waiting(table.wait_ns) if table.wait_ns.size else np.zeros(len(waits), bool)
    found = [each for each in found if not most[each.place]]
    return sorted(found, key=lambda each: (-each.shift, each.place, each.column))


def _clearly_waiting(wait: FloatArray) -> BoolArray:
    """By rank whether it waits longer than the others in nearly every step."""
    longer = {each.place for each in differences(wait[:, :, None], 0.0)}
    return np.array([place in longer for place in range(len(wait))])


# ---------------------------------------------------------------------------------------------------- why


def verdict(job: Job, table: Tables, clocks: Clocks, threshold: float = THRESHOLD) -> Verdict:
    """Name the straggler and its cause."""
    if len(job) < 2:
        return no_verdict("one rank only: nothing to compare it with")
    late, also = find_straggler(table, clocks, threshold)
    if late is None:
        return no_verdict(_whyno_verdict(job, table))
    phase, where, explained, annotation, ops = _cause(table, late)
    rank = job.ranks[int(table.places[late.place])]
    share = late.excess / table.typical_step if table.typical_step else 0.0
    sentence = (
        f"{rank.label} holds the others up by {format_time(late.excess / 1e3)} per step ({share:.0%} of it)"
    )
    if where is None:
        sentence += ": cause not in the trace (no phase or op of this rank takes enough longer than on the median rank)"
    else:
        place = f"in {phase}" if phase else "in several phases"
        sentence += f", {place} on the {where}, which explains {explained:.0%}"
        if ops:
            sentence += f": {_listed(ops)}" + (f" in annotation {annotation!r}" if annotation else "")
    if also:
        others = ", ".join(job.ranks[int(table.places[each])].label for each in also)
        sentence += f"; also late: {others}"
    return Verdict(
        rank.place,
        rank.rank if rank.rank is not None else rank.label,
        phase,
        where,
        explained,
        late.excess / 1e3,
        share,
        annotation,
        ops,
        tuple(int(table.places[each]) for each in also),
        sentence,
    )


def no_verdict(sentence: str) -> Verdict:
    """The verdict that names nobody."""
    return Verdict(None, None, None, None, 0.0, 0.0, 0.0, None, (), (), sentence)


def _whyno_verdict(job: Job, table: Tables) -> str:
    if not table.places.size or not job.steps:
        return "the ranks have no steps in common: nothing to compare"
    if not table.units.size:
        return "no rank holds the others up, as far as own times tell: there are no collectives that all ranks have"
    if table.unit_is_step or table.units.shape[1] >= _FEWEST_COLLECTIVES:
        return "no rank holds the others up"
    counts = f"{counted(len(job.steps), 'step')}, {counted(table.units.shape[1], 'collective')}"
    return f"too little to tell a straggler from noise: {counts}"


def _cause(table: Tables, late: _Late) -> tuple[str | None, str | None, float, str | None, tuple[str, ...]]:
    """Phase, where, share explained, annotation and ops."""
    if late.where == HOST and late.phase is not None:
        certain = certain_excess(table.host, late.place)
        # an op may show what its phase as a whole does not
        certain[late.phase.column] = max(certain[late.phase.column], late.phase.certain)
        total = float(certain.sum())
        explained = float(certain[late.phase.column]) / total if total else 0.0
        if explained < EXPLAINED:
            return None, None, explained, None, ()
        phase = table.host_phases[late.phase.column]
        annotation, ops = _host_ops(table, late.place, phase)
        return phase, HOST, explained, annotation, ops
    on_device, on_host = shifts(table.device)[late.place], shifts(table.host)[late.place]
    for where, names, excess in (
        (DEVICE, table.device_phases, on_device),
        (HOST, table.host_phases, on_host),
    ):
        best = int(np.argmax(excess)) if len(excess) else 0
        if len(excess) and excess[best] >= EXPLAINED * late.excess:
            explained = min(1.0, float(excess[best]) / late.excess)
            if where == DEVICE:
                return names[best], where, explained, None, _kernels(table, late.place)
            return names[best], where, explained, *_host_ops(table, late.place, names[best])
        total = float(np.maximum(excess, 0).sum())
        if total >= EXPLAINED * late.excess:
            ops = _kernels(table, late.place) if where == DEVICE else _host_ops(table, late.place, None)[1]
            return None, where, min(1.0, total / late.excess), None, ops
    total = float(np.maximum(on_device, 0).sum() + np.maximum(on_host, 0).sum())
    return None, None, min(1.0, total / late.excess), None, ()


def _host_ops(table: Tables, place: int, phase: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The ops that hold most of a phase's excess, and the annotation that they are in."""
    columns = [n for n, cell in enumerate(table.cells) if phase is None or cell.phase == phase]
    excess = shifts(table.cell_ns[:, :, columns])[place]
    chosen = [table.cells[columns[n]] for n in _largest(excess)]
    annotation = chosen[0].annotation if chosen and phase is not None else ""
    return annotation or None, tuple(dict.fromkeys(cell.op for cell in chosen))


def _kernels(table: Tables, place: int) -> tuple[str, ...]:
    excess = shifts(table.kernel_ns)[place]
    return tuple(table.kernels[n] for n in _largest(excess))


def _largest(excess: FloatArray, most: int = 3) -> list[int]:
    """The few that hold 80 % of the positive excess; none if it takes more than that."""
    positive = np.maximum(excess, 0.0)
    order = np.argsort(-positive, kind="stable")[:most]
    total = float(positive.sum())
    if not total or float(positive[order].sum()) < EXPLAINED * total:
        return [int(n) for n in order[:1] if positive[n] >= total / 2 and total]
    reached = np.cumsum(positive[order])
    count = int(np.searchsorted(reached, EXPLAINED * total)) + 1
    return [int(n) for n in order[:count]]


def _listed(ops: tuple[str, ...]) -> str:
    return ", ".join("code outside of ops" if op == NO_OP else op for op in ops)


__all__ = [
    "DEVICE",
    "HOST",
    "OUTSIDE",
    "THRESHOLD",
    "Tables",
    "Verdict",
    "find_straggler",
    "tables",
    "verdict",
]
