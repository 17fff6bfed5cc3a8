"""Kernels of in-place ops such as `add_`, which refuse an operand that partly overlaps the tensor that is written.

The ops that give new tensors need no such check and use the plain kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._tensor_slots import address
from ._layout import is_dense

ndarray = np.ndarray
TEXT = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() "
    "the tensor before performing the operation."
)


def check(out: np.ndarray, other: np.ndarray) -> None:
    """Raise torch's error where two arrays of one memory overlap, unless they are the same elements."""
    same_form = other.strides == out.strides and other.shape == out.shape
    if same_form and address(other) == address(out):
        return
    if not (is_dense(out) and is_dense(other)):
        return  # torch does not check further either
    if np.may_share_memory(out, other):
        raise RuntimeError(TEXT)


def scaled_into(ufunc: Any, kernel: Any) -> Any:
    """The kernel of `add_` or `sub_`; only a view that is written can overlap. `kernel` handles bools."""

    def write(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
        if out is None or alpha != 1 or self.dtype.kind == "b":
            if out is not None and out.base is not None and other.__class__ is ndarray:
                ask(out, other)
            return kernel(self, other, alpha, out)
        if out.base is not None and other.__class__ is ndarray:
            ask(out, other)
        return ufunc(self, other, out)

    return write


def multiplied_into(ufunc: Any, kernel: Any) -> Any:
    """The kernel of `mul_` or `div_`."""

    def write(self: Any, other: Any, out: Any = None) -> Any:
        if other.__class__ is not ndarray:
            return kernel(self, other, out)
        if out is not None and out.base is not None:
            ask(out, other)
        return ufunc(self, other, out)

    return write


def ask(out: np.ndarray, other: np.ndarray) -> None:
    """Check for overlap if both arrays use the same memory."""
    base = other.base
    if base is None:
        if out.base is other:
            check(out, other)
    elif base is out.base:
        check(out, other)
