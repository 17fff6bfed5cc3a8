"""torch.profiler._utils: walks over event trees, and what they tell of a device's queue and idle time.

Knows events by their fields alone (torch's `_ProfilerEvent`, `_KinetoEvent`), so any object that has them will do.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..trace import Trace
from .enums import DeviceType
from .event_tree import collector_waits, whole_tree

_SOURCE = re.compile(r"\.py\(.*\): ")
_LAUNCHES = ("cudaLaunch", "hipLaunch", "cuLaunch")
_FALLING_FROM = 4  # a queue at least so deep that runs empty
_SELF_TIME_WEIGHT = 0.6
_RULE = "-" * 80


# anonymous, as the defaults of torch's functions are
_children: Callable[[Any], Iterable[Any]] = lambda event: event.children  # noqa: E731
_last: Callable[[Any], Any] = lambda waiting: waiting.pop()  # noqa: E731
_first: Callable[[Any], Any] = lambda waiting: waiting.popleft()  # noqa: E731


def _traverse(
    tree: Iterable[Any],
    next_fn: Callable[[deque[Any]], Any],
    children_fn: Callable[[Any], Iterable[Any]] = _children,
    reverse: bool = False,
) -> Iterator[Any]:
    whole = whole_tree(tree) if children_fn is _children else None
    if whole is not None:  # knows the order of all its nodes
        if next_fn is _last and reverse:
            yield from whole.walked
            return
        if next_fn is _first and not reverse:
            yield from whole.walked_by_level
            return
    waiting = deque(_ordered(tree, reverse))
    add = waiting.extend
    while waiting:
        event = next_fn(waiting)
        yield event
        children = children_fn(event)
        if children:
            add(_ordered(children, reverse))


def _ordered(events: Iterable[Any], reverse: bool) -> Iterable[Any]:
    return reversed(list(events)) if reverse else events


traverse_dfs = functools.partial(_traverse, next_fn=_last, reverse=True)
traverse_bfs = functools.partial(_traverse, next_fn=_first, reverse=False)


@dataclass(slots=True)
class EventMetrics:
    """What was worked out of one event."""

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0
    queue_depth: int = 0

    @property
    def fraction_idle_time(self) -> float:
        """The part of its time in which the device had nothing to do."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


@dataclass
class Interval:
    """A stretch of time, in nanoseconds."""

    start: int
    end: int
    queue_depth: int = 0


@dataclass
class ContextStackEntry:
    """A part of a compiled graph that is open at some time."""

    context_type: Literal["filename", "node"]
    identifier: str | int
    metadata: dict | None
    tid: int | None = None


@dataclass
class TimelineEvent:
    """A begin, an end or an event, on the way through a trace."""

    timestamp: int
    event_type: Literal["start", "end", "regular"]
    marker_type: Literal["filename", "node"] | None
    identifier: str | int | None
    event: dict[str, Any]


