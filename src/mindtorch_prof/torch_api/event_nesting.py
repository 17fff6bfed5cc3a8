"""Nesting of event objects: a list of FunctionEvents in; their parents, children and backward stacks set. For lists that people
build themselves; recordings are nested by `tree`, on columns."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .enums import DeviceType

_BACKWARD = 1  # torch's scope of backward functions


def nest(events: list[Any]) -> None:
    """Set parents and children."""
    threads = defaultdict(list)
    for event in events:
        if not event.is_async and event.device_type == DeviceType.CPU:
            threads[event.thread, event.node_id].append(event)
    for members in threads.values():
        _nest_thread(members)


def _nest_thread(events: list[Any]) -> None:
    open_: list[Any] = []
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


def drop_repeated(events: list[Any]) -> None:
    """Drop an only child of its parent's name."""
    while True:
        gone = {
            id(e)
            for e in events
            if e.cpu_parent is not None
            and e.cpu_parent.name == e.name
            and len(e.cpu_parent.cpu_children) == 1
        }
        # of a chain only every second one goes at once, so that nobody's new parent is going too
        gone = {id(e) for e in events if id(e) in gone and id(e.cpu_parent) not in gone}
        if not gone:
            return
        for event in events:
            if id(event) in gone:
                parent = event.cpu_parent
                parent.cpu_children = event.cpu_children
                parent.kernels = event.kernels
                for child in event.cpu_children:
                    child.cpu_parent = parent
        events[:] = [e for e in events if id(e) not in gone]


def backward_stacks(events: list[Any]) -> None:
    """Give backward events the stack of their forward."""
    forward: dict[tuple[int, Any], list[str]] = {}
    for event in events:
        if event.scope != _BACKWARD and event.sequence_nr >= 0 and event.stack is not None:
            forward.setdefault((event.sequence_nr, event.thread), event.stack)
    for event in events:
        if event.scope == _BACKWARD and event.fwd_thread is not None and not event.stack:
            event.stack = forward.get((event.sequence_nr, event.fwd_thread), [])
