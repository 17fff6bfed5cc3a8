"""Gather and scatter: reading, writing and reducing along a dimension at the indices in a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import call_out, composite, function, op
from .._dtype import BY_NUM
from .._tensor import Tensor
from . import _core, _dims
from ._children import child
from ._namespace import functions as F
from ._scalars import fitting
from ._warn import warn_once
from .shape import size_text

_LEAST_SCATTERED = 64  # elements: fewer are not worth a copy that may be in vain
_INDEX_NUMS = (5, 7)  # NumPy's numbers of int32 and int64


# --------------------------------------------------------------------------------------------- places


def check_bounds(index: np.ndarray, n: int, dim: int, error: Any = RuntimeError, prefix: str = "") -> None:
    """Raise torch's error for an index outside [0, n)."""
    if not _dims.inside(index, 0, n):
        bad = index[(index < 0) | (index >= n)].reshape(-1)[0]
        raise error(f"{prefix}index {int(bad)} is out of bounds for dimension {dim} with size {n}")


def places(index: np.ndarray, shape: tuple, dim: int) -> np.ndarray:
    """For each element of `index`, its flat position in a contiguous array of `shape`."""
    step, offsets = 1, None
    for d in range(len(shape) - 1, -1, -1):
        if d == dim:
            part = index if step == 1 else index * step
        else:
            length = index.shape[d]
            if length > 1:
                part = np.arange(0, length * step, step).reshape((length,) + (1,) * (len(shape) - 1 - d))
            else:
                step *= shape[d]
                continue
        offsets = part if offsets is None else offsets + part
        step *= shape[d]
    assert offsets is not None
    return offsets


def _check_index(index: np.ndarray, name: str) -> None:
    if index.dtype.num not in _INDEX_NUMS and index.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def allocated(array: np.ndarray) -> Any:
    """A tensor of these values, allocated by aten::empty."""
    tensor = F.empty(array.shape, dtype=BY_NUM[array.dtype.num])
    tensor._array[...] = array
    return tensor


def _as_1d(array: np.ndarray) -> np.ndarray:
    return array if array.ndim else array.reshape(1)


def _flat(array: np.ndarray) -> np.ndarray:
    """`array` as one dimension; a view if it is contiguous."""
    return array.reshape(-1)


# --------------------------------------------------------------------------------------------- gather


@op("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", out=True)
def gather(self: np.ndarray, dim: int, index: np.ndarray, sparse_grad: bool) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    _check_index(index, "gather")
    shape = index.shape
    if index.size == 0:
        return np.empty(shape, self.dtype)
    array, where = _as_1d(self), _as_1d(index)
    fused = _core.gathered(array, where, d)
    if fused is not None:
        return fused.reshape(shape)
    if array.ndim != where.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for axis in range(array.ndim):
        if axis != d and where.shape[axis] > array.shape[axis]:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index {size_text(shape)} to be no larger "
                "than self "
                f"{size_text(self.shape)} apart from dimension {d}"
            )
    check_bounds(where, array.shape[d], d)
    return _flat(array).take(places(where, array.shape, d)).reshape(shape)


@composite(
    "aten::gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
    expose="no",
)
def gather_backward(grad: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    return F.scatter_add_(grad.new_zeros(self.shape), dim, index, grad)


gather.derivative(
    self=lambda g, self, dim, index, sparse_grad: gather_backward(g, self, dim, index, sparse_grad),
)


# -------------------------------------------------------------------------------------------- scatter


def _scatter_places(
    self: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray | None
) -> tuple[Any, Any, int]:
    """Where to write in a contiguous array of self's shape, the part of `src` to write, and the dimension."""
    d = _dims.one(dim, self.ndim)
    _check_index(index, "scatter")
    if src is not None and src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return None, None, d
    array, where = _as_1d(self), _as_1d(index)
    if array.ndim != where.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    source = None if src is None else _as_1d(src)
    if source is not None and source.ndim != where.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    fits = all([axis == d or where.shape[axis] <= array.shape[axis] for axis in range(array.ndim)])
    covered = source is None or all([where.shape[axis] <= source.shape[axis] for axis in range(array.ndim)])
    if not fits or not covered:
        more = f" and to be no larger size than src {size_text(src.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {size_text(index.shape)} to be no larger than self {size_text(self.shape)} "
            f"apart from dimension {d}{more}"
        )
    check_bounds(where, array.shape[d], d)
    if source is not None and source.shape != where.shape:
        source = source[tuple([slice(n) for n in where.shape])]
    return places(where, array.shape, d), source, d


