"""Rearranged copies: flip, roll, rot90, repeat, tile, repeat_interleave; grids and products of vectors."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from mindtorch_prof.inputs import TensorInput, TensorList

from .. import _dispatch, _dtype
from .._dispatch import FUNCTIONS, composite, function, ints, op
from .._op_errors import broadcast_text
from .._size import Size
from .._tensor import Tensor
from . import _core, _dims
from ._children import (
    Child,
    child,
    copy_,
    dtype_number,
    empty,
    tensor_of,
    view_of,
)
from ._layout import empty_as
from ._namespace import functions as F
from ._warn import warn_once
from .join import cat, common_dtype
from .shape import _expand, _permute, _view, as_own, reshaped, size_text
from .slicing import select, unfold, unsqueeze

_ALL = slice(None)
_BACK = slice(None, None, -1)


def _dims_given(name: str, dims: tuple, named: Any) -> Any:
    if named is not None:
        return ints(named)
    if not dims:
        raise TypeError(f'{name}() missing 1 required positional arguments: "dims"')
    return ints(dims[0]) if len(dims) == 1 else ints(dims)


# ----------------------------------------------------------------------------------------------- flip


@op("aten::flip(Tensor self, int[] dims) -> Tensor", expose="no")
def _flip(self: np.ndarray, dims: tuple) -> np.ndarray:
    where = _dims.many(dims, self.ndim) if dims else ()
    if where and self.ndim - 1 in where:
        # NumPy copies the last dimension, backwards, number by number
        last = _core.reversed_rows(self)
        if last is not None:
            return (
                last if len(where) == 1 else _flip.op.kernel(last, [d for d in where if d != self.ndim - 1])
            )
    out = empty_as(self)
    out[...] = self[tuple([_BACK if d in where else _ALL for d in range(self.ndim)])]
    return out


_flip.derivative(self=lambda g, dims: _flip(g, dims))


@function()
def flip(input: Any, *dims: Any, **named: Any) -> Any:
    """A copy with the order along the given dimensions reversed."""
    return _flip(input, _dims_given("flip", dims, named.get("dims")))


@composite("aten::fliplr(Tensor self) -> Tensor")
def fliplr(self: Any) -> Any:
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(self, (1,))


@composite("aten::flipud(Tensor self) -> Tensor")
def flipud(self: Any) -> Any:
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(self, (0,))


# ---------------------------------------------------------------------------------------- roll, rot90


def _check_roll(shifts: tuple, dims: tuple) -> None:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(dims) == 0 and len(shifts) == 1:
        return
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")


@op("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", on="tensors")
def roll(self: Any, shifts: tuple, dims: tuple) -> Any:
    dims = () if dims is None else dims
    _check_roll(shifts, dims)
    if dims and self.ndim == 0:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if self.numel() == 0 or self.ndim == 0:
        return F.clone(self)
    if not dims:
        flat = _view(self.contiguous(), (self.numel(),))
        return as_own(_view(roll(flat, shifts, (0,)), tuple(self.shape)))
    if len(dims) > 1:
        return roll(roll(self, shifts[:1], dims[:1]), shifts[1:], dims[1:])
    n = self.size(dims[0])
    cut = -shifts[0] % n
    return cat([F.narrow(self, dims[0], cut, n - cut), F.narrow(self, dims[0], 0, cut)], dims[0])


roll.derivative(self=lambda g, shifts, dims: roll(g, tuple([-s for s in shifts]), dims))


def _check_rotation(ndim: int, dims: tuple) -> tuple[int, int]:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    for place, d in enumerate(dims):
        if not -ndim <= d < ndim:
            raise RuntimeError(f"Rotation dim{place} out of range, dim{place} = {d}")
    return dims[0] % ndim, dims[1] % ndim


@op("aten::rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", on="tensors")
def rot90(self: Any, k: int, dims: tuple) -> Any:
    a, b = _check_rotation(self.ndim, dims)
    if k % 4 == 2:
        return _flip(self, dims)
    if k % 4 == 0:
        return F.clone(self, memory_format=_dtype.contiguous_format)
    return _flip(self, (dims[1] if k % 4 == 1 else dims[0],)).transpose_(a, b)


rot90.derivative(self=lambda g, k, dims: rot90(g, -k, dims))


# --------------------------------------------------------------------------------------- repeat, tile


def _repeated_shape(shape: tuple, repeats: tuple) -> tuple[tuple, tuple]:
    """The shape with leading ones, and the shape of the result."""
    if len(repeats) < len(shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    target = tuple([n * r for n, r in zip(padded, repeats)])
    for n in target:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {size_text(target)}")
    return padded, target


@op("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", expose="no")
def _repeat(self: np.ndarray, repeats: tuple) -> np.ndarray:
    padded, target = _repeated_shape(self.shape, repeats)
    out = np.empty(target, self.dtype)
    if out.size:
        pairs = [n for pair in zip(repeats, padded) for n in pair]
        out.reshape(pairs)[...] = self.reshape([n for size in padded for n in (1, size)])
    return out


@_repeat.children
def _(self: Any, repeats: Any) -> list[Child]:
    """The result is cut into one part for each repetition; the dimensions that count them are then moved and merged."""
    padded, target = _repeated_shape(self.shape, repeats)
    children = [child("aten::expand", self, padded, False), empty(target, dtype_number(self))]
    if 0 in target:
        return children
    parts, ndim = tensor_of(target, dtype_number(self)), len(target)
    for d, n in enumerate(padded):
        children.append(child("aten::unfold", parts, d, n, n))
        parts = view_of(parts, partial(unfold.op.kernel, dimension=d, size=n, step=n))
    source = view_of(self, partial(_expand.op.kernel, size=padded, implicit=False))
    places = tensor_of((ndim,), _LONG)
    column, pairs = tensor_of((ndim, 1), _LONG), tensor_of((ndim, 2), _LONG)
    order = tuple([d + ndim * last for d in range(ndim) for last in (0, 1)])
    moved = view_of(parts, partial(_permute.op.kernel, dims=order))
    return [
        *children,
        child("aten::expand_as", source, parts, children=[child("aten::expand", source, parts.shape, False)]),
        copy_(parts, parts),
        child("aten::arange", ndim, _LONG),
        child("aten::add.Tensor", places, ndim, 1),
        *[child("aten::unsqueeze", places, 1)] * 2,
        child("aten::cat", TensorList([column, column]), 1),
        child("aten::flatten.using_ints", pairs, children=[child("aten::view", pairs, (2 * ndim,))]),
        child("aten::permute", parts, order),
        child("aten::reshape", moved, target, children=[child("aten::view", moved, target)]),
    ]


_LONG = dtype_number(TensorInput((), (), "long int"))


def _repeat_back(g: Any, shape: tuple, repeats: tuple) -> Any:
    if 0 in repeats:
        return g.new_zeros(shape)
    for _ in range(len(repeats) - len(shape)):
        g = g.sum(0, False)
    split: list[int] = []
    summed: list[int] = []
    for n, r in zip(shape, repeats[len(repeats) - len(shape) :]):
        if r != 1:
            summed.append(len(split))
            split.append(r)
        split.append(n)
    return F.reshape(g, tuple(split)).sum(summed) if summed else g


_repeat.derivative(self=lambda g, self_shape, repeats: _repeat_back(g, self_shape, repeats))


@function(expose="method")
def repeat(self: Any, *repeats: Any, **named: Any) -> Any:
    """A copy repeated along each dimension."""
    if named:
        return _repeat(self, ints(_dispatch.only_named("repeat", repeats, named, "repeats")))
    if not repeats:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    return _repeat(self, ints(repeats[0]) if len(repeats) == 1 else ints(repeats))


@composite("aten::tile(Tensor self, SymInt[] dims) -> Tensor", expose="no")
def _tile(self: Any, dims: tuple) -> Any:
    return _repeat(self, (1,) * (self.ndim - len(dims)) + dims)


@function()
def tile(input: Any, *dims: Any, **named: Any) -> Any:
    """A copy repeated as NumPy's tile does it."""
    return _tile(input, _dims_given("tile", dims, named.get("dims")))


