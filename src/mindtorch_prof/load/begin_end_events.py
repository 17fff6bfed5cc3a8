"""Begin and end events: events of phase B and E in, in the order of the file; slices out.

Ends are found by their times when all of the file was read. Until then events are kept as numbers and texts, which are the same for many of them:
objects would take many times the memory of the columns that they become.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, FloatArray, IntArray
from ..json_types import JSONScalar
from ..native_file import dumps
from .event_values import Table, TextTable, as_number, plain
from .json_slices import EventArgs, RawEvent
from .native import loads

_AT_ONCE = 1024  # slices that are given at a time
_PIECE = 2_048  # events that are freed at a time
_APART = frozenset({"ph", "ts", "pid", "tid", "name", "args"})  # what has a column of its own here


class BeginEndEvents:
    """The begin and end events of a file."""

    def __init__(self, dropped: Counter[str], repaired: Counter[str]) -> None:
        self._dropped, self._repaired = dropped, repaired  # by reason, and by kind of fault
        self._times, self._threads = array("d"), array("i")
        self._heads, self._args = array("i"), array("i")  # texts, by number; -1: an end, and no arguments
        self._names = array("i")  # by number; -1: an end, or none that is a text
        self._thread_numbers: Table[tuple[JSONScalar, JSONScalar]] = Table()
        self._texts = TextTable()
        self._name_numbers: Table[str] = Table()

    def add(self, group: list[RawEvent]) -> None:
        """Keep events."""
        for event in group:
            time = as_number(event.get("ts"))
            if time is None:
                self._dropped["no time"] += 1
                continue
            args = event.get("args")
            has_args = isinstance(args, dict) and bool(args)
            head, name = -1, -1  # an end has nothing to say but its time and arguments
            if event["ph"] == "B":
                further = {key: value for key, value in event.items() if key not in _APART}
                text = event.get("name")
                if isinstance(text, str):
                    name = self._name_numbers[text]
                elif text is not None:
                    further["name"] = text
                head = self._texts[dumps(further)]
            self._args.append(self._texts[dumps(args)] if has_args else -1)
            self._heads.append(head)
            self._names.append(name)
            self._threads.append(self._thread_numbers[plain(event.get("pid")), plain(event.get("tid"))])
            self._times.append(time)

    def slices(self) -> Iterator[tuple[str | None, list[RawEvent]]]:
        """Pairs as slices, some of one category at a time. The events are no longer kept after that."""
        pieces = self._pieces()
        texts, threads, names = self._texts.taken(), self._thread_numbers.taken(), self._name_numbers.taken()
        uses = array("i", bytes(4 * len(texts)))  # how often each text will still be needed
        for piece in pieces:
            for number in itertools.chain(piece.heads, piece.args):
                if number >= 0:
                    uses[number] += 1

        def parsed(number: int) -> Any:
            text = texts[number]
            uses[number] -= 1
            if not uses[number]:
                texts[number] = b""  # while texts are freed here, those of the columns grow
            return loads(text)

        def args_at(piece: _Piece, place: int) -> EventArgs:
            return {} if piece.args[place] < 0 else parsed(piece.args[place])

        def slice_of(begun: int, end: float, further: EventArgs) -> RawEvent:
            piece, place = pieces[begun // _PIECE], begun % _PIECE
            head: RawEvent = parsed(piece.heads[place])
            pid, tid = threads[piece.threads[place]]
            start = float(piece.times[place])
            head |= {"ph": "X", "ts": start, "dur": end - start, "pid": pid, "tid": tid}
            if piece.names[place] >= 0:
                head["name"] = names[piece.names[place]]
            head["args"] = args_at(piece, place) | further
            open_in[begun // _PIECE] -= 1
            return head

        groups: defaultdict[str | None, list[RawEvent]] = defaultdict(list)
        # by thread: beginnings without an end so far, as places in all pieces; and how many of each piece there are
        open_: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        open_in = [0] * len(pieces)
        last = 0.0
        for number, piece in enumerate(pieces):
            columns = (piece.times.tolist(), piece.threads.tolist(), piece.heads.tolist())
            for place, (last, thread, head) in enumerate(zip(*columns)):
                waiting = open_[thread]
                if head >= 0:
                    waiting.append(number * _PIECE + place)
                    open_in[number] += 1
                elif waiting:
                    begun = waiting.pop()
                    _add(groups, slice_of(begun, last, args_at(piece, place)))
                    if not open_in[begun // _PIECE] and begun // _PIECE < number:
                        pieces[begun // _PIECE] = _NO_EVENTS
                else:
                    self._dropped["ends without a beginning"] += 1
            if not open_in[number]:
                pieces[number] = _NO_EVENTS
            yield from _taken(groups, _AT_ONCE)
        for waiting in open_.values():
            for begun in waiting:
                self._repaired["beginnings without an end, which end with the trace"] += 1
                _add(groups, slice_of(begun, last, {"finished": False}))
                yield from _taken(groups, _AT_ONCE)
        yield from _taken(groups, 1)

    def _pieces(self) -> list[_Piece]:
        """The events in order of time, in pieces that can be freed one after the other: while they are, columns grow."""
        times = np.frombuffer(self._times)
        is_in_order = bool((times[1:] >= times[:-1]).all())
        order = None if is_in_order else np.argsort(times, kind="stable")
        del times
        columns: list[list[Array]] = []
        for name in ("_times", "_threads", "_heads", "_names", "_args"):
            events: array[Any] = getattr(self, name)
            column = np.frombuffer(events, events.typecode)
            if order is not None:
                column = column[order]
            columns.append([column[first : first + _PIECE].copy() for first in range(0, len(column), _PIECE)])
            setattr(self, name, array(events.typecode))
            del column, events
        return [_Piece(*each) for each in zip(*columns)]


class _Piece(NamedTuple):
    """Some of the events; see BeginEndEvents for the columns."""

    times: FloatArray
    threads: IntArray
    heads: IntArray
    names: IntArray
    args: IntArray


_NO_EVENTS = _Piece(np.empty(0), *[np.empty(0, np.int32)] * 4)


def _add(groups: defaultdict[str | None, list[RawEvent]], event: RawEvent) -> None:
    cat = event.get("cat")
    groups[cat if isinstance(cat, str) else None].append(event)


def _taken(
    groups: defaultdict[str | None, list[RawEvent]], least: int
) -> list[tuple[str | None, list[RawEvent]]]:
    """The groups with at least so many slices, which are taken out."""
    return [(cat, groups.pop(cat)) for cat in list(groups) if len(groups[cat]) >= least]
