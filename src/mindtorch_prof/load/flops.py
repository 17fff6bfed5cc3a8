"""Flops: names and inputs of ops in, torch's numbers of floating-point operations out. Files hold the inputs, not the numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..inputs import Inputs


def flops_of(name: np.ndarray, names: list[str], inputs: np.ndarray, table: Sequence[Inputs]) -> np.ndarray:
    """Flops of each event, worked out once for each pair of a name and inputs."""
    made = np.zeros(len(name), np.int64)
    counted = np.array([text in _FORMULAS for text in names] or [False])
    rows = np.flatnonzero(counted[name] & (inputs >= 0))
    if not len(rows):
        return made
    keys = name[rows].astype(np.int64) * max(len(table), 1) + inputs[rows]
    found, place = np.unique(keys, return_inverse=True)
    values = [_count(names[key // len(table)], table[key % len(table)]) for key in found.tolist()]
    made[rows] = np.array(values, np.int64)[place.reshape(-1)]
    return made


def _count(name: str, inputs: Inputs) -> int:
    try:
        return min(int(_FORMULAS[name](inputs)), 2**62)
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return 0  # inputs that were not recorded, or not as the op takes them


def _product(inputs: Inputs, first: int) -> int:
    left, right = inputs.dims[first], inputs.dims[first + 1]
    return 2 * math.prod(left) * math.prod(right) // max(left[-1], 1)


def _batched(inputs: Inputs, first: int) -> int:
    left, right = inputs.dims[first], inputs.dims[first + 1]
    return 2 * left[0] * left[1] * left[2] * right[2]


def _elements(inputs: Inputs) -> int:
    return math.prod(inputs.dims[0]) if inputs.tensors[0] else 0


def _pair(value: Any) -> tuple[int, int]:
    values = value if isinstance(value, list) else [value]
    return (values[0], values[-1]) if values else (1, 1)


def _convolution(inputs: Inputs) -> int:
    (n, c, h, w), (o, _, kh, kw) = inputs.dims[0], inputs.dims[1]
    values = inputs.values
    (sh, sw), (ph, pw), (dh, dw), groups = _pair(values[3]), _pair(values[4]), _pair(values[5]), values[6]
    oh = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1
    ow = (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    return 2 * n * oh * ow * kh * kw * c * o // groups


_FORMULAS: dict[str, Callable[[Inputs], int]] = {
    "aten::mm": lambda i: _product(i, 0),
    "aten::addmm": lambda i: _product(i, 1),
    "aten::bmm": lambda i: _batched(i, 0),
    "aten::baddbmm": lambda i: _batched(i, 1),
    "aten::conv2d": _convolution,
    "aten::mul": _elements,
    "aten::add": _elements,
}
