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
from ..native_file import dumps
from .categories import MOST_KEYS, category
from .event_values import Table, TextTable, as_number, plain
from .json_slices import EventArgs, RawEvent
from .native import loads
from .process_names import ThreadKey

_AT_ONCE = 1024  # slices that are given at a time
_PIECE = 2_048  # events that are freed at a time


class BeginEndEvents:
    """The begin and end events of a file."""

    def __init__(
        self, thread_numbers: Table[ThreadKey], dropped: Counter[str], repaired: Counter[str]
    ) -> None:
        """thread_numbers: those of all the file's events. Threads get theirs there: a file may have one for each pair."""
        self._dropped, self._repaired = dropped, repaired  # by reason, and by kind of fault
        self._times, self._threads = array("d"), array("i")
        self._categories = array("i")  # by number; -1: an end
        self._args = array("i")  # texts, by number; -1: none
        # by number; -1: none; below: a text by number, from -2 downwards, of a name that is none
        self._names = array("i")
        self._thread_numbers = thread_numbers
        self._texts = TextTable()
        self._name_numbers: Table[str] = Table()
        self._category_numbers: Table[str | None] = Table()
        self._of_meaning: dict[tuple[str, int] | None, str | None] = {}  # a category of each meaning

    def add(self, group: list[RawEvent]) -> None:
        """Keep events."""
        for event in group:
            time = as_number(event.get("ts"))
            if time is None:
                self._dropped["no time"] += 1
                continue
            args = event.get("args")
            has_args = isinstance(args, dict) and bool(args)
            cat, name = -1, -1  # an end has nothing to say but its time and arguments
            if event["ph"] == "B":
                cat = self._category_number(event.get("cat"))
                text = event.get("name")
                if isinstance(text, str):
                    name = self._name_numbers[text]
                elif text is not None:
                    name = -2 - self._texts[dumps(text)]
            self._args.append(self._texts[dumps(args)] if has_args else -1)
            self._categories.append(cat)
            self._names.append(name)
            self._threads.append(self._thread_numbers[plain(event.get("pid")), plain(event.get("tid"))])
            self._times.append(time)

    def _category_number(self, cat: str | None) -> int:
        """The number of a category. Where a file has very many, further ones have that of another of the same meaning."""
        if not isinstance(cat, str):
            cat = None
        if len(self._category_numbers) >= MOST_KEYS and cat not in self._category_numbers:
            cat = self._of_meaning.setdefault(category(cat), cat)
        return self._category_numbers[cat]

    def slices(self) -> Iterator[tuple[str | None, list[RawEvent]]]:
        """Pairs as slices, some of one category at a time. The events are no longer kept after that."""
        pieces = self._pieces()
        texts, threads, names = self._texts.taken(), list(self._thread_numbers), self._name_numbers.taken()
        categories = self._category_numbers.taken()
        uses = array("i", bytes(4 * len(texts)))  # how often each text will still be needed
        for piece in pieces:
            for number in itertools.chain(piece.args[piece.args >= 0], -2 - piece.names[piece.names < -1]):
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
            pid, tid = threads[piece.threads[place]]
            start = float(piece.times[place])
            event: RawEvent = {"ph": "X", "ts": start, "dur": end - start, "pid": pid, "tid": tid}
            event["cat"], name = categories[piece.categories[place]], int(piece.names[place])
            if name != -1:
                event["name"] = names[name] if name >= 0 else parsed(-2 - name)
            event["args"] = args_at(piece, place) | further
            open_in[begun // _PIECE] -= 1
            return event

        groups: defaultdict[str | None, list[RawEvent]] = defaultdict(list)
        # beginnings without an end so far, as places in all pieces: by thread the innermost one, and by place the one around it. A list per
        # thread would take many times that where each pair has a thread of its own
        innermost = array("q", [-1]) * len(threads)
        around = [array("q") for _ in pieces]
        open_in = [0] * len(pieces)  # how many of each piece there are
        last = 0.0
        for number, piece in enumerate(pieces):
            columns = (piece.times.tolist(), piece.threads.tolist(), piece.categories.tolist())
            for place, (last, thread, cat) in enumerate(zip(*columns)):
                begun = innermost[thread]
                around[number].append(begun)
                if cat >= 0:
                    innermost[thread] = number * _PIECE + place
                    open_in[number] += 1
                elif begun >= 0:
                    begun_in = begun // _PIECE
                    innermost[thread] = around[begun_in][begun % _PIECE]
                    _add(groups, slice_of(begun, last, args_at(piece, place)))
                    if not open_in[begun_in] and begun_in < number:
                        pieces[begun_in], around[begun_in] = _NO_EVENTS, _NO_PLACES
                else:
                    self._dropped["ends without a beginning"] += 1
            if not open_in[number]:
                pieces[number], around[number] = _NO_EVENTS, _NO_PLACES
            yield from _taken(groups)
        unfinished = 0
        for begun in innermost:
            waiting = array("q")  # the innermost first
            while begun >= 0:
                waiting.append(begun)
                begun = around[begun // _PIECE][begun % _PIECE]
            for place in reversed(waiting):
                _add(groups, slice_of(place, last, {"finished": False}))
                unfinished += 1
                if unfinished % _AT_ONCE == 0:
                    yield from _taken(groups)
        if unfinished:
            self._repaired["beginnings without an end, which end with the trace"] += unfinished
        yield from groups.items()

    def _pieces(self) -> list[_Piece]:
        """The events in order of time, in pieces that can be freed one after the other: while they are, columns grow."""
        times = np.frombuffer(self._times)
        is_in_order = bool((times[1:] >= times[:-1]).all())
        order = None if is_in_order else np.argsort(times, kind="stable")
        del times
        columns: list[list[Array]] = []
        for name in ("_times", "_threads", "_categories", "_names", "_args"):
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
    categories: IntArray
    names: IntArray
    args: IntArray


_NO_EVENTS = _Piece(np.empty(0), *[np.empty(0, np.int32)] * 4)
_NO_PLACES = array("q")


def _add(groups: defaultdict[str | None, list[RawEvent]], event: RawEvent) -> None:
    groups[event["cat"]].append(event)


def _taken(groups: defaultdict[str | None, list[RawEvent]]) -> list[tuple[str | None, list[RawEvent]]]:
    """The groups that have many slices, which are taken out; all of them where they are many together."""
    least = _AT_ONCE if sum(map(len, groups.values())) < 2 * _AT_ONCE else 1
    return [(cat, groups.pop(cat)) for cat in list(groups) if len(groups[cat]) >= least]
