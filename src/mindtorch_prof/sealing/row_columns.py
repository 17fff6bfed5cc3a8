"""Rows of a recording as columns: blocks in the order of recording in; columns by (thread, start) out.

The blocks may be freed as they are read: all of them beside all columns would be too much memory. Each step leaves either the rows as they
were or their columns behind, so that one which fails for lack of memory can be done again later, or the rows written to a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import IntArray
from .raw import RANGES

_PIECE = 1 << 16  # rows that are given back at a time


@dataclass
class _Part:
    """The rows of one thread. A column is in one of the two dicts, or already in `GatheredRows.column`."""

    n_rows: int
    recorded: dict[str, IntArray]  # in the order of recording
    sorted: dict[str, IntArray] = field(default_factory=dict)  # by start
    order: IntArray | None = None
    tensor_base: int | None = (
        None  # what was added to places in the log of tensors; None: nothing was changed
    )


class GatheredRows:
    """The rows of all threads, on their way from blocks to columns."""

    def __init__(self, columns: Sequence[str], n_ops: int) -> None:
        self._columns, self._n_ops = tuple(columns), n_ops
        self.parts: dict[int, _Part] = {}
        self.column: dict[str, IntArray] = {}  # of all threads, by (thread, start)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns that there are."""
        dicts = [
            self.column,
            *[each for part in self.parts.values() for each in (part.recorded, part.sorted)],
        ]
        return sum(array.nbytes for arrays in dicts for array in arrays.values())

    def read(self, thread: int, blocks: list[IntArray], keep: bool) -> _Part:
        """Copy the rows of a thread into columns. Keys are small numbers, ops first. keep: False to take each block off the list."""
        width = len(self._columns)
        size = sum(block.size for block in blocks) // width
        part = self.parts.get(thread)
        if part is None:
            empty: dict[str, IntArray] = {
                name: np.empty(size, np.int32 if name in ("key", "inputs") else np.int64)
                for name in self._columns
            }
            part = self.parts[thread] = _Part(size, empty)
        at, number = part.n_rows - size, 0
        while number < len(blocks):
            rows = blocks[number].reshape(-1, width)
            for place, name in enumerate(self._columns):
                values = rows[:, place]
                if name == "key":
                    values = np.where(values < RANGES, values, values - (RANGES - self._n_ops))
                part.recorded[name][at : at + len(rows)] = values
            at += len(rows)
            if keep:
                number += 1
            else:
                del blocks[0]
        return part

    def sort(self, part: _Part, tensors: IntArray | None, tensor_base: int) -> None:
        """Put the rows of a thread in the order of their starts. tensors: instead of the column of that name, for all of them."""
        if part.order is None:
            part.order = _by_start(part.recorded["start"])
        for name in self._columns:  # one at a time: both orders of all columns would be too much
            if name not in part.sorted and name not in self.column:
                values = part.recorded[name]
                if name == "tensors" and tensors is not None:
                    part.tensor_base = tensor_base
                    values = tensors
                part.sorted[name] = values[part.order]
            part.recorded.pop(name, None)
        part.order = np.empty(0, np.int64)  # not needed any more; its memory is

    def join(self) -> tuple[dict[str, IntArray], IntArray]:
        """The columns of all threads, and the thread of each row."""
        threads = sorted(self.parts)
        for name in self._columns:
            if name not in self.column:
                self.column[name] = joined([self.parts[each].sorted[name] for each in threads])
            for each in threads:
                self.parts[each].sorted.pop(name, None)
        thread_of = joined([np.full(self.parts[each].n_rows, each, np.int64) for each in threads])
        return self.column, thread_of

    def blocks(self, unread: dict[int, list[IntArray]]) -> Iterator[tuple[int, IntArray]]:
        """The rows again, as blocks of (thread, rows), a piece at a time; `unread`: by thread, the blocks that were not read yet."""
        offset = 0
        for thread, part in sorted(self.parts.items()):
            there = part.n_rows - sum(block.size for block in unread.get(thread, ())) // len(self._columns)
            starts = range(0, there, _PIECE)
            # rows that are sorted come backwards: of two that start together, the outer one is recorded last
            for first in starts if part.order is None else reversed(starts):
                yield thread, self._piece(part, offset, first, min(first + _PIECE, there))
            offset += part.n_rows

    def _piece(self, part: _Part, offset: int, first: int, last: int) -> IntArray:
        rows = np.empty((last - first, len(self._columns)), np.int64)
        for place, name in enumerate(self._columns):
            is_sorted = name in self.column or name in part.sorted
            if name in self.column:
                values = self.column[name][offset + first : offset + last]
            elif name in part.sorted:
                values = part.sorted[name][first:last]
            elif part.order is not None:
                values = part.recorded[name][part.order[first:last]]
            else:
                values = part.recorded[name][first:last]
            rows[:, place] = values
            if name == "key":
                rows[:, place] += np.where(values < self._n_ops, 0, RANGES - self._n_ops)
            elif name == "tensors" and is_sorted and part.tensor_base is not None:
                rows[:, place] -= np.where(values < 0, 0, part.tensor_base)
        return (rows if part.order is None else rows[::-1]).reshape(-1)


def _by_start(start: IntArray) -> IntArray:
    """The rows of a thread in the order of their starts. They are in the order of their ends: of two that start at the same time, the
    later one is the outer, and comes first."""
    order = np.argsort(start[::-1], kind="stable")
    return np.subtract(len(start) - 1, order, out=order)


def joined(parts: list[IntArray]) -> IntArray:
    """Arrays one after the other; a single one as it is."""
    parts = [part for part in parts if len(part)] or parts[:1]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
