"""Reductions over segments of an axis (`segment_reduce`), hashes of tensors, and finite differences (`gradient`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import composite, function, op
from .._dtype import LOW_FLOATS
from . import _dims
from ._namespace import functions as F

# ---------------------------------------------------------------------------------------------------- segments

_NAMES = {
    "sum": "sum",
    "prod": "prod",
    "mean": "mean",
    "max": "max",
    "min": "min",
    "amax": "max",
    "amin": "min",
}
_EMPTY = {"sum": 0.0, "prod": 1.0, "mean": float("nan"), "max": float("-inf"), "min": float("inf")}
_REDUCERS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def _rows(lengths: np.ndarray | None, offsets: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of every segment, along the last dimension of `lengths` or `offsets`."""
    if lengths is not None:
        ends = np.cumsum(lengths, -1)
        return ends - lengths, lengths
    assert offsets is not None
    starts = offsets[..., :-1]
    return starts, offsets[..., 1:] - starts


class _Segments:
    """Segments of all rows of the data as one list: rows one after the other, empty segments left out.

    starts, sizes: of those that are not empty, by position in the data whose leading dimensions are joined; filled: which they are.
    """

    def __init__(self, data: np.ndarray, axis: int, lengths: Any, offsets: Any) -> None:
        starts, sizes = _rows(lengths, offsets)
        inner = data.shape[axis + 1 :]
        self.shape = (*starts.shape, *inner)
        self.one_row = starts.ndim == 1 and axis == 0
        if self.one_row:
            self.elements_shape, self.segments_shape = data.shape, self.shape
        else:
            rows, length = math.prod(data.shape[:axis]), data.shape[axis]
            self.elements_shape, self.segments_shape = (rows * length, *inner), (starts.size, *inner)
            first = np.arange(0, rows * length, max(length, 1)) if length else np.zeros(rows, np.int64)
            starts, sizes = (starts.reshape(rows, -1) + first[:, None]).reshape(-1), sizes.reshape(-1)
        self.starts, self.sizes = starts, sizes
        self.filled: Any = slice(None)
        if np.count_nonzero(sizes) != sizes.size:
            self.filled = sizes.nonzero()[0]
            self.starts, self.sizes = starts.take(self.filled), sizes.take(self.filled)

    def joined(self, ufunc: Any, data: np.ndarray) -> np.ndarray:
        """The elements of each segment that is not empty, joined by a ufunc."""
        data = data.reshape(self.elements_shape)
        if not len(self.starts):
            return data[:0]
        last = int(self.starts[-1]) + int(self.sizes[-1])
        if self.one_row and last == len(data):  # the segments of a row are adjacent
            return ufunc.reduceat(data, self.starts, 0)
        bounds = np.empty((len(self.starts), 2), self.starts.dtype)
        bounds[:, 0], bounds[:, 1] = self.starts, self.starts + self.sizes
        bounds = bounds.reshape(-1)
        return ufunc.reduceat(data, bounds[:-1] if last == len(data) else bounds, 0)[::2]

    def widened(self, values: np.ndarray) -> np.ndarray:
        """Numbers of segments beside elements: their shape is continued by ones."""
        return values.reshape(-1, *[1] * (len(self.segments_shape) - 1))

    def elements(self) -> tuple[np.ndarray, np.ndarray]:
        """For every element in a segment: its position in the data, and which of the segments that are not empty it is in."""
        owners = np.repeat(np.arange(len(self.sizes)), self.sizes)
        before = np.cumsum(self.sizes) - self.sizes
        return np.arange(len(owners)) + np.repeat(self.starts - before, self.sizes), owners


def _check_segments(
    data: np.ndarray, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool
) -> int:
    axis = _dims.one(axis, data.ndim)
    if reduce not in _NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    bounds = lengths if lengths is not None else offsets
    if bounds.dtype.kind != "i":
        kind = "lengths" if lengths is not None else "offsets"
        abbr = _dtype.BY_NUM[bounds.dtype.num]._abbr
        raise NotImplementedError(f"\"_segment_reduce_{kind}_cpu_kernel1\" not implemented for '{abbr}'")
    if lengths is not None and not unsafe:
        if not _dims.inside(lengths, 0, 1 << 62):
            raise RuntimeError("lengths contains negative value!")
        if np.count_nonzero(lengths.sum(-1) != data.shape[axis]):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    if data.dtype.kind not in "fV":
        abbr = _dtype.BY_NUM[data.dtype.num]._abbr
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{abbr}'")
    return axis


