"""A mask and two arrays or numbers in, the elements that the mask chooses out: `np.where` without a branch per element."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core

_LEAST = 1024  # elements; fewer are chosen by NumPy, which takes 5 ns for each


def _typed_as(other: Any, value: Any) -> Any:
    """A value as an array; a Python number beside a floating-point array has its dtype."""
    if value.__class__ in (int, float) and other.__class__ is np.ndarray and other.dtype.char in "efd":
        return np.asarray(value, other.dtype)
    return np.asarray(value)


def where(mask: Any, yes: Any, no: Any) -> Any:
    """`np.where(mask, yes, no)`."""
    if mask.size < _LEAST:
        return np.where(mask, yes, no)
    fused = _core.select(mask, _typed_as(no, yes), _typed_as(yes, no))
    return np.where(mask, yes, no) if fused is None else fused
