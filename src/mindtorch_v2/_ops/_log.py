"""log and log1p of float32 arrays: arrays in, new arrays out. The twin of the compiled loops, which do the same operations in the same order.

log(2^e (1 + f)) = e log(2) + log(1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and a polynomial that was fitted to log(1 + f) by
reweighted least squares: within 1 unit in the last place. NumPy's log1p takes 19 ns per number, the compiled loop 1. Other dtypes take NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._exp import written

_P = [
    np.float32(c)
    for c in (
        0.0674649178981781, -0.11675615608692169, 0.11888211220502853, -0.12405597418546677, 0.142195463180542,
        -0.16667994856834412, 0.2000211924314499, -0.25000008940696716, 0.3333331346511841,
    )
]  # fmt: skip
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROOT_HALF_BITS = np.uint32(0x3F3504F3)
_LEAST_NORMAL = np.float32(1.17549435e-38)


def log(x: np.ndarray, out: Any = None) -> Any:
    """log of every element."""
    if x.dtype != np.float32:
        return np.log(x, out)
    fused = _core.log(x)
    return written(_log(x) if fused is None else fused, out)


def log1p(x: np.ndarray, out: Any = None) -> Any:
    """log(1 + x) of every element."""
    if x.dtype != np.float32:
        return np.log1p(x, out)
    fused = _core.log1p(x)
    return written(_log1p(x) if fused is None else fused, out)


def _log_of_parts(u: np.ndarray, rest: Any, more_exponent: Any) -> np.ndarray:
    """log(u) + rest for positive normal numbers."""
    bits = np.asarray(u).view(np.uint32)
    exponent = (bits - _ROOT_HALF_BITS).view(np.int32) >> 23
    f = (bits - (exponent.view(np.uint32) << 23)).view(np.float32) - np.float32(1)
    e = exponent.astype(np.float32) + more_exponent
    square = f * f
    p = f * _P[0]
    for coefficient in _P[1:-1]:
        p = (p + coefficient) * f
    p = (p + _P[-1]) * (f * square)
    p = p + e * _LN2_LOW
    p = p - square * np.float32(0.5)
    p = p + rest
    return np.asarray((f + p) + e * _LN2_HIGH)


def _log(x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        small = x < _LEAST_NORMAL
        scaled = np.where(small, x * np.float32(33554432), x)
        result = _log_of_parts(scaled, np.float32(0), np.where(small, np.float32(-25), np.float32(0)))
        return _with_limits(x, result, np.float32(0))


def _log1p(x: np.ndarray) -> np.ndarray:
    one = np.float32(1)
    with np.errstate(all="ignore"):
        u = np.asarray(one + x)
        lost = np.where(x >= 1, one - (u - x), x - (u - one))
        result = np.where(x == 0, x, _log_of_parts(u, lost / u, np.float32(0)))
        return _with_limits(x, result, np.float32(-1))


def _with_limits(x: np.ndarray, result: np.ndarray, pole: np.float32) -> np.ndarray:
    """The result, but what it is at and below the pole, at infinity, and of NaN."""
    result = np.where(x == pole, np.float32(-np.inf), result)
    result = np.where(x < pole, np.float32(np.nan), result)
    return np.where(x < np.inf, result, x)
