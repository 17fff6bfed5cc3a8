"""Losses with a margin: scores and targets in, hinges or their smooth form out. Reduction is torch's enum: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import BY_NUM, contiguous_format
from . import _core, _dims
from ._children import Child, child, tensor
from ._double_backward import through
from ._layout import laid_out
from ._namespace import functions as F
from .loss import MEAN, NONE, averaged, reduced, weighted_slopes
from .pointwise import add_scalar, mul_scalar, one_minus


def _reduce(losses: np.ndarray, reduction: int, shape: tuple) -> np.ndarray:
    if reduction == NONE:
        return losses.reshape(shape)
    return np.asarray(losses.sum() / losses.dtype.type(losses.size) if reduction == MEAN else losses.sum())


# ------------------------------------------------------------------------------------------------------- smooth


@op(
    "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", expose="no", on="tensors"
)
def soft_margin_loss(self: Any, target: Any, reduction: int) -> Any:
    scores, signs = _dispatch.promote_pair(self._array, target._array)
    losses = laid_out(np.asarray(np.multiply(scores, np.negative(signs))), scores, signs)
    np.log1p(np.exp(losses, losses), losses)
    return reduced(_dispatch.wrap(losses), reduction)


@soft_margin_loss.children
def _(self: Any, target: Any, reduction: Any) -> list[Child]:
    losses = tensor(self.shape, self)
    return [
        child("aten::neg.out", target, tensor((0,), self)),
        child("aten::mul_.Tensor", losses, self),
        child("aten::exp_", losses),
        child("aten::log1p_", losses),
    ]


@op(
    "aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    expose="no",
    on="tensors",
)
def soft_margin_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    norm = 1.0 / max(self.numel(), 1) if reduction == MEAN else 1.0
    z = F.exp(F.mul(F.neg(target), self))
    gradient = _dispatch.wrap(np.multiply(*_dispatch.promote_pair(target._array, z._array)))
    gradient = F.div_(mul_scalar.inplace(gradient, -norm), F.add_(z, 1))
    return F.mul_(gradient, grad_output)


soft_margin_loss_backward.children(
    lambda grad_output, self, target, reduction: [
        child("aten::mul.out", target, tensor(self.shape, self), tensor((0,), self))
    ]
)
soft_margin_loss.derivative(
    self=lambda g, self, target, reduction: soft_margin_loss_backward(g, self, target, reduction)
)


def _soft_margin_double(g: Any, grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    g = g * grad_output
    z = F.exp(-target * self)
    rest = add_scalar(z, 1)
    return averaged(g * (target * target) * z / (rest * rest), self, reduction)


soft_margin_loss_backward.derivative(
    grad_output=lambda g, grad_output, self, target, reduction: weighted_slopes(
        g, soft_margin_loss_backward(F.ones_like(grad_output), self, target, reduction), reduction
    ),
    self=_soft_margin_double,
)


@composite(
    "aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
    expose="function",
)
def hinge_embedding_loss(self: Any, target: Any, margin: float, reduction: int) -> Any:
    zeros = _dispatch.OPS["zeros_like"].entry(self, memory_format=contiguous_format)
    hinge = F.clamp_min_(one_minus(self, margin), 0)
    hinge = F.where(F.ne(target, 1), hinge, zeros)
    plain = F.where(F.ne(target, -1), self, zeros)
    return reduced(F.add(hinge, plain), reduction)


# -------------------------------------------------------------------------------------------------- several classes


def _margins(self: np.ndarray, target: np.ndarray, p: Any, margin: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Rows, the class index of each row, and by how much each other class violates the margin (0 if it does not)."""
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {BY_NUM[target.dtype.num]._abbr}")
    rows = self if self.ndim == 2 else self.reshape(1, -1)
    places = target.reshape(-1)
    if places.shape[0] != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size {[rows.shape[0]]}, but got {list(target.shape)}. Input has shape {list(self.shape)}."
        )
    if not _dims.inside(places, 0, rows.shape[1]):
        raise RuntimeError("target out of range")
    index = np.arange(rows.shape[0])
    gap = np.fmax(rows.dtype.type(margin) - rows[index, places][:, None] + rows, 0)  # NaN violates no margin
    gap[index, places] = 0
    return rows, places, gap


@op(
    "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    expose="no",
)
def multi_margin_loss(
    self: np.ndarray, target: np.ndarray, p: Any, margin: Any, weight: Any, reduction: int
) -> Any:
    rows, places, gap = _margins(self, target, p, margin, weight)
    if p == 2:
        gap = gap * gap
    if weight is not None:
        gap = gap * weight[places][:, None]
    losses = gap.sum(1) / rows.dtype.type(rows.shape[1])
    return _reduce(losses, reduction, losses.shape if self.ndim == 2 or target.ndim else ())


@op(
    "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
    "Tensor? weight=None, int reduction=1) -> Tensor",
    expose="no",
)
def multi_margin_loss_backward(
    grad_output: np.ndarray,
    self: np.ndarray,
    target: np.ndarray,
    p: Any,
    margin: Any,
    weight: Any,
    reduction: int,
) -> Any:
    rows, places, gap = _margins(self, target, p, margin, weight)
    gradient = 2 * gap if p == 2 else (gap > 0).astype(rows.dtype)
    if weight is not None:
        gradient = gradient * weight[places][:, None]
    gradient[np.arange(rows.shape[0]), places] = -gradient.sum(1)
    gradient /= rows.dtype.type(rows.shape[1] * (rows.shape[0] if reduction == MEAN else 1))
    gradient *= grad_output.reshape(-1, 1)
    return gradient.reshape(self.shape)


