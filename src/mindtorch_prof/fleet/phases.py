"""Phases of one rank: a Trace in; how long each step spends in data loading, forward, backward and optimizer, without waiting, out.

A phase is one of those four, where annotations and the backward pass tell; else the name of the user's annotation; else `OUTSIDE`. What
counts is the rank's own time on the host: the time on the thread that runs the steps, less the time in which it waits for a collective or
for the device. Ranks that wait for each other take equally long for a step; their own times differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import communication
from ..analysis.device_breakdown import COMPUTATION, steps_of_device_work, work_classes
from ..analysis.intervals import Intervals, covered, union, union_lengths
from ..arrays import BoolArray, IntArray
from ..forward_backward import forward_backward
from ..steps import step_numbers
from ..trace import ANNOTATION, ENGINE, NODE, OP, RUNTIME, Columns, Trace
from ..tree import Tree, depths, events_at, nearest, sum_by
from .histograms import OTHERS
from .rank_collectives import RankCollectives

DATA, FORWARD, BACKWARD, OPTIMIZER = TRAINING_PHASES = ("data", "forward", "backward", "optimizer")
OUTSIDE = "outside annotations"
NO_OP = "(no op: Python or other code)"
WHOLE_TRACE = -1  # the number of the only step of a trace without steps
# limits of the table of ops per phase and step, so that a sketch stays small; the rest is added up
_MOST_CELLS, _FEWEST_CELLS, _MOST_VALUES = 400, 40, 40_000

_OPTIMIZER = re.compile(r"Optimizer\.(step|zero_grad)#")
_DATALOADER = re.compile(r"enumerate\(DataLoader\)")
_FORWARD = re.compile(r"(DistributedDataParallel|FullyShardedDataParallel)\.forward")
_REDUCER = re.compile(r"torch(\.|::)distributed(\.|::)(ddp\.)?reducer")
_WAITING = re.compile(r"synchronize", re.IGNORECASE)
# phases by the words in an annotation's name, where its content does not tell
_WORDS = (
    (OPTIMIZER, re.compile(r"optim|update|zero_?grad", re.IGNORECASE)),
    (BACKWARD, re.compile(r"backward|bwd", re.IGNORECASE)),
    (FORWARD, re.compile(r"forward|fwd", re.IGNORECASE)),
    (DATA, re.compile(r"data|batch|fetch|input|loader", re.IGNORECASE)),
)
_CLEAR = 0.9  # share of an annotation's telling content that must be of one phase


class Cell(NamedTuple):
    """An op within a phase and an annotation."""

    phase: str
    annotation: str  # the innermost; "" outside of all
    op: str


@dataclass(frozen=True)
class RankPhases(Columns):
    """The steps of a rank and where its own time in them went. Times are nanoseconds of the rank's own clock."""

    steps: tuple[int, ...]  # numbers, in the order of time; (-1,): no steps, the whole trace
    start_ns: IntArray  # by step, on the host
    end_ns: IntArray
    phases: tuple[str, ...]
    own_ns: IntArray  # step x phase, on the host
    device_ns: IntArray  # step x phase: computation on the device that was launched there
    waiting_ns: IntArray  # by step: the host waited for a collective or for the device
    cells: tuple[Cell, ...]  # in alphabetic order
    cell_ns: IntArray  # step x cell: own time on the host


