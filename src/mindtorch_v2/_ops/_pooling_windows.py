"""What pools of all kinds share: the checks of their arguments, the sizes of results, windows and bins along each dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch


def per_dim(values: Any, dims: int) -> tuple:
    """An argument with an entry for each dimension; one entry holds for all."""
    values = _dispatch.ints(values)
    return values * dims if len(values) == 1 else tuple(values)


_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def check_window(
    name: str, dims: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1
) -> None:
    """Raise where an argument has another number of entries than the window has dimensions."""
    arguments = {
        "kernel_size must either be": kernel_size,
        "stride must either be omitted,": stride,
        "padding must either be": padding,
        "dilation must be either": dilation,
    }
    for text, values in arguments.items():
        if values.__class__ is not int and values and len(values) not in (1, dims):
            if name == "avg_pool3d" and values is kernel_size:
                text = "kernel_size must be"
            raise RuntimeError(f"{name}: {text} a single int, or a tuple of {_COUNTS[dims]}")


def one_int(name: str, argument: str, values: Any) -> tuple:
    """An argument of a pool over one dimension, which has one entry."""
    values = _dispatch.ints(values)
    if values is None:
        raise TypeError(f"{name}(): argument '{argument}' (position 2) must be tuple of ints, not NoneType")
    if len(values) != 1:
        raise RuntimeError(f"{name}() argument '{argument}' should contain one int (got {len(values)})")
    return values


def pooled_size(n: int, k: int, padding: int, stride: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows fit; in ceil mode the last must start inside the input or its left padding."""
    size = (n + 2 * padding - dilation * (k - 1) - 1 + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (size - 1) * stride >= n + padding:
        size -= 1
    return size


def check_sizes(x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, out: tuple) -> None:
    """Raise torch's errors about strides, paddings and results without elements."""
    for s in stride:
        if s == 0:
            raise RuntimeError("stride should not be zero")
    for k, p in zip(kernel, padding):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > k // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation=1"
            )
    if any(n < 1 for n in out):
        dims = len(kernel)
        have = "x".join(str(n) for n in x.shape[-dims - 1 :])
        want = "x".join([str(x.shape[-dims - 1]), *map(str, out)])
        raise RuntimeError(
            f"Given input size: ({have}). Calculated output size: ({want}). Output size is too small"
        )


def widened(
    x: np.ndarray, padding: tuple, kernel: tuple, stride: tuple, dilation: tuple, out: tuple, value: Any
) -> np.ndarray:
    """The input padded with `value` so that all windows fit."""
    dims = len(kernel)
    need = [
        max((o - 1) * s + d * (k - 1) + 1, n + p)
        for o, s, d, k, n, p in zip(out, stride, dilation, kernel, x.shape[-dims:], padding)
    ]
    if not any(padding) and all(n >= m for n, m in zip(x.shape[-dims:], need)):
        return x
    padded = np.full(
        (*x.shape[:-dims], *[max(m, n + p) for m, n, p in zip(need, x.shape[-dims:], padding)]),
        value,
        x.dtype,
    )
    padded[(..., *[slice(p, p + n) for p, n in zip(padding, x.shape[-dims:])])] = x
    return padded


def bins(n: int, out: int) -> list[tuple[int, int]]:
    """Where each of `out` bins of an adaptive pool over `n` numbers starts and ends; neighbours may share a number."""
    return [(i * n // out, -((-(i + 1) * n) // out)) for i in range(out)]