multi_margin_loss.derivative(
    self=lambda g, self, target, p, margin, weight, reduction: multi_margin_loss_backward(
        g, self, target, p, margin, weight, reduction
    )
)


@multi_margin_loss_backward.backward("grad_output", "self")
def _(
    g: Any, grad_output: Any, self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int
) -> Any:
    def expression(grad_output: Any, self: Any) -> Any:
        rows, places = _dims.rows(self), target.reshape(-1, 1)
        others = F.ones_like(rows).scatter(1, places, 0.0)
        gap = F.clamp(margin - F.gather(rows, 1, places) + rows, min=0) * others
        slope = 2 * gap if p == 2 else (gap > 0).to(rows.dtype)
        if weight is not None:
            slope = slope * weight[places.reshape(-1)].unsqueeze(1)
        gradient = slope - (1 - others) * slope.sum(1, True)
        gradient = gradient / (rows.shape[1] * (rows.shape[0] if reduction == MEAN else 1))
        return (gradient * grad_output.reshape(-1, 1)).reshape(self.shape)

    return through(g, expression, grad_output, self)


# --------------------------------------------------------------------------------------------------- several labels


def _as_rows(self: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, places = (self, target) if self.ndim == 2 else (self.reshape(1, -1), target.reshape(1, -1))
    if not _dims.inside(places, -1, rows.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    return rows, places


def _gaps(rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """Which classes are labels of their rows; for each label, up to the first negative one of a row, its row and class, and by how much
    each other class violates the margin to it."""
    valid = np.minimum.accumulate(places, 1) >= 0
    at, labels = valid.nonzero()[0], places[valid]
    flat = at * rows.shape[1] + labels
    is_target = np.zeros(rows.shape, bool)
    is_target.reshape(-1)[flat] = True
    gaps = rows.take(at, 0)
    gaps -= rows.take(flat)[:, None]
    gaps += 1
    np.fmax(gaps, 0, out=gaps)  # NaN violates no margin
    gaps[is_target.take(at, 0)] = 0
    return is_target, at, labels, gaps


def _margin_sums(rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row the sum of violated margins, and which classes are labels."""
    fused = _core.multilabel_margins(rows, places)
    if fused is not None:
        return fused
    is_target, at, _, gaps = _gaps(rows, places)
    sums = np.zeros(rows.shape[0], rows.dtype)
    np.add.at(sums, at, gaps.sum(1))
    return sums, is_target


@op(
    "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    expose="no",
    node="MultilabelMarginLossBackward0",
    outputs=1,
)
def multilabel_margin_loss_forward(self: np.ndarray, target: np.ndarray, reduction: int) -> Any:
    rows, places = _as_rows(self, target)
    sums, is_target = _margin_sums(rows, places)
    losses = sums / rows.dtype.type(max(rows.shape[1], 1))
    loss = _reduce(losses, reduction, losses.shape if self.ndim == 2 else ())
    return loss, is_target.astype(rows.dtype).reshape(target.shape)


@op(
    "aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor",
    expose="no",
)
def multilabel_margin_loss_backward(
    grad_output: np.ndarray, self: np.ndarray, target: np.ndarray, reduction: int, is_target: np.ndarray
) -> Any:
    rows, places = _as_rows(self, target)
    _, at, labels, gaps = _gaps(rows, places)
    hit = (gaps > 0).astype(rows.dtype)
    gradient = np.zeros(rows.shape, rows.dtype)
    np.add.at(gradient, at, hit)
    np.subtract.at(gradient, (at, labels), hit.sum(1))
    gradient /= rows.dtype.type(rows.shape[1] * (rows.shape[0] if reduction == MEAN else 1))
    gradient *= grad_output.reshape(-1, 1)
    return gradient.reshape(self.shape)


@multilabel_margin_loss_forward.backward("self")
def _(grads: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    return (multilabel_margin_loss_backward(grads[0], self, target, reduction, is_target),)


def _per_loss(g: Any, grad_output: Any, self: Any, target: Any, reduction: int, is_target: Any) -> Any:
    products = g * multilabel_margin_loss_backward(
        F.ones_like(grad_output), self, target, reduction, is_target
    )
    return products.sum() if not grad_output.ndim else products.sum(-1)


multilabel_margin_loss_backward.derivative(grad_output=_per_loss, self=lambda g: F.zeros_like(g))


def _range_check(x: Any) -> list[Child]:
    """The ops by which torch checks the range of values."""
    return [child("aten::min", x), child("aten::max", x)]


multilabel_margin_loss_forward.children(lambda self, target, reduction: _range_check(target))
multilabel_margin_loss_backward.children(
    lambda grad_output, self, target, reduction, is_target: [*_range_check(target), *_range_check(is_target)]
)


@composite("aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", expose="no")
def multilabel_margin_loss(self: Any, target: Any, reduction: int) -> Any:
    if tuple(self.shape) != tuple(target.shape):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}"
        )
    if self.ndim > 2 or (self.ndim and not self.shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )
    return multilabel_margin_loss_forward(self, target, reduction)[0]
