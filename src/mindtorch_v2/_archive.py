"""The zip container of a checkpoint: named records read from a file or written to one. Their contents are not interpreted.

Records are stored uncompressed, their bytes aligned, under one top directory. Reading takes no more memory
than the file is long: compressed records and records that overlap raise an error.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

import numpy as np

ALIGNMENT = 64
MAX_VERSION = 10

_BROKEN = (
    " This is an internal miniz error. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64, _LOCATOR64 = b"PK\x06\x06", b"PK\x06\x07"
_BIG = 0xFFFFFFFF
_FLAGS = 0x0800  # names are UTF-8
_DATE = 0x21  # 1 January 1980: archives carry no time


def is_archive(file: IO[bytes]) -> bool:
    """Whether a zip archive begins at the file's position, which is restored."""
    start = file.tell()
    magic = file.read(4)
    if not isinstance(magic, bytes):
        raise AssertionError(f"Expected bytes, got {type(magic).__name__}")
    file.seek(start)
    return magic == _LOCAL


class Reader:
    """The records of an archive that begins at the file's position."""

    def __init__(self, file: IO[bytes], map_from: str | None = None, map_shared: bool = False) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
            entries = self._zip.infolist()
        except (zipfile.BadZipFile, ValueError, struct.error, OSError, NotImplementedError) as error:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory." + _BROKEN
            ) from error
        self._length = file.seek(0, io.SEEK_END)
        if sum(entry.file_size for entry in entries) > self._length:
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: its records are together longer than the "
                "file." + _BROKEN
            )
        top = entries[0].filename.partition("/")[0] if entries else ""
        self._entries = {
            entry.filename.removeprefix(top + "/"): entry
            for entry in entries
            if entry.filename.startswith(top + "/")
        }
        self._map = _map_file(map_from, map_shared) if map_from is not None else None
        self._check_version()

    def _check_version(self) -> None:
        name = next((n for n in (".data/version", "version") if n in self), None)
        if name is None:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this error message be '
                "improved?  If so, please report an enhancement request to PyTorch.)"
            )
        try:
            version = int(self.read(name))
        except ValueError as error:
            raise RuntimeError(f"Couldn't parse the version of the archive: {error}") from error
        if version > MAX_VERSION:
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the maximum supported version "
                f"for reading is {MAX_VERSION}. The version of your PyTorch installation may be too old, "
                "please upgrade PyTorch to latest version to mitigate this issue."
            )

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self) -> list[str]:
        """The names of all records."""
        return list(self._entries)

    def _place(self, name: str) -> tuple[int, int]:
        """Where a record's bytes begin in the file, and how many they are."""
        entry = self._entries.get(name)
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found." + _BROKEN)
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is compressed." + _BROKEN)
        self._file.seek(entry.header_offset)
        header = self._file.read(30)
        if len(header) < 30 or header[:4] != _LOCAL:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: invalid header." + _BROKEN)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        start = entry.header_offset + 30 + name_length + extra_length
        if start + entry.file_size > self._length:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is cut off." + _BROKEN)
        return start, entry.file_size

    def size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._place(name)[1]

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        start, size = self._place(name)
        self._file.seek(start)
        return self._file.read(size)

    def read_array(self, name: str) -> np.ndarray:
        """A record's bytes in memory of its own (or in the mapped file), writable."""
        start, size = self._place(name)
        if self._map is not None:
            return self._map[start : start + size]
        array = np.empty(size, np.uint8)
        self._file.seek(start)
        if hasattr(self._file, "readinto"):
            filled, view = 0, array.data
            while filled < size:
                n = self._file.readinto(view[filled:])
                if not n:
                    break
                filled += n
        else:
            data = self._file.read(size)
            filled = len(data)
            array[:filled] = np.frombuffer(data, np.uint8)
        if filled < size:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is cut off." + _BROKEN)
        return array


def _map_file(path: str, shared: bool) -> np.ndarray:
    with open(path, "rb+" if shared else "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    return np.frombuffer(mapped, np.uint8)


class Writer:
    """Writes records one after another; `close` adds the directory. The sink needs only `write`."""

    def __init__(self, write: Callable[[Any], Any], top: str, checksums: bool = True) -> None:
        self._write, self._top, self._checksums = write, top, checksums
        self._offset = 0
        self._directory: list[bytes] = []
        self._sum = 0

    def _put(self, data: Any) -> None:
        self._write(data)
        self._offset += len(data)

    def add(self, name: str, data: Any, alignment: int = ALIGNMENT) -> None:
        """Write one record; `data` is bytes or a uint8 array."""
        raw = memoryview(data).cast("B") if len(data) else memoryview(b"")
        full = f"{self._top}/{name}".encode()
        size, start = len(raw), self._offset
        checksum = zlib.crc32(raw) if self._checksums else 0
        self._sum = zlib.crc32(full + struct.pack("<I", checksum), self._sum)
        big = struct.pack("<HHQQ", 1, 16, size, size) if size >= _BIG else b""
        fixed = start + 30 + len(full) + len(big)
        extra = big + _padding(-(fixed + 4) % alignment)
        short = _BIG if big else size
        common = struct.pack(
            "<HHHHHIIIHH", 45, _FLAGS, 0, 0, _DATE, checksum, short, short, len(full), len(extra)
        )
        self._put(_LOCAL + common + full + extra)
        self._put(raw)
        self._directory.append(_directory_entry(full, checksum, size, start))

    def close(self, identify: bool = True) -> None:
        """Write the record that identifies the archive, then the directory."""
        if identify:
            self.add(".data/serialization_id", f"{len(self._directory):020d}{self._sum:020d}".encode())
        start = self._offset
        for entry in self._directory:
            self._put(entry)
        length, count = self._offset - start, len(self._directory)
        if start >= _BIG or count >= 0xFFFF:
            place = self._offset
            self._put(_END64 + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, start))
            self._put(_LOCATOR64 + struct.pack("<IQI", 0, place, 1))
        count, length, start = min(count, 0xFFFF), min(length, _BIG), min(start, _BIG)
        self._put(_END + struct.pack("<HHHHIIH", 0, 0, count, count, length, start, 0))


def _padding(length: int) -> bytes:
    """An extra field of `length` bytes after its own four, as torch marks its padding."""
    return b"FB" + struct.pack("<H", length) + b"Z" * length


def _directory_entry(name: bytes, checksum: int, size: int, start: int) -> bytes:
    big = [n for n in (size, size, start) if n >= _BIG]
    extra = struct.pack(f"<HH{len(big)}Q", 1, 8 * len(big), *big) if big else b""
    short, place = min(size, _BIG), min(start, _BIG)
    fields = (45, 45, _FLAGS, 0, 0, _DATE, checksum, short, short, len(name), len(extra), 0, 0, 0, 0, place)
    return _CENTRAL + struct.pack("<HHHHHHIIIHHHHHII", *fields) + name + extra


def top_name(path: str | os.PathLike[str]) -> str:
    """The top directory of an archive at `path`, as torch names it: the file's name without its extension."""
    name = os.path.basename(os.fspath(path))
    stem, dot, _ = name.rpartition(".")
    return (stem if dot else name) or "archive"
