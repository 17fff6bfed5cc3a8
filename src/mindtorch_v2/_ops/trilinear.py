"""`_trilinear`: the sum of products of three tensors, of which each lacks some dimensions; `bilinear` is built on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dispatch import op
from . import _shown
from ._namespace import functions as F
from .einsum import _sum_product


@op(
    "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    expose="function",
)
def _trilinear(
    i1: np.ndarray,
    i2: np.ndarray,
    i3: np.ndarray,
    expand1: tuple,
    expand2: tuple,
    expand3: tuple,
    sumdim: tuple,
    unroll_dim: int,
) -> np.ndarray:
    every = range(i1.ndim + len(expand1))
    kept = [dim for dim in every if dim not in sumdim]
    first, second, third = (
        [dim for dim in every if dim not in lacking] for lacking in (expand1, expand2, expand3)
    )
    product, dims = _product(i1, first, i2, second, {*kept, *third})
    total, dims = _product(product, dims, i3, third, set(kept))
    return np.ascontiguousarray(total.transpose([dims.index(dim) for dim in kept]))


def _product(
    a: np.ndarray, first: list[int], b: np.ndarray, second: list[int], kept: set
) -> tuple[np.ndarray, list[int]]:
    """Two arrays with named dimensions: summed over those not kept, by one batched matrix product."""
    batch = [dim for dim in first if dim in second and dim in kept]
    summed = [dim for dim in first if dim in second and dim not in kept]
    left = [dim for dim in first if dim not in second]
    right = [dim for dim in second if dim not in first]
    x = a.transpose([first.index(dim) for dim in (*batch, *left, *summed)])
    y = b.transpose([second.index(dim) for dim in (*batch, *summed, *right)])
    n, rows, columns = len(batch), len(batch) + len(left), len(batch) + len(summed)
    inner = math.prod(y.shape[n:columns])
    lead = x.shape[:n]
    products = np.matmul(
        x.reshape(*lead, math.prod(x.shape[n:rows]), inner),
        y.reshape(*lead, inner, math.prod(y.shape[columns:])),
    )
    return products.reshape(*lead, *x.shape[n:rows], *y.shape[columns:]), [*batch, *left, *right]


@_trilinear.recorded
def _(
    i1: Any, i2: Any, i3: Any, expand1: tuple, expand2: tuple, expand3: tuple, sumdim: tuple, unroll_dim: int
) -> Any:
    made = _shown.kernel_of(_trilinear, i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim)
    tensors, lacking = [i1, i2, i3], (expand1, expand2, expand3)
    ndim = i1.ndim + len(expand1)
    for dim in range(ndim):
        for number in (1, 0, 2):
            if dim in lacking[number]:
                tensors[number] = F.unsqueeze(tensors[number], dim)
    sizes = [max(tensor.shape[dim] for tensor in tensors) for dim in range(ndim)]
    summed = [dim for dim in sumdim if dim != unroll_dim]
    first = [dim for dim in summed if dim in expand3]
    second = [dim for dim in summed if dim not in expand3]
    target = F.zeros([1 if dim in sumdim else size for dim, size in enumerate(sizes)], dtype=i1.dtype)
    for step in range(sizes[unroll_dim]):

        def part(number: int, step: int = step) -> Any:
            start = 0 if unroll_dim in lacking[number] else step
            return F.narrow(tensors[number], unroll_dim, start, 1)

        product = _sum_product(part(0), part(1), first)
        third = part(2)
        own = any(product.shape[dim] > third.shape[dim] for dim in range(ndim) if dim not in second)
        back = any(third.shape[dim] > product.shape[dim] for dim in range(ndim) if dim not in second)
        pair = (third, product) if own and not back and second else (product, third)
        product = _sum_product(*pair, second)
        F.add_(target if unroll_dim in sumdim else F.narrow(target, unroll_dim, step, 1), product)
    for dim in sorted(sumdim, reverse=True):
        target = target.squeeze_(dim)
    np.copyto(target._array, made._array)
    return target


@_trilinear.backward("i1", "i2", "i3")
def _(g: Any, i1: Any, i2: Any, i3: Any, expand1: tuple, expand2: tuple, expand3: tuple, sumdim: tuple, unroll_dim: int,
      needs: Any) -> Any:  # fmt: skip
    return (
        _trilinear(g, i2, i3, sumdim, expand2, expand3, expand1, unroll_dim) if needs[0] else None,
        _trilinear(i1, g, i3, expand1, sumdim, expand3, expand2, unroll_dim) if needs[1] else None,
        _trilinear(i1, i2, g, expand1, expand2, sumdim, expand3, unroll_dim) if needs[2] else None,
    )
