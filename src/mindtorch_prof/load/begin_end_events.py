"""Begin and end events: events of phase B and E in, in the order of the file; slices out.

Ends are found by their times when all of the file was read. Until then events are kept as texts, which are the same for many of them:
objects would take many times the memory of the columns that they become.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from ..json_types import JSONScalar
from ..native_file import dumps
from .event_values import TextTable, as_number, plain
from .json_slices import EventArgs, RawEvent
from .native import loads

_AT_ONCE = 4096  # slices that are given at a time


class BeginEndEvents:
    """The begin and end events of a file."""

    def __init__(self, dropped: Counter[str], repaired: Counter[str]) -> None:
        self._dropped, self._repaired = dropped, repaired  # by reason, and by kind of fault
        self._times, self._numbers = array("d"), array("q")  # of events: when, and which text
        self._texts = TextTable()

    def add(self, group: list[RawEvent]) -> None:
        """Keep events."""
        for event in group:
            time = as_number(event.get("ts"))
            if time is None:
                self._dropped["no time"] += 1
                continue
            self._numbers.append(self._texts[dumps({**event, "ts": 0})])
            self._times.append(time)

    def slices(self) -> Iterator[tuple[str | None, list[RawEvent]]]:
        """Pairs as slices, some of one category at a time."""
        times, texts = np.frombuffer(self._times, np.float64), list(self._texts)

        def event_at(place: int) -> RawEvent:
            event: RawEvent = loads(texts[self._numbers[place]])  # type: ignore[assignment]
            return event

        groups: defaultdict[str | None, list[RawEvent]] = defaultdict(list)
        open_: defaultdict[tuple[JSONScalar, JSONScalar], list[int]] = defaultdict(list)  # places
        order = np.argsort(times, kind="stable")
        for first in range(0, len(order), _AT_ONCE):
            for place in order[first : first + _AT_ONCE].tolist():
                event = event_at(place)
                waiting = open_[plain(event.get("pid")), plain(event.get("tid"))]
                if event["ph"] == "B":
                    waiting.append(place)
                elif waiting:
                    begun = waiting.pop()
                    begin = event_at(begun)
                    args = {**_dict(begin.get("args")), **_dict(event.get("args"))}
                    _add(groups, begin, float(times[begun]), float(times[place]), args)
                else:
                    self._dropped["ends without a beginning"] += 1
            yield from _taken(groups, _AT_ONCE)
        last = float(times[order[-1]]) if len(order) else 0.0
        for waiting in open_.values():
            for place in waiting:
                self._repaired["beginnings without an end, which end with the trace"] += 1
                begin = event_at(place)
                _add(
                    groups, begin, float(times[place]), last, {**_dict(begin.get("args")), "finished": False}
                )
                yield from _taken(groups, _AT_ONCE)
        yield from _taken(groups, 1)


def _add(
    groups: defaultdict[str | None, list[RawEvent]],
    begin: RawEvent,
    start: float,
    end: float,
    args: EventArgs,
) -> None:
    cat = begin.get("cat")
    pid, tid = plain(begin.get("pid")), plain(begin.get("tid"))
    times: RawEvent = {"ph": "X", "ts": start, "dur": end - start, "args": args, "pid": pid, "tid": tid}
    groups[cat if isinstance(cat, str) else None].append({**begin, **times})


def _taken(
    groups: defaultdict[str | None, list[RawEvent]], least: int
) -> list[tuple[str | None, list[RawEvent]]]:
    """The groups with at least so many slices, which are taken out."""
    return [(cat, groups.pop(cat)) for cat in list(groups) if len(groups[cat]) >= least]


def _dict(value: object) -> EventArgs:
    return value if isinstance(value, dict) else {}
