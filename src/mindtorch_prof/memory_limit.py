"""A limit for the memory of this process: a number of bytes in; a MemoryError where more would be needed."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .number_formats import format_memory

# Bytes that must be left at the beginning: importing modules with less fails in many ways, not all of which tell that memory is short.
_LEAST = 16 << 20


@contextmanager
def memory_limit(size: int | None, load: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this context, more memory than `size` bytes (program, columns and buffers; not mapped files) is a MemoryError. None: no limit.

    Processes that are started in it have the same limit each. load: imports libraries for linear algebra besides NumPy's, if they will be
    needed; called before the limit.
    """
    if size is None:
        yield
        return
    try:
        import resource
    except ImportError:
        raise MemoryError(f"memory cannot be limited on {sys.platform}") from None
    # Before the limit: OpenBLAS ends the process, or tries again for ever, if it gets too little memory while it is loaded.
    import numpy as np  # noqa: F401

    load()
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [limit for limit in (size, before, most) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), most))
    try:
        bytearray(_LEAST)
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or not _is_of_memory(error):
            raise
        raise MemoryError(str(error)) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether memory that could not be had led to an error: threads, maps and imports have errors of their own for that."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if any(words in str(error) for words in ("can't start new thread", "Cannot allocate memory")):
            return True
        error = error.__cause__ or error.__context__
    return False


def memory_sentence(size: int | None, error: MemoryError) -> str:
    """What to say of a MemoryError."""
    if size is None:
        return "the machine has not enough memory for this; `slice` cuts a part out of a trace"
    if "cannot be limited" in str(error):
        return f"--max-memory: {error}"
    return f"more memory is needed than --max-memory allows ({format_memory(size)}); `slice` cuts a part out of a trace"