def _target(self: np.ndarray, out: Any) -> tuple[np.ndarray, np.ndarray]:
    """The array to write and a contiguous one to work on: the same where possible."""
    if out is None:
        out = np.array(self, order="C")
        return out, out
    return out, out if out.flags.c_contiguous else np.ascontiguousarray(out)


def _scattered(self: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, out: Any, adds: bool) -> Any:
    """The result of a scatter by the compiled loop; None where arguments have to be looked at, or NumPy is needed."""
    if (
        self.ndim == 0
        or self.ndim != index.ndim
        or index.size < _LEAST_SCATTERED
        or not -self.ndim <= dim < self.ndim
    ):
        return None
    target = np.array(self, order="C") if out is None else out
    return _core.scattered(target, index, src, dim % self.ndim, adds)


def _finish(out: np.ndarray, work: np.ndarray) -> np.ndarray:
    if work is not out:
        out[...] = work
    return out


@op(
    "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace="aten::scatter_.src",
    expose="no",
)
def _scatter_src(
    self: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, out: Any = None
) -> np.ndarray:
    fused = _scattered(self, dim, index, src, out, False)
    if fused is not None:
        return fused
    where, source, _ = _scatter_places(self, dim, index, src)
    out, work = _target(self, out)
    if where is not None:
        _flat(work)[where] = source
    return _finish(out, work)


_scatter_src.derivative(
    self=lambda g, dim, index: _scatter_value(g, dim, index, 0),
    src=lambda g, dim, index: gather(g, dim, index),
)


@op(
    "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace="aten::scatter_.value",
    node="ScatterBackward1",
    expose="no",
)
def _scatter_value(self: np.ndarray, dim: int, index: np.ndarray, value: Any, out: Any = None) -> np.ndarray:
    where, _, _ = _scatter_places(self, dim, index, None)
    value = fitting(value, self.dtype)
    out, work = _target(self, out)
    if where is not None:
        _flat(work)[where] = value
    return _finish(out, work)


_scatter_value.derivative(self=lambda g, dim, index: _scatter_value(g, dim, index, 0))

_REDUCERS = {"add": np.add, "multiply": np.multiply}


def _reducer(reduce: str) -> Any:
    if reduce not in _REDUCERS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return _REDUCERS[reduce]


def _not_differentiable(g: Any) -> Any:
    raise RuntimeError("derivative for aten::scatter is not implemented")


@op(
    "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace="aten::scatter_.reduce",
    node="NotImplemented",
    expose="no",
)
def _scatter_reducing(
    self: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, reduce: str, out: Any = None
) -> np.ndarray:
    ufunc = _reducer(reduce)
    where, source, _ = _scatter_places(self, dim, index, src)
    out, work = _target(self, out)
    if where is not None:
        ufunc.at(_flat(work), where.reshape(-1), source.reshape(-1))
    return _finish(out, work)


_scatter_reducing.derivative(self=_not_differentiable, src=_not_differentiable)


@op(
    "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace="aten::scatter_.value_reduce",
    node="NotImplemented",
    expose="no",
)
def _scatter_value_reducing(
    self: np.ndarray, dim: int, index: np.ndarray, value: Any, reduce: str, out: Any = None
) -> np.ndarray:
    ufunc = _reducer(reduce)
    where, _, _ = _scatter_places(self, dim, index, None)
    out, work = _target(self, out)
    if where is not None:
        ufunc.at(_flat(work), where.reshape(-1), np.asarray(fitting(value, self.dtype), self.dtype))
    return _finish(out, work)


_scatter_value_reducing.derivative(self=_not_differentiable)

_REDUCE_WARNING = (
    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
    "PyTorch release. Use "
    "torch.scatter_reduce instead for more reduction options."
)


def _choose(src: Any, value: Any, reduce: Any) -> tuple[Any, Any]:
    """The overload and its last argument."""
    source = src if src is not None else value
    if isinstance(source, Tensor):
        if reduce is not None:
            warn_once(_REDUCE_WARNING)
        return (_scatter_src if reduce is None else _scatter_reducing), source
    if source is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    return (_scatter_value if reduce is None else _scatter_value_reducing), source


