"""The order of work on streams: columns of a device's work in; which work came before or after a call on a stream out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, IntArray, distinct, stable_order
from ..json_types import JSONValue
from ..trace import Columns, Device


class StreamOrder:
    """Answers by columns. Work is known by its place in the columns, which are in the order of starts, then ends."""

    def __init__(
        self,
        device: IntArray,
        stream: IntArray,
        start: IntArray,
        end: IntArray,
        launched: IntArray,
        correlation: IntArray,
    ) -> None:
        self._device, self._start, self._end = device, start, end
        self._launched, self._correlation = launched, correlation
        devices, number_of_device = distinct(device)
        streams, number_of_stream = distinct(stream)
        keys, self._stream = distinct(number_of_device * max(len(streams), 1) + number_of_stream)
        self.streams: list[tuple[int, int]] = [
            (int(devices[key // len(streams)]), int(streams[key % len(streams)])) for key in keys.tolist()
        ]
        self._number = {key: i for i, key in enumerate(self.streams)}

    @cached_property
    def _by_launch(self) -> _ByStream:
        return _ByStream(self._stream, self._launched)

    @cached_property
    def _by_correlation(self) -> _ByStream:
        return _ByStream(self._stream, self._correlation)

    @cached_property
    def _by_start(self) -> _ByStream:
        return _ByStream(self._stream, self._start)

    @cached_property
    def _by_end(self) -> _ByStream:
        return _ByStream(self._stream, self._end)

    def before(self) -> IntArray:
        """By work the one of its stream that ended last before it started; -1: none."""
        order = stable_order(self._stream)
        stream, start, end = self._stream[order], self._start[order], self._end[order]
        follows = np.append(False, stream[1:] == stream[:-1])
        if not (
            follows[1:] & (start[1:] < end[:-1])
        ).any():  # no work of a stream overlaps: it is the one before
            before = np.empty(len(order), np.int64)
            before[order] = np.where(follows, np.append(-1, order[:-1]), -1)
            return before
        place = self._by_end.last(self._stream, self._start, inclusive=True)
        # of work without length at one time, the earlier one comes first
        wrong = place >= np.arange(len(place))
        place[wrong] = self._by_end.last(self._stream[wrong], self._start[wrong], inclusive=False)
        return place

    def next_of(self, chosen: BoolArray) -> IntArray:
        """By work itself or the next one of its stream that is chosen; -1: none."""
        count = len(chosen)
        if chosen.all():
            return np.arange(count)
        order = stable_order(self._stream)
        place = np.where(chosen[order], np.arange(count), count)
        following = np.minimum.accumulate(place[::-1])[::-1]
        row = np.append(order, -1)[following]
        result = np.full(count, -1, np.int64)
        result[order] = np.where((row >= 0) & (self._stream[row] == self._stream[order]), row, -1)
        return result

    def _numbers(self, device: IntArray, stream: IntArray) -> IntArray:
        pairs = zip(device.tolist(), stream.tolist())
        return np.array([self._number.get(pair, -1) for pair in pairs], np.int64)

    def last_with(
        self,
        device: IntArray,
        stream: IntArray,
        *,
        launched: IntArray | None = None,
        correlation: IntArray | None = None,
    ) -> IntArray:
        """The last work of streams that was launched before times, or before the calls with these correlation ids; -1: none.
        Correlation ids count the calls of a process."""
        number = self._numbers(device, stream)
        if correlation is not None:
            return self._by_correlation.last(number, correlation, inclusive=False)
        assert launched is not None
        return self._by_launch.last(number, launched, inclusive=False)

    def next_after(self, device: IntArray, stream: IntArray, correlation: IntArray) -> IntArray:
        """The first work of streams that was launched after the calls with these correlation ids; -1: none."""
        return self._by_correlation.first_after(self._numbers(device, stream), correlation)

    def next_on_thread(self, thread: IntArray, threads: IntArray, times: IntArray) -> IntArray:
        """The first work that threads launched after times; -1: none. thread: by work, the one that launched it."""
        known, number = distinct(thread)
        place = np.minimum(np.searchsorted(known, threads), len(known) - 1)
        wanted = np.where(known[place] == threads, place, -1)
        return _ByStream(number, self._launched).first_after(wanted, times)

    def around_wait(
        self, device: IntArray, stream: IntArray, begin: IntArray, end: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Of times in which streams waited: the first work of the stream that started afterwards, and the work of another stream of the
        device that ended last in that time; -1: none."""
        waiting = self._by_start.first_after(self._numbers(device, stream), end - 1)
        awaited = np.full(len(end), -1, np.int64)
        for number, (own_device, own_stream) in enumerate(self.streams):
            candidate = self._by_end.last(np.full(len(end), number), end, inclusive=True)
            ended = self._end[candidate]
            fits = (candidate >= 0) & (device == own_device) & (stream != own_stream) & (ended > begin)
            fits &= (awaited < 0) | (ended > self._end[awaited])
            awaited = np.where(fits, candidate, awaited)
        return waiting, awaited

    def latest_of_others(self, work: IntArray, before: IntArray) -> IntArray:
        """For each work the one of another stream of its device that was launched before a time and ended last before the work started;
        -1: none."""
        best = np.full(len(work), -1, np.int64)
        for number, (device, _) in enumerate(self.streams):
            stream = np.full(len(work), number)
            # a stream runs its work in the order of launches: the earlier of the last one that was launched and the last one that ended
            launched = self._by_launch.last(stream, before, inclusive=False)
            ended = self._by_end.last(stream, self._start[work], inclusive=True)
            candidate = np.where(self._end[launched] <= self._end[ended], launched, ended)
            fits = (
                (launched >= 0)
                & (ended >= 0)
                & (self._stream[work] != number)
                & (self._device[work] == device)
            )
            fits &= candidate < work
            fits &= (best < 0) | (self._end[candidate] > self._end[best])
            best = np.where(fits, candidate, best)
        return best


