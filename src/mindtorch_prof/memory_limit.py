"""A limit for the memory of this process: a number of bytes in; a MemoryError where more would be needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .number_formats import format_memory


@contextmanager
def memory_limit(size: int | None) -> Iterator[None]:
    """Within this context, more memory than `size` bytes (program, columns and buffers; not mapped files) is a MemoryError. None: no limit.

    Processes that are started in it have the same limit each.
    """
    if size is None:
        yield
        return
    try:
        import resource
    except ImportError:
        raise MemoryError(f"memory cannot be limited on {sys.platform}") from None
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = [limit for limit in (size, before, most) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), most))
    try:
        yield
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise MemoryError("no memory for a thread") from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def memory_sentence(size: int | None, error: MemoryError) -> str:
    """What to say of a MemoryError."""
    if size is None:
        return "the machine has not enough memory for this; `slice` cuts a part out of a trace"
    if "cannot be limited" in str(error):
        return f"--max-memory: {error}"
    return f"more memory is needed than --max-memory allows ({format_memory(size)}); `slice` cuts a part out of a trace"