def rank_phases(trace: Trace, tree: Tree, collectives: RankCollectives) -> RankPhases | None:
    """The phases of a trace; None: it has no events on the host."""
    thread = _main_thread(trace)
    if thread is None:
        return None
    numbers, begin, end = _steps(trace, thread)
    marks = _Marks(trace, tree, thread, begin)
    waiting = _waiting(trace, tree, thread, collectives)
    names, segment_start, segment_end, phase, annotation = marks.segments(begin, end)
    own = segment_end - segment_start - covered(waiting, segment_start, segment_end)
    step = np.searchsorted(begin, segment_start, side="right") - 1
    n_steps, n_phases = len(numbers), len(names)
    own_ns = sum_by(step * n_phases + phase, own, n_steps * n_phases).reshape(n_steps, n_phases)
    device_ns = _device_times(trace, numbers, n_phases, segment_start, segment_end, phase)
    cells, cell_ns = _cells(
        trace,
        tree,
        marks,
        names,
        (segment_start, segment_end),
        phase,
        annotation,
        own,
        step,
        n_steps,
        waiting,
    )
    used = np.flatnonzero(own_ns.any(axis=0) | device_ns.any(axis=0))
    return RankPhases(
        numbers,
        begin,
        end,
        tuple(names[place] for place in used.tolist()),
        own_ns[:, used],
        device_ns[:, used],
        covered(waiting, begin, end),
        cells,
        cell_ns,
    )


# ---------------------------------------------------------------------------------------------------- steps


def _main_thread(trace: Trace) -> int | None:
    """The thread that runs the steps; without steps the one on which ops run longest."""
    steps = np.flatnonzero(step_numbers(trace.names, trace.name) >= 0)
    if len(steps):
        threads, counts = np.unique(trace.thread[steps], return_counts=True)
        return int(threads[np.argmax(counts)])
    rows = np.flatnonzero((trace.kind == OP) | (trace.kind == ANNOTATION))
    if not len(rows):
        return None
    threads, which = np.unique(trace.thread[rows], return_inverse=True)
    busy = union_lengths(which.reshape(-1), trace.start_ns[rows], trace.end_ns[rows], len(threads))
    return int(threads[np.argmax(busy)])


def _steps(trace: Trace, thread: int) -> tuple[tuple[int, ...], IntArray, IntArray]:
    number = step_numbers(trace.names, trace.name)
    rows = np.flatnonzero((number >= 0) & (trace.thread == thread))
    if not len(rows):
        here = trace.thread == thread
        start, end = trace.start_ns[here].min(keepdims=True), trace.end_ns[here].max(keepdims=True)
        return (WHOLE_TRACE,), start, end
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    _, first = np.unique(number[rows], return_index=True)
    rows = rows[np.sort(first)]
    start = trace.start_ns[rows]
    end = np.minimum(trace.end_ns[rows], np.append(start[1:], np.iinfo(np.int64).max))
    return tuple(number[rows].tolist()), start, end


# ---------------------------------------------------------------------------------------------------- marks of phases


