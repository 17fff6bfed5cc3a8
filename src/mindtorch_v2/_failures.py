"""Exceptions of devices, which nothing here raises: they exist so that programs can catch them. And `torch._assert`."""

from __future__ import annotations

from typing import Any


class OutOfMemoryError(RuntimeError):
    """A device has no memory left."""


class AcceleratorError(RuntimeError):
    """An accelerator reports a failure."""


for _error in (OutOfMemoryError, AcceleratorError):
    _error.__module__ = "torch"


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds; classes with `__torch_function__` can override it."""
    from .overrides import handle_torch_function, has_torch_function_unary

    if has_torch_function_unary(condition):
        handle_torch_function(_assert, (condition,), condition, message)
        return
    if not condition:
        raise AssertionError(message)
