"""Masks: where, masked_fill, masked_select, masked_scatter and the indices of non-zero elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import call_out, composite, function, op, promote_pair
from .._dtype import BY_NUM
from .._op_errors import broadcast_text
from .._tensor import Tensor
from . import _core
from ._children import UNKNOWN, Child, child, tensor
from ._layout import expanded_target
from ._namespace import functions as F
from ._scalars import fitting
from ._warn import warn_once
from ._where import where as select

_KIND_NAMES = {
    "Byte": "unsigned char", "Char": "signed char", "Short": "short int", "Int": "int", "Long": "long int",
    "Half": "c10::Half",
    "Float": "float", "Double": "double", "BFloat16": "c10::BFloat16",
}  # fmt: skip


def _common_shape(a: tuple, b: tuple) -> tuple:
    if a == b:
        return a
    text = broadcast_text((a, b))
    if text is not None:
        raise RuntimeError(text)
    return np.broadcast_shapes(a, b)


def _fits_into(shape: tuple, common: tuple) -> None:
    if common != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}"
        )


# ---------------------------------------------------------------------------------------------- where


@op(
    "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    pointwise=True,
    out=True,
    expose="no",
)
def _where(condition: np.ndarray, self: np.ndarray, other: np.ndarray) -> np.ndarray:
    if condition.dtype.kind != "b":
        if condition.dtype.num != 2:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{BY_NUM[condition.dtype.num]._abbr}"
            )
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
            "future version of PyTorch. Use "
            "a boolean condition instead."
        )
        condition = condition.astype(bool)
    if self.dtype is not other.dtype:
        self, other = promote_pair(self, other)
    try:
        return select(condition, self, other)
    except ValueError:
        raise RuntimeError(_where_text(condition.shape, self.shape, other.shape)) from None


def _where_text(condition: tuple, self: tuple, other: tuple) -> str:
    return broadcast_text((condition, self, other)) or "where: shapes do not broadcast"


_where.derivative(
    self=lambda g, condition: _where_other(condition, g, 0),
    other=lambda g, condition: _where_self(condition, 0, g),
)


def _as_tensor(value: Any, other: Any = None) -> Any:
    """A number as a 0-dim tensor of the dtype that the result has together with `other`."""
    if isinstance(value, Tensor):
        return value
    kinds = [(_dtype.number_dtype(value), 2)]
    if isinstance(other, Tensor):
        kinds.append((other.dtype, 0 if other.ndim else 1))
    elif other is not None:
        kinds.append((_dtype.number_dtype(other), 2))
    dtype = _dtype.result_dtype(kinds)
    return F.scalar_tensor(value, dtype=dtype)


@composite("aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", expose="no")
def _where_other(condition: Any, self: Any, other: Any) -> Any:
    return _where(condition, self, _as_tensor(other, self))


@composite("aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", expose="no")
def _where_self(condition: Any, self: Any, other: Any) -> Any:
    return _where(condition, _as_tensor(self, other), other)


@composite("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", expose="no")
def _where_both(condition: Any, self: Any, other: Any) -> Any:
    return _where(condition, _as_tensor(self, other), _as_tensor(other, self))


@composite("aten::where(Tensor condition) -> Tensor[]", expose="no")
def _where_true(condition: Any) -> Any:
    return _nonzero_numpy(condition)


_MISSING = object()


def _choose(condition: Any, input: Any, other: Any, out: Any, arguments: tuple) -> Any:
    numbers = _dispatch.NUMBERS
    if not isinstance(condition, Tensor) or not all(
        isinstance(x, Tensor) or x.__class__ in numbers for x in (input, other)
    ):
        kinds = ", ".join(type(x).__name__ for x in arguments)
        raise TypeError(
            f"where() received an invalid combination of arguments - got ({kinds}), but expected one of:\n "
            "* (Tensor condition)\n"
            " * (Tensor condition, Tensor input, Tensor other, *, Tensor out = None)\n * (Tensor condition, "
            "Number self, Tensor other)\n"
            " * (Tensor condition, Tensor input, Number other)\n * (Tensor condition, Number self, Number "
            "other)\n"
        )
    if out is not None:
        return call_out(_where.op, out, (condition, _as_tensor(input), _as_tensor(other)))
    if isinstance(input, Tensor):
        if isinstance(other, Tensor):
            return _where(condition, input, other)
        return _where_other(condition, input, other)
    return (_where_self if isinstance(other, Tensor) else _where_both)(condition, input, other)


@function(expose="function")
def where(
    condition: Any, input: Any = _MISSING, other: Any = _MISSING, *, out: Any = None, **named: Any
) -> Any:
    """Elements of `input` where the condition holds, else of `other`; given alone: the indices where it holds."""
    if named:
        input = named.pop("self", input)
        if named:
            raise TypeError(f"where() got an unexpected keyword argument '{next(iter(named))}'")
    if input is _MISSING and other is _MISSING:
        return _where_true(condition)
    return _choose(
        condition, input, other, out, tuple(x for x in (condition, input, other) if x is not _MISSING)
    )


@function("where", expose="method")
def where_method(self: Any, condition: Any, other: Any) -> Any:
    """Elements of this tensor where the condition holds, else of `other`."""
    return _choose(condition, self, other, None, (condition, other))


# ---------------------------------------------------------------------------------------- masked_fill


def _check_mask(mask: np.ndarray) -> None:
    if mask.dtype.kind != "b":
        kind = BY_NUM[mask.dtype.num]._abbr
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {_KIND_NAMES.get(kind, kind)}"
        )


def _masked(self: np.ndarray, mask: np.ndarray, value: Any, out: Any) -> np.ndarray:
    fused = _core.masked_fill(self, mask, value, out)
    if fused is not None:
        return fused
    common = _common_shape(*((mask.shape, self.shape) if out is None else (self.shape, mask.shape)))
    _check_mask(mask)
    if out is None:
        out = np.empty(common, self.dtype)
        out[...] = self
    else:
        _fits_into(out.shape, common)
        if not out.flags.writeable:
            out = expanded_target(out, "masked_fill_", "tensor[mask] = scalar")
    np.copyto(out, value, where=mask)
    return out


@op(
    "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    inplace="aten::masked_fill_.Scalar",
    expose="no",
)
def _masked_fill_scalar(self: np.ndarray, mask: np.ndarray, value: Any, out: Any = None) -> np.ndarray:
    return _masked(self, mask, np.asarray(fitting(value, self.dtype), self.dtype), out)


_masked_fill_scalar.derivative(self=lambda g, mask: _masked_fill_scalar(g, mask, 0))


@op(
    "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    inplace="aten::masked_fill_.Tensor",
    node="MaskedFillBackward1",
    expose="no",
)
def _masked_fill_tensor(self: np.ndarray, mask: np.ndarray, value: np.ndarray, out: Any = None) -> np.ndarray:
    if value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
            "dimension(s)."
        )
    if value.dtype is not self.dtype:
        value = np.asarray(fitting(value.item(), self.dtype), self.dtype)
    return _masked(self, mask, value, out)


_masked_fill_tensor.derivative(
    self=lambda g, mask: _masked_fill_scalar(g, mask, 0), value=lambda g, mask: masked_select(g, mask).sum()
)


_CONTIGUOUS = 0  # torch's number of the contiguous memory format


def _copy_and_write(write: str) -> Any:
    """The children of an op that copies `self` in the shape it has together with `mask`, and writes to the copy."""

    def rule(self: Any, mask: Any, value: Any) -> list[Child]:
        copy, views = self, []
        if self is not UNKNOWN and self.shape != mask.shape:
            copy = tensor(_common_shape(self.shape, mask.shape), self)
            views = [child("aten::expand", x, copy.shape) for x in (self, mask)]
        clone = child("aten::clone", copy, _CONTIGUOUS, allocates=True)
        return [*views, clone, child(write, copy, mask, value)]

    return rule


_masked_fill_scalar.children(_copy_and_write("aten::masked_fill_.Scalar"))
_masked_fill_tensor.children(_copy_and_write("aten::masked_fill_.Tensor"))


@function()
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """A copy of `input` with `value` where the mask is true."""
    return (_masked_fill_tensor if isinstance(value, Tensor) else _masked_fill_scalar)(input, mask, value)


@function(expose="method")
def masked_fill_(self: Any, mask: Any, value: Any) -> Any:
    """Set elements to `value` where the mask is true."""
    return (_masked_fill_tensor if isinstance(value, Tensor) else _masked_fill_scalar).op.inplace.entry(
        self, mask, value
    )


# ---------------------------------------------------------------------------- masked_select, _scatter


@op("aten::masked_select(Tensor self, Tensor mask) -> Tensor", out=True)
def masked_select(self: np.ndarray, mask: np.ndarray) -> np.ndarray:
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if self.shape != mask.shape:
        common = _common_shape(mask.shape, self.shape)
        self, mask = np.broadcast_to(self, common), np.broadcast_to(mask, common)
    return self[mask] if self.ndim else self.reshape(1)[mask.reshape(1)]


@composite("aten::masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor", expose="no")
def masked_select_backward(grad: Any, input: Any, mask: Any) -> Any:
    wide = F.expand(input, _common_shape(input._array.shape, mask._array.shape))
    return F.masked_scatter_(F.zeros_like(wide, memory_format=_dtype.preserve_format), mask, grad)


masked_select.derivative(self=lambda g, self, mask: masked_select_backward(g, self, mask))


@op(
    "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", inplace="aten::masked_scatter_"
)
def masked_scatter(self: np.ndarray, mask: np.ndarray, source: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but "
            f"got{BY_NUM[self.dtype.num]._abbr} and "
            f"{BY_NUM[source.dtype.num]._abbr}"
        )
    if mask.dtype.kind != "b":
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{BY_NUM[mask.dtype.num]._abbr}"
        )
    common = _common_shape(mask.shape, self.shape)
    if out is None:
        out = np.empty(common, self.dtype)
        out[...] = self
    elif out.shape != common:
        raise RuntimeError(
            f"expand(CPUBoolType{{{list(mask.shape)}}}, size={list(out.shape)}): the number of sizes "
            f"provided ({out.ndim}) must be greater "
            f"or equal to the number of dimensions in the tensor ({mask.ndim})"
        )
    if mask.shape != common:
        mask = np.broadcast_to(mask, common)
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[mask] = source.reshape(-1)[:count]
    return out


@composite(
    "aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor", expose="no"
)
def masked_scatter_backward(grad_output: Any, mask: Any, sizes: tuple) -> Any:
    gradient = masked_select(grad_output, mask)
    total = 1
    for n in sizes:
        total *= n
    if gradient.numel() < total:
        gradient = F.cat([gradient, F.zeros((total - gradient.numel(),), dtype=gradient.dtype)], 0)
    return F.view(gradient, sizes)


masked_scatter.derivative(
    self=lambda g, mask: _masked_fill_scalar(g, mask, 0),
    source=lambda g, mask, source_shape: masked_scatter_backward(g, mask, source_shape),
)
masked_scatter.children(_copy_and_write("aten::masked_scatter_"))


# -------------------------------------------------------------------------------------------- nonzero


@op("aten::nonzero(Tensor self) -> Tensor", out=True, nondifferentiable=True, expose="no")
def _nonzero(self: np.ndarray) -> np.ndarray:
    if self.ndim == 0:
        return np.empty((1 if self else 0, 0), np.int64)
    return np.stack(self.nonzero()).T


@composite("aten::nonzero_numpy(Tensor self) -> Tensor[]", expose="no")
def _nonzero_numpy(self: Any) -> Any:
    if self.ndim == 0:
        return F.unbind(_nonzero(F.unsqueeze(self, 0)), 1)
    return F.unbind(_nonzero(self), 1)


@function()
def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The indices of non-zero elements: one row each, or one tensor per dimension."""
    if as_tuple:
        return _nonzero_numpy(input)
    return _nonzero(input) if out is None else _nonzero(input, out=out)


@composite("aten::argwhere(Tensor self) -> Tensor")
def argwhere(self: Any) -> Any:
    return _nonzero(self)


@op(
    "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    out=True,
    nondifferentiable=True,
)
def nonzero_static(self: np.ndarray, size: int, fill_value: int) -> np.ndarray:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    indices = np.full((size, self.ndim), fill_value, np.int64)
    if self.ndim:
        places = np.stack(self.nonzero()).T[:size]
        indices[: len(places)] = places
    return indices
