"""torch.profiler._utils: event trees in; their events depth first or breadth first, and a device's queue depth and idle time, out.

Any object with the fields of torch's `_ProfilerEvent` or `_KinetoEvent` can be an event.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..trace import Trace
from .enums import DeviceType
from .event_tree import _KinetoEvent, _ProfilerEvent, _ProfilerResult, collection_paused, tree_of_roots

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

_SOURCE = re.compile(r"\.py\(.*\): ")
_LAUNCHES = ("cudaLaunch", "hipLaunch", "cuLaunch")
_PEAK = 4  # kernels: a queue of at least this depth is deep
_SELF_TIME_WEIGHT = 0.6
_RULE = "-" * 80

JsonEvent = dict[str, Any]  # an object of a trace file
Graph = dict[str, Any]  # {"nodes": {number: {"name": ..., "stack_trace": ...}}}


T = TypeVar("T")
Node = Any  # an event, or whatever else `children_fn` takes

# anonymous, as the defaults of torch's functions are
_children: Callable[[Node], Iterable[Node]] = lambda event: event.children  # noqa: E731
_last: Callable[[deque[Node]], Node] = lambda waiting: waiting.pop()  # noqa: E731
_first: Callable[[deque[Node]], Node] = lambda waiting: waiting.popleft()  # noqa: E731


def _traverse(
    tree: Iterable[Node],
    next_fn: Callable[[deque[Node]], Node],
    children_fn: Callable[[Node], Iterable[Node]] = _children,
    reverse: bool = False,
) -> Iterator[Node]:
    whole = tree_of_roots(tree) if children_fn is _children else None
    if whole is not None:  # has the order of all its nodes
        if next_fn is _last and reverse:
            yield from whole.depth_first
            return
        if next_fn is _first and not reverse:
            yield from whole.breadth_first
            return
    waiting = deque(_ordered(tree, reverse))
    add = waiting.extend
    while waiting:
        event = next_fn(waiting)
        yield event
        children = children_fn(event)
        if children:
            add(_ordered(children, reverse))


def _ordered(events: Iterable[T], reverse: bool) -> Iterable[T]:
    return reversed(list(events)) if reverse else events


traverse_dfs = functools.partial(_traverse, next_fn=_last, reverse=True)
traverse_bfs = functools.partial(_traverse, next_fn=_first, reverse=False)


@dataclass(slots=True)
class EventMetrics:
    """Durations of one event, and the queue and idle time of the device during it."""

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0
    queue_depth: int = 0

    @property
    def fraction_idle_time(self) -> float:
        """The share of its time in which the device was idle."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


@dataclass
class Interval:
    """A span of time in nanoseconds."""

    start: int
    end: int
    queue_depth: int = 0


@dataclass
class ContextStackEntry:
    """A part of a compiled graph that is open at some time."""

    context_type: Literal["filename", "node"]
    identifier: str | int
    metadata: Graph | None
    tid: int | None = None


@dataclass
class TimelineEvent:
    """The begin or end of a mark, or an event, at one time of a trace."""

    timestamp: int
    event_type: Literal["start", "end", "regular"]
    marker_type: Literal["filename", "node"] | None
    identifier: str | int | None
    event: JsonEvent


class EventKey:
    """An event as a key of a dict."""

    __slots__ = ("event",)

    def __init__(self, event: _ProfilerEvent) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventKey) and self.event.id == other.event.id

    def __repr__(self) -> str:
        return f"{self.event.name}"

    def intervals_overlap(self, intervals: list[Interval]) -> int:
        """How long the union of the intervals overlaps with the event."""
        covered, until = 0, self.event.start_time_ns
        for interval in sorted(intervals, key=operator.attrgetter("start")):
            begin = max(until, interval.start)
            end = min(self.event.end_time_ns, interval.end)
            if end > begin:
                covered += end - begin
                until = end
        return covered


class Profile(Protocol):
    """A profile that may have been stopped: torch's autograd `profile`."""

    @property
    def kineto_results(self) -> _ProfilerResult | None: ...