@function()
def scatter(
    input: Any,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    out: Any = None,
) -> Any:
    """A copy of `input` with values written along a dimension at the places in `index`."""
    chosen, source = _choose(src, value, reduce)
    more = () if reduce is None else (reduce,)
    if out is not None:
        return call_out(chosen.op, out, (input, dim, index, source, *more))
    return (
        chosen(input, dim, index, source)
        if reduce is None
        else chosen(input, dim, index, source, reduce=reduce)
    )


@function(expose="method")
def scatter_(
    self: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """Write values along a dimension at the places in `index`."""
    chosen, source = _choose(src, value, reduce)
    entry = chosen.op.inplace.entry
    return (
        entry(self, dim, index, source) if reduce is None else entry(self, dim, index, source, reduce=reduce)
    )


@op(
    "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    inplace="aten::scatter_add_",
    out=True,
)
def scatter_add(
    self: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, out: Any = None
) -> np.ndarray:
    fused = _scattered(self, dim, index, src, out, True)
    if fused is not None:
        return fused
    where, source, _ = _scatter_places(self, dim, index, src)
    out, work = _target(self, out)
    if where is not None:
        np.add.at(_flat(work), where.reshape(-1), source.reshape(-1))
    return _finish(out, work)


scatter_add.derivative(self=lambda g: g, src=lambda g, dim, index: gather(g, dim, index))


# ------------------------------------------------------------------------------------- scatter_reduce


def _identity(reduce: str, dtype: np.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    low, high = (False, True) if dtype.kind == "b" else (-np.inf, np.inf)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return low if reduce == "amax" else high


_AT = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _divide(total: np.ndarray, count: np.ndarray) -> None:
    """total /= count in place; integers rounded down."""
    if total.dtype.kind in "iu":
        np.floor_divide(total, count.astype(total.dtype), out=total)
    else:
        np.divide(total, count.astype(total.dtype), out=total)


@op(
    "aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor",
    inplace="aten::scatter_reduce_.two",
    out=True,
)
def scatter_reduce(
    self: np.ndarray,
    dim: int,
    index: np.ndarray,
    src: np.ndarray,
    reduce: str,
    include_self: bool,
    out: Any = None,
) -> np.ndarray:
    if reduce not in _AT:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    kind = self.dtype.kind
    if (kind == "b" and reduce == "mean") or (kind in "cW" and reduce in ("amax", "amin")):
        name = BY_NUM[self.dtype.num]._abbr
        raise NotImplementedError(
            f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{name}'"
        )
    where, source, _ = _scatter_places(self, dim, index, src)
    out, work = _target(self, out)
    if where is None:
        return _finish(out, work)
    flat, where, source = _flat(work), where.reshape(-1), source.reshape(-1)
    if not include_self:
        flat[where] = _identity(reduce, self.dtype)
    _AT[reduce].at(flat, where, source)
    if reduce == "mean":
        count = np.bincount(where, minlength=flat.size) + (1 if include_self else 0)
        _divide(flat, np.maximum(count, 1))
    return _finish(out, work)


@scatter_reduce.backward("self", "src")
def _(
    g: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    needs: tuple,
) -> tuple[Any, Any]:
    if not g.any() if g.numel() == 0 else False:
        return F.zeros_like(self), F.zeros_like(src)
    if reduce == "sum":
        to_self, to_src = g, gather(g, dim, index)
    elif reduce == "prod":
        to_self, to_src = _prod_backward(
            g, self, src, result,
            lambda x, y: F.scatter_reduce(x, dim, index, y, "prod", include_self=include_self),
            lambda x: gather(x, dim, index),
            lambda x, y: F.scatter_add(x, dim, index, y),
        )  # fmt: skip
    elif reduce == "mean":
        count = F.ones_like(g) if include_self else F.zeros_like(g)
        count = F.scatter_add(count, dim, index, F.ones_like(src))
        count.masked_fill_(count == 0, 1)
        to_self, to_src = g / count, gather(g, dim, index) / gather(count, dim, index)
    else:
        value = gather(result, dim, index)
        to_self, to_src = _extreme_backward(
            g,
            self,
            src,
            result,
            value,
            lambda x, y: F.scatter_add(x, dim, index, y),
            lambda x: gather(x, dim, index),
        )
    if not include_self:
        to_self = _scatter_value(to_self, dim, index, 0)
    return to_self, to_src


def _prod_backward(
    g: Any, self: Any, src: Any, result: Any, reduce: Any, read: Any, add: Any
) -> tuple[Any, Any]:
    """Gradients of a product: the product of the others, computed without a division by zero where one factor is zero."""
    masked_self = F.masked_fill(self, self == 0, 1)
    to_self = g * reduce(masked_self, src) / masked_self
    zero = src == 0
    zeros = read(add(F.zeros_like(self), zero.to(self.dtype)))
    single = zero & (zeros == 1)
    others = reduce(self, F.masked_fill(src, single, 1))
    divisor = F.masked_fill(src, zero, 1)
    divided = read(g * result) / divisor
    to_src = F.where(single, read(g * others), divided)
    return to_self, to_src


def _extreme_backward(
    g: Any, self: Any, src: Any, result: Any, value: Any, add: Any, read: Any
) -> tuple[Any, Any]:
    """Gradients of a maximum or minimum: shared evenly among the elements equal to it."""
    self_reaches = (self == result).to(g.dtype)
    src_reaches = (src == value).to(g.dtype)
    shared = g / add(self_reaches, src_reaches)
    to_self = self_reaches * shared
    read_shared = read(shared)
    return to_self, src_reaches * read_shared


# ------------------------------------------------------------------------------------------ take, put


@op("aten::take(Tensor self, Tensor index) -> Tensor", out=True)
def take(self: np.ndarray, index: np.ndarray) -> np.ndarray:
    if index.dtype.num != 7:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {BY_NUM[index.dtype.num]._abbr}"
        )
    _check_flat(self, index)
    return _flat(self).take(index)


def _check_flat(array: np.ndarray, index: np.ndarray) -> None:
    n = array.size
    if not _dims.inside(index, -n, n):
        bad = index[(index < -n) | (index >= n)].reshape(-1)[0]
        raise IndexError(f"out of range: tried to access index {int(bad)} on a tensor of {n} elements.")


take.derivative(self=lambda g, self, index: F.put_(F.zeros_like(self), index, g, True))


@op(
    "aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    inplace="aten::put_",
)
def put(
    self: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool, out: Any = None
) -> np.ndarray:
    if index.dtype.num != 7:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {BY_NUM[index.dtype.num]._abbr}"
        )
    if source.dtype != self.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{BY_NUM[self.dtype.num]._abbr} and source.dtype "
            f"= {BY_NUM[source.dtype.num]._abbr}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    _check_flat(self, index)
    out, work = _target(self, out)
    flat, where = _flat(work), index.reshape(-1)
    if accumulate:
        np.add.at(flat, where, source.reshape(-1))
    else:
        flat[where] = source.reshape(-1)
    return _finish(out, work)


