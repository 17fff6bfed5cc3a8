"""Nesting of event objects: a list of FunctionEvents in; their parents, children and backward stacks set. For lists that programs
build themselves; recordings are nested by `tree`, on columns."""

from __future__ import annotations

from collections import defaultdict

from .enums import DeviceType
from .function_events import FunctionEvent

_BACKWARD = 1  # torch's scope of backward functions


def nest(events: list[FunctionEvent]) -> None:
    """Set parents and children."""
    threads: dict[tuple[int, int], list[FunctionEvent]] = defaultdict(list)
    for event in events:
        if not event.is_async and event.device_type == DeviceType.CPU:
            threads[event.thread, event.node_id].append(event)
    for members in threads.values():
        _nest_thread(members)


def _nest_thread(events: list[FunctionEvent]) -> None:
    open_: list[FunctionEvent] = []
    for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
        span = event.time_range
        while open_ and (span.start >= open_[-1].time_range.end or span.end > open_[-1].time_range.end):
            open_.pop()
        if open_:
            open_[-1].append_cpu_child(event)
            if event.cpu_parent is not None:
                raise AssertionError(f"There is already a CPU parent event for {event.key}")
            event.set_cpu_parent(open_[-1])
        open_.append(event)


def drop_repeated(events: list[FunctionEvent]) -> None:
    """Drop an only child of its parent's name; the parent takes over its children and kernels."""
    while True:
        repeated = {
            id(e)
            for e in events
            if e.cpu_parent is not None
            and e.cpu_parent.name == e.name
            and len(e.cpu_parent.cpu_children) == 1
        }
        # of a chain only every second event is dropped in one round, so that no new parent is dropped too
        dropped = {id(e) for e in events if id(e) in repeated and id(e.cpu_parent) not in repeated}
        if not dropped:
            return
        for event in events:
            parent = event.cpu_parent
            if id(event) in dropped and parent is not None:
                parent.cpu_children = event.cpu_children
                parent.kernels = event.kernels
                for child in event.cpu_children:
                    child.cpu_parent = parent
        events[:] = [e for e in events if id(e) not in dropped]


def backward_stacks(events: list[FunctionEvent]) -> None:
    """Give backward events the stacks of their forward ops."""
    forward: dict[tuple[int, int], list[str]] = {}
    for event in events:
        if event.scope != _BACKWARD and event.sequence_nr >= 0 and event.stack is not None:
            forward.setdefault((event.sequence_nr, event.thread), event.stack)
    for event in events:
        if event.scope == _BACKWARD and event.fwd_thread is not None and not event.stack:
            event.stack = forward.get((event.sequence_nr, event.fwd_thread), [])
