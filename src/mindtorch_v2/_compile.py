"""torch.compile: a function or module in, the same out, with one warning. Nothing is compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_warned: set[str] = set()


def warn_eager(feature: str) -> None:
    """Say once in a process that a feature runs eagerly."""
    if feature not in _warned:
        _warned.add(feature)
        warnings.warn(
            f"{feature}: this library has no compiler, so the code runs eagerly, with the same results.",
            UserWarning,
            stacklevel=3,
        )


def compile(
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """`model` as it is (a module inside an `OptimizedModule`, as in torch); without it, a decorator."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if disable:
        return _unchanged if model is None else model
    warn_eager("torch.compile")
    return _wrapped if model is None else _wrapped(model)


def _unchanged(model: Any) -> Any:
    return model


def _wrapped(model: Any) -> Any:
    from .nn import Module

    if isinstance(model, Module):
        from ._dynamo.eval_frame import OptimizedModule

        return OptimizedModule(model)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model