class BasicEvaluation:
    """Self times of all events, and the depth of the device's queue and its idle time during them."""

    def __init__(self, prof: Profile) -> None:
        self.profile = prof
        self.metrics: dict[EventKey, EventMetrics] = {}
        self.compute_self_time()
        keys = list(self.metrics)
        order = np.argsort([key.event.start_time_ns for key in keys], kind="stable")
        self.event_keys = [keys[place] for place in order.tolist()]
        self.events = [key.event for key in self.event_keys]
        self.cuda_events: list[_KinetoEvent] = []
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    def compute_self_time(self) -> None:
        """Durations, and durations less those of the children."""
        waiting = list(self._finished().experimental_event_tree())
        metrics, count = self.metrics, 0
        with collection_paused():
            while waiting:
                event = waiting.pop()
                duration = own = event.duration_time_ns
                children = event.children
                if children:
                    for child in children:
                        own -= child.duration_time_ns
                    waiting.extend(children)
                metrics[EventKey(event)] = EventMetrics(duration, own)
                count += 1
        if count != len(metrics):
            raise AssertionError(f"{count} events have {len(metrics)} ids")

    def compute_queue_depth(self) -> list[Interval]:
        """How many kernels were launched and had not begun, at each launch, kernel and event."""
        results = self._finished()
        if not _has_device(results):
            return []
        events = results.events()
        launches = sorted((e for e in events if _is_launch(e)), key=_start_ns)
        kernels = sorted((e for e in events if _is_kernel(e)), key=_start_ns)
        self.cuda_events = sorted(launches + kernels, key=_start_ns)
        kernels_of: dict[int, list[int]] = {}  # indices of kernels, by the id that links them to launches
        for index, kernel in enumerate(kernels):
            kernels_of.setdefault(kernel.linked_correlation_id(), []).append(index)
        next_kernel: dict[int, int] = {}  # by the same id: which of its kernels the next launch belongs to
        is_launch = set(map(id, launches))
        points: list[tuple[int, _KinetoEvent | None, _ProfilerEvent | None]] = [
            *((activity.start_ns(), activity, None) for activity in (*launches, *kernels)),
            *((event.start_time_ns, None, event) for event in self.events),
        ]
        last_begun, last_launched = -1, -1  # indices of kernels
        depths = []
        for start, activity, event in sorted(points, key=operator.itemgetter(0)):
            while last_begun + 1 < len(kernels) and kernels[last_begun + 1].start_ns() <= start:
                last_begun += 1
            if activity is not None and id(activity) in is_launch:
                link = activity.linked_correlation_id()
                linked = kernels_of.get(link, [])
                place = next_kernel.get(link, 0)
                if place < len(linked):
                    last_launched = linked[place]
                    next_kernel[link] = min(place + 1, len(linked) - 1) if link else place
            depth = max(last_launched - last_begun, 0)
            if event is not None:
                self.metrics[EventKey(event)].queue_depth = depth
            elif activity is not None:
                depths.append(Interval(start, start + activity.duration_ns(), depth))
        return depths

    def _finished(self) -> _ProfilerResult:
        results = self.profile.kineto_results
        if results is None:
            raise AssertionError("the profile has not been stopped: there is nothing to evaluate")
        return results

    def compute_idle_time(self) -> None:
        """How long the device was idle during each event."""
        depths = self.queue_depth_list
        intervals: list[Interval] = []
        idle_since: int | None = None
        if depths and self.events:
            intervals = [
                Interval(self.events[0].start_time_ns, depths[0].start),
                Interval(depths[-1].end, self.events[-1].end_time_ns),
            ]
        for point in depths:
            if point.queue_depth == 0 and idle_since is None:
                idle_since = point.end
            if point.queue_depth > 0 and idle_since is not None:
                intervals.append(Interval(idle_since, point.start))
                idle_since = None
        for key in self.event_keys if intervals else ():
            self.metrics[key].idle_time_ns = key.intervals_overlap(intervals)

    def rank_events(self, length: int) -> list[EventKey]:
        """The events to look at first: of those during which a deep queue ran empty, the ones with the most idle and self time."""
        draining = self._draining()
        events = [key for key in self.metrics if key.intervals_overlap(draining)]
        if not events:
            return []
        idle = np.array([self.metrics[key].fraction_idle_time for key in events], np.float32)
        own = np.array([self.metrics[key].self_time_ns for key in events], np.float32)
        scores = (_standardised(idle) + np.float32(_SELF_TIME_WEIGHT) * _standardised(own)).tolist()
        ranked = sorted(zip(scores, events), key=operator.itemgetter(0), reverse=True)
        return [key for _, key in ranked[:length]]

    def _draining(self) -> list[Interval]:
        """The times in which the queue ran empty after a peak."""
        backwards = self.queue_depth_list[::-1]
        depths = [point.queue_depth for point in backwards]
        intervals = []
        place = 0
        while place < len(depths):
            if depths[place] <= 0:
                # of the spans before it that begin with an empty queue, the last that has a peak
                begin = place + 1
                while begin < len(depths):
                    empty = index_of_first_match(depths, lambda depth: depth <= 0, start=begin)
                    peak = argmax(depths, start=begin, end=empty)
                    if peak is not None and depths[peak] >= _PEAK:
                        intervals.append(Interval(backwards[peak].start, backwards[place].start))
                        place = place if empty is None else empty
                        break
                    begin += 1
            place += 1
        return intervals

    def get_optimizable_events(self, length: int = 1, print_enable: bool = True) -> list[EventKey]:
        """`rank_events`, printed too."""
        events = self.rank_events(length)
        if not print_enable:
            return events
        output = "Optimizable events:\n" if events else "No events to optimize\n"
        output += "\n".join(
            f"{_RULE}\n"
            f"Event:                {key}\n"
            f"Source code location: {source_code_location(key.event)}\n"
            f"Percentage idle time: {self.metrics[key].fraction_idle_time * 100:.2f}%\n"
            f"{_RULE}"
            for key in events
        )
        print(output)  # noqa: T201  (printing is what it is for)
        return events


