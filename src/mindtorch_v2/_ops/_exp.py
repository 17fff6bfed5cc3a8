"""The exponential function of float32 arrays that the compiled loops share, expm1 and sigmoid: arrays in, new arrays out.

exp(x) = 2^n exp(r) with |r| <= ln(2) / 2, and the polynomial of the Cephes library for exp(r): within 2 units in the last place.
NumPy's exp is as exact, but its loop cannot be part of another one. Other dtypes take NumPy's.
"""

from __future__ import annotations

from typing import Any

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


def exp(x: np.ndarray, out: Any = None) -> Any:
    """exp of every element."""
    if x.dtype != np.float32:
        return np.exp(x, out)
    fused = _core.exp(x)
    return written(_exp(x) if fused is None else fused, out)


def written(result: np.ndarray, out: Any) -> np.ndarray:
    """A result, or `out` with its values."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def _reduced(x: np.ndarray, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """n and exp(r) - 1 for x within bounds."""
    bounded = np.minimum(np.maximum(x, np.float32(low)), np.float32(high))
    n = (bounded * _LOG2_E + _TO_INTEGER) - _TO_INTEGER
    r = bounded - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = r * _P[0]
    for coefficient in _P[1:-1]:
        p = (p + coefficient) * r
    p = (p + _P[-1]) * (r * r)
    return np.where(np.isnan(n), np.float32(0), n).astype(np.int32), p + r


def _exp(x: np.ndarray) -> np.ndarray:
    exponent, p = _reduced(x, -104, 89)
    p = p + np.float32(1)
    half = exponent >> 1  # in two steps: the result may be a denormal number, or overflow
    with np.errstate(over="ignore", under="ignore"):
        scaled = p * ((half + 127) << 23).view(np.float32)
        return np.asarray(scaled * ((exponent - half + 127) << 23).view(np.float32))


def expm1(x: np.ndarray, out: Any = None) -> Any:
    """exp(x) - 1 of every element: 2^n (exp(r) - 1) + (2^n - 1), and exp(x) above 30."""
    if x.dtype != np.float32:
        return np.expm1(x, out)
    fused = _core.expm1(x)
    return written(_expm1(x) if fused is None else fused, out)


def _expm1(x: np.ndarray) -> np.ndarray:
    exponent, p = _reduced(x, -35, 30)
    scale = ((exponent + 127) << 23).view(np.float32)
    result = scale * p + (scale - np.float32(1))
    return np.where(x == 0, x, np.where(x > 30, _exp(x), result))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) of every element."""
    fused = _core.sigmoid(x)
    if fused is not None:
        return fused
    total = np.asarray(exp(np.asarray(np.negative(x))))
    np.add(total, 1, total)
    return np.reciprocal(total, total)