# ---------------------------------------------------------------------------------- repeat_interleave


def _check_repeats(repeats: np.ndarray) -> None:
    if repeats.ndim > 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype.num not in (5, 7):
        raise RuntimeError("repeats has to be Long or Int tensor")


@op(
    "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    on="tensors",
    nondifferentiable=True,
    expose="no",
)
def _repeat_places(repeats: Any, output_size: Any) -> Any:
    array = repeats._array
    if array.dtype.kind not in "iu":
        raise NotImplementedError(
            f"\"repeat_interleave_cpu\" not implemented for '{_dtype.BY_NUM[array.dtype.num]._abbr}'"
        )
    _check_repeats(array)
    if not array.size:
        return F.empty_like(repeats)
    ends = F.cumsum(repeats, 0)
    count = output_size
    if count is None:
        count = select(ends, 0, -1).item()
        if not (repeats >= 0).all().item():
            raise RuntimeError("repeats can not be negative")
    elif array.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if ends._array[-1] != count:
        raise RuntimeError(f"allocated size does not match required size: {count} and {ends._array[-1]}")
    places = F.empty((count,), dtype=repeats.dtype)
    places._array[...] = np.repeat(np.arange(array.size), array)
    return places


@composite(
    "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
    "output_size=None) -> Tensor",
    expose="no",
)
def _repeat_evenly(self: Any, repeats: int, dim: Any = None, output_size: Any = None) -> Any:
    if dim is None:
        self, dim = F.flatten(self), 0
    d = _dims.one(dim, self.ndim)
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    wide = unsqueeze(self, d + 1)
    shape = list(wide.shape)
    shape[d + 1] = repeats
    if output_size is not None and self.size(d) * repeats != output_size:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {self.size(d) * repeats} but got {output_size}"
        )
    return F.flatten(F.clone(_expand(wide, tuple(shape)), memory_format=_dtype.contiguous_format), d, d + 1)


