"""Logs: blocks of integers in the order in which they were recorded, by kind and thread. Blocks in, joined arrays out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import IntArray

if TYPE_CHECKING:
    from .row_columns import GatheredRows

# how many integers one row has; `rows` and `open` depend on the recording
WIDTHS = {
    "calls": 2,
    "tensors": 1,
    "memory": 4,
    "takeovers": 4,
    "storages": 3,
    "earlier_ids": 2,
    "steps": 3,
    "collections": 3,
}
OF_ALL = 0  # instead of a thread, in logs that all threads share

Key = tuple[str, int]  # the kind of a log, and the thread


class Logs:
    """The logs of a recording, or of a part of it: the ops and ranges that ended (`rows`), calls and returns (`calls`), tensors that
    were arguments (`tensors`), allocations and frees (`memory`), and so on, each a list of one-dimensional blocks."""

    def __init__(
        self, blocks: Iterable[tuple[Key, list[IntArray]]] = (), natives: dict[int, int] | None = None
    ) -> None:
        self.blocks: dict[Key, list[IntArray]] = {key: list(parts) for key, parts in blocks}
        self.natives: dict[int, int] = dict(natives or {})  # by recorded thread: its native id
        # Where the beginning of a recording was dropped: by log, how many rows are missing; and by thread, the places that the first
        # rows of its log of calls had before: those of calls that had not returned, which are kept.
        self.dropped: dict[Key, int] = {}
        self.kept_calls: dict[int, IntArray] = {}
        self.gathered: GatheredRows | None = (
            None  # rows that were taken off the blocks and are not sealed yet
        )

    def __iter__(self) -> Iterator[tuple[Key, IntArray]]:
        if self.gathered is not None:
            unread = {thread: parts for (kind, thread), parts in self.blocks.items() if kind == "rows"}
            for thread, block in self.gathered.blocks(unread):
                yield ("rows", thread), block
        for key, parts in self.blocks.items():
            for block in parts:
                yield key, block

    @property
    def nbytes(self) -> int:
        """Bytes of all blocks."""
        return sum(block.nbytes for parts in self.blocks.values() for block in parts)

    def count(self, kind: str, width: int) -> int:
        """How many rows the blocks of a kind have."""
        return sum(self.size(kind, thread) for thread in self.threads(kind)) // width

    def add(self, later: Logs) -> None:
        """Append what was recorded later."""
        for key, parts in later.blocks.items():
            self.blocks.setdefault(key, []).extend(parts)
        self.natives.update(later.natives)

    def call_places(self, thread: int, place: IntArray) -> IntArray:
        """Where places in the log of calls, counted from the beginning of the recording, are in the rows that there are."""
        dropped = self.dropped.get(("calls", thread), 0)
        if not dropped:
            return place
        kept = self.kept_calls[thread]
        return np.where(place < dropped, np.searchsorted(kept, place), place - dropped + len(kept))

    def tensor_places(self, thread: int, place: IntArray) -> IntArray:
        """The same for the log of tensors; -1: none, or no longer there."""
        dropped = self.dropped.get(("tensors", thread), 0)
        return np.where(place < dropped, -1, place - dropped)

    def threads(self, kind: str) -> list[int]:
        """The threads that have a log of this kind."""
        return [thread for one, thread in self.blocks if one == kind]

    def size(self, kind: str, thread: int) -> int:
        """How many integers one log has."""
        return sum(block.size for block in self.blocks.get((kind, thread), ()))

    def joined(self, kind: str, thread: int = OF_ALL, width: int | None = None) -> IntArray:
        """One log as an array of rows. The blocks are replaced by it one by one: rows exist twice only in part."""
        width = width or WIDTHS[kind]
        parts = self.blocks.get((kind, thread), [])
        if len(parts) == 1:
            return _shaped(parts[0], width)
        whole = np.empty(sum(block.size for block in parts), np.int64)
        at = 0
        try:
            while parts:
                block = parts[0]
                whole[at : at + block.size] = block.reshape(-1)
                at += block.size
                del parts[0]
            if len(whole):
                parts.append(whole)
        except BaseException:  # the log stays whole
            copied = len(whole) - sum(block.size for block in parts)
            if copied:
                parts.insert(0, whole[:copied])
            raise
        return _shaped(whole, width)


def _shaped(block: IntArray, width: int) -> IntArray:
    return block.reshape(-1) if width == 1 else block.reshape(-1, width)
