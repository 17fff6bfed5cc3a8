"""Files for exports: a path in, an open binary file out. The file is written under a temporary name and renamed at the end."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

GZIP_LEVEL = 1  # level 9 takes ten times as long for files that are a third smaller


@contextmanager
def open_for_export(path: str | os.PathLike[str], *, exclusive: bool = False) -> Iterator[IO[bytes]]:
    """Open `path` for writing; `.gz` compresses. Readers see the old file or the complete new one.

    exclusive: raise FileExistsError rather than replace a file.
    """
    target = os.fspath(path)
    if exclusive and os.path.lexists(target):
        raise FileExistsError(f"{target}: exists already; expected a new name")
    final = os.path.realpath(target)  # of a symbolic link, the file it points to is replaced
    if os.path.exists(target) and not os.path.isfile(target):
        with (
            open(target, "wb") as out,
            _compressed(out, target) as packed,
        ):  # a pipe or /dev/stdout: nothing to rename
            yield packed
        return
    temporary = f"{final}.{os.urandom(6).hex()}.tmp"
    done = False
    try:
        with open(temporary, "xb") as out:
            with _compressed(out, target) as packed:
                yield packed
        if exclusive:
            os.link(temporary, final)
            os.unlink(temporary)
        else:
            os.replace(temporary, final)
        done = True
    finally:
        if not done and os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def _compressed(out: IO[bytes], path: str) -> Iterator[IO[bytes]]:
    if not path.endswith(".gz"):
        yield out
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=out, mtime=0) as packed:
        yield cast("IO[bytes]", packed)  # has its methods, but not its base class
