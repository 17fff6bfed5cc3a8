"""NVTX annotations: not installed without CUDA; every call raises as in torch's CPU build."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]


def _missing() -> RuntimeError:
    return RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


def range_push(msg: str) -> NoReturn:
    """Raises: NVTX is not installed."""
    raise _missing()


def range_pop() -> NoReturn:
    """Raises: NVTX is not installed."""
    raise _missing()


def range_start(msg: str) -> NoReturn:
    """Raises: NVTX is not installed."""
    raise _missing()


def range_end(range_id: int) -> NoReturn:
    """Raises: NVTX is not installed."""
    raise _missing()


def mark(msg: str) -> NoReturn:
    """Raises: NVTX is not installed."""
    raise _missing()


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Context manager: a named range. Raises on entry: NVTX is not installed."""
    range_push(msg.format(*args, **kwargs))
    yield
