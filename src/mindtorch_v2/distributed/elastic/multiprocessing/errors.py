"""torch.distributed.elastic.multiprocessing.errors: errors of child processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def record(fn: _F, error_handler: Any = None) -> _F:
    """The function as it is: its error ends the process, and the launcher reports the exit code."""
    return fn


class ChildFailedError(RuntimeError):
    """A child process failed."""
