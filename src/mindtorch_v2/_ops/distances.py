"""Distances between all pairs of rows: `cdist` of two tables, `pdist` of one."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype, _op_errors
from .._dispatch import composite, function, op
from ._double_backward import through
from ._namespace import functions as F
from ._where import where
from .norms import _norm


@functools.lru_cache(maxsize=16)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of all pairs of different rows, the first one in front."""
    first, second = np.triu_indices(n, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


def _differences(table: np.ndarray) -> np.ndarray:
    """Of all pairs of different rows."""
    rows, columns = _pairs(table.shape[0])
    return table.take(rows, 0) - table.take(columns, 0)


_MANY = 25  # from this many rows on, a matrix product is faster


def _pair_distances(a: np.ndarray, b: np.ndarray, p: float) -> np.ndarray:
    """(..., n, d) and (..., m, d) to (..., n, m)."""
    if p == 2 and a.shape[-1] > 8:
        square = (
            (a * a).sum(-1)[..., :, None]
            + (b * b).sum(-1)[..., None, :]
            - 2 * np.matmul(a, np.swapaxes(b, -1, -2))
        )
        close = square < 1e-4 * np.maximum((a * a).sum(-1)[..., :, None], 1e-30)
        distances = np.sqrt(np.maximum(square, 0))
        if close.any():  # cancellation: exact where points nearly coincide
            exact = _norm(a[..., :, None, :] - b[..., None, :, :], p, -1, False)
            distances = where(close, exact, distances)
        return distances.astype(a.dtype)
    difference = a[..., :, None, :] - b[..., None, :, :]
    if p == 0:  # how many coordinates differ; unlike for norms, NaN makes NaN
        return np.add.reduce(np.minimum(np.ceil(np.abs(difference)), 1), axis=-1)
    return _norm(difference, p, -1, False)


@op(
    "aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    expose="no",
    node="CdistBackward0",
)
def _cdist_forward(x1: np.ndarray, x2: np.ndarray, p: float, compute_mode: Any) -> np.ndarray:
    return _pair_distances(x1, x2, p)


def _slopes(difference: np.ndarray, distance: np.ndarray, p: float) -> np.ndarray:
    """The derivative of a distance by the difference, 0 where points coincide. `distance` has one more dimension, of 1."""
    if p == 0:
        return np.zeros_like(difference)
    if p == 1:
        return np.sign(difference)
    if math.isinf(p):
        return np.sign(difference) * (np.abs(difference) == distance)
    with np.errstate(divide="ignore", invalid="ignore"):
        if p == 2:
            slopes = difference / distance
        else:
            slopes = difference * np.abs(difference) ** (p - 2) * distance ** (1 - p)
    return where((distance == 0) | (difference == 0), 0, slopes).astype(difference.dtype)


def _distance_slope(g: Any, difference: Any, distance: Any, p: float) -> Any:
    """The same by tensor ops, times g."""
    g, distance = g.unsqueeze(-1), distance.unsqueeze(-1)
    zero = F.zeros((), dtype=difference.dtype)
    if p == 0:
        return F.zeros_like(difference) * g
    if p == 1:
        return g * F.sgn(difference)
    if math.isinf(p):
        hit = (F.abs(difference) == distance).to(difference.dtype)
        return g * F.sgn(difference) * hit
    if p == 2:
        return F.where(distance == 0, zero, g * difference / distance)
    slope = difference * F.pow(F.abs(difference), p - 2) * F.pow(distance, 1 - p)
    return F.where(F.logical_or(distance == 0, difference == 0), zero, g * slope)


@op(
    "aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    expose="no",
    node="CdistBackwardBackward0",
)
def _cdist_backward(
    grad: np.ndarray, x1: np.ndarray, x2: np.ndarray, p: float, cdist: np.ndarray
) -> np.ndarray:
    slopes = _slopes(x1[..., :, None, :] - x2[..., None, :, :], cdist[..., None], p)
    return np.ascontiguousarray((slopes * grad[..., None]).sum(-2))


@_cdist_backward.backward("grad", "x1", "x2", "cdist")
def _(g: Any, grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    def expression(grad: Any, x1: Any, x2: Any, cdist: Any) -> Any:
        return _distance_slope(grad, x1.unsqueeze(-2) - x2.unsqueeze(-3), cdist, p).sum(-2)

    return through(g, expression, grad, x1, x2, cdist)


def _dense(x: Any) -> Any:
    return x if x._array.flags.c_contiguous else F.contiguous(x)


@_cdist_forward.backward("x1", "x2")
def _(g: Any, x1: Any, x2: Any, out: Any, p: float, needs: Any) -> Any:
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    first = x1 if x1.shape[:-2] == batch else F.expand(x1, (*batch, *x1.shape[-2:]))
    second = x2 if x2.shape[:-2] == batch else F.expand(x2, (*batch, *x2.shape[-2:]))
    to_first = to_second = None
    if needs[0]:
        to_first = _cdist_backward(_dense(g), first, second, p, out)
    if needs[1]:
        turned, distances = _dense(_turned(g)), _dense(_turned(out))
        to_second = _cdist_backward(turned, second, first, p, distances)
    return to_first, to_second


def _turned(x: Any) -> Any:
    return x.mT


@op(
    "aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    expose="no",
    on="tensors",
    node="EuclideanDistBackward0",
)
def _euclidean_dist(x1: Any, x2: Any) -> Any:
    """|a - b|^2 = |a|^2 - 2ab + |b|^2, all by one matrix product."""
    first = F.sum(F.pow(x1, 2), -1, True)
    ones = _dispatch.OPS["ones_like"].entry(first, memory_format=_dtype.contiguous_format)
    second = F.sum(F.pow(x2, 2), -1, True)
    others = _dispatch.OPS["ones_like"].entry(second, memory_format=_dtype.contiguous_format)
    left = F.cat([F.mul(x1, -2), first, ones], -1)
    right = F.cat([x2, others, second], -1)
    return F.sqrt_(F.clamp_min_(F.matmul(left, _turned(right)), 0))


@_euclidean_dist.backward("x1", "x2")
def _(g: Any, x1: Any, x2: Any, out: Any, needs: Any) -> Any:
    ratio = g / out
    ratio = (F.masked_fill if _dispatch.grad_state.enabled else F.masked_fill_)(ratio, out == 0, 0)
    to_first = to_second = None
    if needs[0]:
        to_first = F.sub(F.mul(x1, F.sum(ratio, -1, True)), F.matmul(ratio, x2))
    if needs[1]:
        to_second = F.sub(F.mul(x2, F.unsqueeze(F.sum(ratio, -2, False), -1)), F.matmul(_turned(ratio), x1))
    return to_first, to_second


@function(expose="function")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """Distances between all pairs of rows."""
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _op_errors.refuse_numbers("cdist", x1=x1, x2=x2)
    if x1.ndim < 2 or x2.ndim < 2:
        which, bad = ("X1", x1) if x1.ndim < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {bad.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    for which, x in (("X1", x1), ("X2", x2)):
        if x.dtype._rank != 2:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {which} got: {x.dtype._abbr}")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype._abbr} but found {x2.dtype._abbr}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return _cdist(x1, x2, p, None if modes.index(compute_mode) == 0 else modes.index(compute_mode))


@composite("aten::cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", expose="no")
def _cdist(x1: Any, x2: Any, p: float, compute_mode: Any) -> Any:
    rows, columns = x1.shape[-2], x2.shape[-2]
    many = rows > _MANY or columns > _MANY
    if (
        p != 2
        or not rows
        or not columns
        or not x1.shape[-1]
        or not (compute_mode == 1 or (compute_mode is None and many))
    ):
        return _cdist_forward(x1, x2, p, compute_mode)
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    first, second = (_together(x, batch) for x in (x1, x2))
    return F.view(_euclidean_dist(first, second), (*batch, rows, columns))


def _together(x: Any, batch: tuple) -> Any:
    """All tables of a batch as one dimension, or the table alone."""
    wide = _dense(F.expand(x, (*batch, *x.shape[-2:])))
    return F.view(wide, (math.prod(batch), *x.shape[-2:]) if batch else tuple(x.shape))


@op("aten::_pdist_forward(Tensor self, float p=2) -> Tensor", expose="no", node="PdistBackward0")
def _pdist_forward(self: np.ndarray, p: float) -> np.ndarray:
    differences = _differences(self)
    if p == 2 and self.dtype.char in "fd":
        return np.sqrt(
            np.einsum("ij,ij->i", differences, differences)
        )  # a third of the time of a product and a sum
    return _norm(differences, p, -1, False)


@op(
    "aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    expose="no",
    node="PdistBackwardBackward0",
)
def _pdist_backward(grad: np.ndarray, self: np.ndarray, p: float, pdist: np.ndarray) -> np.ndarray:
    rows, columns = _pairs(self.shape[0])
    slopes = _slopes(_differences(self), pdist[:, None], p) * grad[:, None]
    made = np.zeros_like(self)
    np.add.at(made, rows, slopes)
    np.subtract.at(made, columns, slopes)
    return made


@_pdist_backward.backward("grad", "self", "pdist")
def _(g: Any, grad: Any, self: Any, p: float, pdist: Any) -> Any:
    rows, columns = (_dispatch.wrap(i) for i in np.triu_indices(self.shape[0], 1))

    def expression(grad: Any, self: Any, pdist: Any) -> Any:
        difference = F.index_select(self, 0, rows) - F.index_select(self, 0, columns)
        slope = _distance_slope(grad, difference, pdist, p)
        return F.index_add(F.index_add(F.zeros_like(self), 0, rows, slope), 0, columns, -slope)

    return through(g, expression, grad, self, pdist)


_pdist_forward.derivative(self=lambda g, self, out, p: _pdist_backward(g, self, p, out))


@composite("aten::pdist(Tensor self, float p=2) -> Tensor", expose="function")
def pdist(self: Any, p: float) -> Any:
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist_forward(_dense(self), p)
