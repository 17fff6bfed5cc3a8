"""`_trilinear`: the sum of products of three tensors, of which each lacks some dimensions; `bilinear` is built on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dispatch import op
from ._children import Child, child, tensor
from ._half_precision import in_float32


@op(
    "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    expose="function",
)
@in_float32
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


@_trilinear.children
def _(
    i1: Any, i2: Any, i3: Any, expand1: tuple, expand2: tuple, expand3: tuple, sumdim: tuple, unroll_dim: int
) -> list[Child]:
    """For each index along `unroll_dim`: the product of the first two, its product with the third, and a sum."""
    every = range(len(i1.shape) + len(expand1))
    shapes = []
    for described, lacking in ((i1, expand1), (i2, expand2), (i3, expand3)):
        sizes = iter(described.shape)
        shapes.append([1 if dim in lacking else next(sizes) for dim in every])
    steps = max(shape[unroll_dim] for shape in shapes)
    for shape in shapes:
        shape[unroll_dim] = 1
    summed = [dim for dim in sumdim if dim != unroll_dim]
    first, second = [d for d in summed if d in expand3], [d for d in summed if d not in expand3]
    products, product = _pair_children(shapes[0], shapes[1], first, i1)
    # the wider of the two comes second
    one, other = (shapes[2], product) if _is_wider(product, shapes[2], second) else (product, shapes[2])
    totals, total = _pair_children(one, other, second, i1)
    result = tensor(total, i1)
    return [*products, *totals, child("aten::add_.Tensor", result, result)] * steps


def _is_wider(a: list[int], b: list[int], summed: list[int]) -> bool:
    kept = [(m, n) for dim, (m, n) in enumerate(zip(a, b)) if dim not in summed]
    return bool(summed) and any(m > n for m, n in kept) and not any(n > m for m, n in kept)


def _pair_children(a: list[int], b: list[int], summed: list[int], like: Any) -> tuple[list[Child], list[int]]:
    """The ops that multiply two tensors of these shapes and sum over dimensions, and the shape of the result."""
    if not summed:
        return [child("aten::mul.Tensor", tensor(a, like), tensor(b, like))], [*map(max, a, b)]
    early: list[Child] = []
    for one, other in ((a, b), (b, a)):
        alone = [dim for dim in summed if one[dim] != 1 and other[dim] == 1]
        if alone:
            early.append(child("aten::sum.dim_IntList", tensor(one, like), alone, True))
            one[:] = [1 if dim in alone else size for dim, size in enumerate(one)]
    kept = [(m, n) for dim, (m, n) in enumerate(zip(a, b)) if dim not in summed]
    batch = math.prod([m for m, n in kept if m != 1 and n != 1])
    rows, columns = math.prod([m for m, n in kept if n == 1]), math.prod([n for m, n in kept if m == 1])
    inner = math.prod([a[dim] for dim in summed])
    product = child("aten::bmm", tensor((batch, rows, inner), like), tensor((batch, inner, columns), like))
    return [*early, product], [1 if dim in summed else max(m, n) for dim, (m, n) in enumerate(zip(a, b))]


@_trilinear.backward("i1", "i2", "i3")
def _(g: Any, i1: Any, i2: Any, i3: Any, expand1: tuple, expand2: tuple, expand3: tuple, sumdim: tuple, unroll_dim: int,
      needs: Any) -> Any:  # fmt: skip
    return (
        _trilinear(g, i2, i3, sumdim, expand2, expand3, expand1, unroll_dim) if needs[0] else None,
        _trilinear(i1, g, i3, expand1, sumdim, expand3, expand2, unroll_dim) if needs[1] else None,
        _trilinear(i1, i2, g, expand1, expand2, sumdim, expand3, unroll_dim) if needs[2] else None,
    )