class EventKey:
    """An event as a key of a dict."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event

    def __hash__(self) -> int:
        return hash(self.event.id)

    def __eq__(self, other: object) -> bool:
        return self.event.id == other.event.id  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{self.event.name}"

    def intervals_overlap(self, intervals: list[Interval]) -> int:
        """How long the intervals, taken together, overlap with the event."""
        covered, until = 0, self.event.start_time_ns
        for interval in sorted(intervals, key=operator.attrgetter("start")):
            begin = max(until, interval.start)
            end = min(self.event.end_time_ns, interval.end)
            if end > begin:
                covered += end - begin
                until = end
        return covered


class BasicEvaluation:
    """Self times of all events, and how deep the device's queue was and how long it stood idle during them."""

    def __init__(self, prof: Any) -> None:
        self.profile = prof
        self.metrics: dict[EventKey, EventMetrics] = {}
        self.compute_self_time()
        keys = list(self.metrics)
        order = np.argsort([key.event.start_time_ns for key in keys], kind="stable")
        self.event_keys = [keys[place] for place in order.tolist()]
        self.events = [key.event for key in self.event_keys]
        self.cuda_events: list[Any] = []
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    def compute_self_time(self) -> None:
        """Durations, and what is left of them without the children's."""
        if self.profile.kineto_results is None:
            raise AssertionError("the profile has not been stopped: there is nothing to evaluate")
        waiting = list(self.profile.kineto_results.experimental_event_tree())
        metrics, count = self.metrics, 0
        with collector_waits():
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
        """How many kernels were launched and had not begun, at each launch and each kernel; and at each event."""
        if self.profile.kineto_results is None:
            raise AssertionError("the profile has not been stopped: there is nothing to evaluate")
        if not _has_device(self.profile.kineto_results):
            return []
        every = self.profile.kineto_results.events()
        launches = sorted((e for e in every if _is_launch(e)), key=_start_ns)
        kernels = sorted((e for e in every if _is_kernel(e)), key=_start_ns)
        self.cuda_events = sorted(launches + kernels, key=_start_ns)
        places_of: dict[Any, list[int]] = {}  # of kernels, by what links them to launches
        for place, kernel in enumerate(kernels):
            places_of.setdefault(kernel.linked_correlation_id(), []).append(place)
        steps = sorted([*launches, *kernels, *self.events], key=_start_ns)
        begun, launched, found = -1, -1, []
        searched: dict[Any, int] = {}
        is_launch = set(map(id, launches))
        own = set(map(id, self.events))
        for step in steps:
            at = _start_ns(step)
            while begun + 1 < len(kernels) and _start_ns(kernels[begun + 1]) <= at:
                begun += 1
            if id(step) in is_launch:
                identity = step.linked_correlation_id()
                places = places_of.get(identity, [])
                place = searched.get(identity, 0)
                if place < len(places):
                    launched = places[place]
                    searched[identity] = min(place + 1, len(places) - 1) if identity else place
            depth = max(launched - begun, 0)
            if id(step) in own:
                self.metrics[EventKey(step)].queue_depth = depth
            else:
                found.append(Interval(at, _end_ns(step), depth))
        return found

    def compute_idle_time(self) -> None:
        """How long the device had nothing to do during each event."""
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
        falling = self._falling()
        events = [key for key in self.metrics if key.intervals_overlap(falling)]
        if not events:
            return []
        idle = np.array([self.metrics[key].fraction_idle_time for key in events], np.float32)
        own = np.array([self.metrics[key].self_time_ns for key in events], np.float32)
        scores = (_standardised(idle) + np.float32(_SELF_TIME_WEIGHT) * _standardised(own)).tolist()
        ranked = sorted(zip(scores, events), key=operator.itemgetter(0), reverse=True)
        return [key for _, key in ranked[:length]]

    def _falling(self) -> list[Interval]:
        """The times in which the queue fell from a peak to nothing."""
        backwards = self.queue_depth_list[::-1]
        depths = [point.queue_depth for point in backwards]
        found = []
        place = 0
        while place < len(depths):
            if depths[place] <= 0:
                # of the stretches before it that begin empty, the last with a peak
                begin = place + 1
                while begin < len(depths):
                    empty = index_of_first_match(depths, lambda depth: depth <= 0, start=begin)
                    peak = argmax(depths, start=begin, end=empty)
                    if peak is not None and depths[peak] >= _FALLING_FROM:
                        found.append(Interval(backwards[peak].start, backwards[place].start))
                        place = place if empty is None else empty
                        break
                    begin += 1
            place += 1
        return found

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
        print(output)  # noqa: T201  (that is what it is asked for)
        return events


def _has_device(results: Any) -> bool:
    """Whether there may be launches or kernels; asked of the names, where events would have to be made."""
    trace = getattr(getattr(results, "_results", None), "trace", None)
    if not isinstance(trace, Trace):  # made by hand
        return True
    return len(trace.device) > 0 or any(name.startswith(_LAUNCHES) for name in trace.names)


def _name(event: Any) -> str:
    return event.name() if callable(event.name) else event.name


def _start_ns(event: Any) -> int:
    return event.start_ns() if hasattr(event, "start_ns") else event.start_time_ns


def _end_ns(event: Any) -> int:
    return event.start_ns() + event.duration_ns()


