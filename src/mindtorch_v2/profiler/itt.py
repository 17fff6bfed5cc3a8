"""torch.profiler.itt: ranges and marks for Intel's tools. They are recorded as annotations; Intel's ITT library is not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .record_function import record_function

__all__ = ["is_available", "range_push", "range_pop", "mark", "range"]

_open: list[record_function] = []


def is_available() -> bool:
    """False: Intel's ITT library is not used."""
    return False


def range_push(msg: str) -> None:
    """Open a range inside those that are open."""
    span = record_function(msg)
    span.__enter__()
    _open.append(span)


def range_pop() -> None:
    """Close the range that was opened last."""
    if _open:
        _open.pop().__exit__(None, None, None)


def mark(msg: str) -> None:
    """Record an annotation without duration."""
    with record_function(msg):
        pass


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block; arguments are formatted into its name."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