@op("aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor", expose="function", out=True)  # fmt: skip
def segment_reduce(
    data: np.ndarray,
    reduce: str,
    lengths: Any,
    indices: Any,
    offsets: Any,
    axis: int,
    unsafe: bool,
    initial: Any,
) -> np.ndarray:
    axis = _check_segments(data, reduce, lengths, indices, offsets, axis, unsafe)
    kind = _NAMES[reduce]
    segments = _Segments(data, axis, lengths, offsets)
    join, nothing = _REDUCERS[kind], _EMPTY[kind] if initial is None else initial
    joined = segments.joined(join, data.astype(np.float32) if data.dtype in LOW_FLOATS else data)
    if initial is not None:
        joined = join(joined, joined.dtype.type(initial))
    if kind == "mean":
        joined = joined / segments.widened(segments.sizes).astype(joined.dtype)
    if isinstance(segments.filled, slice):
        return joined.reshape(segments.shape).astype(data.dtype, copy=False)
    out = np.empty(segments.shape, data.dtype)
    out.fill(nothing)
    out.reshape(segments.segments_shape)[segments.filled] = joined
    return out


@op("aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, "
    "int axis=0, Scalar? initial=None) -> Tensor", expose="no")  # fmt: skip
def _segment_reduce_backward(
    grad: np.ndarray,
    output: np.ndarray,
    data: np.ndarray,
    reduce: str,
    lengths: Any,
    offsets: Any,
    axis: int,
    initial: Any,
) -> np.ndarray:
    kind = _NAMES[reduce]
    segments = _Segments(data, _dims.one(axis, data.ndim), lengths, offsets)
    gradient = np.zeros(data.shape, data.dtype)
    values, flat = data.reshape(segments.elements_shape), gradient.reshape(segments.elements_shape)
    grads = grad.reshape(segments.segments_shape)[segments.filled]
    if kind == "prod":
        for first, n, g in zip(segments.starts, segments.sizes, grads):
            part = slice(first, first + n)
            flat[part] = _others(values[part]) * g * (1 if initial is None else initial)
        return gradient
    places, owners = segments.elements()
    if kind == "mean":
        grads = grads / segments.widened(segments.sizes).astype(data.dtype)
    elif kind != "sum":
        inside = values[places]
        chosen = inside == output.reshape(segments.segments_shape)[segments.filled][owners]
        chosen |= np.isnan(inside)
        counts = np.zeros(grads.shape, np.int64)
        np.add.at(counts, owners, chosen)
        flat[places] = np.where(chosen, (grads / np.maximum(counts, 1).astype(data.dtype))[owners], 0)
        return gradient
    flat[places] = grads[owners]
    return gradient


def _others(part: np.ndarray) -> np.ndarray:
    """For each element along dimension 0 the product of all the others."""
    before, after = np.ones_like(part), np.ones_like(part)
    before[1:] = np.cumprod(part[:-1], 0)
    after[:-1] = np.cumprod(part[:0:-1], 0)[::-1]
    return before * after


segment_reduce.derivative(
    data=lambda g, out, data, reduce, lengths, offsets, axis, initial: _segment_reduce_backward(
        g, out, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
    )
)

_dispatch.FUNCTIONS["_segment_reduce"] = _dispatch.FUNCTIONS["segment_reduce"]

# ---------------------------------------------------------------------------------------------------- hashes


@op(
    "aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    nondifferentiable=True,
    out=True,
)
def hash_tensor(self: np.ndarray, dim: tuple, keepdim: bool, mode: int) -> np.ndarray:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if self.dtype.kind in "cW":
        raise NotImplementedError(
            f"\"xor_sum_cpu\" not implemented for '{_dtype.BY_NUM[self.dtype.num]._abbr}'"
        )
    dims = _dims.many(tuple(dim or ()), self.ndim)
    if not self.size:
        if not dim:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
                "argument."
            )
        for d in dims:
            if self.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    wide = self.astype(np.int64 if self.dtype.kind in "biu" else np.float64).view(np.uint64)
    return np.bitwise_xor.reduce(wide, dims, keepdims=keepdim)


# ---------------------------------------------------------------------------------------------------- finite differences


