"""Norms and distances of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype, _op_errors
from .._dispatch import composite, function, op, unalias
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS
from . import _dims, _lanes
from ._children import child, reduced_output, tensor
from ._namespace import functions as F
from ._reduction import reduced, restore
from .pointwise import add_scalar, mul_into


def _norm(x: np.ndarray, order: float, dims: Any, keepdim: bool) -> np.ndarray:
    if x.dtype.kind in "cW":
        x = np.abs(x)
    if order == 2:
        total = _lanes.squares(x, (dims % x.ndim,) if dims.__class__ is int else dims, keepdim)
        if total is None:
            total = np.add.reduce(np.multiply(x, x), axis=dims, keepdims=keepdim)
        return np.sqrt(total)
    if order == 1:
        return np.add.reduce(np.abs(x), axis=dims, keepdims=keepdim)
    if order == 0:
        return np.add.reduce((x != 0).astype(x.dtype), axis=dims, keepdims=keepdim)
    if order == math.inf:
        return np.maximum.reduce(np.abs(x), axis=dims, keepdims=keepdim, initial=0 if x.size == 0 else None)
    if order == -math.inf:
        return np.minimum.reduce(np.abs(x), axis=dims, keepdims=keepdim)
    return np.power(np.add.reduce(np.power(np.abs(x), order), axis=dims, keepdims=keepdim), 1 / order)


@op(
    "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
)
def linalg_vector_norm(self: np.ndarray, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if self.dtype.num in INTEGRAL_NUMS:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {BY_NUM[self.dtype.num]._abbr}"
        )
    if dtype is not None:
        if dtype._rank < 2:
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be floating point or complex, but got {dtype._abbr}"
            )
        self = self.astype(dtype._np)
    if not self.size and (float(ord) < 0 or float(ord) == math.inf):
        _check_identity(self, float(ord), dim)
    low = self.dtype in LOW_FLOATS
    dims, order = _dims.many(dim, self.ndim), float(ord)
    if order and all(self.shape[d] == 1 for d in dims):
        order = 1.0  # of one number: without squares or powers, which could overflow
    norms = _norm(self.astype(np.float32) if low else self, order, dims, keepdim)
    kind = self.dtype if self.dtype.kind not in "cW" else BY_NUM[self.dtype.num].to_real()._np
    return np.asarray(norms).astype(kind, copy=False)


def _check_identity(array: np.ndarray, order: float, dim: Any) -> None:
    if not dim:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {order:g} norm on an empty tensor because the operation does not have an identity"
        )
    for d in dim:
        if array.shape[d] == 0:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {order:g} norm on the dimension {d}because this dimension is empty and the "
                "operation does not have an identity"
            )


def _norm_grad(g: Any, self: Any, out: Any, ord: Any, dim: Any, keepdim: bool, self_shape: Any) -> Any:
    order = float(ord)
    if dim is not None or keepdim:
        g, out = restore(g, dim, keepdim, self_shape), restore(out, dim, keepdim, self_shape)
    if order == 0.0:
        return None
    if order == 1.0:
        return F.sgn(self) * g
    if order == 2.0:
        return g * F.masked_fill_(self / out, out == 0, 0)
    if math.isinf(order):
        size = F.abs(self)
        mask = F.logical_or(size == out, F.isnan(size))
        return F.sgn(self) * ((g / mask.sum(_dims.many(dim, len(self_shape)), True)) * mask)
    if order < 1.0:
        part = F.sgn(self) * F.masked_fill(F.pow(F.abs(self), order - 1), self == 0, 0)
        return part * g * F.pow(out, 1 - order)
    if order < 2.0:
        part = F.sgn(self) * F.pow(F.abs(self), order - 1)
        return part * F.masked_fill(g / F.pow(out, order - 1), out == 0, 0)
    part = F.abs(self)
    part = self * (F.pow(part, order - 2) if _dispatch.grad_state.enabled else F.pow_(part, order - 2))
    return part * F.masked_fill_(g / F.pow(out, order - 1), out == 0, 0)


linalg_vector_norm.derivative(self=_norm_grad)


@linalg_vector_norm.children
def _(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The norm of one number is its absolute value."""
    if self.shape != (1,) or keepdim or ord != 2:
        return reduced_output(self, dim, keepdim)[1]
    number = tensor((), self)
    return child("aten::squeeze.dims", self, (0,)), child("aten::abs.out", number, number)


# Overloads that only torch's own ops call, not Python code.


@op("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", expose="no",
    node="NormBackward1")  # fmt: skip
def norm_along(self: np.ndarray, p: Any, dim: Any, keepdim: bool) -> Any:
    return linalg_vector_norm.op.kernel(self, 2 if p is None else p, dim, keepdim, None)


norm_along.derivative(
    self=lambda g, self, out, p, dim, keepdim, self_shape: _norm_grad(
        g, self, out, 2 if p is None else p, dim, keepdim, self_shape
    )
)


@op("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", expose="no", node="NormBackward0")
def norm_of_all(self: np.ndarray, p: Any) -> Any:
    return linalg_vector_norm.op.kernel(self, p, None, False, None)


norm_of_all.derivative(
    self=lambda g, self, out, p, self_shape: _norm_grad(g, self, out, p, None, False, self_shape)
)

norm_along.children(
    lambda self, p, dim, keepdim: [
        child(
            "aten::linalg_vector_norm",
            self,
            2 if p is None else p,
            dim,
            keepdim,
            None,
            reduced(self, dim, keepdim),
            children=(),
        )
    ]
)
norm_of_all.children(
    lambda self, p: [
        child("aten::linalg_vector_norm", self, p, None, False, None, reduced(self, None, False), children=())
    ]
)