def _is_launch(event: Any) -> bool:
    return _name(event).startswith(_LAUNCHES)


def _is_kernel(event: Any) -> bool:
    return event.device_type() == DeviceType.CUDA and "mem" not in _name(event).lower()


def _standardised(values: np.ndarray) -> np.ndarray:
    """Deviations from the mean in units of their own spread; not a number where all are equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = values.std(ddof=1) if len(values) > 1 else np.float32("nan")
        return (values - values.mean()) / spread


def index_of_first_match(
    seq: Any, predicate: Callable[[Any], Any], start: int = 0, end: int | None = None
) -> int | None:
    """Where the first item from `start` to `end` stands that fulfils the condition; None: nowhere."""
    for index in range(start, len(seq) if end is None else min(end, len(seq))):
        if predicate(seq[index]):
            return index
    return None


def argmax(
    seq: Any, key: Callable[[Any], Any] = lambda x: x, start: int = 0, end: int | None = None
) -> int | None:
    """Where the greatest item from `start` to `end` stands, the first of equal ones; None: there is none."""
    places = range(start, len(seq) if end is None else min(end, len(seq)))
    return max(places, key=lambda index: key(seq[index]), default=None)


def source_code_location(event: Any) -> str:
    """The innermost line of Python code around an event."""
    while event is not None:
        if _SOURCE.search(event.name):
            return event.name
        event = event.parent
    return "No source code location found"


# Of whoever runs compiled graphs: file -> {"nodes": {number: {"name": ..., "stack_trace": ...}}}
GRAPHS: dict[str, dict[str, Any]] = {}


def map_recorded_events_to_aten_ops_with_stack_trace(traced_data: dict[str, Any]) -> None:
    """Note on a trace's events, in place, the source of the graph nodes that ran them, where compiled graphs left their marks.

    Marks are annotations around events: `## file ##` for a graph, and inside `## number ##` for a node of it. Where nodes came from is
    looked up in `GRAPHS`; a trace without graphs that are known there stays as it is.
    """
    opened: dict[Any, list[ContextStackEntry]] = {}
    for point in _timeline(traced_data.get("traceEvents", [])):
        stack = opened.setdefault(point.event.get("tid"), [])
        if point.event_type == "start" and point.marker_type is not None and point.identifier is not None:
            found = GRAPHS.get(str(point.identifier)) if point.marker_type == "filename" else None
            stack.append(
                ContextStackEntry(point.marker_type, point.identifier, found, point.event.get("tid"))
            )
        elif point.event_type == "end" and stack:
            stack.pop()
        elif point.event_type == "regular":
            _annotate(point.event, stack)


def _annotate(event: dict[str, Any], stack: list[ContextStackEntry]) -> None:
    graph = next((entry.metadata for entry in reversed(stack) if entry.context_type == "filename"), None)
    node = next((entry.identifier for entry in reversed(stack) if entry.context_type == "node"), None)
    about = (graph or {}).get("nodes", {}).get(node)
    if about is not None:
        event.setdefault("args", {}).update(
            {
                "node name": about.get("name"),
                "stack_trace": about.get("stack_trace", "No model stack trace available"),
            }
        )


_MARK = re.compile(r"## (.+) ##")


def _timeline(events: Iterable[dict[str, Any]]) -> list[TimelineEvent]:
    """Begins and ends of marks, and ops, in the order of time."""
    made = []
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        mark = _MARK.fullmatch(str(event.get("name", "")))
        if mark is None:
            if event.get("cat") == "cpu_op":
                made.append(TimelineEvent(event["ts"], "regular", None, None, event))
            continue
        identifier: str | int = int(mark[1]) if mark[1].isdigit() else mark[1]
        kind: Literal["filename", "node"] = "node" if isinstance(identifier, int) else "filename"
        made.append(TimelineEvent(event["ts"], "start", kind, identifier, event))
        made.append(TimelineEvent(event["ts"] + event.get("dur", 0), "end", kind, identifier, event))
    return sorted(made, key=lambda point: (point.timestamp, point.event_type != "end"))