put.derivative(
    self=lambda g, index, source_shape, accumulate: (
        g if accumulate else F.put(g, index, F.zeros(source_shape, dtype=g.dtype), False)
    ),
    source=lambda g, index, source: take(g, index).reshape_as(source),
)
put.children(
    lambda self, index, source, accumulate: [
        child("aten::clone", self, allocates=True),
        child("aten::put_", self, index, source, accumulate),
    ]
)


@function()
def take_along_dim(input: Any, indices: Any, dim: Any = None, *, out: Any = None) -> Any:
    """Values along a dimension at the places in `indices`; the two broadcast elsewhere."""
    if out is not None:
        return call_out(_take_along_dim.op, out, (input, indices, dim))
    return _take_along_dim(input, indices, dim)


@composite("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", expose="no")
def _take_along_dim(self: Any, indices: Any, dim: Any = None) -> Any:
    if indices._array.dtype.num != 7:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype._abbr}"
        )
    if dim is None:
        return gather(F.reshape(self, (-1,)), 0, F.reshape(indices, (-1,)))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    d = _dims.one(dim, self.ndim)
    mine, theirs = list(self.shape), list(indices.shape)
    common = list(
        np.broadcast_shapes(tuple(mine[:d] + [1] + mine[d + 1 :]), tuple(theirs[:d] + [1] + theirs[d + 1 :]))
    )
    wide = F.broadcast_to(indices, tuple(common[:d] + [theirs[d]] + common[d + 1 :]))
    source = F.broadcast_to(self, tuple(common[:d] + [mine[d]] + common[d + 1 :]))
    return gather(source, d, F.remainder(wide, mine[d]))
