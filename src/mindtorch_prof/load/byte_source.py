"""Bytes: a path or an open file in, pieces of its (unpacked) content out, in bounded memory. Knows nothing of JSON."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from .errors import NotATraceError, RefusedTraceError

CHUNK = 160 << 10  # bytes read or unpacked at a time: what is parsed from them fits into a processor's cache
_RATIO_FROM = 256 << 20  # below this many bytes any ratio of packing is fine
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Limits:
    """How much a file may ask for."""

    max_bytes: int = 1 << 40  # unpacked
    max_ratio: float = 500.0  # unpacked bytes per packed byte, looked at from 256 MiB on
    max_event_bytes: int = 64 << 20  # of one event, or of what stands before and after the events


class Source:
    """A file that is read once, from its beginning to its end."""

    def __init__(self, file: Any, limits: Limits) -> None:
        self.limits = limits
        self.name, self._file, self._own = _opened(file)
        self.consumed = 0  # bytes taken from the file
        self.total = _size(self._file)  # of the file, where that is known
        self.notes: list[str] = []
        self.packed = False

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._own:
            self._file.close()

    def chunks(self) -> Iterator[bytes]:
        """The content, unpacked where it is packed."""
        first = self._read(CHUNK)
        self.packed = first[:2] == _GZIP
        produced = 0
        for chunk in self._unpacked(first) if self.packed else self._plain(first):
            produced += len(chunk)
            self._check(produced)
            yield chunk

    def _check(self, produced: int) -> None:
        limits = self.limits
        if produced > limits.max_bytes:
            raise RefusedTraceError(
                f"{self.name}: refused, its content is larger than {limits.max_bytes:,} bytes"
            )
        if self.packed and produced > _RATIO_FROM and produced > limits.max_ratio * self.consumed:
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

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        unpack = zlib.decompressobj(31)
        while True:
            try:
                piece = unpack.decompress(data, CHUNK)
            except zlib.error as error:
                self.notes.append(
                    f"the packed data is damaged at byte {self.consumed - len(data):,} ({error})"
                )
                return
            if piece:
                yield piece
            data = unpack.unconsumed_tail
            if unpack.eof:
                # several packed files one after the other are one file; what follows otherwise is padding
                data = unpack.unused_data.lstrip(b"\0") or self._read(CHUNK).lstrip(b"\0")
                if not data:
                    return
                if not data.startswith(_GZIP[: len(data)]):
                    self.notes.append("something else follows the packed data")
                    return
                unpack = zlib.decompressobj(31)
            elif not data and len(piece) < CHUNK:
                data = self._read(CHUNK)
                if not data:
                    self.notes.append(f"the packed data ends too early, at byte {self.consumed:,}")
                    return


def _opened(file: Any) -> tuple[str, IO[bytes], bool]:
    if hasattr(file, "read"):
        return str(getattr(file, "name", "") or "the file"), file, False
    if isinstance(file, (bytes, bytearray)) and file[:1] in (b"{", b"[", b"\x1f"):
        return "the bytes", io.BytesIO(file), True
    path = os.fspath(file)
    name = os.fsdecode(path)
    if os.path.isdir(path):
        raise NotATraceError(f"{name}: a directory, not a trace file")
    return name, open(path, "rb"), True


def _size(file: Any) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except (OSError, AttributeError, ValueError, TypeError):
        return None


Advance = Callable[[int, "int | None"], None]
