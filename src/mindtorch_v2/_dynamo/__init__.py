"""torch._dynamo: the functions of the compiler's front end that programs call. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import config

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "optimize",
    "reset",
]


def reset() -> None:
    """Discard compiled code; there is none."""


def is_compiling() -> bool:
    """Whether code is being compiled: never."""
    return False


def disable(
    fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Return `fn` unchanged: nothing is compiled. Without `fn`, a decorator."""
    return _unchanged if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return `fn` unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Mark a function whose result a compiler may keep; `fn` itself runs at every call here."""
    fn._dynamo_marked_constant = True
    return fn


def graph_break(msg: str = "") -> None:
    """End a compiled region; there is none."""


def mark_dynamic(
    t: Any,
    index: Any,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Any = None,
) -> None:
    """Declare that a dimension varies between calls; no effect in eager mode."""


def mark_static(t: Any, index: Any = None) -> None:
    """Declare that a dimension never varies; no effect in eager mode."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The available compilers: none."""
    return []


def optimize(*args: Any, **kwargs: Any) -> Callable:
    """A decorator that returns its function unchanged, with one warning."""
    from .._compile import warn_eager

    warn_eager("torch._dynamo.optimize")
    return _unchanged


def _unchanged(fn: Any) -> Any:
    return fn