@function(expose="function")
def norm(
    input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Any:
    """The p-norm of all elements or along dimensions, or a matrix norm."""
    if p == "nuc":
        result = F.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
        return _dispatch.copied_into_out(result, out)
    if p is None or p == "fro":
        result = linalg_vector_norm(input, 2, dim, keepdim, dtype=dtype)
    elif isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    else:
        result = linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)
    return _dispatch.into_out(result, out)


@function("norm", expose="method")
def norm_method(
    self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, **aliases: Any
) -> Any:
    """The p-norm."""
    if aliases:
        return unalias(norm, aliases, input=self, p=p, dim=dim, keepdim=keepdim, dtype=dtype)
    return norm(self, p, dim, keepdim, dtype=dtype)


@function(expose="function")
def frobenius_norm(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """The square root of the sum of squares."""
    return _dispatch.into_out(_frobenius(input, dim, keepdim), out)


@composite("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", expose="no")
def _frobenius(self: Any, dim: Any, keepdim: bool) -> Any:
    return norm_along(self, 2, dim or tuple(range(self.ndim)), keepdim)


@composite("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", expose="no")
def _nuclear(self: Any, keepdim: bool) -> Any:
    return F.linalg_matrix_norm(self, "nuc", (-2, -1), keepdim)


@composite("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", expose="no")
def _nuclear_along(self: Any, dim: Any, keepdim: bool) -> Any:
    return F.linalg_matrix_norm(self, "nuc", dim, keepdim)


@function(expose="function")
def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Any:
    """The sum of singular values."""
    norms = _nuclear(input, keepdim) if tuple(dim) == (-2, -1) else _nuclear_along(input, dim, keepdim)
    return _dispatch.into_out(norms, out)


@op("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", on="tensors")
def dist(self: Any, other: Any, p: Any) -> Any:
    _op_errors.refuse_numbers("dist", input=self, other=other)
    return norm_of_all(F.sub(self, other), p)


@dist.backward("self", "other")
def _(g: Any, self: Any, other: Any, out: Any, p: Any, needs: Any) -> Any:
    difference = F.sub(self, other)
    gradient = _norm_grad(g, difference, out, p, None, False, difference.shape)
    if gradient is None:
        return None, None
    return (gradient if needs[0] else None), (F.neg(gradient) if needs[1] else None)


@op(
    "aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    on="tensors",
    inplace=False,
    out=True,
)
def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    size = linalg_vector_norm(self, p, _others(self, dim), True)._array
    scale = np.where(size > maxnorm, maxnorm / (size + size.dtype.type(1e-7)), size.dtype.type(1))
    factor = _dispatch.wrap(scale.astype(size.dtype, copy=False))
    output = _dispatch.wrap(np.empty(self._array.shape, self._array.dtype))
    return _dispatch.record(mul_into.op, self, factor, output)


def _others(self: Any, dim: int) -> list[int]:
    where = _dims.one(dim, self.ndim)
    return [d for d in range(self.ndim) if d != where]


def _renorm_grad(g: Any, self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    dims = _others(self, dim)
    wide = _dtype.float64 if self.dtype is _dtype.float32 else self.dtype
    size = linalg_vector_norm(self, p, dims, True, dtype=wide)
    if self.dtype.is_complex:
        total = F.sum(F.real(F.mul(F.conj(self), g)), dims, True)
    else:
        total = F.sum(F.mul(self, g), dims, True, dtype=wide)
    slope = _norm_grad(total, self, size, p, dims, True, self.shape)
    inverse = F.reciprocal(F.add(size, 1e-7))
    inner = g if slope is None else F.sub(g, F.mul(inverse, slope))
    scaled = F.mul(F.mul(inverse, maxnorm), inner)
    return F.where(F.gt(size, maxnorm), _dispatch.OPS["to.dtype"].entry(scaled, g.dtype), g)


renorm.derivative(self=_renorm_grad)


@function("renorm_", expose="method")
def renorm_(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """In-place renorm."""
    needed = (
        _dispatch.grad_state.enabled and self._rg
    )  # the backward pass needs the values from before the write
    return self.copy_(renorm(F.clone(self) if needed else self, p, dim, maxnorm))


# ---------------------------------------------------------------------------------------------------- distances


@composite(
    "aten::pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    expose="function",
)
def pairwise_distance(x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    dim = max(x1.ndim, x2.ndim) - 1
    return norm_along(add_scalar(F.sub(x1, x2), eps), p, dim, keepdim)


@composite(
    "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", expose="function"
)
def cosine_similarity(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    if x1.dtype._rank < 2 and x2.dtype._rank < 2:
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is " + x1.dtype._abbr
        )
    if x1.shape != x2.shape:
        x1, x2 = F.broadcast_tensors(x1, x2)
    first = F.clone(linalg_vector_norm(x1, 2, dim, True))
    second = F.clone(linalg_vector_norm(x2, 2, dim, True))
    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = False
    try:
        least = F.scalar_tensor(eps, dtype=first.dtype)
        for size in (first, second):
            F.clamp_min_(_dispatch.wrap(size._array), least)
    finally:
        state.enabled = enabled
    second = F.div(x2, second)  # before the first, as torch does
    return F.sum(F.mul(F.div(x1, first), second), dim)


# torch asks for the common dtype of the two
cosine_similarity.children(
    lambda x1, x2, dim, eps: [child("aten::result_type.Tensor", x1, x2, sequenced=True)]
)
