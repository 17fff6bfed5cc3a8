"""JSON by slices: chunks of a trace file in; lists of its events, and the keys before and after them, out. One slice is in memory at a time.

A slice is cut where one event seems to end and the next to begin, and parsed as a whole. If it parses, the cut was right: no
other place leaves all brackets and strings closed. A slice that does not parse is parsed event by event: an event that is no valid
JSON is repaired where it is clear how, or left out, and both are counted.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypedDict, cast

import orjson

from ..json_types import JSONObject, JSONScalar, JSONValue
from .byte_source import Source
from .errors import NotATraceError, RefusedTraceError
from .other_formats import other_kind

_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_NULL = re.compile(rb'"traceEvents"\s*:')
_SEAM = re.compile(rb"\}\s*,\s*\{")
_SPACE = re.compile(rb"[\s,]*")
_BLANK = re.compile(rb"[, \t\r\n]*")
_END = re.compile(rb"\}\s*\]")
_START = re.compile(rb'[,\}\]]\s*\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id)"\s*:')
_TRIES = 4  # places at which a slice is cut and parsed before its events are parsed one by one
_BRACES = 10_000  # closing brackets that are checked for such a place


# JSON values by name; there are too many kinds of events to name the type of each
EventArgs: TypeAlias = "dict[str, Any]"


# adds the events of text[:end] by itself and gives their number; None: they have to be parsed
TakeSlice: TypeAlias = "Callable[[bytes, int], int | None]"


class RawEvent(TypedDict, total=False):
    """An event as it stands in a file, with the types that the format says.

    A file may hold anything in these places. Code that relies on the types runs where the errors of other types are caught.
    """

    ph: str  # phase: X slice, B begin, E end, M metadata, i instant, C counter, s t f flows
    cat: str | None  # category
    name: str
    pid: JSONScalar
    tid: JSONScalar
    ts: float  # microseconds
    dur: float
    id: JSONScalar
    bp: str  # of the end of a flow, "e": it belongs to the slice around its time
    args: EventArgs


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn the garbage collector off: it takes longer than the parsing, and parsed JSON has no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Slices:
    """The events of a file, slice by slice; `top` and the counts are complete after the last slice.

    take: is offered each slice first. The events of a slice that it takes are not parsed, and an empty list stands for them.
    """

    def __init__(self, source: Source, take: TakeSlice | None = None) -> None:
        self.source = source
        self._take_slice = take
        self.top: JSONObject = {}  # the keys beside traceEvents
        self.repaired = 0  # events that were no valid JSON
        self.lost = 0  # pieces that are no event
        self.notes: list[str] = []
        self._first_repaired = self._first_lost = -1  # their places in the content
        self._chunks = source.chunks()
        self._done = False  # whether all chunks were read
        self._data = b""  # what was read of the file and not yet given
        self._place = 0  # of the data in the content
        self._limit = source.limits.max_event_bytes

    def __iter__(self) -> Iterator[list[RawEvent]]:
        self._data, is_object = self._head()
        while True:
            events, any_events, ended = self._slice()
            if any_events:
                yield events
            del events  # frees them before the next slice is parsed: their memory is in the processor's cache
            if ended:
                self._tail(self._data, is_object)
                break
            if self._done and not (any_events and self._data.strip(b" \t\r\n,")):
                if is_object or self._data.strip(b" \t\r\n,"):
                    self.notes.append(
                        f"the end of the file is missing, after byte {self._place + len(self._data):,}"
                    )
                break
        self._data = b""
        self._take_slice = None
        self.notes += self.source.notes
        if self._first_repaired >= 0:
            self.notes.append(
                f"events that were no valid JSON were mended, the first at byte {self._first_repaired:,}"
            )
        if self._first_lost >= 0:
            self.notes.append(f"what was no event was left out, the first at byte {self._first_lost:,}")

    # ------------------------------------------------------------------------------------------------ before and after the events

    def _more(self, data: bytes) -> bytes:
        """`data` and the content after it: half as much again, so that reading on stays linear."""
        parts, wanted = [data], max(1, len(data) // 2)
        for chunk in self._chunks:
            parts.append(chunk)
            wanted -= len(chunk)
            if wanted <= 0:
                break
        else:
            self._done = True
        return b"".join(parts) if len(parts) > 1 else data

    def _refuse_endless(self, data: bytes, part: str) -> None:
        if len(data) > self._limit:
            raise RefusedTraceError(
                f"{self.source.name}: refused, {part} has no end within {self._limit:,} bytes (at byte {self._place:,})"
            )

    def _head(self) -> tuple[bytes, bool]:
        """Read up to the first event; and whether the events are in an object, or a list by themselves."""
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
            raise NotATraceError(f"{name}: {other_kind(data, name)}")
        while (key := _KEY.search(data)) is None:
            if self._done:
                raise NotATraceError(f"{name}: {_other_kind(data)}")
            self._refuse_endless(data, "the content before the events")
            data = self._more(data)
        end = self._read_top(data, key)
        self._place += end
        return data[end:], True

    def _read_top(self, data: bytes, key: re.Match[bytes]) -> int:
        """Read the keys before traceEvents; gives the place of the first event. `key`: the first place that may be traceEvents."""
        candidate: re.Match[bytes] | None = key
        for _ in range(_TRIES):
            if candidate is None:
                break
            top = _parsed(data[: candidate.start()] + b'"":0}')
            if isinstance(top, dict):
                top.pop("", None)
                self.top.update(top)
                return candidate.end()
            candidate = _KEY.search(data, candidate.end())
        self.notes.append("what stands before the events is no valid JSON")
        top = _repaired(data[: key.start()] + b'"":0}')
        if isinstance(top, dict):
            top.pop("", None)
        else:
            top = _pairs(data[: key.start()])
        self.top.update(top)
        return key.end()

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
            value = _repaired(b"{" + rest.lstrip(b", \t\r\n"))
        if isinstance(value, dict):
            self.top.update(value)

    # ------------------------------------------------------------------------------------------------ events

    def _slice(self) -> tuple[list[RawEvent], bool, bool]:
        """The events of the next slice, whether there were any, and whether the list has ended."""
        if not self._done:
            self._data = self._more(self._data)
        data = self._data
        for cut, rest, ended in self._cuts(data):
            taken = None if self._take_slice is None else self._take_slice(data, cut)
            events: list[RawEvent] = []
            if taken is None:
                try:
                    events = orjson.loads(_list_of(data, cut))
                except orjson.JSONDecodeError:
                    continue
            self._advance(rest)
            return events, bool(taken or events), ended
        events, rest, ended = self._one_by_one(data)
        if not rest and not ended and not self._done:
            self._refuse_endless(data, "an event")
        self._advance(rest)
        return events, bool(events), ended

    def _advance(self, count: int) -> None:
        """Leave out what was read of the data."""
        self._place += count
        self._data = self._data[count:]

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
        tries, braces = 0, 0
        while tries < _TRIES and braces < _BRACES and (place := data.rfind(b"}", 0, place)) >= 0:
            braces += 1
            if _SEAM.match(data, place):
                tries += 1
                yield place + 1, place + 1, False
            elif _END.match(data, place) and not self._done:
                tries += 1
                after = data.index(b"]", place)
                yield place + 1, after + 1, True

    def _one_by_one(self, data: bytes) -> tuple[list[RawEvent], int, bool]:
        """The events of data that does not parse as a whole."""
        text = data.decode("latin-1")  # one character per byte; serves only to find the ends of events
        events: list[RawEvent] = []
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

    def _take(self, events: list[RawEvent], piece: bytes, place: int) -> None:
        value = _parsed(piece)
        if value is None:
            value = _repaired(piece)
            if value is not None:
                self.repaired += 1
                if self._first_repaired < 0:
                    self._first_repaired = self._place + place
        if isinstance(value, dict):
            events.append(cast("RawEvent", value))
        else:
            self.lost += 1
            if self._first_lost < 0:
                self._first_lost = self._place + place


def _list_of(data: bytes, end: int) -> bytes:
    """The JSON of the list of the events in data[:end]; one copy, as an event may have many MB."""
    before = _BLANK.match(data)
    return b"".join((b"[", memoryview(data)[before.end() if before else 0 : end], b"]"))


_LONGEST_TOKEN = 8  # characters (-Infinity): an error this close to the end may be a token that is cut off
_decoder = json.JSONDecoder(strict=False)


def _value_end(text: str, place: int) -> tuple[int | None, bool]:
    """Where the value that begins at `place` ends; if it does not, whether it is broken, or goes on beyond the text."""
    try:
        return _decoder.raw_decode(text, place)[1], False
    except json.JSONDecodeError as error:
        return None, error.pos < len(text) - _LONGEST_TOKEN and not error.msg.startswith("Unterminated")
    except (ValueError, RecursionError):
        return None, True


def _last_end(data: bytes, place: int) -> tuple[int, bool]:
    """Where the last, broken event ends: at the end of the list if that is there, else at the end of the data."""
    end = _END.search(data, place)
    return (len(data), False) if end is None else (end.end(), True)


def _parsed(piece: bytes) -> JSONValue:
    """The value of JSON; None where it is no valid JSON."""
    try:
        value: JSONValue = orjson.loads(piece)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return value


def _other_kind(data: bytes) -> str:
    """What kind of file a JSON object without events is."""
    if _NULL.search(data):
        return "not a trace (its traceEvents are no list)"
    if b'"nodes"' in data and b'"schema"' in data:
        return "an execution trace, not a profiler's trace; expected what export_chrome_trace writes"
    return "JSON, but not a trace (expected traceEvents)"


# ---------------------------------------------------------------------------------------------------- repairs

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


def _repaired(piece: bytes) -> JSONValue:
    """The value of JSON with one of the faults that writers of traces make; None if it cannot be repaired."""
    piece = piece.translate(_CONTROL)
    text = piece.decode("utf-8", "replace").encode()
    for repair in (_as_is, _without_nan, _with_escaped_backslashes, _with_escaped_quotes):
        text = repair(text)
        value = _tolerant(text)
        if value is not None:
            return value
    return None


def _as_is(piece: bytes) -> bytes:
    return piece


def _without_nan(piece: bytes) -> bytes:
    """null in place of NaN and infinities, which JSON does not have."""
    return _NOT_A_NUMBER.sub(b"null", piece)


def _with_escaped_backslashes(piece: bytes) -> bytes:
    """Backslashes that begin no escape are escaped: paths of Windows."""
    return _LONE_BACKSLASH.sub(lambda match: b"\\" + match[0], piece)


def _with_escaped_quotes(piece: bytes) -> bytes:
    """Quotes inside a text are escaped: the text ends where a further key or a bracket follows."""
    parts: list[bytes] = []
    place = 0
    for opening in _TEXT_VALUE.finditer(piece):
        if opening.start() < place:
            continue
        closing = _NEXT_KEY.search(piece, opening.end())
        if closing is None:
            break
        inside = piece[opening.end() : closing.start()]
        parts += [piece[place : opening.end()], re.sub(rb'(?<!\\)"', rb'\\"', inside)]
        place = closing.start()
    return b"".join([*parts, piece[place:]])


def _tolerant(piece: bytes) -> JSONValue:
    """JSON as Python's parser reads it, which accepts NaN and lone surrogates; both are replaced."""
    try:
        return _without_surrogates(json.loads(piece.decode(), strict=False, parse_constant=lambda _: None))
    except (ValueError, RecursionError):
        return None


def _without_surrogates(value: JSONValue) -> JSONValue:
    if isinstance(value, str):
        return _valid_text(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_valid_text(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _valid_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _pairs(head: bytes) -> JSONObject:
    """Lines `"key": value` of a head that is no JSON."""
    pairs: JSONObject = {}
    for key, text in _PAIR.findall(head):
        value = _parsed(text)
        if value is not None:
            pairs[key.decode("utf-8", "replace")] = value
    return pairs
