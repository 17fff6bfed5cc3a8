"""Operands of one dtype: arrays and numbers in, what a ufunc needs to give torch's result dtype out. Independent of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dtype
from ._dtype import Default

LOW_NUMS = frozenset(dtype.num for dtype in _dtype.LOW_FLOATS)


def promote_pair(a: np.ndarray, b: np.ndarray) -> tuple[Any, Any]:
    """Two arrays of one dtype, by torch's rules (a 0-dim tensor only lifts the category), and large ones in one order in memory."""
    if a.dtype == b.dtype:
        if a.flags.c_contiguous and b.flags.c_contiguous:
            return a, b
        from ._ops._layout import ordered_alike

        return a, ordered_alike(a, b)
    da, db = _dtype.BY_NUM[a.dtype.num], _dtype.BY_NUM[b.dtype.num]
    result = _dtype.result_dtype(((da, a.ndim == 0), (db, b.ndim == 0)))._np
    return (a if a.dtype is result else converted(a, result)), (
        b if b.dtype is result else converted(b, result)
    )


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in another dtype, in memory that is laid out as torch's `to` lays it out."""
    if array.flags.c_contiguous:
        return array.astype(dtype)
    from ._ops._layout import empty_as

    out = empty_as(array, dtype)
    np.copyto(out, array, casting="unsafe")
    return out


def promote_number(a: np.ndarray, value: Any) -> tuple[Any, Any]:
    """An array and a Python number, ready for a ufunc that gives torch's result dtype."""
    rank = _dtype.BY_NUM[a.dtype.num]._rank
    if rank == 2:
        if value.__class__ is float or not isinstance(value, complex):
            if a.dtype.num in LOW_NUMS:  # a Python float would lift bfloat16 to float32
                return a, a.dtype.type(value)
            return a, (
                value
                if value.__class__ in (float, int)
                else value.item()
                if hasattr(value, "item")
                else value
            )
        a = converted(a, _dtype.BY_NUM[a.dtype.num].to_complex()._np)
        rank = 3
    if rank == 3:
        return a, a.dtype.type(
            value
        ) if a.dtype.kind == "W" else value  # W: a Python number would lift complex32
    other = _dtype.number_dtype(value)
    if other._rank > rank:
        a = converted(a, other._np)
        is_low = a.dtype.num in LOW_NUMS or a.dtype.kind == "W"
        return a, a.dtype.type(value) if is_low else value  # a Python number would lift it
    if a.dtype is _dtype.NP_INT64 and -(1 << 63) <= value < 1 << 63:
        return a, int(value)
    return a, np.array(value).astype(a.dtype)


def _no_bools(a: np.ndarray, b: Any) -> None:
    second = b.__class__ in (bool, np.bool_) or (isinstance(b, np.ndarray) and b.dtype.kind == "b")
    if a.dtype.kind == "b" and second:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if a.dtype.kind == "b" or second:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


def promote_pair_to_subtract(a: np.ndarray, b: np.ndarray) -> tuple[Any, Any]:
    """`promote_pair`, but a bool is refused."""
    _no_bools(a, b)
    return promote_pair(a, b)


def promote_number_to_subtract(a: np.ndarray, value: Any) -> tuple[Any, Any]:
    """`promote_number`, but a bool is refused."""
    _no_bools(a, value)
    return promote_number(a, value)


def promote_factor(a: np.ndarray, value: Any) -> tuple[Any, Any]:
    """An array and a number to multiply or divide by; for half and bfloat16 the number stays a float32, as in torch."""
    if a.dtype.num in LOW_NUMS and not isinstance(value, complex):
        return a, np.float32(value)
    return promote_number(a, value)


def promote_all(*operands: Any) -> list[Any]:
    """Any mix of arrays and Python numbers, to one dtype."""
    kinds = [
        (_dtype.BY_NUM[x.dtype.num], x.ndim == 0)
        if isinstance(x, np.ndarray)
        else (_dtype.number_dtype(x), 2)
        for x in operands
    ]
    result = _dtype.result_dtype(kinds)._np
    arrays = [np.asarray(x) for x in operands]
    return [x if x.dtype is result else converted(x, result) for x in arrays]


def to_float(array: Any) -> Any:
    """Integers and bools as the default dtype."""
    return converted(array, Default.np)