def _spacings(input: Any, spacing: Any, dims: list[int], has_dim: bool) -> list[Any]:
    if not isinstance(spacing, (tuple, list)):
        if isinstance(spacing, _dispatch.Tensor):
            raise TypeError(
                "gradient() received an invalid combination of arguments - got (Tensor, spacing=Tensor): a tensor of coordinates "
                "belongs in a list, one for each dimension"
            )
        return [spacing] * len(dims)
    if len(spacing) != len(dims):
        if not has_dim:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                f"{input.ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, "
            f"but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    return list(spacing)


def _evenly(x: Any, dim: int, h: Any, edge_order: int) -> Any:
    n = x.shape[dim]

    def at(first: int, count: int) -> Any:
        return x.narrow(dim, first, count)

    before, after = F.slice(x, dim, 0, n - 2), F.slice(x, dim, 2, n)
    middle = F.div(F.sub(after, before), h)
    if edge_order == 1:
        first, second = F.slice(x, dim, 1, 2), F.slice(x, dim, 0, 1)
        front = F.div(F.sub(first, second), h)
        first, second = F.slice(x, dim, n - 1, n), F.slice(x, dim, n - 2, n - 1)
        back = F.div(F.sub(first, second), h)
    else:
        front = (-3 * at(0, 1) + 4 * at(1, 1) - at(2, 1)) / (2 * h)
        back = (at(n - 3, 1) - 4 * at(n - 2, 1) + 3 * at(n - 1, 1)) / (2 * h)
    return F.cat([front, F.div(middle, 2), back], dim)


def _unevenly(x: Any, dim: int, where: Any, edge_order: int) -> Any:
    n = len(where)
    shape = [1] * x.ndim
    shape[dim] = -1

    def at(first: int, count: int) -> Any:
        return x.narrow(dim, first, count)

    steps = where[1:] - where[:-1]
    left, right = steps[:-1].view(shape), steps[1:].view(shape)
    middle = (
        -right / (left * (left + right)) * at(0, n - 2) + (right - left) / (left * right) * at(1, n - 2)
        + left / (right * (left + right)) * at(2, n - 2)
    )  # fmt: skip
    if edge_order == 1:
        return F.cat(
            [(at(1, 1) - at(0, 1)) / steps[0], middle, (at(n - 1, 1) - at(n - 2, 1)) / steps[-1]], dim
        )
    a, b = steps[0], steps[1]
    front = (
        -(2 * a + b) / (a * (a + b)) * at(0, 1) + (a + b) / (a * b) * at(1, 1) - a / (b * (a + b)) * at(2, 1)
    )
    a, b = steps[-2], steps[-1]
    back = (
        b / (a * (a + b)) * at(n - 3, 1)
        - (b + a) / (a * b) * at(n - 2, 1)
        + (2 * b + a) / (b * (a + b)) * at(n - 1, 1)
    )
    return F.cat([front, middle, back], dim)


@function(expose="function")
def gradient(input: Any, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """Estimate the derivative along each of `dim` by central differences."""
    spacing = 1 if spacing is None else spacing
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = list(_dims.many(tuple(dim) if isinstance(dim, (tuple, list)) else (dim,), input.ndim))
    if spacing.__class__ in (int, float) and edge_order in (1, 2):
        return tuple(_gradient(input, spacing, None if dim is None else dims, edge_order=edge_order))
    return _gradients(input, spacing, dims, dim is not None, edge_order)


@composite(
    "aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
    expose="no",
)
def _gradient_one(self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    dims = list(range(self.ndim)) if dim is None else [dim]
    return list(_gradients(self, spacing, dims, dim is not None, edge_order))


@composite(
    "aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
    expose="no",
)
def _gradient_many(self: Any, spacing: Any, dim: Any, edge_order: int) -> Any:
    return list(_gradients(self, spacing, list(dim), True, edge_order))


def _gradient(input: Any, spacing: Any, dims: Any, edge_order: int) -> Any:
    if dims is None or len(dims) == 1:
        return _gradient_one(
            input, spacing=spacing, dim=None if dims is None else dims[0], edge_order=edge_order
        )
    return _gradient_many(input, spacing=spacing, dim=tuple(dims), edge_order=edge_order)


def _gradients(input: Any, spacing: Any, dims: list, chosen: bool, edge_order: int) -> tuple[Any, ...]:
    steps = _spacings(input, spacing, dims, chosen)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(input.shape[d] < edge_order + 1 for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(
        [
            (_unevenly if isinstance(step, _dispatch.Tensor) else _evenly)(input, d, step, edge_order)
            for d, step in zip(dims, steps)
        ]
    )
