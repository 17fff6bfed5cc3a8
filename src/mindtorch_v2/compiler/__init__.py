"""torch.compiler: queries about a compiler that does not exist here, and decorators that return their
function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _compile

__all__ = [
    "compile",
    "assume_constant_result",
    "reset",
    "allow_in_graph",
    "list_backends",
    "disable",
    "set_stance",
    "cudagraph_mark_step_begin",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "nested_compile_region",
]


def compile(*args: Any, **kwargs: Any) -> Any:
    """The same as `torch.compile`."""
    return _compile.compile(*args, **kwargs)


def reset() -> None:
    """Discard compiled code; there is none."""


def is_compiling() -> bool:
    """Whether code is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether code is being captured: never."""
    return False


def is_exporting() -> bool:
    """Whether code is being exported: never."""
    return False


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return `fn` unchanged: nothing is compiled. Without `fn`, a decorator."""
    return _unchanged if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return `fn` unchanged."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return `fn` unchanged."""
    return fn


def nested_compile_region(
    fn: Callable | None = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """Return `fn` unchanged. Without `fn`, a decorator."""
    return _unchanged if fn is None else fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The available compilers: none."""
    return []


def cudagraph_mark_step_begin() -> None:
    """Mark a step for CUDA graphs; no effect."""


class set_stance:
    """Set how compiled code behaves, as a call or a context manager; all stances mean eager here."""

    _STANCES = (
        "default",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
        "eager_then_compile",
        "aot_eager_then_compile",
    )

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        return None

    def __call__(self, fn: Any) -> Any:
        return fn


def _unchanged(fn: Any) -> Any:
    return fn
