"""Begin and end events: events of phase B and E in, in the order of the file; slices out.

Ends are found by their times when all of the file was read. Until then events are kept as numbers and texts, which are the same for many of them:
objects would take many times the memory of the columns that they become.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..json_types import JSONScalar
from ..native_file import dumps
from .event_values import Table, TextTable, as_number, plain
from .json_slices import EventArgs, RawEvent
from .native import loads

_AT_ONCE = 4096  # slices that are given at a time
_APART = frozenset({"ph", "ts", "pid", "tid", "args"})  # what has a column of its own here


class BeginEndEvents:
    """The begin and end events of a file."""

    def __init__(self, dropped: Counter[str], repaired: Counter[str]) -> None:
        self._dropped, self._repaired = dropped, repaired  # by reason, and by kind of fault
        self._times, self._threads = array("d"), array("i")
        self._heads, self._args = array("i"), array("i")  # texts, by number; -1: an end, and no arguments
        self._thread_numbers: Table[tuple[JSONScalar, JSONScalar]] = Table()
        self._texts = TextTable()

    def add(self, group: list[RawEvent]) -> None:
        """Keep events."""
        for event in group:
            time = as_number(event.get("ts"))
            if time is None:
                self._dropped["no time"] += 1
                continue
            args = event.get("args")
            has_args = isinstance(args, dict) and bool(args)
            # an end has nothing to say but its time and arguments
            head = (
                {key: value for key, value in event.items() if key not in _APART}
                if event["ph"] == "B"
                else None
            )
            self._args.append(self._texts[dumps(args)] if has_args else -1)
            self._heads.append(-1 if head is None else self._texts[dumps(head)])
            self._threads.append(self._thread_numbers[plain(event.get("pid")), plain(event.get("tid"))])
            self._times.append(time)

    def slices(self) -> Iterator[tuple[str | None, list[RawEvent]]]:
        """Pairs as slices, some of one category at a time. The events are no longer kept after that."""
        times, texts, threads = np.frombuffer(self._times), self._texts.taken(), self._thread_numbers.taken()
        args, heads, thread_of = self._args, self._heads, self._threads
        uses = array("i", bytes(4 * len(texts)))  # how often each text will still be needed
        for number in itertools.chain(args, heads):
            if number >= 0:
                uses[number] += 1

        def parsed(number: int) -> Any:
            text = texts[number]
            uses[number] -= 1
            if not uses[number]:
                texts[number] = b""  # while texts are freed here, those of the columns grow
            return loads(text)

        def args_at(place: int) -> EventArgs:
            return {} if args[place] < 0 else parsed(args[place])

        def slice_of(begun: int, end: float, further: EventArgs) -> RawEvent:
            head: RawEvent = parsed(heads[begun])
            pid, tid = threads[thread_of[begun]]
            start = float(times[begun])
            head |= {"ph": "X", "ts": start, "dur": end - start, "pid": pid, "tid": tid}
            head["args"] = args_at(begun) | further
            return head

        groups: defaultdict[str | None, list[RawEvent]] = defaultdict(list)
        open_: defaultdict[int, list[int]] = defaultdict(list)  # by thread: places of the beginnings
        order = np.argsort(times, kind="stable")
        for first in range(0, len(order), _AT_ONCE):
            for place in order[first : first + _AT_ONCE].tolist():
                waiting = open_[thread_of[place]]
                if heads[place] >= 0:
                    waiting.append(place)
                elif waiting:
                    _add(groups, slice_of(waiting.pop(), float(times[place]), args_at(place)))
                else:
                    self._dropped["ends without a beginning"] += 1
            yield from _taken(groups, _AT_ONCE)
        last = float(times[order[-1]]) if len(order) else 0.0
        for waiting in open_.values():
            for place in waiting:
                self._repaired["beginnings without an end, which end with the trace"] += 1
                _add(groups, slice_of(place, last, {"finished": False}))
                yield from _taken(groups, _AT_ONCE)
        yield from _taken(groups, 1)


def _add(groups: defaultdict[str | None, list[RawEvent]], event: RawEvent) -> None:
    cat = event.get("cat")
    groups[cat if isinstance(cat, str) else None].append(event)


def _taken(
    groups: defaultdict[str | None, list[RawEvent]], least: int
) -> list[tuple[str | None, list[RawEvent]]]:
    """The groups with at least so many slices, which are taken out."""
    return [(cat, groups.pop(cat)) for cat in list(groups) if len(groups[cat]) >= least]
