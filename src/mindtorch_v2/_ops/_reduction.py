"""What reductions of all kinds share: the reduction of an array, the shape of its result, and a gradient with its dimensions back."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dims
from ._children import UNKNOWN, tensor


def reduce_array(ufunc: Any, array: np.ndarray, dims: Any, keepdim: bool, dtype: Any = None) -> Any:
    """A reduction whose result is contiguous, as torch's are; NumPy's keep the memory order of their input."""
    result = ufunc.reduce(array, axis=dims, dtype=dtype, keepdims=keepdim)
    return result if result.ndim < 2 or result.flags.c_contiguous else _dims.dense(result)


def restore(g: Any, dims: Any, keepdim: bool, shape: Any) -> Any:
    """A reduced gradient with its dimensions back, each of length 1."""
    if keepdim or not shape:
        return g
    dims = _dims.many(dims, len(shape))
    if len(dims) == 1:
        return g.unsqueeze(dims[0])
    for d in sorted(dims):
        g = g.unsqueeze(d)
    return g


def reduced(self: Any, dim: Any, keepdim: Any) -> Any:
    """A described tensor, reduced along dimensions."""
    if self is UNKNOWN:
        return UNKNOWN
    dims = _dims.many(dim, len(self.shape))
    return tensor([1 if d in dims else n for d, n in enumerate(self.shape) if keepdim or d not in dims], self)