def _has_device(results: _ProfilerResult) -> bool:
    """Whether there may be launches or kernels. Read from the names of a trace, so that no event has to be made."""
    trace = getattr(getattr(results, "_results", None), "trace", None)
    if not isinstance(trace, Trace):  # another object with events, as tests have
        return True
    return len(trace.device) > 0 or any(name.startswith(_LAUNCHES) for name in trace.names)


def _name(event: _KinetoEvent) -> str:
    name: str = event.name() if callable(event.name) else event.name
    return name


def _start_ns(event: _KinetoEvent) -> int:
    return event.start_ns()


def _is_launch(event: _KinetoEvent) -> bool:
    return _name(event).startswith(_LAUNCHES)


def _is_kernel(event: _KinetoEvent) -> bool:
    return event.device_type() == DeviceType.CUDA and "mem" not in _name(event).lower()


def _standardised(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Deviations from the mean in units of the standard deviation; not a number where all are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = values.std(ddof=1) if len(values) > 1 else np.float32("nan")
        standardised: npt.NDArray[np.float32] = (values - values.mean()) / deviation
    return standardised


def index_of_first_match(
    seq: Sequence[T], predicate: Callable[[T], object], start: int = 0, end: int | None = None
) -> int | None:
    """The index of the first item from `start` to `end` that fulfils the condition; None: there is none."""
    for index in range(start, len(seq) if end is None else min(end, len(seq))):
        if predicate(seq[index]):
            return index
    return None


def argmax(
    seq: Sequence[Any],
    key: Callable[[Any], SupportsRichComparison] = lambda x: x,
    start: int = 0,
    end: int | None = None,
) -> int | None:
    """The index of the greatest item from `start` to `end`, of the first of equal ones; None: there is none."""
    places = range(start, len(seq) if end is None else min(end, len(seq)))
    return max(places, key=lambda index: key(seq[index]), default=None)


def source_code_location(event: _ProfilerEvent | None) -> str:
    """The innermost line of Python code around an event."""
    while event is not None:
        if _SOURCE.search(event.name):
            return event.name
        event = event.parent
    return "No source code location found"


# of programs that run compiled graphs: by file, the graph
GRAPHS: dict[str, Graph] = {}


def map_recorded_events_to_aten_ops_with_stack_trace(traced_data: JsonEvent) -> None:
    """Write into a trace's events, in place, the source of the graph nodes that ran them, where compiled graphs left marks.

    Marks are annotations around events: `## file ##` for a graph, and inside it `## number ##` for one of its nodes. The source of a
    node is looked up in `GRAPHS`; events of graphs that are not there stay as they are.
    """
    opened: dict[object, list[ContextStackEntry]] = {}
    for point in _timeline(traced_data.get("traceEvents", [])):
        stack = opened.setdefault(point.event.get("tid"), [])
        if point.event_type == "start" and point.marker_type is not None and point.identifier is not None:
            graph = GRAPHS.get(str(point.identifier)) if point.marker_type == "filename" else None
            stack.append(
                ContextStackEntry(point.marker_type, point.identifier, graph, point.event.get("tid"))
            )
        elif point.event_type == "end" and stack:
            stack.pop()
        elif point.event_type == "regular":
            _annotate(point.event, stack)


def _annotate(event: JsonEvent, stack: list[ContextStackEntry]) -> None:
    graph = next((entry.metadata for entry in reversed(stack) if entry.context_type == "filename"), None)
    number = next((entry.identifier for entry in reversed(stack) if entry.context_type == "node"), None)
    node = (graph or {}).get("nodes", {}).get(number)
    if node is not None:
        event.setdefault("args", {}).update(
            {
                "node name": node.get("name"),
                "stack_trace": node.get("stack_trace", "No model stack trace available"),
            }
        )


_MARK = re.compile(r"## (.+) ##")


def _timeline(events: Iterable[JsonEvent]) -> list[TimelineEvent]:
    """Begins and ends of marks, and ops, in the order of time."""
    points = []
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        mark = _MARK.fullmatch(str(event.get("name", "")))
        if mark is None:
            if event.get("cat") == "cpu_op":
                points.append(TimelineEvent(event["ts"], "regular", None, None, event))
            continue
        identifier: str | int = int(mark[1]) if mark[1].isdigit() else mark[1]
        kind: Literal["filename", "node"] = "node" if isinstance(identifier, int) else "filename"
        points.append(TimelineEvent(event["ts"], "start", kind, identifier, event))
        points.append(TimelineEvent(event["ts"] + event.get("dur", 0), "end", kind, identifier, event))
    return sorted(points, key=lambda point: (point.timestamp, point.event_type != "end"))
