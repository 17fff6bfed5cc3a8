"""Spill folders: parts of a recording in, a folder of segment files out; `mindtorch_prof.load.spill` reads it.

A folder holds one recording. Its segments are numbered files; each is a sequence of chunks, and a chunk has a length and a checksum:
whatever happens to the process, all chunks that were written are whole, and the last one is whole or is known not to be. A chunk holds
blocks of integers (`sealing.logs`) and what is new in the tables that explain them, so that it needs nothing that comes later.
"""

from __future__ import annotations

import os
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from .native_file import dumps

if sys.platform != "win32":
    import fcntl

SUFFIX = ".mtspill"  # of the folder of one recording
SEGMENT_SUFFIX = ".segment"
VERSION = 1
HISTORY = ("1: the first version",)  # what each version changed
MAGIC = b"MTspill1"
HEAD = struct.Struct("<8sIIQ")  # magic, checksum of what follows, bytes of the header and of the integers
SEGMENT_BYTES = 64 << 20  # a segment that is larger gets no further chunk
_RESERVE = "reserve"  # a file that is given up when the disk is full, so that the reason can still be written
_RESERVE_BYTES = 1 << 16
_LONGEST_WRITE = 4 << 20  # bytes: a slow disk takes seconds for more
_PIECE = 5 << 10  # bytes: zlib lets other threads run if there are more

Block = tuple[tuple[str, int], np.ndarray]  # a part of a log, and which


class WrittenChunk(NamedTuple):
    """Where the bytes of a chunk are that is not part of the recording yet."""

    file: int
    begin: int
    end: int


class SpillFolder:
    """The folder of one recording that is being written.

    Every chunk is written at a place that is only moved on when all of it is there. Writing it twice, after an error or because a
    signal handler came between, does no harm.
    """

    def __init__(self, parent: str | os.PathLike[str]) -> None:
        os.makedirs(parent, exist_ok=True)
        self.path = _new_folder(os.path.abspath(parent))
        self.pid = os.getpid()
        self.n_bytes = 0  # in all segments
        self._file = -1
        # where the last chunk ends: the number of its segment, and how many bytes of that
        self.place = (0, 0)
        self._has_reserve = _written(os.path.join(self.path, _RESERVE), bytes(_RESERVE_BYTES))
        self._next_segment()

    def _next_segment(self) -> None:
        number = self.place[0] + 1
        name = os.path.join(self.path, f"{number:06}{SEGMENT_SUFFIX}")
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o666)
        _lock(file)
        before, self._file, self.place = self._file, file, (number, 0)
        if before >= 0:
            os.close(before)

    def write(
        self,
        header: Mapping[str, object],
        blocks: Iterable[Block] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Append a chunk. Raises OSError if it cannot be written as a whole; the chunks before it stay whole. meanwhile: called again and again
        while a long chunk is written."""
        self.accept(self.put(header, blocks, meanwhile))

    def put(
        self,
        header: Mapping[str, object],
        blocks: Iterable[Block] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> WrittenChunk:
        """The first half of `write`: all bytes of a chunk after the last one; the next chunk takes their place unless it is accepted."""
        if self.place[1] > SEGMENT_BYTES:
            self._next_segment()
        blocks = list(blocks)
        listed = [[kind, thread, block.size] for (kind, thread), block in blocks]
        text = dumps({**header, "logs": listed})
        text += b" " * (-len(text) % 8)  # so that integers are aligned, and can be mapped into memory
        # One piece of memory, one checksum and one write: each call that lets other threads run may wait for long until it is its turn
        # again, and what is not written yet is lost if the process is killed meanwhile.
        integers = [np.ascontiguousarray(block).view(np.uint8).data for _, block in blocks if block.size]
        content = b"".join([text, *integers])
        head = HEAD.pack(MAGIC, _checksum(content), len(text), len(content) - len(text))
        file, begin = self._file, self.place[1]
        # again: a process that closes a file, also one that it only read (a snapshot), loses its locks on it
        _lock(file)
        try:
            at = _write_at(file, head + content, begin, meanwhile)
        except OSError:
            self.cut()
            raise
        return WrittenChunk(file, begin, at)

    def accept(self, chunk: WrittenChunk) -> None:
        """The second half of `write`: the next chunk comes after this one."""
        number, at = self.place
        if (self._file, at) == (chunk.file, chunk.begin):  # else a signal handler wrote it, and perhaps more
            self.n_bytes += chunk.end - chunk.begin
            self.place = (number, chunk.end)

    def cut(self) -> None:
        """Remove what there is of a chunk that could not be written as a whole, or was not accepted."""
        try:
            os.ftruncate(self._file, self.place[1])
        except OSError:
            pass

    def give_up_reserve(self) -> None:
        """Free some space on a full disk."""
        if self._has_reserve:
            self._has_reserve = False
            os.unlink(os.path.join(self.path, _RESERVE))

    def close(self) -> None:
        """Nothing more is written."""
        if self._file >= 0 and os.getpid() == self.pid:
            try:
                self.give_up_reserve()
            except OSError:
                pass
            os.close(self._file)
            self._file = -1

    @property
    def is_open(self) -> bool:
        """Whether chunks can be written: not after `close`, nor in a process that was forked since."""
        return self._file >= 0 and os.getpid() == self.pid


def _new_folder(parent: str) -> str:
    number = 0
    stamp = time.strftime("%Y%m%d-%H%M%S")
    while True:
        number += 1
        path = os.path.join(parent, f"{stamp}_{os.getpid()}_{number}{SUFFIX}")
        try:
            os.mkdir(path)
        except FileExistsError:
            continue
        return path


def _written(path: str, content: bytes) -> bool:
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError:
        return False
    return True


def _lock(file: int) -> None:
    """Show that this process, not one that was forked from it, writes a segment."""
    if sys.platform != "win32":
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a file system without locks
            pass


def _checksum(content: bytes) -> int:
    """The CRC-32. In small pieces, for which zlib does not let other threads run."""
    checksum, view = 0, memoryview(content)
    for first in range(0, len(view), _PIECE):
        checksum = zlib.crc32(view[first : first + _PIECE], checksum)
    return checksum


def _write_at(
    file: int, data: bytes | memoryview, at: int, meanwhile: Callable[[], None] | None = None
) -> int:
    """Write all of it at a place of the file; the place after it."""
    view = memoryview(data)
    while view:
        some = view[:_LONGEST_WRITE]
        if hasattr(os, "pwrite"):
            count = os.pwrite(file, some, at)
        else:
            os.lseek(file, at, os.SEEK_SET)
            count = os.write(file, some)
        view = view[count:]
        at += count
        if view and meanwhile is not None:
            meanwhile()
    return at