class _ByStream:
    """Work sorted by stream and a value."""

    def __init__(self, stream: IntArray, value: IntArray) -> None:
        # one number per (stream, value): values by their rank, so that it fits 64 bits
        self._values, rank = distinct(value)
        self._width = len(self._values) + 1
        self._stream = stream
        keys = stream * self._width + rank
        self._rows = np.argsort(keys, kind="stable")
        self._keys = keys[self._rows]

    def last(self, stream: IntArray, value: IntArray, *, inclusive: bool) -> IntArray:
        """The last row of streams with a value below the given ones (or equal: inclusive); -1: none."""
        rank = np.searchsorted(self._values, value, side="right" if inclusive else "left")
        place = np.searchsorted(self._keys, stream * self._width + rank, side="left") - 1
        return self._of_stream(place, stream)

    def first_after(self, stream: IntArray, value: IntArray) -> IntArray:
        """The first row of streams with a value above the given ones; -1: none."""
        rank = np.searchsorted(self._values, value, side="right")
        place = np.searchsorted(self._keys, stream * self._width + rank, side="left")
        return self._of_stream(place, stream)

    def _of_stream(self, place: IntArray, stream: IntArray) -> IntArray:
        if not len(self._rows):
            return np.full(len(stream), -1, np.int64)
        inside = (place >= 0) & (place < len(self._rows)) & (stream >= 0)
        row = self._rows[np.clip(place, 0, len(self._rows) - 1)]
        return np.where(inside & (self._stream[row] == stream), row, -1)


@dataclass(frozen=True)
class Synchronisations(Columns):
    """What a file's rows of synchronisation (cuda_sync, EVENT_WAIT of Ascend) say, by row."""

    is_stream_wait: (
        BoolArray  # a stream waits for an event; else a call of the host waits, or it is something else
    )
    is_context: BoolArray  # the call waits for the whole device
    device: IntArray
    stream: IntArray  # the stream that waits, or is waited for
    correlation: IntArray  # correlation id of the call
    wait_on_stream: IntArray  # the stream on which the event was recorded; -1: none
    record: IntArray  # correlation id of the call that recorded the event; -1: none


def sync_arguments(device: Device, rows: IntArray) -> Synchronisations:
    """The arguments of rows of synchronisation. A row's kind is its name."""
    names = [name.lower() for name in device.names]
    is_wait = np.array(["wait event" in name or "event_wait" in name for name in names], bool)
    is_context = np.array(["context" in name or "device" in name for name in names], bool)
    used, place = distinct(device.extra[rows])
    table = [device.extra_table[i] if i >= 0 else {} for i in used.tolist()]

    def column(*keys: str) -> IntArray:
        return np.array([_number(arguments, keys) for arguments in table] or [-1], np.int64)[place]

    name = device.name[rows]
    return Synchronisations(
        is_wait[name],
        is_context[name],
        device.device[rows],
        device.stream[rows],
        device.correlation[rows],
        column("wait_on_stream"),
        column("wait_on_cuda_event_record_corr_id"),
    )


def _number(arguments: JSONValue | object, keys: tuple[str, ...]) -> int:
    for key in keys:
        value = arguments.get(key) if isinstance(arguments, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and -(2**62) < value < 2**62:
            return value
        if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 19:
            return int(value)
    return -1
