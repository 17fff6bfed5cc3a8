"""erf and gelu for float32, in blocks that stay in the cache. SciPy's erf takes 15 ns per number, this 5, the compiled core less than 1.

erf(x) = x P(x^2) / Q(x^2) for |x| < 3.9, where P and Q were fitted by reweighted least squares to a relative error of 2e-8; in float32
the result is within 4e-7. Beyond 3.9 erf is 1 to float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from . import _core

_LIMIT = 3.9
_P = [
    np.float32(c)
    for c in (
        1.1283791476298564,
        0.18966826376551407,
        0.0526682682690826,
        0.003738404987641868,
        0.00028506302608917304,
        2.0664565617672157e-06,
    )
]
_Q = [
    np.float32(c)
    for c in (
        1.0,
        0.5014219038606178,
        0.11381954810792422,
        0.014914397441977771,
        0.0011573894091900776,
        3.826988919136873e-05,
    )
]
_BLOCK = 1 << 14  # numbers, 64 KB: three such arrays fit in the second-level cache
_ROOT_HALF = np.float32(math.sqrt(0.5))
_DENSITY = np.float32(1 / math.sqrt(2 * math.pi))


def _horner(coefficients: list, t: np.ndarray, out: np.ndarray) -> None:
    np.multiply(t, coefficients[-1], out)
    for c in coefficients[-2:0:-1]:
        np.add(out, c, out)
        np.multiply(out, t, out)
    np.add(out, coefficients[0], out)


def _erf_block(x: np.ndarray, out: np.ndarray, t: np.ndarray, q: np.ndarray) -> None:
    """erf(x) into `out`; x, out, t and q are different arrays."""
    np.minimum(x, _LIMIT, out=t)
    np.maximum(t, -_LIMIT, out=t)
    np.multiply(t, t, q)
    _horner(_P, q, out)
    np.multiply(out, t, out)
    _horner(_Q, q, t)
    np.divide(out, t, out)
    np.minimum(out, 1, out=out)
    np.maximum(out, -1, out=out)


def _result_of(ufunc: np.ufunc, *arrays: np.ndarray) -> np.ndarray:
    """An array in the shape and memory order of a ufunc's result; its values are not defined."""
    if all(array.flags.c_contiguous for array in arrays):
        return np.empty(arrays[0].shape, np.float32)
    return np.asarray(ufunc(*arrays))


def _in_order_of(like: np.ndarray, array: np.ndarray) -> np.ndarray:
    """The elements of an array in one dimension, in the memory order of `like`, an array of its shape without gaps."""
    if array.strides != like.strides:
        ordered = np.empty_like(like)
        ordered[...] = array
        array = ordered
    return np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))


def _blocks(*arrays: np.ndarray) -> Iterator[list[np.ndarray]]:
    """The next numbers of each of several flat arrays."""
    for start in range(0, arrays[0].size, _BLOCK):
        yield [array[start : start + _BLOCK] for array in arrays]


def _buffers(size: int) -> list[np.ndarray]:
    return [np.empty(min(_BLOCK, size), np.float32) for _ in range(3)]


def erf(x: np.ndarray) -> np.ndarray:
    """erf of a float32 array."""
    fused = _core.erf(x)
    if fused is not None:
        return fused
    result = _result_of(np.negative, x)
    _, b, c = _buffers(x.size)
    for piece, out in _blocks(_in_order_of(result, x), _in_order_of(result, result)):
        _erf_block(piece, out, b[: piece.size], c[: piece.size])
    return result


def gelu(x: np.ndarray) -> np.ndarray:
    """x * (1 + erf(x / sqrt 2)) / 2 for a float32 array."""
    fused = _core.gelu(x)
    if fused is not None:
        return fused
    result = _result_of(np.negative, x)
    a, b, c = _buffers(x.size)
    for piece, out in _blocks(_in_order_of(result, x), _in_order_of(result, result)):
        n = piece.size
        scaled = np.multiply(piece, _ROOT_HALF, a[:n])
        _erf_block(scaled, out, b[:n], c[:n])
        np.add(out, 1, out)
        np.multiply(out, piece, out)
        np.multiply(out, np.float32(0.5), out)
    return result


def gelu_slope(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """g times the derivative of gelu at x, for float32 arrays."""
    fused = _core.gelu_backward(g, x)
    if fused is not None:
        return fused
    x, g = np.broadcast_arrays(x, g)
    result = _result_of(np.multiply, x, g)
    a, b, c = _buffers(x.size)
    for piece, given, out in _blocks(*[_in_order_of(result, array) for array in (x, g, result)]):
        n = piece.size
        scaled = np.multiply(piece, _ROOT_HALF, a[:n])
        _erf_block(scaled, out, b[:n], c[:n])
        np.add(out, 1, out)
        np.multiply(out, np.float32(0.5), out)
        density = np.multiply(scaled, scaled, a[:n])
        np.negative(density, density)
        np.exp(density, density)
        np.multiply(density, _DENSITY, density)
        np.multiply(density, piece, density)
        np.add(out, density, out)
        np.multiply(out, given, out)
    return result