@composite(
    "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
    "output_size=None) -> Tensor",
    expose="no",
)
def _repeat_unevenly(self: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    if dim is None:
        self, dim = F.flatten(self), 0
    if repeats.ndim == 0 or (repeats.ndim == 1 and repeats.size(0) == 1):
        repeats = _expand(F.reshape(repeats, (1,)), (self.size(dim),))
    elif repeats.ndim == 1 and repeats.size(0) != self.size(dim):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.size(0)} and "
            f"input.size({dim}) = {self.size(dim)}"
        )
    _check_repeats(repeats._array)
    return F.index_select(self, dim, _repeat_places(repeats, output_size=output_size))


@function()
def repeat_interleave(input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Any:
    """Each element repeated: a fixed number of times, or as often as `repeats` says for it."""
    if repeats is None:
        return _repeat_places(input, output_size=output_size)
    if isinstance(repeats, Tensor):
        return _repeat_unevenly(input, repeats, dim, output_size=output_size)
    if isinstance(repeats, (tuple, list)):
        return _repeat_unevenly(input, F.tensor(repeats), dim, output_size=output_size)
    return _repeat_evenly(input, repeats, dim, output_size=output_size)


# ------------------------------------------------------------------------------------ grids, products


@composite("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", expose="no")
def _meshgrid(tensors: Any, indexing: str) -> tuple:
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    first = tensors[0]
    for tensor in tensors:
        if tensor.dtype is not first.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("xy", "ij"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) >= 2
    given = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = []
    for tensor in given:
        if tensor.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor}"
            )
        shape.append(tensor.numel())
    grids = []
    for d, tensor in enumerate(given):
        line = _view(tensor, tuple([-1 if e == d else 1 for e in range(len(given))]))
        grids.append(_expand(line, tuple(shape)))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple:
    """Grids of coordinates from vectors of them."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if indexing is None:
        if tensors:
            warn_once(
                "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
            )
        indexing = "ij"
    return _meshgrid(tensors, indexing=indexing)


@composite("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", expose="no")
def _broadcast_tensors(tensors: Any) -> tuple:
    shapes = [tuple(x.shape) for x in tensors]
    text = broadcast_text(shapes) if shapes else None
    if text is not None:
        raise RuntimeError(text)
    shape = np.broadcast_shapes(*shapes) if shapes else ()
    return tuple([x if tuple(x.shape) == shape else _expand(x, shape) for x in tensors])


def broadcast_tensors(*tensors: Any) -> tuple:
    """The tensors, each as a view in their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return _broadcast_tensors(tensors)


def broadcast_shapes(*shapes: Any) -> Size:
    """The broadcast shape of these shapes."""
    given = [(s,) if hasattr(s, "__index__") else tuple(s) for s in shapes]
    result = [1] * max([len(s) for s in given], default=0)
    for number, shape in enumerate(given):
        for d in range(-1, -len(shape) - 1, -1):
            if shape[d] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[d] == 1 or shape[d] == result[d]:
                continue
            if result[d] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[d]} at {d}! Mismatching argument "
                    f"at index {number} had {shape}; "
                    f"but expected shape should be broadcastable to {result}"
                )
            result[d] = shape[d]
    return Size(result)


