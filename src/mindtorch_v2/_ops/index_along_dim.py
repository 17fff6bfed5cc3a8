"""Whole slices along one dimension: index_select, index_add, index_copy, index_fill and index_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._dispatch import composite, function, op
from .._dtype import BY_NUM
from .._tensor import Tensor
from . import _dims
from ._accumulate import add_rows
from ._children import child, item
from ._layout import copied, expanded_target
from ._namespace import functions as F
from ._scalars import fitting
from ._warn import warn_once
from .scatter import _AT, _divide, _extreme_backward, _identity, _prod_backward, check_bounds
from .shape import size_text

_PRESERVE_FORMAT = 1  # torch's number


def _vector(index: np.ndarray) -> np.ndarray:
    return index if index.ndim == 1 else index.reshape(-1)


def _front(array: np.ndarray, d: int) -> np.ndarray:
    """A view with dimension `d` first."""
    if array.ndim == 0:
        return array.reshape(1)
    return array if d == 0 else np.moveaxis(array, d, 0)


def _copy_of(self: np.ndarray) -> np.ndarray:
    return np.array(self, order="C")


# --------------------------------------------------------------------------------------- index_select


@op("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", out=True)
def index_select(self: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype.num not in (5, 7):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    n = self.shape[d] if self.ndim else 1
    if not _dims.inside(index, 0, n):
        raise IndexError("index out of range in self")
    if self.ndim == 0:
        return self.copy()
    return self.take(_vector(index), d)


@composite(
    "aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
    expose="no",
)
def index_select_backward(grad: Any, self_sizes: tuple, dim: int, index: Any) -> Any:
    return F.index_add_(grad.new_zeros(self_sizes), dim, index, grad)


index_select.derivative(
    self=lambda g, self_shape, dim, index: index_select_backward(g, self_shape, dim, index)
)


# ------------------------------------------------------------------------------ index_add, index_copy


def _check_source(name: str, self: np.ndarray, d: int, index: np.ndarray, source: np.ndarray) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{BY_NUM[index.dtype.num]._abbr} and size: "
            f"{size_text(index.shape)}"
        )
    if index.dtype.num not in (5, 7):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got: {BY_NUM[index.dtype.num]._abbr}"
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"{name}(): self ({BY_NUM[self.dtype.num]._abbr}) and source ({BY_NUM[source.dtype.num]._abbr}) "
            "must have the same scalar type"
        )
    if self.ndim:
        rest = [n for a, n in enumerate(self.shape) if a != d]
        given = [n for a, n in enumerate(source.shape) if a != d]
        counted = index.size == (source.shape[d] if d < source.ndim else 1)
        if source.ndim != self.ndim or (given != rest and counted):
            raise RuntimeError(
                "source tensor shape must match self tensor shape, excluding the specified dimension. "
                "Got self.shape = "
                f"{size_text(self.shape)} source.shape = {size_text(source.shape)}"
            )
    length = source.shape[d] if source.ndim else 1
    if index.size != length:
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): ({length}), "
            f"for dim: {d}"
        )


@op(
    "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace="aten::index_add_",
    out=True,
)
def index_add(
    self: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, alpha: Any, out: Any = None
) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    _check_source("index_add_", self, d, index, source)
    where = _vector(index)
    check_bounds(where, self.shape[d] if self.ndim else 1, d)
    if out is None:
        out = _copy_of(self)
    if alpha != 1:
        source = (source * alpha).astype(self.dtype, copy=False)
    add_rows(_front(out, d), where, _front(source, d))
    return out


def _spread(g: Any, source: Any, dim: int, index: Any, alpha: Any) -> Any:
    if source.ndim:
        found = F.expand_as(index_select(g, dim, index), source)
    else:
        found = index_select(g, dim, index).squeeze(0)
    return found if alpha == 1 else found * alpha


index_add.derivative(
    self=lambda g: g, source=lambda g, source, dim, index, alpha: _spread(g, source, dim, index, alpha)
)


@op(
    "aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace="aten::index_copy_",
    out=True,
)
def index_copy(
    self: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, out: Any = None
) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype.num != 7:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {BY_NUM[index.dtype.num]._abbr}"
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{BY_NUM[self.dtype.num]._abbr} and (source) "
            f"{BY_NUM[source.dtype.num]._abbr}"
        )
    length = source.shape[d] if source.ndim else 1
    if source.ndim and self.ndim:
        mine, theirs = (
            [n for a, n in enumerate(self.shape) if a != d],
            [n for a, n in enumerate(source.shape) if a != d],
        )
        if mine != theirs:
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
                "shape: "
                f"{' '.join(map(str, mine))} at dimension {d} and source slice shape: "
                f"{' '.join(map(str, theirs))} at dimension 0."
            )
    if index.size != length:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({length})"
        )
    where = _vector(index)
    check_bounds(where, self.shape[d] if self.ndim else 1, d, IndexError, "index_copy_(): ")
    if out is None:
        out = _copy_of(self)
    _front(out, d)[where] = _front(source, d)
    return out


index_copy.derivative(
    self=lambda g, dim, index: _index_fill_scalar(g, dim, index, 0),
    source=lambda g, source, dim, index: _spread(g, source, dim, index, 1),
)


# ----------------------------------------------------------------------------------------- index_fill


def _fill_along(self: np.ndarray, dim: int, index: np.ndarray, value: Any, out: Any) -> np.ndarray:
    d = _dims.one(dim, self.ndim)
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if index.dtype.num != 7:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    n = self.shape[d] if self.ndim else 1
    where = _vector(index)
    if not _dims.inside(where, -n, n):
        bad = where[(where < -n) | (where >= n)][0]
        raise IndexError(f"index {int(bad)} is out of bounds for dimension {d} with size {n}")
    if out is None:
        out = copied(self)
    elif not out.flags.writeable:
        out = expanded_target(out, "index_fill_", "tensor[mask] = scalar")
    _front(out, d)[where] = value
    return out


@op(
    "aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace="aten::index_fill_.int_Scalar",
    expose="no",
)
def _index_fill_scalar(
    self: np.ndarray, dim: int, index: np.ndarray, value: Any, out: Any = None
) -> np.ndarray:
    if isinstance(value, complex) and self.dtype.kind not in "cW":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return _fill_along(self, dim, index, fitting(value, self.dtype), out)


_index_fill_scalar.derivative(self=lambda g, dim, index: _index_fill_scalar(g, dim, index, 0))
_index_fill_scalar.children(
    lambda self, dim, index, value: [
        child("aten::clone", self, _PRESERVE_FORMAT, allocates=True),
        child("aten::index_fill_.int_Scalar", self, dim, index, value),
    ]
)


@op(
    "aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    inplace="aten::index_fill_.int_Tensor",
    node="IndexFillBackward1",
    expose="no",
)
def _index_fill_tensor(
    self: np.ndarray, dim: int, index: np.ndarray, value: np.ndarray, out: Any = None
) -> np.ndarray:
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
            "dimension(s)."
        )
    return _fill_along(self, dim, index, value.astype(self.dtype), out)


_index_fill_tensor.derivative(
    self=lambda g, dim, index: _index_fill_scalar(g, dim, index, 0),
    value=lambda g, dim, index: index_select(g, dim, F.unique(index)).sum(),
)
_index_fill_tensor.children(
    lambda self, dim, index, value: [
        child("aten::clone", self, _PRESERVE_FORMAT, allocates=True),
        child("aten::index_fill_.int_Tensor", self, dim, index, value),
    ]
)
_index_fill_tensor.op.inplace.children(
    lambda self, dim, index, value: [
        item(value),
        child("aten::index_fill_.int_Scalar", self, dim, index, None),
    ]
)


@function()
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """A copy of `input` with whole slices along a dimension set to one value."""
    return (_index_fill_tensor if isinstance(value, Tensor) else _index_fill_scalar)(input, dim, index, value)


@function(expose="method")
def index_fill_(self: Any, dim: int, index: Any, value: Any) -> Any:
    """Set whole slices along a dimension to one value."""
    return (_index_fill_tensor if isinstance(value, Tensor) else _index_fill_scalar).op.inplace.entry(
        self, dim, index, value
    )


# --------------------------------------------------------------------------------------- index_reduce


@op(
    "aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
    "include_self=True) -> Tensor",
    inplace="aten::index_reduce_",
    out=True,
)
def index_reduce(
    self: np.ndarray,
    dim: int,
    index: np.ndarray,
    source: np.ndarray,
    reduce: str,
    include_self: bool,
    out: Any = None,
) -> np.ndarray:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    warn_once("index_reduce() is in beta and the API may change at any time.")
    kind = self.dtype.kind
    if (kind == "b" and reduce == "mean") or (kind in "cW" and reduce in ("amax", "amin")):
        name = {"mean": "div_floor_cpu", "amax": "maximum_cpu", "amin": "minimum_cpu"}[reduce]
        raise NotImplementedError(f"\"{name}\" not implemented for '{BY_NUM[self.dtype.num]._abbr}'")
    d = _dims.one(dim, self.ndim)
    _check_source("index_reduce_", self, d, index, source)
    where = _vector(index)
    n = self.shape[d] if self.ndim else 1
    if not _dims.inside(where, 0, n):
        raise IndexError("index out of range in self")
    if out is None:
        out = _copy_of(self)
    rows, given = _front(out, d), _front(source, d)
    if not include_self:
        rows[where] = _identity(reduce, self.dtype)
    if reduce == "mean":
        add_rows(rows, where, given)
        count = np.maximum(np.bincount(where, minlength=n) + (1 if include_self else 0), 1)
        _divide(rows, count.reshape((-1,) + (1,) * (rows.ndim - 1)))
    else:
        _AT[reduce].at(rows, where, given)
    return out


@index_reduce.backward("self", "source")
def _(
    g: Any,
    self: Any,
    dim: int,
    index: Any,
    source: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    needs: tuple,
) -> tuple[Any, Any]:
    if reduce == "prod":
        to_self, to_source = _prod_backward(
            g, self, source, result,
            lambda x, y: F.index_reduce(x, dim, index, y, "prod", include_self=include_self),
            lambda x: index_select(x, dim, index),
            lambda x, y: F.index_add(x, dim, index, y),
        )  # fmt: skip
    elif reduce == "mean":
        count = F.ones_like(g) if include_self else F.zeros_like(g)
        count = F.index_add(count, dim, index, F.ones_like(source))
        count.masked_fill_(count == 0, 1)
        to_self, to_source = g / count, index_select(g, dim, index) / index_select(count, dim, index)
    else:
        value = index_select(result, dim, index)
        to_self, to_source = _extreme_backward(
            g,
            self,
            source,
            result,
            value,
            lambda x, y: F.index_add(x, dim, index, y),
            lambda x: index_select(x, dim, index),
        )
    if not include_self:
        to_self = _index_fill_scalar(to_self, dim, index, 0)
    return to_self, to_source
