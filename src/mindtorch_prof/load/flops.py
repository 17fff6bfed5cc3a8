"""Flops of ops in files: names and inputs of events in, flops by event out. Files hold the inputs of ops, not their flops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..arrays import IntArray
from ..flops import Pair, bmm_flops, conv2d_flops, elementwise_flops, mm_flops
from ..inputs import Inputs, Number, Value


def flops_of(name: IntArray, names: list[str], inputs: IntArray, table: Sequence[Inputs]) -> IntArray:
    """Flops of each event, computed once for each pair of a name and inputs."""
    flops = np.zeros(len(name), np.int64)
    has_formula = np.array([text in _FORMULAS for text in names] or [False])
    rows = np.flatnonzero(has_formula[name] & (inputs >= 0))
    if not len(rows):
        return flops
    keys = name[rows].astype(np.int64) * max(len(table), 1) + inputs[rows]
    distinct, place = np.unique(keys, return_inverse=True)
    values = [_count(names[key // len(table)], table[key % len(table)]) for key in distinct.tolist()]
    flops[rows] = np.array(values, np.int64)[place.reshape(-1)]
    return flops


def _count(name: str, inputs: Inputs) -> int:
    # a file may hold texts in the place of sizes: one that is multiplied by a size takes that much memory
    if not all(isinstance(size, (int, float)) for sizes in inputs.shapes for size in sizes):
        return 0
    try:
        return max(0, min(int(_FORMULAS[name](inputs)), 2**62))
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return 0  # inputs that were not recorded, or not as the op takes them


def _elementwise(inputs: Inputs) -> int:
    return elementwise_flops(math.prod(inputs.shapes[0])) if inputs.tensors[0] else 0


def _conv2d(inputs: Inputs) -> int:
    image, weight = inputs.shapes[:2]
    stride, padding, dilation, groups = inputs.values[3:7]
    if not isinstance(groups, int):
        raise TypeError("the number of groups is not recorded")
    return conv2d_flops(image, weight, _pair(stride), _pair(padding), _pair(dilation), groups)


def _pair(value: Number | list[Value] | None) -> Pair:
    """One number for both dimensions, or one for each; [] is torch's way to leave a stride out."""
    values = value if isinstance(value, list) else [value]
    first, last = (values[0], values[-1]) if values else (1, 1)
    if not isinstance(first, int) or not isinstance(last, int):
        raise TypeError("no whole numbers")
    return first, last


_FORMULAS: dict[str, Callable[[Inputs], int]] = {
    "aten::mm": lambda inputs: mm_flops(inputs.shapes[0], inputs.shapes[1]),
    "aten::addmm": lambda inputs: mm_flops(inputs.shapes[1], inputs.shapes[2]),
    "aten::bmm": lambda inputs: bmm_flops(inputs.shapes[0], inputs.shapes[1]),
    "aten::baddbmm": lambda inputs: bmm_flops(inputs.shapes[1], inputs.shapes[2]),
    "aten::conv2d": _conv2d,
    "aten::mul": _elementwise,
    "aten::add": _elementwise,
}
