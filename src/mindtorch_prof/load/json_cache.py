"""The cache of a large JSON file: its path in; the Trace that was read from it before out, if it is still the same file.

A native file beside the JSON (`.NAME.cache.mtrace`), made only where it is asked for (`load(path, cache=True)`, `--cache`, MINDTORCH_CACHE=1).
It says which file it was made from: size, time of the last change, a hash of the first and the last bytes, and the version of the
reader. It is used only if all of that is still so, its checksums are right, and nobody can have written it who could not have written the
JSON. In all other cases the JSON is read, and the cache written anew. No fault of a cache is an error.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from ..files import open_cache_file
from ..native_file import SUFFIX, write_native_to
from ..trace import Trace
from ..version import __version__
from .byte_source import Limits, PathOrFile
from .errors import TraceError
from .native import NativeFile, read_native_from

VARIABLE = "MINDTORCH_CACHE"
READER = f"{__version__}/1"  # the number after the slash rises where the same file gives another Trace
SMALLEST = 1 << 20  # bytes: smaller files are read fast enough
_HASHED = 64 << 10  # bytes at the beginning and the end
_SETTLED_S = (
    2.0  # a file that changed later may change again without another time: clocks of file systems are coarse
)


class CacheUse(NamedTuple):
    """What a cache did for a file that was opened."""

    state: str  # "read": the trace is the cache's; "written": of the JSON, which has a cache now; "none": of the JSON
    path: str  # of the cache
    note: str = ""  # why a cache was not used or not written; for people


class JsonCache:
    """The cache of one file."""

    def __init__(self, path: str) -> None:
        folder, name = os.path.split(os.path.realpath(path))
        self._source = path
        self.path = os.path.join(folder, f".{name}.cache{SUFFIX}")
        self._key, self._stat = _identity(path)
        self._note = ""

    def read(self) -> NativeFile | None:
        """The trace in the cache; None: there is none, or it may not be used."""
        try:
            with _opened(self.path) as file:
                stranger = _foreign_writer(os.fstat(file.fileno()), self._stat)
                if stranger:
                    self._note = f"the cache {self.path} is not used: {stranger}"
                    return None
                native = read_native_from(file, self.path, whole=True)
        except FileNotFoundError:
            return None
        except (OSError, TraceError) as error:
            self._note = (
                f"the cache of {self._source} cannot be used, the file itself was read ({_reason(error)})"
            )
            return None
        return native if native.made_from == self._key else None

    def write(self, trace: Trace, shown: Mapping[str, bool]) -> CacheUse:
        """Keep a trace that was read from the file after this object was made."""
        if time.time() - self._stat.st_mtime < _SETTLED_S:
            return self._none("it changed a moment ago")
        try:
            if _identity(self._source)[0] != self._key:
                return self._none("it changed while it was read")
            with open_cache_file(self.path, like=self._stat) as out:
                write_native_to(out, trace, shown, self._key)
        except Exception as error:  # whatever it is: the trace has been read
            return self._none(_reason(error))
        return CacheUse("written", self.path, self._note)

    def _none(self, reason: str) -> CacheUse:
        note = f"no cache of {self._source} was written: {reason}"
        return CacheUse("none", self.path, "; ".join(filter(None, (self._note, note))))


def cache_of(file: PathOrFile, wanted: bool | None, limits: Limits) -> JsonCache | None:
    """The cache of a file; None where none is wanted (as the environment says, if that is None), or the file has none: it is small, has no
    path, or is read with other limits."""
    if wanted is None:
        wanted = os.environ.get(VARIABLE, "").lower() not in ("", "0", "no", "off", "false")
    if not wanted or limits != Limits() or not isinstance(file, (str, os.PathLike)):
        return None
    with suppress(OSError):  # said where the file is opened
        path = os.fsdecode(file)
        if os.path.isfile(path) and os.path.getsize(path) >= SMALLEST:
            return JsonCache(path)
    return None


def _identity(path: str) -> tuple[dict[str, object], os.stat_result]:
    """What a cache says of the file that it was made from, and the file's status."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        digest = hashlib.blake2b(file.read(_HASHED), digest_size=20)
        file.seek(max(status.st_size - _HASHED, 0))
        digest.update(file.read(_HASHED))
    key = {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "hash": digest.hexdigest(),
        "reader": READER,
    }
    return key, status


def _opened(path: str) -> BinaryIO:
    """Open a cache: a regular file, no link, and no pipe that one would wait for."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return open(os.open(path, flags), "rb")


def _foreign_writer(cache: os.stat_result, source: os.stat_result) -> str:
    """Why somebody may have written a cache who could not write the file that it stands for; empty: nobody else can have."""
    if not stat.S_ISREG(cache.st_mode):
        return "it is no regular file"
    if hasattr(os, "geteuid") and cache.st_uid not in (os.geteuid(), source.st_uid):
        return "it belongs to another user"
    if os.name == "posix" and cache.st_mode & ~source.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others may write it"
    return ""


def _reason(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
    return " ".join(text.split())
