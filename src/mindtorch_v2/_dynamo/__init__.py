"""torch._dynamo: the functions of the compiler's front end that programs call. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import config, exc, utils

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "exc",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "utils",
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


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Declare that a tensor's memory never moves; no effect in eager mode."""


def reset_code_caches() -> None:
    """Discard compiled code; there is none."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Declare that a dimension may vary between calls; no effect in eager mode."""


def __getattr__(name: str) -> Any:
    if name in ("OptimizedModule", "eval_frame"):  # imported late: it needs torch.nn
        from importlib import import_module

        module = import_module(".eval_frame", __name__)
        return module if name == "eval_frame" else module.OptimizedModule
    raise AttributeError(f"module 'torch._dynamo' has no attribute '{name}'")


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