class _Marks:
    """Intervals of the main thread that belong to a phase: annotations, the backward pass, forward ops."""

    def __init__(self, trace: Trace, tree: Tree, thread: int, step_start: IntArray) -> None:
        self.trace = trace
        self.thread = thread
        on_thread = trace.thread == thread
        is_step = step_numbers(trace.names, trace.name) >= 0
        is_communication = communication.on_host(trace.names)[trace.name] if len(trace) else np.zeros(0, bool)
        self.annotations = np.flatnonzero(
            on_thread & (trace.kind == ANNOTATION) & ~is_step & ~is_communication
        )
        in_backward = nearest(tree.parent, (trace.kind == ENGINE) | (trace.kind == NODE)) >= 0
        self.in_backward: BoolArray = in_backward
        reducer = np.array([_REDUCER.match(name) is not None for name in trace.names] or [False])[trace.name]
        backward = np.flatnonzero(
            ((trace.kind == ENGINE) | (trace.kind == NODE) | reducer)
            & ~(in_backward & _has_parent_in(tree, in_backward))
        )
        forward = np.unique(forward_backward(trace)[0])
        forward = forward[on_thread[forward] & ~in_backward[forward]]
        self.runs = _runs(trace, forward, backward, step_start)
        self.phase_of_annotation = self._annotation_phases()

    def _annotation_phases(self) -> dict[int, str]:
        """The phase of each annotation's name: by what runs inside, else by its words, else the name itself."""
        trace, rows = self.trace, self.annotations
        start, end, name = trace.start_ns[rows], trace.end_ns[rows], trace.name[rows]
        texts = {int(number): trace.names[number] for number in np.unique(name).tolist()}
        fixed = {number: phase for number, text in texts.items() if (phase := _fixed_phase(text))}
        content = np.zeros((len(TRAINING_PHASES), len(rows)), np.int64)
        for place, phase in enumerate(TRAINING_PHASES):
            inside = [number for number, fixed_phase in fixed.items() if fixed_phase == phase]
            marked = np.isin(name, inside)
            run_start, run_end, run_phase = self.runs
            runs = run_phase == place
            parts = union(
                np.concatenate([start[marked], run_start[runs]]), np.concatenate([end[marked], run_end[runs]])
            )
            content[place] = covered(parts, start, end)
        phases = {}
        for number, text in texts.items():
            of_phase = content[:, name == number].sum(axis=1)
            total = int(of_phase.sum())
            best = int(np.argmax(of_phase))
            if number in fixed:
                phases[number] = fixed[number]
            elif total and of_phase[best] >= _CLEAR * total:
                phases[number] = TRAINING_PHASES[best]
            else:
                words = (phase for phase, pattern in _WORDS if pattern.search(text))
                phases[number] = next(words, text)
        return phases

    def segments(
        self, begin: IntArray, end: IntArray
    ) -> tuple[list[str], IntArray, IntArray, IntArray, IntArray]:
        """The steps cut where a phase begins or ends: names of phases; by piece its start, end, phase, and annotation (a row, or -1)."""
        trace, rows = self.trace, self.annotations
        names = [OUTSIDE, *TRAINING_PHASES]
        names += sorted({phase for phase in self.phase_of_annotation.values() if phase not in names})
        run_start, run_end, run_phase = self.runs
        start = np.concatenate([trace.start_ns[rows], run_start])
        until = np.concatenate([trace.end_ns[rows], run_end])
        by_name = np.zeros(len(trace.names) + 1, np.int64)
        for number, name in self.phase_of_annotation.items():
            by_name[number] = names.index(name)
        phase = np.concatenate([by_name[trace.name[rows]], run_phase + 1])
        cuts = np.unique(np.concatenate([begin, end, start, until]))
        first, last = cuts[:-1], cuts[1:]
        step = np.searchsorted(begin, first, side="right") - 1
        inside = (step >= 0) & (first < end[np.maximum(step, 0)])
        first, last = first[inside], last[inside]
        owner = _innermost(start, until, first)
        annotation = _innermost(trace.start_ns[rows], trace.end_ns[rows], first)
        return (
            names,
            first,
            last,
            np.where(owner >= 0, phase[owner], 0) if len(phase) else np.zeros(len(first), np.int64),
            np.where(annotation >= 0, rows[annotation], -1) if len(rows) else np.full(len(first), -1),
        )


def _fixed_phase(name: str) -> str | None:
    """The phase of an annotation that torch itself records."""
    for pattern, phase in ((_OPTIMIZER, OPTIMIZER), (_DATALOADER, DATA), (_FORWARD, FORWARD)):
        if pattern.match(name):
            return phase
    return None


def _has_parent_in(tree: Tree, mask: BoolArray) -> BoolArray:
    return (tree.parent >= 0) & mask[np.maximum(tree.parent, 0)]