@composite("aten::cartesian_prod(Tensor[] tensors) -> Tensor", expose="no")
def _cartesian_prod(tensors: Any) -> Any:
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {size_text(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return F.stack([F.flatten(x) for x in _meshgrid(tensors, indexing="ij")], 1)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector, one row each."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return _cartesian_prod(tensors)


@composite("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
def combinations(self: Any, r: int = 2, with_replacement: bool = False) -> Any:
    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {size_text(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return F.empty((0,), dtype=self.dtype)
    n = self.numel()
    grids = _meshgrid([self] * r, indexing="ij")
    places = _meshgrid([F.arange(n)] * r, indexing="ij")
    mask = F.full((n,) * r, True, dtype=_dtype.bool_)
    for a, b in itertools.pairwise(places):
        mask.mul_(a <= b if with_replacement else a < b)
    return F.stack([F.masked_select(grid, mask) for grid in grids], 1)


def _block_shapes(tensors: Any) -> list[tuple[int, int]]:
    found = []
    for place, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {place} has "
                f"{x.ndim} dimensions"
            )
        found.append((1, 1) if x.ndim == 0 else (1, x.shape[0]) if x.ndim == 1 else tuple(x.shape))
    return found


@op("aten::block_diag(Tensor[] tensors) -> Tensor", on="tensors", expose="no")
def _block_diag(tensors: Any) -> Any:
    if not tensors:
        return F.empty((1, 0))
    shapes = _block_shapes(tensors)
    dtype = _dtype.BY_NUM[common_dtype([x._array for x in tensors]).num]
    blocks = [x if x.ndim == 2 else F.expand(x, shape) for x, shape in zip(tensors, shapes)]
    whole = F.zeros((sum(s[0] for s in shapes), sum(s[1] for s in shapes)), dtype=dtype)
    row = column = 0
    for block, (n, m) in zip(blocks, shapes):
        F.slice(F.slice(whole, 0, row, row + n), 1, column, column + m).copy_(block)
        row, column = row + n, column + m
    return whole


def _block_back(g: Any, shapes: list, needs: Any) -> list:
    row = column = 0
    found = []
    for shape in shapes:
        n, m = (1, 1) if not shape else (1, shape[0]) if len(shape) == 1 else shape
        part = F.slice(F.slice(g, 0, row, row + n), 1, column, column + m)
        found.append(part if len(shape) == 2 else reshaped(part, shape))
        row, column = row + n, column + m
    return found


_block_diag.derivative(tensors=lambda g, tensors_shapes, needs: _block_back(g, tensors_shapes, needs))


def block_diag(*tensors: Any) -> Any:
    """A matrix with the tensors as blocks on its diagonal."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return _block_diag(tensors)


def unravel_index(indices: Tensor, shape: Any) -> tuple:
    """Places in a flat array as coordinates in an array of `shape`."""
    if not isinstance(indices, Tensor):
        raise TypeError(f"Expected a torch.Tensor, but got {type(indices)}")
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    places = F.div(unsqueeze(indices, -1), F.tensor(steps), rounding_mode="floor")
    return F.unbind(F.remainder(places, F.tensor(sizes)), -1)


for _function in (meshgrid, broadcast_tensors, broadcast_shapes, cartesian_prod, block_diag, unravel_index):
    FUNCTIONS[_function.__name__] = _function


@composite("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", expose="no")
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.numel() if N is None else N
    if n < 0:
        raise RuntimeError(f"N must be non-negative. Got {n}")
    dtype = _dtype.promote_types(x.dtype, _dtype.int64) if x.dtype._rank < 2 else x.dtype
    matrix = F.empty((x.numel(), n), dtype=dtype)
    if n > 0:
        select(matrix, 1, 0).fill_(1)
        if n > 1:
            F.slice(matrix, 1, 1).copy_(unsqueeze(x, 1))
            F.slice(matrix, 1, 1).copy_(F.cumprod(F.slice(matrix, 1, 1), 1))
    return matrix if increasing else _flip(matrix, (1,))


@function(expose="function")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element, one row each."""
    return _vander(x, N, increasing)
