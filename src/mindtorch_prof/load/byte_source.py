"""Bytes: a path or an open file in, chunks of its (unpacked) content out, in bounded memory. Knows nothing of JSON."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Event, Thread
from typing import BinaryIO, Protocol, TypeAlias, TypeGuard, TypeVar, cast

from .errors import NotATraceError, RefusedTraceError

CHUNK = (
    160 << 10
)  # bytes read or unpacked at a time: the objects parsed from them fit into a processor's cache
_RATIO_FROM = 256 << 20  # bytes: smaller contents may have any compression ratio
_GZIP = b"\x1f\x8b"
_AHEAD_FROM = 256 << 10  # bytes of a packed file: a shorter one is unpacked before a thread has started
_AHEAD = 16  # chunks that wait to be read


_Item = TypeVar("_Item")


class Readable(Protocol):
    """An open file; one that is open as text is encoded."""

    def read(self, size: int, /) -> bytes | bytearray | memoryview | str: ...


PathOrFile: TypeAlias = "str | bytes | bytearray | os.PathLike[str] | os.PathLike[bytes] | Readable"
Progress: TypeAlias = "Callable[[int, int | None], object]"  # called with (bytes read, bytes in all or None)


@dataclass(frozen=True)
class Limits:
    """How large a file may be."""

    max_bytes: int = 1 << 40  # unpacked
    max_ratio: float = 500.0  # unpacked bytes per packed byte, checked from 256 MiB on
    max_event_bytes: int = 64 << 20  # of one event, or of the content before and after the events


class Source:
    """A file that is read once, from its beginning to its end."""

    def __init__(self, file: PathOrFile, limits: Limits) -> None:
        self.limits = limits
        self.name = name_of(file)
        self._file, self._owned = _opened(file)
        self.consumed = 0  # bytes read from the file
        self.total = _size(self._file)  # bytes of the file, where that is known
        self.notes: list[str] = []
        self.packed = False
        self._reading: Generator[bytes, None, None] | None = None
        self._first: bytes | None = None  # what `head` read before the content is read

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._reading is not None:
            self._reading.close()  # an error keeps its frames: without this a thread would go on reading
        if self._owned is not None:
            self._owned.close()

    @property
    def packed_head(self) -> bool:
        """Whether `head` found packed content."""
        return self._first is not None and self._first[:2] == _GZIP

    def head(self) -> bytes:
        """The first bytes of the content, unpacked; they are given again by `chunks`."""
        if self._first is None:
            self._first = self._read(CHUNK)
        if self._first[:2] != _GZIP:
            return self._first
        try:
            return zlib.decompressobj(31).decompress(self._first, CHUNK)
        except zlib.error:
            return b""

    def chunks(self) -> Iterator[bytes]:
        """The content, unpacked where it is packed."""
        self._reading = self._chunks()
        return self._reading

    def _chunks(self) -> Generator[bytes, None, None]:
        first = self._read(CHUNK) if self._first is None else self._first
        self.packed = first[:2] == _GZIP
        if not self.packed:
            yield from self._checked(self._plain(first))
        elif self._owned is None or (self.total or 0) < _AHEAD_FROM:
            yield from self._checked(self._unpacked(first))
        else:
            # what others opened is read by their own thread only
            with closing(ahead(self._checked(self._unpacked(first)), _AHEAD)) as chunks:
                yield from chunks

    def _checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in chunks:
            size += len(chunk)
            self._check_size(size)
            yield chunk

    def check_total(self) -> None:
        """Refuse a file that is larger than a content may be, where it is read by others."""
        self._check_size(self.total or 0)

    def _check_size(self, size: int) -> None:
        limits = self.limits
        if size > limits.max_bytes:
            raise RefusedTraceError(
                f"{self.name}: refused, its content is larger than {limits.max_bytes:,} bytes"
            )
        if self.packed and size > _RATIO_FROM and size > limits.max_ratio * self.consumed:
            raise RefusedTraceError(
                f"{self.name}: refused, it unpacks to more than {limits.max_ratio:g} times its size"
            )

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"{self.name}: read() gave {type(data).__name__}; expected bytes")
        self.consumed += len(data)
        return bytes(data)

    def _plain(self, first: bytes) -> Iterator[bytes]:
        while first:
            yield first
            first = self._read(CHUNK)

    def _unpacked(self, packed: bytes) -> Iterator[bytes]:
        unpack = zlib.decompressobj(31)
        while True:
            try:
                chunk = unpack.decompress(packed, CHUNK)
            except zlib.error as error:
                self.notes.append(
                    f"the packed data is damaged at byte {self.consumed - len(packed):,} ({error})"
                )
                return
            if chunk:
                yield chunk
            packed = unpack.unconsumed_tail
            if unpack.eof:
                # several packed files one after the other are one file; zeros after them are padding
                packed = unpack.unused_data.lstrip(b"\0") or self._read(CHUNK).lstrip(b"\0")
                if not packed:
                    return
                if not packed.startswith(_GZIP[: len(packed)]):
                    self.notes.append("other data follows the packed data")
                    return
                unpack = zlib.decompressobj(31)
            elif not packed and len(chunk) < CHUNK:
                packed = self._read(CHUNK)
                if not packed:
                    self.notes.append(f"the packed data ends too early, at byte {self.consumed:,}")
                    return


def ahead(items: Iterator[_Item], count: int) -> Generator[_Item, None, None]:
    """The same items, which another thread makes before they are asked for: up to `count` of them. Its error is raised where the item
    would have come; closing the iterator stops it."""
    waiting: Queue[tuple[_Item | None, BaseException | None, bool]] = Queue(count)
    stopped = Event()

    def make() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                waiting.put((item, None, False))
                if stopped.is_set():
                    return
        except BaseException as raised:
            error = raised
        waiting.put((None, error, True))

    thread = Thread(target=make, name="mindtorch_prof unpacks", daemon=True)
    thread.start()
    try:
        while True:
            item, error, is_last = waiting.get()
            if error is not None:
                raise error
            if is_last:
                return
            yield cast("_Item", item)
    finally:
        stopped.set()
        while thread.is_alive():  # it may be waiting for room
            with suppress(Empty):
                waiting.get(timeout=0.01)
        thread.join()


def name_of(file: PathOrFile) -> str:
    """What messages call a file."""
    if is_content(file):
        return "the bytes"
    if isinstance(file, (str, bytes, os.PathLike)):
        return os.fsdecode(file)
    return str(getattr(file, "name", "") or "the file")


def is_content(file: PathOrFile) -> TypeGuard[bytes | bytearray]:
    """Whether bytes are the content of a file, not its path."""
    return isinstance(file, (bytes, bytearray)) and (
        file[:1] in (b"{", b"[", b"\x1f") or file[:6] == b"SQLite"
    )


def _opened(file: PathOrFile) -> tuple[Readable, BinaryIO | None]:
    """The open file, and the same again if it was opened here and has to be closed."""
    if is_content(file):
        content = io.BytesIO(file)
        return content, content
    if isinstance(file, (str, bytes, os.PathLike)):
        if os.path.isdir(file):
            raise NotATraceError(f"{name_of(file)}: a directory, not a trace file")
        opened = open(file, "rb")  # noqa: SIM115  (Source closes it)
        return opened, opened
    if isinstance(file, bytearray) or not hasattr(file, "read"):
        raise TypeError(f"expected a path or an open file, not {type(file).__name__}")
    return file, None


def _size(file: Readable) -> int | None:
    fileno = getattr(file, "fileno", None)
    try:
        return os.fstat(fileno()).st_size or None if fileno else None
    except (OSError, AttributeError, ValueError, TypeError):
        return None
