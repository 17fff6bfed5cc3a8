"""Critical path: a recording in; the chain of work and waiting that decided how long a step took out.

    path = critical_path(load("trace.json.gz"), step=3)
    path.length_us, path.by_kind, path.ops[0].name, path.ops[0].without_us

The path covers the step from its start to the end of the last work it launched: its times by kind add up to that. `without_us` of an op is how long
the step would take if the op took no time: the longest path through the same dependencies, with the op's edges at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, distinct, distinct_values
from ..averages import named_groups
from ..steps import step_name, step_numbers
from ..trace import ANNOTATION, RUNTIME, Trace
from ..tree import nearest
from .dependencies import GAP, HOST, KINDS, Dependencies, Window, dependencies
from .intervals import Intervals, covered
from .longest_path import Lengths, slack
from .recording import Recording, recorded_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

NO_OP = "(outside of ops)"
_WORK = ("kernel", "copy", "communication")  # kinds of edges that are work of a device
_NEARLY_ALL = 0.9  # of a window: an annotation around so much of it names the window rather than a part of it
WHAT_IF = 5  # ops for which the length of the step without them is computed


@dataclass(frozen=True)
class Segment:
    """A stretch of the path: work, or waiting, of one kind that is charged to one op. Times are microseconds since the window's start."""

    kind: str
    name: str  # of the op; of a kernel if no op launched it
    event: str  # of the innermost event: the runtime call, the kernel
    start_us: float
    duration_us: float
    thread: int | None  # of host work
    device: int | None  # of a device's work
    stream: int | None


@dataclass(frozen=True)
class OpOnPath:
    """An op with its time on the path, by kind, in microseconds."""

    name: str
    path_us: float
    share: float  # of the path
    count: int  # its events (calls, and kernels that no op launched) that the path goes through
    by_kind: dict[str, float]
    without_us: float | None = (
        None  # how long the step would take if this op took no time; None: not computed
    )


@dataclass(frozen=True)
class OpOffPath:
    """An op with work that the path does not go through: it may take longer by `slack_us` before the step does."""

    name: str
    busy_us: float  # of its work beside the path
    slack_us: float  # the least of its events


