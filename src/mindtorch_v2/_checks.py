"""Checks of conditions that raise: torch._assert, torch._check and their kin. Conditions in, exceptions out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._dtype import bool_ as BOOL
from ._tensor import Tensor

_Message = Callable[[], Any] | None


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds; classes with `__torch_function__` can override it."""
    from .overrides import handle_torch_function, has_torch_function_unary

    if has_torch_function_unary(condition):
        handle_torch_function(_assert, (condition,), condition, message)
        return
    if not condition:
        raise AssertionError(message)


def _assert_async(condition: Tensor, assert_msg: str | None = None) -> None:
    """Raise a RuntimeError unless the only element of a tensor is not zero."""
    if not condition:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _check_with(error_type: type[Exception], cond: Any, message: _Message) -> None:
    """Raise an error of a type, with the text that `message` returns, unless the condition holds."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(
            "Expected cond to be True, but got False. (Could this error message be improved? If so, "
            "please report an enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: _Message = None) -> None:
    """Raise a RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: _Message = None) -> None:
    """Raise an IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: _Message = None) -> None:
    """Raise a ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: _Message = None) -> None:
    """Raise a TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: _Message = None) -> None:
    """Raise a NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: int | None = None) -> None:
    """Raise a RuntimeError unless a number can be a size."""
    _check_with(RuntimeError, i >= 0, message)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: _Message = None) -> None:
    """Raise an error of a type unless all elements of a bool tensor are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not BOOL:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: _Message = None) -> None:
    """Raise a RuntimeError unless all elements of a bool tensor are True."""
    _check_tensor_all_with(RuntimeError, cond, message)