def _runs(
    trace: Trace, forward: IntArray, backward: IntArray, step_start: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Start, end and phase (into TRAINING_PHASES) of each run of forward ops, or of backward nodes, that no other phase interrupts."""
    rows = np.concatenate([forward, backward])
    if not len(rows):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    phase = np.repeat(
        [TRAINING_PHASES.index(FORWARD), TRAINING_PHASES.index(BACKWARD)], [len(forward), len(backward)]
    )
    order = np.argsort(trace.start_ns[rows], kind="stable")
    rows, phase = rows[order], phase[order]
    step = np.searchsorted(step_start, trace.start_ns[rows], side="right")
    first = np.flatnonzero(np.append(True, (phase[1:] != phase[:-1]) | (step[1:] != step[:-1])))
    return trace.start_ns[rows[first]], np.maximum.reduceat(trace.end_ns[rows], first), phase[first]


def _innermost(start: IntArray, end: IntArray, time: IntArray) -> IntArray:
    """For each time the interval around it that began last (of those, the shortest); -1: none."""
    owner = np.full(len(time), -1, np.int64)
    if not len(start):
        return owner
    order = np.lexsort((-end, start))
    start, end = start[order], end[order]
    depth = depths(start, end)
    for level in range(int(depth.max()) + 1):  # intervals of one level do not overlap
        rows = np.flatnonzero(depth == level)
        place = np.searchsorted(start[rows], time, side="right") - 1
        inside = (place >= 0) & (end[rows[np.maximum(place, 0)]] > time)
        owner[inside] = order[rows[place[inside]]]
    return owner


# ---------------------------------------------------------------------------------------------------- waiting


def _waiting(trace: Trace, tree: Tree, thread: int, collectives: RankCollectives) -> Intervals:
    """When the main thread waited: for a collective on the host while no op of its own ran, or in a call that waits for the device."""
    calls = np.array([_WAITING.search(name) is not None for name in trace.names] or [False])
    rows = np.flatnonzero(calls[trace.name] & (trace.kind == RUNTIME))
    start, end = trace.start_ns[rows], trace.end_ns[rows]
    on_host = np.flatnonzero(collectives.on_device == 0)
    if len(on_host):
        arrival, until = collectives.arrival_ns[on_host], collectives.end_ns[on_host]
        busy = _busy_rows(trace, tree, thread, arrival, until)
        gaps = _without(union(arrival, until), union(trace.start_ns[busy], trace.end_ns[busy]))
        start, end = np.concatenate([start, gaps[0]]), np.concatenate([end, gaps[1]])
    return union(start, end)


def _busy_rows(trace: Trace, tree: Tree, thread: int, arrival: IntArray, until: IntArray) -> IntArray:
    """The ops and nodes of the main thread, less those that contain a whole collective: they wait for it."""
    is_communication = communication.on_host(trace.names)[trace.name]
    works = np.isin(trace.kind, (OP, NODE, ENGINE)) & ~is_communication & (trace.thread == thread)
    works &= step_numbers(trace.names, trace.name) < 0
    row = events_at(trace, tree.parent, arrival, np.full(len(arrival), thread))
    while len(row):
        around = trace.end_ns[row] >= until
        works[row[around & (row >= 0)]] = False
        row = np.where(row >= 0, tree.parent[np.maximum(row, 0)], -1)
        keep = row >= 0
        row, until = row[keep], until[keep]
    return np.flatnonzero(works)


def _without(these: Intervals, others: Intervals) -> Intervals:
    """The parts of intervals that others do not cover; both are unions."""
    cuts = np.unique(np.concatenate([*these, *others]))
    first, last = cuts[:-1], cuts[1:]
    keep = (covered(these, first, last) > 0) & (covered(others, first, last) == 0)
    return first[keep], last[keep]


# ---------------------------------------------------------------------------------------------------- device and ops


def _device_times(
    trace: Trace, steps: tuple[int, ...], n_phases: int, start: IntArray, end: IntArray, phase: IntArray
) -> IntArray:
    """step x phase: time in which kernels computed that were launched there."""
    device = trace.device
    times: IntArray = np.zeros(len(steps) * n_phases, np.int64)
    if not len(device):
        return times.reshape(len(steps), n_phases)
    numbers, step = steps_of_device_work(trace)
    place = np.array([steps.index(number) if number in steps else -1 for number in numbers], np.int64)
    step = np.where(step >= 0, place[step], -1) if numbers else np.zeros(len(device), np.int64)
    cause = np.where(device.launch >= 0, device.launch, device.op)
    at = _segment_at(start, end, np.where(cause >= 0, trace.start_ns[cause], device.start_ns))
    rows = np.flatnonzero(device.works & (work_classes(device) == COMPUTATION) & (step >= 0))
    within = at[rows] >= 0
    group = step[rows] * n_phases
    group[within] += phase[at[rows][within]]
    times = union_lengths(group, device.start_ns[rows], device.end_ns[rows], len(times))
    return times.reshape(len(steps), n_phases)


def _segment_at(start: IntArray, end: IntArray, time: IntArray) -> IntArray:
    """The segment at each time; -1: none."""
    if not len(start):
        return np.full(len(time), -1, np.int64)
    place = np.searchsorted(start, time, side="right") - 1
    return np.where((place >= 0) & (end[np.maximum(place, 0)] > time), place, -1)


def _cells(
    trace: Trace,
    tree: Tree,
    marks: _Marks,
    names: list[str],
    segments: Intervals,
    phase: IntArray,
    annotation: IntArray,
    own: IntArray,
    step: IntArray,
    n_steps: int,
    waiting: Intervals,
) -> tuple[tuple[Cell, ...], IntArray]:
    """Own time by step and by op within a phase and an annotation; what no op takes of an annotation is listed as NO_OP."""
    is_communication = communication.on_host(trace.names)[trace.name]
    is_step = step_numbers(trace.names, trace.name) >= 0
    works = np.isin(trace.kind, (OP, NODE, ENGINE)) & ~is_communication & ~is_step
    # other threads count while the backward pass runs on them
    works &= (trace.thread == marks.thread) | marks.in_backward
    rows = np.flatnonzero(works)
    at = _segment_at(*segments, trace.start_ns[rows])
    rows, at = rows[at >= 0], at[at >= 0]
    time = np.maximum(_self_times(trace, tree, waiting)[rows], 0)
    # segments of one phase and one annotation's name are one place
    n_names = len(trace.names) + 1  # the last one stands for no annotation, or for no op
    named = np.where(annotation >= 0, trace.name[annotation], n_names - 1)
    place = phase * n_names + named
    key = np.concatenate([place[at] * n_names + trace.name[rows], place * n_names + n_names - 1])
    keys, column = np.unique(key, return_inverse=True)
    column = column.reshape(-1)
    at_step = step[at]
    table = sum_by(at_step * len(keys) + column[: len(rows)], time, n_steps * len(keys))
    # what remains of a place's own time in a step is NO_OP's
    rest = sum_by(step * len(keys) + column[len(rows) :], own, n_steps * len(keys))
    rest -= sum_by(at_step * len(keys) + column[len(rows) :][at], time, n_steps * len(keys))
    table = (table + np.maximum(rest, 0)).reshape(n_steps, len(keys))
    texts = [*trace.names, ""]
    cells = []
    for number in keys.tolist():
        above, op = divmod(number, n_names)
        cells.append(Cell(names[above // n_names], texts[above % n_names], texts[op] or NO_OP))
    return _shortened(cells, table)


def _self_times(trace: Trace, tree: Tree, waiting: Intervals) -> IntArray:
    """The self times of events less the time in which they waited themselves, not in an event inside."""
    inside = covered(waiting, trace.start_ns, trace.end_ns)
    if not inside.any():
        return tree.self_ns
    has_parent = tree.parent >= 0
    return tree.self_ns - inside + sum_by(tree.parent[has_parent], inside[has_parent], len(trace))


def _shortened(cells: list[Cell], table: IntArray) -> tuple[tuple[Cell, ...], IntArray]:
    """Not more than _MOST_VALUES values, in the order of the cells; of each phase those with the least time are added up."""
    most = max(_FEWEST_CELLS, min(_MOST_CELLS, _MOST_VALUES // max(len(table), 1)))
    largest = np.lexsort((np.arange(len(cells)), -table.sum(axis=0)))[:most]
    is_kept = np.zeros(len(cells), bool)
    is_kept[largest] = True
    new = [cell if keep else Cell(cell.phase, "", OTHERS) for cell, keep in zip(cells, is_kept.tolist())]
    distinct = sorted(set(new))
    place = {cell: number for number, cell in enumerate(distinct)}
    shortened = np.zeros((len(table), len(distinct)), np.int64)
    np.add.at(shortened.T, np.array([place[cell] for cell in new], np.int64), table.T)
    return tuple(distinct), shortened
