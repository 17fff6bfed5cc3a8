"""Losses: predictions and targets in, a number (or one per element) out. Reduction is torch's enum: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS, contiguous_format
from . import _core, _dims
from ._children import UNKNOWN, child, dtype_number
from ._layout import laid_out
from ._namespace import functions as F
from ._where import where
from .pointwise import add_scalar, div_scalar, mul_scalar, one_minus, sub_scalar
from .sums import mean_into, sum_into

NONE, MEAN, SUM = 0, 1, 2


def reduced(tensor: Any, reduction: int) -> Any:
    """A tensor of losses, reduced by tensor ops."""
    if reduction == MEAN:
        return F.mean(tensor)
    return F.sum(tensor) if reduction == SUM else tensor


def _reduced_into(losses: np.ndarray, reduction: int) -> Any:
    """Losses, reduced into their own memory: the result keeps all of it, as in torch."""
    values = _dispatch.wrap(losses)
    if reduction == NONE or not losses.size:
        return reduced(values, reduction)
    total = _dispatch.wrap(losses.ravel("K")[:1].reshape(()))
    total._storage = _dispatch.storage_of(values)
    return (mean_into if reduction == MEAN else sum_into)(values, (), out=total)


mean_into.children(
    lambda self, dim, keepdim, dtype, out: [
        child("aten::sum.IntList_out", self, dim, keepdim, dtype_number(out), out),
        child("aten::div_.Tensor", out, _count(self.shape)),
    ]
)


def _count(shape: Any) -> Any:
    """The number of elements of a described tensor."""
    return UNKNOWN if shape is UNKNOWN else math.prod(shape)


def _uncounted(result: Any) -> Any:
    """A new result. Autograd does not count the writes that produced it."""
    _dispatch.storage_of(result)._version = 0
    return result


# ---------------------------------------------------------------------------------------------------- negative log likelihood


def _check_target(name: str, self: np.ndarray, target: np.ndarray) -> None:
    if target.dtype.num != np.dtype(np.int64).num and target.dtype.num != np.dtype(np.uint8).num:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {BY_NUM[target.dtype.num]._abbr}"
        )


def _nll_pieces(self: np.ndarray, target: np.ndarray, weight: Any, ignore_index: int) -> tuple:
    """Chosen log probabilities, their weights (None: all 1) and which targets count (None: all), for classes in dim 1."""
    classes = self.shape[1]
    counted = None
    inside = _dims.inside(target, 0, classes)
    if not inside or 0 <= ignore_index < classes:
        counted = target != ignore_index
        if np.count_nonzero(counted) == counted.size:
            counted = None
    safe = target if counted is None else where(counted, target, 0)
    if not inside and not _dims.inside(safe, 0, classes):
        bad = int(safe[(safe < 0) | (safe >= classes)].flat[0])
        raise IndexError(f"Target {bad} is out of bounds.")
    if self.ndim == 2:
        chosen = self[np.arange(self.shape[0]), safe]
    else:
        chosen = np.take_along_axis(self, np.expand_dims(safe, 1), 1).squeeze(1)
    weights = None if weight is None else weight[safe]
    if counted is not None:
        weights = where(counted, 1 if weights is None else weights, 0).astype(self.dtype)
    return chosen, weights, safe


def _is_plain_nll(self: np.ndarray, weight: Any, ignore_index: int) -> bool:
    """Whether every row counts the same, as long as its target is a class."""
    return weight is None and self.ndim == 2 and not 0 <= ignore_index < self.shape[1]


def _nll_forward(
    self: np.ndarray, target: np.ndarray, weight: Any, reduction: int, ignore_index: int
) -> tuple:
    _check_target("nll_loss", self, target)
    single = self.ndim == 1
    if single:
        self, target = self[None], target.reshape(1)
    if self.shape[0] != target.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]})."
        )
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != self.shape[1]):
        raise RuntimeError(
            f"weight tensor should be defined either for all {self.shape[1]} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    if weight is not None and weight.dtype != self.dtype:
        expected, actual = BY_NUM[self.dtype.num]._abbr, BY_NUM[weight.dtype.num]._abbr
        raise RuntimeError(f"expected scalar type {expected} but found {actual}")
    if self.ndim == 4 and target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    if self.ndim > 2 and self.shape[2:] != target.shape[1:]:
        raise RuntimeError(f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)}")
    weights = None
    losses = _core.nll_losses(self, target) if _is_plain_nll(self, weight, ignore_index) else None
    if losses is None:
        chosen, weights, _ = _nll_pieces(self, target, weight, ignore_index)
        losses = np.negative(chosen if weights is None else chosen * weights)
    kind = self.dtype
    if reduction == NONE:
        return (losses[0] if single else losses), np.zeros((), kind)
    total = (
        losses.size
        if weights is None
        else np.add.reduce(weights, axis=None, dtype=np.float32 if kind in LOW_FLOATS else kind)
    )
    loss = np.add.reduce(losses, axis=None, dtype=np.float32 if kind in LOW_FLOATS else kind)
    if reduction == MEAN:
        loss = np.divide(loss, total) if total else np.asarray(np.nan)
    return np.asarray(loss, kind), np.asarray(total, kind)


def _nll_backward(
    grad_output: np.ndarray,
    self: np.ndarray,
    target: np.ndarray,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total: np.ndarray,
) -> np.ndarray:
    shape = self.shape
    if self.ndim == 1:
        self, target = self[None], target.reshape(1)
    factor = grad_output if reduction != MEAN else grad_output / total
    if _is_plain_nll(self, weight, ignore_index):
        fused = _core.nll_gradient(target, self.shape[1], np.asarray(-factor))
        if fused is not None and fused.dtype is self.dtype:
            return fused.reshape(shape)
    _, weights, safe = _nll_pieces(self, target, weight, ignore_index)
    gradient = np.zeros(self.shape, self.dtype)
    values = -factor if weights is None else -weights * factor
    if self.ndim == 2:
        gradient[np.arange(self.shape[0]), safe] = values
    else:
        np.put_along_axis(
            gradient, np.expand_dims(safe, 1), np.expand_dims(np.broadcast_to(values, safe.shape), 1), 1
        )
    return gradient.reshape(shape)


def _declare_nll(aten_name: str, forward_name: str, backward_name: str, node: str) -> Any:
    forward_text = (
        f"{forward_name}(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
        "-> (Tensor output, Tensor total_weight)"
    )
    backward_text = (
        f"{backward_name}(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "SymInt ignore_index, Tensor total_weight) -> Tensor"
    )
    forward = op(forward_text, expose="no", node=node, outputs=1)(_nll_forward)
    backward = op(backward_text, expose="no")(_nll_backward)

    @forward.backward("self")
    def _(
        grads: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
    ) -> Any:
        return (backward(grads[0], self, target, weight, reduction, ignore_index, total_weight),)

    backward.derivative(
        grad_output=lambda g, target, weight, reduction, ignore_index: loss(
            g, target, weight, reduction, ignore_index
        ),
        self=lambda g: F.zeros_like(g),
    )

    @composite(
        f"{aten_name}(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        expose="no",
    )
    def loss(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
        return forward(self, target, weight, reduction, ignore_index)[0]

    return loss


nll_loss = _declare_nll(
    "aten::nll_loss", "aten::nll_loss_forward", "aten::nll_loss_backward", "NllLossBackward0"
)
nll_loss2d = _declare_nll(
    "aten::nll_loss2d", "aten::nll_loss2d_forward", "aten::nll_loss2d_backward", "NllLoss2DBackward0"
)


@composite(
    "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    expose="no",
)
def nll_loss_nd(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    if self.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {self.ndim})")
    if self.ndim != 1 and self.shape[0] != target.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({target.shape[0]})."
        )
    if self.ndim <= 2:
        return nll_loss(self, target, weight, reduction, ignore_index)
    if self.ndim == 4:
        return nll_loss2d(self, target, weight, reduction, ignore_index)
    n, c, rest = self.shape[0], self.shape[1], tuple(self.shape[2:])
    if tuple(target.shape[1:]) != rest:
        raise RuntimeError(f"Expected target size {[n, *rest]}, got {list(target.shape)}")
    flat, places = F.view(self.contiguous(), (n, c, 1, -1)), F.view(target.contiguous(), (n, 1, -1))
    loss = nll_loss2d(flat, places, weight, reduction, ignore_index)
    return loss.view(n, *rest) if reduction == NONE else loss


@composite(
    "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor",
    expose="no",
)
def cross_entropy_loss(
    self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    channel = 0 if self.ndim == 1 else 1
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if tuple(self.shape) == tuple(target.shape):
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype._abbr}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _cross_entropy_probabilities(self, target, weight, reduction, label_smoothing, channel)
    if label_smoothing > 0:
        return _cross_entropy_smooth(self, target, weight, reduction, ignore_index, label_smoothing, channel)
    return nll_loss_nd(F.log_softmax(self, channel, self.dtype), target, weight, reduction, ignore_index)


def _broadcast_weight(weight: Any, self: Any, channel: int) -> Any:
    shape = [1] * self.ndim
    shape[channel] = weight.shape[0]
    return F.view(weight, shape)


def _cross_entropy_probabilities(
    self: Any, target: Any, weight: Any, reduction: int, smoothing: float, channel: int
) -> Any:
    classes = self.shape[channel]
    if weight is not None and (weight.ndim != 1 or weight.numel() != classes):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    logs = F.log_softmax(self, channel, self.dtype)
    if smoothing > 0:
        target = F.add(F.mul(target, 1 - smoothing), smoothing / classes)
    wide = None if weight is None else _broadcast_weight(weight, self, channel)
    loss = F.mul(logs, target)
    if wide is not None:
        loss = F.mul(loss, wide)
    if reduction == NONE:
        return F.neg(F.sum(loss, channel))
    loss = F.neg(F.sum(loss))
    return (
        div_scalar(loss, max(self.numel() / classes, 1) if self.numel() else 1) if reduction == MEAN else loss
    )


def _cross_entropy_smooth(
    self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, smoothing: float, channel: int
) -> Any:
    classes = self.shape[channel]
    logs = F.log_softmax(self, channel, self.dtype)
    plain = nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if weight is not None:
        spread = F.neg(F.sum(F.mul(logs, _broadcast_weight(weight, self, channel)), channel))
    else:
        spread = F.neg(F.sum(logs, channel))
    ignored = F.eq(target, ignore_index)
    spread = F.masked_fill_(spread, ignored, 0.0)
    if reduction == MEAN:
        if weight is not None:
            if classes and not bool((ignored._array).all()):
                kept = F.masked_select(target, F.bitwise_not(ignored))
                total = F.sum(F.gather(weight, 0, F.flatten(kept)))
            else:
                total = F.sum(weight)
            smooth = F.div(F.sum(spread), total)
        else:
            counted = F.sum(F.bitwise_not(ignored))
            smooth = F.div(F.sum(spread), counted)
    elif reduction == SUM:
        smooth = F.sum(spread)
    else:
        smooth = spread
    return F.add(mul_scalar(plain, 1 - smoothing), mul_scalar(smooth, smoothing / classes))


# ---------------------------------------------------------------------------------------------------- elementwise distances


def _declare_distance(
    aten_name: str,
    backward_name: str,
    arguments: str,
    forward: Any,
    slope: Any,
    double: Any,
    node: str,
    reduce: Any = _reduced_into,
) -> Any:
    """A loss of (input - target): `forward(input, target, p)` gives losses, `slope(difference, p)` their derivative by the input.
    `double(g, self, target, reduction, p)` is the gradient that the backward op passes on to `self`."""
    name = aten_name.removeprefix("aten::")
    extra = f", float {arguments}" if arguments else ""
    extra_required = f", float {arguments.split('=', maxsplit=1)[0]}" if arguments else ""

    @op(
        f"{aten_name}(Tensor self, Tensor target, int reduction=1{extra}) -> Tensor",
        expose="no",
        on="tensors",
        node=node,
    )
    def loss(self: Any, target: Any, reduction: int, *p: Any) -> Any:
        a, b = self._array, target._array
        if a.dtype is not b.dtype:
            a, b = _dispatch.promote_pair(a, b)
        if a.dtype.num in INTEGRAL_NUMS or a.dtype.kind in "cW":
            raise _op_errors.not_implemented(name.removesuffix("_loss") + "_cpu", a)
        losses = np.asarray(forward(a, b, *p))
        if name == "huber_loss":  # unlike the others, in the dtype of its first argument
            losses = losses.astype(self._array.dtype, copy=False)
        return reduce(laid_out(losses, a, b), reduction)

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, Tensor target, int reduction{extra_required}) -> Tensor",
        pointwise=True,
        expose="no",
    )
    def backward(
        grad_output: np.ndarray, self: np.ndarray, target: np.ndarray, reduction: int, *p: Any
    ) -> Any:
        if self.dtype is not target.dtype:
            self, target = _dispatch.promote_pair(self, target)
        gradient = slope(np.subtract(self, target), *p)
        factor = (
            grad_output if reduction != MEAN else grad_output / gradient.dtype.type(max(gradient.size, 1))
        )
        return np.multiply(
            gradient,
            factor,
            gradient
            if gradient.__class__ is np.ndarray
            and gradient.shape == np.broadcast_shapes(gradient.shape, np.shape(factor))
            else None,
        )

    if not arguments:
        loss.derivative(
            self=lambda g, self, target, reduction: backward(g, self, target, reduction),
            target=lambda g, self, target, reduction: backward(g, target, self, reduction),
        )
        backward.derivative(
            grad_output=lambda g, self, target, reduction: backward(g, self, target, reduction),
            self=lambda g, grad_output, self, target, reduction: double(
                g * grad_output, self, target, reduction
            ),
            target=lambda g, grad_output, self, target, reduction: (
                -double(g * grad_output, self, target, reduction)
            ),
        )
    elif arguments.startswith("beta"):
        loss.derivative(
            self=lambda g, self, target, reduction, beta: backward(g, self, target, reduction, beta),
            target=lambda g, self, target, reduction, beta: backward(g, target, self, reduction, beta),
        )
        backward.derivative(
            grad_output=lambda g, self, target, reduction, beta: backward(g, self, target, reduction, beta),
            self=lambda g, grad_output, self, target, reduction, beta: double(
                g * grad_output, self, target, reduction, beta
            ),
            target=lambda g, grad_output, self, target, reduction, beta: (
                -double(g * grad_output, self, target, reduction, beta)
            ),
        )
    else:
        loss.derivative(
            self=lambda g, self, target, reduction, delta: backward(g, self, target, reduction, delta),
            target=lambda g, self, target, reduction, delta: backward(g, target, self, reduction, delta),
        )
        backward.derivative(
            grad_output=lambda g, grad_output, self, target, reduction, delta: weighted_slopes(
                g, backward(F.ones_like(grad_output), self, target, reduction, delta), reduction
            ),
            self=lambda g, grad_output, self, target, reduction, delta: double(
                g * grad_output, self, target, reduction, delta
            ),
            target=lambda g, grad_output, self, target, reduction, delta: (
                -double(g * grad_output, self, target, reduction, delta)
            ),
        )
    return loss


def weighted_slopes(g: Any, slopes: Any, reduction: int) -> Any:
    """The gradient by the incoming gradient, one number unless the loss is not reduced."""
    products = g * slopes
    return products if reduction == NONE else products.sum()


def averaged(gradient: Any, self: Any, reduction: int) -> Any:
    """A new gradient, divided in place by the number of losses where their mean was taken."""
    return div_scalar.inplace(gradient, self.numel()) if reduction == MEAN else gradient


def _mse_double(g: Any, self: Any, target: Any, reduction: int) -> Any:
    return averaged(mul_scalar(g, 2.0), self, reduction)


def _smooth_l1_double(g: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    if beta == 0:
        return 0.0 * g
    is_curved = F.lt(F.abs(self - target), beta).type_as(g)
    return averaged(div_scalar(g * is_curved, beta), self, reduction)


def _huber_double(g: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    return averaged(g * F.lt(F.abs(self - target), delta), self, reduction)


def _square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    fused = _core.squared_difference(x, y)
    if fused is not None:
        return fused
    d = np.subtract(x, y)
    return np.multiply(d, d)


def _smooth_l1(x: np.ndarray, y: np.ndarray, beta: float) -> np.ndarray:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    fused = None if beta == 0 else _core.smooth_l1(x, y, beta, 0.5 * beta)
    if fused is not None:
        return fused
    d = np.subtract(x, y)
    size, kind = np.abs(d), d.dtype.type
    return (
        size
        if beta == 0
        else where(size < beta, kind(0.5) * size * size / kind(beta), size - kind(0.5 * beta))
    )


def _smooth_l1_slope(d: np.ndarray, beta: float) -> np.ndarray:
    return np.sign(d) if beta == 0 else np.clip(d / d.dtype.type(beta), -1, 1)


def _huber(x: np.ndarray, y: np.ndarray, delta: float) -> np.ndarray:
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    d = np.subtract(x, y)
    size, kind = np.abs(d), d.dtype.type
    return where(size <= delta, kind(0.5) * size * size, kind(delta) * (size - kind(0.5 * delta)))


def _huber_slope(d: np.ndarray, delta: float) -> np.ndarray:
    return np.clip(d, -delta, delta)


mse_loss = _declare_distance(
    "aten::mse_loss",
    "aten::mse_loss_backward",
    "",
    _square,
    lambda d: d * d.dtype.type(2),
    _mse_double,
    "MseLossBackward0",
)
smooth_l1_loss = _declare_distance(
    "aten::smooth_l1_loss",
    "aten::smooth_l1_loss_backward",
    "beta=1.0",
    _smooth_l1,
    _smooth_l1_slope,
    _smooth_l1_double,
    "SmoothL1LossBackward0",
)
huber_loss = _declare_distance(
    "aten::huber_loss",
    "aten::huber_loss_backward",
    "delta=1.0",
    _huber,
    _huber_slope,
    _huber_double,
    "HuberLossBackward0",
    lambda losses, reduction: reduced(_dispatch.wrap(losses), reduction),
)


@composite("aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", expose="no")
def l1_loss(self: Any, target: Any, reduction: int) -> Any:
    return reduced(F.abs(F.sub(self, target)), reduction)


# ---------------------------------------------------------------------------------------------------- binary cross entropy


@op(
    "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    expose="no",
    on="tensors",
)
def binary_cross_entropy(self: Any, target: Any, weight: Any, reduction: int) -> Any:
    if self.dtype is not target.dtype:
        raise RuntimeError(f"Found dtype {target.dtype._abbr} but expected {self.dtype._abbr}")
    x, y = self._array, target._array
    if x.size and not (x.min() >= 0 and x.max() <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")
    lowest = x.dtype.type(-100)
    losses = (y - 1) * np.maximum(np.log1p(-x), lowest) - y * np.maximum(np.log(x), lowest)
    losses = _dispatch.wrap(laid_out(losses, x, y))
    if weight is not None:
        losses = _uncounted(F.mul_(losses, weight))
    return reduced(losses, reduction)


binary_cross_entropy.derivative(
    self=lambda g, self, target, weight, reduction: F.binary_cross_entropy_backward(
        g, self, target, weight, reduction
    ),
    target=lambda g, self, target, weight, reduction: _bce_target_grad(g, self, weight, reduction, target),
)


def _bce_target_grad(g: Any, self: Any, weight: Any, reduction: int, target: Any) -> Any:
    gradient = (F.log1p(-self) - F.log(self)) * g
    if weight is not None:
        gradient = gradient * weight
    return gradient / target.numel() if reduction == MEAN else gradient


@op(
    "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    expose="no",
    on="tensors",
)
def binary_cross_entropy_backward(
    grad_output: Any, self: Any, target: Any, weight: Any, reduction: int
) -> Any:
    x, smallest = self._array, self._array.dtype.type(1e-12)
    gradient = _dispatch.wrap(grad_output._array * (x - target._array) / np.maximum((1 - x) * x, smallest))
    if weight is not None:
        gradient = F.mul_(gradient, weight)
    return F.div_(gradient, self.numel()) if reduction == MEAN else gradient


_BCE_EPSILON = 1e-12


def _bce_gradient_double(g: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    rest = add_scalar(one_minus(self), _BCE_EPSILON)
    gradient = F.mul_((self - target) / (rest * add_scalar(self, _BCE_EPSILON)), g)
    return _bce_weighted(gradient, self, weight, reduction)


def _bce_double(g: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    near, rest = add_scalar(self, _BCE_EPSILON), add_scalar(one_minus(self), _BCE_EPSILON)
    scale = F.pow(near, 2) * F.pow(rest, 2)
    curve = self * self - mul_scalar(self, 2) * target + target
    return _bce_weighted(F.mul_(curve / scale * grad_output, g), self, weight, reduction)


def _bce_target_double(g: Any, grad_output: Any, self: Any, weight: Any, reduction: int) -> Any:
    near, rest = add_scalar(self, _BCE_EPSILON), add_scalar(one_minus(self), _BCE_EPSILON)
    return _bce_weighted(-g * grad_output / (near * rest), self, weight, reduction)


def _bce_weighted(gradient: Any, self: Any, weight: Any, reduction: int) -> Any:
    if weight is not None:
        gradient = gradient * weight
    return div_scalar(gradient, self.numel()) if reduction == MEAN else gradient


binary_cross_entropy_backward.derivative(
    grad_output=_bce_gradient_double, self=_bce_double, target=_bce_target_double
)


@op(
    "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor",
    expose="function",
    on="tensors",
)
def binary_cross_entropy_with_logits(
    self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int
) -> Any:
    logs = F.log_sigmoid(self)
    if pos_weight is not None:
        F.mul_(logs, F.add_(F.mul(F.sub(pos_weight, 1), target), 1))
    losses = F.sub_(F.mul_(one_minus(target), self), logs)
    if weight is not None:
        F.mul_(losses, weight)
    return reduced(_uncounted(losses), reduction)


def _logits_grad(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    if _dispatch.grad_state.enabled:
        s = F.sigmoid(self)
        if pos_weight is not None:
            t = pos_weight * target
            gradient = ((t + 1 - target) * s - t) * g
        else:
            gradient = (s - target) * g
    elif pos_weight is not None:
        t = F.mul(pos_weight, target)
        gradient = F.mul_(F.sub_(F.mul_(F.sub_(F.add(t, 1), target), F.sigmoid(self)), t), g)
    else:
        gradient = F.mul_(F.sub_(F.sigmoid(self), target), g)
    if weight is not None:
        gradient = F.mul(gradient, weight) if _dispatch.grad_state.enabled else F.mul_(gradient, weight)
    if reduction == MEAN:
        gradient = div_scalar.inplace(gradient, self.numel())
    return gradient


binary_cross_entropy_with_logits.derivative(
    self=_logits_grad,
    target=lambda g, self, target, weight, pos_weight, reduction: _logits_target_grad(
        g, self, target, weight, pos_weight, reduction
    ),
)


def _logits_target_grad(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    if pos_weight is None:
        gradient = -self * g
    else:
        gradient = (F.log_sigmoid(-self) - pos_weight * F.log_sigmoid(self)) * g
    if weight is not None:
        gradient = gradient * weight
    return gradient / target.numel() if reduction == MEAN else gradient


# ---------------------------------------------------------------------------------------------------- composites


@composite(
    "aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    expose="function",
)
def kl_div(self: Any, target: Any, reduction: int, log_target: bool) -> Any:
    if log_target:
        difference = F.sub(target, self)
        losses = F.mul(F.exp(target), difference)
    else:
        product = F.mul(self, target)
        losses = F.sub(F.xlogy(target, target), product)
    return reduced(losses, reduction)


@composite(
    "aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    expose="function",
)
def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    if log_input:
        product = F.mul(target, input)
        losses = F.sub(F.exp(input), product)
    else:
        losses = F.sub(input, F.mul(target, F.log(add_scalar(input, eps))))
    if full:
        stirling = target * F.log(target) - target + 0.5 * F.log(2 * math.pi * target)
        losses = F.add_(losses, F.masked_fill(stirling, target <= 1, 0))
    return reduced(losses, reduction)


@composite(
    "aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    expose="function",
)
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {list(input1.shape)}, input2: "
            f"{list(input2.shape)}, target: {list(target.shape)} "
        )
    difference = F.sub(input1, input2)
    losses = add_scalar(F.mul(F.neg(target), difference), float(margin))
    return reduced(F.clamp_min_(losses, 0), reduction)


@composite(
    "aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    expose="function",
)
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    eps, dim = 1e-12, 1 if target.ndim == 1 else 0
    product = F.sum(F.mul(input1, input2), dim)
    first = add_scalar(F.sum(F.mul(input1, input1), dim), eps)
    second = add_scalar(F.sum(F.mul(input2, input2), dim), eps)
    cosine = F.div(product, F.sqrt_(F.mul(first, second)))
    zeros = _dispatch.OPS["zeros_like"].entry(cosine, memory_format=contiguous_format)
    positive = one_minus(cosine)
    negative = F.clamp_min_(sub_scalar(cosine, margin), 0)
    positive = F.where(F.eq(target, 1), positive, zeros)
    negative = F.where(F.eq(target, -1), negative, zeros)
    losses = F.add(positive, negative)
    return reduced(losses, reduction)


@composite(
    "aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, "
    "bool swap=False, int reduction=1) -> Tensor",
    expose="function",
)
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Any:
    a, b, c = anchor.ndim, positive.ndim, negative.ndim
    if not a == b == c:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {a}D, positive {b}D, and negative {c}D inputs"
        )
    near = F.pairwise_distance(anchor, positive, p, eps)
    far = F.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = F.min(far, F.pairwise_distance(positive, negative, p, eps))
    return reduced(F.clamp_min(F.sub(add_scalar(near, margin), far), 0), reduction)