@dataclass(frozen=True)
class CriticalPath:
    """The critical path of a window. Times are in microseconds."""

    step: int | None  # None: the window is no step
    window: str  # which time was analysed, in words
    length_us: float  # of the path, and of the window with the work launched in it
    host_us: float  # of the window on the host
    by_kind: dict[str, float]  # adds up to the length
    earlier_us: float  # on the path, in work that was launched before the window
    notes: tuple[str, ...]
    graph: Dependencies = field(repr=False, compare=False)
    edges: IntArray = field(repr=False, compare=False)  # of the graph, first to last
    results: Results = field(repr=False, compare=False)
    model: _Model = field(repr=False, compare=False)
    what_if: int = field(repr=False, compare=False)  # for how many ops the length without them is computed

    @cached_property
    def ops(self) -> tuple[OpOnPath, ...]:
        """The ops on the path, longest first."""
        length = int(self.graph.lengths[self.graph.sink])
        return tuple(_ops_on_path(self.model, self.edges, length, self.what_if))

    def without(self, name: str) -> float:
        """How long the window would take, in microseconds, if all events of this name, and what they launch, took no time. A name that does
        not occur in the window is a KeyError."""
        return self.model.without(name) / 1000

    def after_change(
        self,
        device_rows: IntArray,
        kept: FloatArray | None = None,
        rows: IntArray | None = None,
        *,
        times: Intervals | None = None,
        with_host: bool = True,
    ) -> float:
        """How long the window would take, in microseconds, if some work of devices took only a share of its time, and some events of the host
        and what they contain took none. kept: by row of Device the share from 0 to 1; None: it takes no time. times: a union; waiting in them
        for which the trace has no reason (gaps) goes too. with_host: False counts no time of the host, as if it had launched everything in
        advance."""
        graph = self.graph
        share = np.ones(len(self.results.trace.device) + 1)
        share[device_rows] = 0 if kept is None else kept
        weight = graph.weight.copy()
        works = self._work_edges
        works = works[share[graph.device_row[works]] < 1]
        weight[works] = (weight[works] * share[graph.device_row[works]]).astype(np.int64)
        if rows is not None and len(rows):
            chosen = np.zeros(len(self.results.trace), bool)
            chosen[rows] = True
            inside = np.append(nearest(self.results.nesting.parent, chosen) >= 0, False)[graph.row]
            inside[self._work_edges] = False
            weight[inside] = 0
        if times is not None:
            gaps = np.flatnonzero((graph.kind == GAP) & (graph.weight > 0))
            lengths = self.model.lengths
            begin, end = (graph.time_ns[nodes(gaps)] for nodes in (lengths.tails, lengths.heads))
            weight[gaps] = np.maximum(weight[gaps] - covered(times, begin, end), 0)
        if not with_host:
            weight[graph.kind == HOST] = 0
        return self.model.lengths.to_node(weight, graph.sink) / 1000

    @cached_property
    def _work_edges(self) -> IntArray:
        """The edges that are work of a device."""
        is_work = np.zeros(len(KINDS), bool)
        is_work[[KINDS.index(kind) for kind in _WORK]] = True
        return np.flatnonzero(is_work[self.graph.kind] & (self.graph.device_row >= 0))

    @cached_property
    def off_path(self) -> tuple[OpOffPath, ...]:
        """The ops with work beside the path, least slack first."""
        return tuple(_ops_off_path(self.model, self.edges))

    @cached_property
    def rows(self) -> IntArray:
        """Rows of the Trace that the path goes through."""
        return _distinct(self.graph.row[self.edges])

    @cached_property
    def device_rows(self) -> IntArray:
        """Rows of Device whose work is on the path."""
        works = np.isin(self.graph.kind[self.edges], [KINDS.index(kind) for kind in _WORK])
        return _distinct(self.graph.device_row[self.edges[works]])

    @cached_property
    def crossings(self) -> tuple[tuple[int, int, int], ...]:
        """(edge, node before, node after) of the graph where the path goes to another thread, another stream, or between the two."""
        graph, device = self.graph, self.results.trace.device
        count = graph.graph.n_nodes
        edges = self.edges[self.edges >= count]
        source, target = graph.graph.source[edges - count], graph.graph.target[edges - count]
        before, after = graph.node_device_row[source], graph.node_device_row[target]
        same = (before >= 0) & (after >= 0)
        for column in (device.device, device.stream):
            same &= column[before] == column[after] if len(device) else same
        keep = ~same
        return tuple(zip(edges[keep].tolist(), source[keep].tolist(), target[keep].tolist()))

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The path from start to end; neighbours of one kind and event are one segment."""
        return tuple(_segments(self))


def critical_path(
    source: Recording,
    *,
    step: int | None = None,
    annotation: str | None = None,
    instance: int = 0,
    what_if: int = WHAT_IF,
) -> CriticalPath:
    """The critical path of a step, of an annotation (its `instance`-th occurrence), or of the typical step: the one of median length; of a
    recording without steps the whole. what_if: for how many ops the length without them is computed. A ValueError names what is not there.
    """
    results = recorded_results(source)
    window, number, words = _window(results.trace, step, annotation, instance)
    graph = dependencies(results, window)
    model = _Model(results, graph)
    length = int(graph.lengths[graph.sink])
    edges = model.lengths.path(graph.weight, graph.lengths, graph.sink)
    weight, kind = graph.weight[edges], graph.kind[edges]
    by_kind = np.bincount(kind, weights=weight, minlength=len(KINDS))
    earlier = np.isin(graph.device_row[edges], graph.earlier)
    return CriticalPath(
        number,
        words,
        length / 1000,
        (window.end_ns - window.start_ns) / 1000,
        dict(zip(KINDS, (by_kind / 1000).tolist())),
        int(weight[earlier].sum()) / 1000,
        graph.notes,
        graph,
        edges,
        results,
        model,
        what_if,
    )


def _window(
    trace: Trace, step: int | None, annotation: str | None, instance: int
) -> tuple[Window, int | None, str]:
    """The time to analyse, the number of the step that it is, and what it is in words."""
    if step is not None and annotation is not None:
        raise ValueError("a step and an annotation cannot both be chosen")
    if annotation is not None:
        named = np.array([annotation in text for text in trace.names] or [False], bool)
        rows = np.flatnonzero(named[trace.name])
        if not len(rows):
            raise ValueError(
                f"no event's name contains {annotation!r}; `tree` lists the annotations of a trace"
            )
        rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
        if not -len(rows) <= instance < len(rows):
            raise ValueError(
                f"there are {len(rows):,} events whose name contains {annotation!r}; there is no number {instance} (counted from 0)"
            )
        row = int(rows[instance])
        return (
            _window_of(trace, row),
            None,
            f"{trace.names[trace.name[row]]} ({instance % len(rows) + 1} of {len(rows):,})",
        )
    numbers = step_numbers(trace.names, trace.name)
    rows = np.flatnonzero(numbers >= 0)
    if step is not None:
        if not len(rows):
            raise ValueError(
                "the trace has no steps (ProfilerStep#N); leave out the step to analyse the whole recording"
            )
        chosen = rows[numbers[rows] == step]
        if not len(chosen):
            known = ", ".join(map(str, np.unique(numbers[rows]).tolist()[:20]))
            raise ValueError(f"the trace has no step {step}; expected one of {known}")
        chosen = chosen[np.lexsort((trace.start_ns[chosen], trace.thread[chosen] != trace.settings.thread))]
        return _window_of(trace, int(chosen[0])), step, step_name(step)
    if len(rows):
        # the typical step: of an even number the shorter one in the middle
        order = np.lexsort((trace.start_ns[rows], (trace.end_ns - trace.start_ns)[rows]))
        row = int(rows[order[(len(rows) - 1) // 2]])
        number = int(numbers[row])
        words = (
            f"{step_name(number)}, the step of median length of {len(rows):,}"
            if len(rows) > 1
            else step_name(number)
        )
        return _window_of(trace, row), number, words
    return _whole(trace), None, "the whole recording (it has no steps)"


def _window_of(trace: Trace, row: int) -> Window:
    return Window(int(trace.start_ns[row]), int(trace.end_ns[row]), int(trace.thread[row]))


def _whole(trace: Trace) -> Window:
    """From the first start to the last end of the host's events; of a trace without such events, of the device's."""
    device = trace.device
    works = device.works
    starts = [int(column.min()) for column in (trace.start_ns, device.start_ns[works]) if len(column)]
    ends = [int(trace.end_ns.max())] if len(trace) else [int(device.end_ns[works].max(initial=0))]
    main = trace.settings.thread
    if len(trace) and not (trace.thread == main).any():
        threads, counts = np.unique(trace.thread, return_counts=True)
        main = int(threads[np.argmax(counts)])
    start = min(starts, default=0)
    return Window(start, max([start, *ends]), main)


class _Model:
    """The graph of a window with the names that its edges are charged to."""

    def __init__(self, results: Results, graph: Dependencies) -> None:
        self.results, self.graph = results, graph
        trace = self.trace = results.trace
        self.lengths = Lengths(graph.graph)
        group, self.names = named_groups((*trace.names, *trace.device.names, NO_OP))
        self._group_of_name, self._nothing = group, int(group[-1])

    @cached_property
    def op_of_row(self) -> IntArray:
        """A runtime call is charged to the op around it, if there is one."""
        trace, parent = self.trace, self.results.nesting.parent
        op = nearest(parent, trace.kind != RUNTIME) if len(trace) else parent
        return np.where(op >= 0, op, np.arange(len(trace)))

    @cached_property
    def _name_of_row(self) -> IntArray:
        return self._group_of_name[self.trace.name] if len(self.trace) else np.empty(0, np.int64)

    @cached_property
    def _name_of_work(self) -> IntArray:
        trace, device = self.trace, self.trace.device
        return self._group_of_name[len(trace.names) + device.name] if len(device) else np.empty(0, np.int64)

    @cached_property
    def name(self) -> IntArray:
        """By edge the number of the name that it is charged to."""
        graph = self.graph
        name = np.append(self._name_of_row[self.op_of_row], -1)[graph.row]
        elsewhere = np.flatnonzero(name < 0)
        name[elsewhere] = np.append(self._name_of_work, self._nothing)[graph.device_row[elsewhere]]
        return name

    def event_of_edges(self, edges: IntArray) -> IntArray:
        """For counting: a number of the op's event, or of the device's work if there is none, that each edge is charged to; -1: none."""
        row, work = self.graph.row[edges], self.graph.device_row[edges]
        op = self.op_of_row[np.maximum(row, 0)] if len(self.op_of_row) else row
        return np.where(row >= 0, op, np.where(work >= 0, len(self.trace) + work, -1))

    def edges_of(self, name: str) -> BoolArray:
        """By edge whether it is the work or waiting of events of this name, or of what they contain and launch."""
        trace, graph = self.trace, self.graph
        number = {text: i for i, text in enumerate(self.names)}.get(name)
        exact = [i for i, text in enumerate(trace.names) if text == name]
        edges = np.zeros(len(graph.weight), bool)
        if number is None and not exact:
            return edges
        has_name = np.zeros(len(trace.names) + 1, bool)
        has_name[exact] = True
        named = has_name[trace.name] | (self._name_of_row == (-1 if number is None else number))
        window = graph.window
        covered = np.minimum(trace.end_ns, window.end_ns) - np.maximum(trace.start_ns, window.start_ns)
        length = window.end_ns - window.start_ns
        # an event around the whole window, or an annotation around nearly all of it: its own time, without what runs inside it
        if (named & (covered >= np.where(trace.kind == ANNOTATION, _NEARLY_ALL * length, length))).any():
            return self.name == number if number is not None else edges
        inside = nearest(self.results.nesting.parent, named) >= 0 if len(trace) else named
        edges = np.append(inside, False)[graph.row]  # the last one for row -1
        device = trace.device
        if len(device):
            own = self._name_of_work == (-1 if number is None else number)
            launch, op = np.maximum(device.launch, 0), np.maximum(device.op, 0)
            if len(trace):
                own = own | (inside[launch] & (device.launch >= 0)) | (inside[op] & (device.op >= 0))
            edges |= np.append(own, False)[graph.device_row]
        if number == self._nothing:
            edges |= self.name == number
        return edges

    def without(self, name: str) -> int:
        """The length in nanoseconds of the longest path where events of this name take no time."""
        edges = self.edges_of(name)
        if not edges.any():
            raise KeyError(name)
        weight = np.where(edges, 0, self.graph.weight)
        return self.lengths.to_node(weight, self.graph.sink)


def _ops_on_path(model: _Model, edges: IntArray, length: int, what_if: int) -> list[OpOnPath]:
    graph = model.graph
    weight, kind, name = graph.weight[edges], graph.kind[edges], model.name[edges]
    takes_time = weight > 0
    event = model.event_of_edges(edges)
    numbers, place = distinct(name[takes_time])
    table = np.zeros((len(numbers), len(KINDS)), np.int64)
    np.add.at(table, (place, kind[takes_time]), weight[takes_time])
    # a name's events, each once: one number per (name, event)
    width = len(model.trace) + len(model.trace.device) + 1
    pairs = distinct_values(place * width + event[takes_time] + 1)
    counts = np.bincount(pairs // width, minlength=len(numbers))
    totals = table.sum(axis=1)
    ops = []
    for rank, i in enumerate(np.lexsort((numbers, -totals)).tolist()):
        text = model.names[int(numbers[i])]
        ops.append(
            OpOnPath(
                text,
                int(totals[i]) / 1000,
                int(totals[i]) / length if length else 0.0,
                int(counts[i]),
                {k: int(v) / 1000 for k, v in zip(KINDS, table[i].tolist())},
                model.without(text) / 1000 if rank < what_if else None,
            )
        )
    return ops


def _ops_off_path(model: _Model, edges: IntArray) -> list[OpOffPath]:
    """Ops whose work lies beside the path."""
    graph = model.graph
    left = slack(graph.graph, graph.weight, graph.lengths, graph.sink)
    beside = np.ones(len(graph.weight), bool)
    beside[edges] = False
    waits = np.isin(graph.kind, [KINDS.index(kind) for kind in ("sync", "gap", "launch")])
    chosen = np.flatnonzero(beside & ~waits & (graph.weight > 0) & (left >= 0))
    chosen = chosen[(graph.row[chosen] >= 0) | (graph.device_row[chosen] >= 0)]
    numbers, place = distinct(model.name[chosen])
    busy = np.bincount(place, weights=graph.weight[chosen], minlength=len(numbers))
    least = np.full(len(numbers), np.iinfo(np.int64).max)
    np.minimum.at(least, place, left[chosen])
    order = np.lexsort((numbers, -busy, least)).tolist()
    return [
        OpOffPath(model.names[int(numbers[i])], float(busy[i]) / 1000, int(least[i]) / 1000) for i in order
    ]


def _segments(path: CriticalPath) -> list[Segment]:
    model, graph = path.model, path.graph
    trace, device = model.trace, model.trace.device
    edges = path.edges[graph.weight[path.edges] > 0]
    if not len(edges):
        return []
    row, work, kind = graph.row[edges], graph.device_row[edges], graph.kind[edges]
    key = np.stack([row, work, kind, model.name[edges]])
    first = np.flatnonzero(np.append(True, (key[:, 1:] != key[:, :-1]).any(axis=0)))
    duration = np.add.reduceat(graph.weight[edges], first)
    end = np.cumsum(duration)
    threads = trace.thread[np.maximum(row, 0)] if len(trace) else row
    segments = []
    for place, i in enumerate(first.tolist()):
        r, w = int(row[i]), int(work[i])
        name = model.names[int(model.name[edges[i]])]
        event = device.names[device.name[w]] if w >= 0 else trace.names[trace.name[r]] if r >= 0 else name
        segments.append(
            Segment(
                KINDS[int(kind[i])],
                name,
                event,
                int(end[place] - duration[place]) / 1000,
                int(duration[place]) / 1000,
                int(threads[i]) if w < 0 and r >= 0 else None,
                int(device.device[w]) if w >= 0 else None,
                int(device.stream[w]) if w >= 0 else None,
            )
        )
    return segments


def _distinct(rows: IntArray) -> IntArray:
    rows = distinct_values(rows)
    return rows[rows >= 0]


def as_dict(path: CriticalPath, ops: Sequence[OpOnPath] | None = None) -> dict[str, object]:
    """The path as plain values with stable keys; times in microseconds."""
    return {
        "step": path.step,
        "window": path.window,
        "length_us": path.length_us,
        "host_us": path.host_us,
        "by_kind": {f"{kind}_us": value for kind, value in path.by_kind.items()},
        "earlier_us": path.earlier_us,
        "rows": [op_as_dict(op, path) for op in (path.ops if ops is None else ops)],
        "off_path": [
            {"name": op.name, "busy_us": op.busy_us, "slack_us": op.slack_us} for op in path.off_path
        ],
        "notes": list(path.notes),
    }


def op_as_dict(op: OpOnPath, path: CriticalPath) -> dict[str, object]:
    """A row of the table of ops."""
    return {
        "name": op.name,
        "path_us": op.path_us,
        "share": op.share,
        "count": op.count,
        **{f"{kind}_us": value for kind, value in op.by_kind.items()},
        "without_us": op.without_us,
        "saves_us": None if op.without_us is None else path.length_us - op.without_us,
    }
