"""The exponential function of float32 arrays that the compiled loops share, and sigmoid: arrays in, new arrays out.

exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, and the polynomial of the Cephes library for exp(r): within 2 units in the last place.
NumPy's exp is as exact, but its loop cannot be part of another one. Other dtypes take NumPy's.
"""

from __future__ import annotations

import numpy as np

from . import _core

_TO_INTEGER = np.float32(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer
_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_P = [
    np.float32(c)
    for c in (
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1
    )
]  # fmt: skip


def exp(x: np.ndarray) -> np.ndarray:
    """exp of every element."""
    if x.dtype != np.float32:
        return np.exp(x)
    fused = _core.exp(x)
    return _exp(x) if fused is None else fused


def _exp(x: np.ndarray) -> np.ndarray:
    bounded = np.minimum(np.maximum(x, np.float32(-104)), np.float32(89))
    n = (bounded * _LOG2_E + _TO_INTEGER) - _TO_INTEGER
    r = bounded - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = r * _P[0]
    for coefficient in _P[1:-1]:
        p = (p + coefficient) * r
    p = (p + _P[-1]) * (r * r)
    p = (p + r) + np.float32(1)
    exponent = np.where(np.isnan(n), np.float32(0), n).astype(np.int32)
    half = exponent >> 1  # in two steps: the result may be a denormal number, or overflow
    with np.errstate(over="ignore", under="ignore"):
        scaled = p * ((half + 127) << 23).view(np.float32)
        return np.asarray(scaled * ((exponent - half + 127) << 23).view(np.float32))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of every element."""
    fused = _core.sigmoid(x)
    if fused is not None:
        return fused
    total = np.asarray(exp(np.asarray(np.negative(x))))
    np.add(total, 1, total)
    return np.reciprocal(total, total)
