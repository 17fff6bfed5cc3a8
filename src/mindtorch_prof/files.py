"""Files that are written: a path in, an open binary file out. The file is written under a temporary name and renamed at the end.

Whatever happens while it is written (an error, a full disk, a kill), the file of that name is the old one or the complete new one.
A killed process leaves its temporary file; the next export to the same path removes it.
"""

from __future__ import annotations

import glob
import gzip
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, cast

if sys.platform != "win32":
    import fcntl

# gzip's own default: real traces are 20 to 40 % smaller than at level 1, in 2.5 times the time
GZIP_LEVEL = 6
_STREAM = re.compile(r"/dev/(?:(stdin|stdout|stderr)|fd/(\d+))|/proc/self/fd/(\d+)")
_TEMPORARY_AGE_S = 10  # temporary files that are younger may be about to be locked


@contextmanager
def open_for_export(path: str | os.PathLike[str], *, exclusive: bool = False) -> Iterator[IO[bytes]]:
    """Open `path` for writing; `.gz` compresses. Readers see the old file or the complete new one.

    exclusive: raise FileExistsError rather than replace a file.
    """
    with open_atomically(path, exclusive=exclusive) as out, _compressed(out, os.fspath(path)) as packed:
        yield packed


@contextmanager
def open_atomically(path: str | os.PathLike[str], *, exclusive: bool = False) -> Iterator[IO[bytes]]:
    """Open `path` for writing, as it is. Pipes and streams such as /dev/stdout are written to directly."""
    target = os.fspath(path)
    if exclusive and os.path.lexists(target):
        raise FileExistsError(f"{target}: exists already; expected a new name")
    stream = _stream_number(target)
    if stream is not None:  # opening it anew would write over what the stream's file holds
        with os.fdopen(os.dup(stream), "wb") as out:
            yield out
        return
    final = os.path.realpath(target)  # of a symbolic link, the file it points to is replaced
    if os.path.exists(final) and not os.path.isfile(final):  # a pipe: nothing to rename
        with open(final, "wb") as out:
            yield out
        return
    try:
        with _replacement(final, exclusive=exclusive, like=_stat(final)) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())  # else a crash of the machine may leave the new name with no content
    except _NoTemporaryFile as failure:
        error = failure.error
        if not isinstance(error, PermissionError):
            raise type(error)(error.errno, error.strerror, target) from None  # the name that the caller knows
        if not os.path.isfile(final) or exclusive:
            raise error from None
        with open(final, "wb") as out:  # a file that may be written in a folder that may not
            yield out


@contextmanager
def open_cache_file(path: str, *, like: os.stat_result) -> Iterator[IO[bytes]]:
    """Open a file that can be made again at any time for writing. Nobody may read it who may not read the file that it is made of (`like`).
    Readers see the old one or the complete new one; a link of that name is replaced, never followed. OSError where the folder cannot be
    written."""
    try:
        with _replacement(path, exclusive=False, like=None) as out:
            if hasattr(os, "fchmod"):
                mode = stat.S_IMODE(like.st_mode) & 0o666
                with suppress(OSError):  # a group that is not the user's
                    os.fchown(out.fileno(), -1, like.st_gid)
                if os.fstat(out.fileno()).st_gid != like.st_gid:
                    mode &= ~0o070 | (mode & 0o007) << 3
                os.fchmod(out.fileno(), mode | stat.S_IRUSR | stat.S_IWUSR)
            yield out
    except _NoTemporaryFile as failure:
        raise failure.error from None


class _NoTemporaryFile(Exception):
    """A temporary file cannot be made."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _replacement(final: str, *, exclusive: bool, like: os.stat_result | None) -> Iterator[IO[bytes]]:
    """A temporary file that becomes `final` at the end, with the permissions of another file; removed after an error."""
    _remove_leftovers(final)
    temporary = f"{final}.{os.urandom(6).hex()}.tmp"
    try:
        out = open(temporary, "xb")  # noqa: SIM115 (closed below, before the file is renamed)
    except OSError as error:
        raise _NoTemporaryFile(error) from None
    try:
        with out:
            _prepare(out, like)
            yield out
        if exclusive:
            os.link(temporary, final)
        else:
            os.replace(temporary, final)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _stat(path: str) -> os.stat_result | None:
    with suppress(FileNotFoundError, PermissionError):
        return os.stat(path)
    return None


def _prepare(out: IO[bytes], like: os.stat_result | None) -> None:
    """Lock a temporary file, so that nobody takes it for a leftover, and give it the permissions of another file."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # a file system without locks
        fcntl.flock(out.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    if like is None:
        return
    with suppress(PermissionError):
        if like.st_uid == os.geteuid():
            with suppress(PermissionError):
                os.fchown(out.fileno(), -1, like.st_gid)
        os.fchmod(out.fileno(), stat.S_IMODE(like.st_mode))


def _remove_leftovers(final: str) -> None:
    """Remove the temporary files of exports to this path whose processes were killed: nobody holds their locks."""
    if sys.platform == "win32":
        return
    for path in glob.glob(f"{glob.escape(final)}.{'[0-9a-f]' * 12}.tmp"):
        with suppress(OSError):  # locked, gone, or somebody else's
            if time.time() - os.stat(path).st_mtime > _TEMPORARY_AGE_S:
                with open(path, "rb+") as leftover:
                    fcntl.flock(leftover.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for the standard output of this process."""
    match = _STREAM.fullmatch(os.fspath(path))
    return match is not None and "1" in match.groups()[1:] + ("1" if match[1] == "stdout" else "",)


def _stream_number(path: str) -> int | None:
    """The file descriptor that a path such as /dev/stdout stands for; None for other paths."""
    match = _STREAM.fullmatch(path)
    if match is None:
        return None
    name, *numbers = match.groups()
    if name is not None:
        if name == "stdout" and sys.stdout is not None:
            sys.stdout.flush()  # what was printed before comes first
        return {"stdin": 0, "stdout": 1, "stderr": 2}[name]
    return int(next(number for number in numbers if number is not None))


@contextmanager
def _compressed(out: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    if not path.endswith(".gz"):
        yield out
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=out, mtime=0) as packed:
        yield cast("IO[bytes]", packed)  # has its methods, but not its base class
