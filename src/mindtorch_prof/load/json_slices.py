"""JSON by slices: pieces of a trace file in, lists of its events out, and what stands round them. Only one slice is in memory.

A slice is cut where one event seems to end and the next to begin, and parsed at once; that it parses shows that the cut was
right, as no other place leaves all brackets and strings closed. A slice that does not parse is gone through event by event:
what is no JSON is mended where it is clear how, or left out, and both are counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from .byte_source import Source
from .errors import NotATraceError, RefusedTraceError

_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NULL = re.compile(rb'"traceEvents"\s*:')
_SEAM = re.compile(rb"\}\s*,\s*\{")
_SPACE = re.compile(rb"[\s,]*")
_END = re.compile(rb"\}\s*\]")
_START = re.compile(rb'[,\}\]]\s*\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id)"\s*:')
_TRIES = 4  # places at which a slice is tried to be cut before its events are looked at one by one
_BRACES = 10_000  # closing brackets that are looked at for such a place


class Slices:
    """The events of a file, slice by slice; `top` and the counts are complete when all were taken."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.top: dict[str, Any] = {}
        self.mended = 0
        self.lost = 0
        self.notes: list[str] = []
        self.first_mended = self.first_lost = -1
        self._chunks = source.chunks()
        self._done = False
        self._place = 0  # of `data` in the content
        self._limit = source.limits.max_event_bytes

    def __iter__(self) -> Iterator[list[Any]]:
        data, is_object = self._head()
        while True:
            events, data, ended = self._slice(data)
            if events:
                yield events
                events = [
                    None
                ]  # what was parsed is given up before the next slice is: its memory is still in the cache
            if ended:
                self._tail(data, is_object)
                break
            if self._done and not (events and data.strip(b" \t\r\n,")):
                if is_object or data.strip(b" \t\r\n,"):
                    self.notes.append(
                        f"the end of the file is missing, after byte {self._place + len(data):,}"
                    )
                break
        self.notes += self.source.notes
        if self.first_mended >= 0:
            self.notes.append(
                f"events that were no valid JSON were mended, the first at byte {self.first_mended:,}"
            )
        if self.first_lost >= 0:
            self.notes.append(f"what was no event was left out, the first at byte {self.first_lost:,}")

    # ------------------------------------------------------------------------------------------------ pieces of the file

    def _more(self, data: bytes) -> bytes:
        """`data` and what follows in the file; more at a time where there is much already."""
        parts, wanted = [data], max(1, len(data) // 2)
        for chunk in self._chunks:
            parts.append(chunk)
            wanted -= len(chunk)
            if wanted <= 0:
                break
        else:
            self._done = True
        return b"".join(parts) if len(parts) > 1 else data

    def _refuse_endless(self, data: bytes, what: str) -> None:
        if len(data) > self._limit:
            raise RefusedTraceError(
                f"{self.source.name}: refused, {what} has no end within {self._limit:,} bytes (at byte {self._place:,})"
            )

    def _head(self) -> tuple[bytes, bool]:
        """Read up to the first event."""
        name = self.source.name
        data = self._more(b"")
        if data[:3] == b"\xef\xbb\xbf":
            data, self._place = data[3:], 3
        while True:
            blank = len(data) - len(data.lstrip())
            data, self._place = data[blank:], self._place + blank
            if data or self._done:
                break
            data = self._more(data)
        if not data:
            raise NotATraceError(f"{name}: empty, not a trace")
        if data[:1] == b"[":
            self._place += 1
            data = data[1:]
            start = data.lstrip()
            while not start and not self._done:
                data = self._more(data)
                start = data.lstrip()
            if start and start[:1] not in b"{]":
                raise NotATraceError(f"{name}: JSON, but not a trace (expected a list of events)")
            return data, False
        if data[:1] != b"{":
            raise NotATraceError(
                f"{name}: not a trace (expected JSON that begins with {{ or [, or the same packed by gzip)"
            )
        while (found := _KEY.search(data)) is None:
            if self._done:
                raise NotATraceError(f"{name}: {_other_kind(data)}")
            self._refuse_endless(data, "what stands before the events")
            data = self._more(data)
        first, tries = found, 0
        while found is not None and tries < _TRIES:
            tries += 1
            top = _parsed(data[: found.start()] + b'"":0}')
            if isinstance(top, dict):
                top.pop("", None)
                break
            found = _KEY.search(data, found.end())
        else:
            found = first
            top = _mended(data[: found.start()] + b'"":0}')
            self.notes.append("what stands before the events is no valid JSON")
            if isinstance(top, dict):
                top.pop("", None)
            else:
                top = _pairs(data[: found.start()])
        self.top.update(top)
        self._place += found.end()
        return data[found.end() :], True

    def _tail(self, data: bytes, is_object: bool) -> None:
        """Read what follows the last event."""
        while not self._done:
            if len(data) > self._limit:
                self.notes.append("what stands after the events is too long and was left out")
                return
            data = self._more(data)
        rest = data.strip()
        if not is_object:
            if rest:
                self.notes.append(f"something follows the end of the list of events, at byte {self._place:,}")
            return
        value = _parsed(b"{" + rest.lstrip(b", \t\r\n"))
        if value is None:
            self.notes.append(f"what stands after the events is no valid JSON, at byte {self._place:,}")
            value = _mended(b"{" + rest.lstrip(b", \t\r\n"))
        if isinstance(value, dict):
            self.top.update(value)

    # ------------------------------------------------------------------------------------------------ events

    def _slice(self, data: bytes) -> tuple[list[Any], bytes, bool]:
        """The events of the next slice, what is left of the data, and whether the list has ended."""
        if not self._done:
            data = self._more(data)
        for cut, rest, ended in self._cuts(data):
            try:
                events = orjson.loads(b"[" + data[:cut].lstrip(b", \t\r\n") + b"]")
            except orjson.JSONDecodeError:
                continue
            self._place += rest
            return events, data[rest:], ended
        events, rest, ended = self._one_by_one(data)
        if not rest and not ended and not self._done:
            self._refuse_endless(data, "an event")
        self._place += rest
        return events, data[rest:], ended

    def _cuts(self, data: bytes) -> Iterator[tuple[int, int, bool]]:
        """Places where an event may end: the length of the events, where the rest begins, and whether the list ends there."""
        if self._done:
            place = len(data)
            for _ in range(_TRIES):
                place = data.rfind(b"]", 0, place)
                if place < 0:
                    break
                yield place, place + 1, True
        place = len(data)
        tries, seen = 0, 0
        while tries < _TRIES and seen < _BRACES and (place := data.rfind(b"}", 0, place)) >= 0:
            seen += 1
            if _SEAM.match(data, place):
                tries += 1
                yield place + 1, place + 1, False
            elif _END.match(data, place) and not self._done:
                tries += 1
                after = data.index(b"]", place)
                yield place + 1, after + 1, True

    def _one_by_one(self, data: bytes) -> tuple[list[Any], int, bool]:
        """The events of data that does not parse as a whole."""
        text = data.decode("latin-1")  # one character a byte; only the ends of events are found in it
        events: list[Any] = []
        place = 0
        while True:
            blank = _SPACE.match(data, place)
            place = blank.end() if blank else place
            if place >= len(data):
                return events, place, False
            if text[place] == "]":
                return events, place + 1, True
            end, broken = _value_end(text, place)
            if end is not None and (end < len(data) or self._done):
                self._take(events, data[place:end], place)
                place = end
                continue
            if not self._done and not broken and len(data) - place <= self._limit:
                return events, place, False
            following = _START.search(data, place + 1)
            if following is None:
                if not self._done:
                    return events, place, False
                end, ended = _last_end(data, place)
                self._take(events, data[place:end].rstrip(b" \t\r\n]"), place)
                return events, end, ended
            end = following.start() + (1 if data[following.start()] != ord(",") else 0)
            last = _END.match(data, end - 1)
            self._take(events, data[place:end], place)
            place = end
            if last is not None:
                return events, last.end(), True

    def _take(self, events: list[Any], piece: bytes, place: int) -> None:
        value = _parsed(piece)
        if value is None:
            value = _mended(piece)
            if value is not None:
                self.mended += 1
                if self.first_mended < 0:
                    self.first_mended = self._place + place
        if isinstance(value, dict):
            events.append(value)
        else:
            self.lost += 1
            if self.first_lost < 0:
                self.first_lost = self._place + place


_LONGEST_TOKEN = (
    8  # characters: what is cut off within them is not known to be wrong (-Infinity is read as such)
)
_decoder = json.JSONDecoder(strict=False)


def _value_end(text: str, place: int) -> tuple[int | None, bool]:
    """Where the value that begins at `place` ends; if nowhere, whether it is broken: otherwise it goes on beyond the text."""
    try:
        return _decoder.raw_decode(text, place)[1], False
    except json.JSONDecodeError as error:
        return None, error.pos < len(text) - _LONGEST_TOKEN and not error.msg.startswith("Unterminated")
    except (ValueError, RecursionError):
        return None, True


def _last_end(data: bytes, place: int) -> tuple[int, bool]:
    """Where the last, broken event ends: at the end of the list if that is there, else at the end of the data."""
    found = _END.search(data, place)
    return (len(data), False) if found is None else (found.end(), True)


def _parsed(piece: bytes) -> Any:
    try:
        return orjson.loads(piece)
    except (orjson.JSONDecodeError, RecursionError):
        return None


def _other_kind(data: bytes) -> str:
    """What a JSON object without events is."""
    if _NULL.search(data):
        return "not a trace (its traceEvents are no list)"
    if b'"nodes"' in data and b'"schema"' in data:
        return "an execution trace, not a profiler's trace"
    return "JSON, but not a trace (expected traceEvents)"


# ---------------------------------------------------------------------------------------------------- mending

_NOT_A_NUMBER = re.compile(
    rb"(?<=[:\[,\s])[-+]?(?:nan|inf(?:inity)?)(?:\((?:ind|snan)\))?(?=\s*[,\]\}])", re.IGNORECASE
)
_LONE_BACKSLASH = re.compile(rb'\\(?:u(?![0-9a-fA-F]{4})|(?!["\\/bfnrtu]))')
_NEXT_KEY = re.compile(rb'"\s*(?:,\s*"[\w .#%()/-]{1,60}"\s*:|[\]\}])')
_TEXT_VALUE = re.compile(
    rb'"(?:name|cat|Call stack|Module Hierarchy|kernel|traceName|host_name|[\w-]{1,60})"\s*:\s*"'
)
_CONTROL = bytes(max(c, 32) for c in range(256))
_PAIR = re.compile(
    rb'^[ \t]*"([^"\\\n]+)"[ \t]*:[ \t]*("[^"\\\n]*"|-?[\d.eE+]+|true|false|null)[ \t]*,?[ \t\r]*$',
    re.MULTILINE,
)


def _mended(piece: bytes) -> Any:
    """The value of JSON with one of the faults that writers of traces make; None if it is not to be had."""
    piece = piece.translate(_CONTROL)
    valid = piece.decode("utf-8", "replace").encode()
    for mend in (_as_is, _numbers, _backslashes, _quotes):
        valid = mend(valid)
        value = _tolerant(valid)
        if value is not None:
            return value
    return None


def _as_is(piece: bytes) -> bytes:
    return piece


def _numbers(piece: bytes) -> bytes:
    """NaN and infinities, which JSON does not have."""
    return _NOT_A_NUMBER.sub(b"null", piece)


def _backslashes(piece: bytes) -> bytes:
    """Backslashes that begin no escape: paths of Windows."""
    return _LONE_BACKSLASH.sub(lambda found: b"\\" + found[0], piece)


def _quotes(piece: bytes) -> bytes:
    """Quotes inside a text: it ends where a further key or a bracket follows."""
    parts, place = [], 0
    for found in _TEXT_VALUE.finditer(piece):
        if found.start() < place:
            continue
        end = _NEXT_KEY.search(piece, found.end())
        if end is None:
            break
        inside = piece[found.end() : end.start()]
        parts += [piece[place : found.end()], re.sub(rb'(?<!\\)"', rb'\\"', inside)]
        place = end.start()
    return b"".join([*parts, piece[place:]])


def _tolerant(piece: bytes) -> Any:
    """JSON as Python reads it, which takes NaN and lone surrogates; these do not stay."""
    try:
        return _without_surrogates(json.loads(piece.decode(), strict=False, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        return None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _pairs(head: bytes) -> dict[str, Any]:
    """Lines `"key": value` of a head that is no JSON."""
    found = {}
    for key, value in _PAIR.findall(head):
        parsed = _parsed(value)
        if parsed is not None:
            found[key.decode("utf-8", "replace")] = parsed
    return found
