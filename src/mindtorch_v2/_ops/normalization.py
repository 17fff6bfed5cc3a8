"""Normalisation: layer, batch, group, instance and root-mean-square norm, forward and backward in few passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, op
from .._dtype import FLOAT_NUMS, LOW_FLOATS
from .._graph import Node, Switches, attach, edge, grad_state
from . import _core, _lanes
from ._namespace import functions as F
from .attention import ones
from .pointwise import add_scalar, div_scalar, mul_scalar, sub_scalar


def _wide(*arrays: Any) -> list[Any]:
    return [
        a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype in LOW_FLOATS else a for a in arrays
    ]


def _statistics(input: np.ndarray, weight: Any, bias: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """Statistics in the dtype of the input. They stay in float32 if weight or bias are, beside an input of half precision."""
    if input.dtype not in LOW_FLOATS or any(a is not None and a.dtype != input.dtype for a in (weight, bias)):
        return list(arrays)
    return [a.astype(input.dtype) for a in arrays]


def _mean(array: np.ndarray, axis: Any) -> np.ndarray:
    """The mean along axes with keepdims, without np.mean's overhead in Python."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    count = math.prod([array.shape[a] for a in axes])
    total = _lanes.sums(array, tuple([a % array.ndim for a in axes]), True) if array.ndim else None
    if total is None:
        total = np.add.reduce(array, axis=axis, keepdims=True)
    return np.true_divide(total, array.dtype.type(count or 1), total)


# ---------------------------------------------------------------------------------------------------- layer norm


@composite(
    "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor",
    expose="function",
)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, cudnn_enable: bool
) -> Any:
    if normalized_shape.__class__ is int:
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int"
        )
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


def _check_normalized(input: np.ndarray, shape: tuple, weight: Any, bias: Any) -> None:
    if not shape:
        raise RuntimeError(
            f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {list(shape)}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(value.shape)} and normalized_shape = {list(shape)}"
            )
    if input.shape[-len(shape) :] != shape:
        stars = "".join(f", {n}" for n in shape)
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{stars}], but got input of size{list(input.shape)}"
        )


@op(
    "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    expose="function",
    outputs=1,
)
def native_layer_norm(input: np.ndarray, normalized_shape: tuple, weight: Any, bias: Any, eps: float) -> Any:
    _check_normalized(input, normalized_shape, weight, bias)
    if input.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("LayerNormKernelImpl", input)
    fused = _core.layer_norm(input, len(normalized_shape), weight, bias, eps)
    if fused is not None:
        return fused
    x, w, b = _wide(input, weight, bias)
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    normalized, center, rstd = _normalized(x, axes if len(axes) > 1 else -1, eps)
    if w is not None:
        np.multiply(normalized, w, normalized)
    if b is not None:
        np.add(normalized, b, normalized)
    normalized = normalized if normalized.dtype is input.dtype else normalized.astype(input.dtype)
    return (normalized, *_statistics(input, weight, bias, center, rstd))


def _normalized(x: np.ndarray, axis: Any, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values with mean 0 and variance 1 along axes, the means and the reciprocals of the deviations: what the fused layer norm gives."""
    center = _mean(x, axis)
    normalized = np.subtract(x, center, order="C")
    rstd = _mean(np.multiply(normalized, normalized), axis)
    np.add(rstd, x.dtype.type(eps), rstd)
    np.sqrt(rstd, rstd)
    np.reciprocal(rstd, rstd)
    np.multiply(normalized, rstd, normalized)
    return normalized, center, rstd


@native_layer_norm.backward("input", "weight", "bias")
def _(
    grads: Any,
    input: Any,
    normalized_shape: Any,
    weight: Any,
    bias: Any,
    result1: Any,
    result2: Any,
    needs: Any,
) -> Any:
    return F.native_layer_norm_backward(
        grads[0], input, normalized_shape, result1, result2, weight, bias, needs
    )


@op(
    "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, "
    "Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    expose="no",
)
def native_layer_norm_backward(
    grad_out: np.ndarray,
    input: np.ndarray,
    normalized_shape: tuple,
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: Any,
    bias: Any,
    output_mask: Any,
) -> Any:
    if all(output_mask):
        fused = _core.layer_norm_backward(grad_out, input, len(normalized_shape), mean, rstd, weight)
        if fused is not None:
            return fused
    g, x, w = _wide(grad_out, input, weight)
    lead = x.ndim - len(normalized_shape)
    axes = tuple(range(lead, x.ndim))
    axis: Any = axes if len(axes) > 1 else -1
    outer = tuple(range(lead))
    normal = np.multiply(np.subtract(x, mean), rstd)
    first = second = third = np.empty(0, input.dtype)
    kind = input.dtype if weight is None else weight.dtype
    if output_mask[1]:
        second = np.add.reduce(np.multiply(g, normal), axis=outer).astype(kind, copy=False)
    if output_mask[2]:
        third = np.add.reduce(g, axis=outer).astype(kind, copy=False)
    if output_mask[0]:
        first = np.multiply(g, w) if w is not None else np.array(g)
        sum_g = _mean(first, axis)
        np.multiply(normal, _mean(np.multiply(first, normal), axis), normal)
        np.subtract(first, sum_g, first)
        np.subtract(first, normal, first)
        np.multiply(first, rstd, first)
        first = first.astype(input.dtype, copy=False)
    return first, second, third


@native_layer_norm_backward.backward("grad_out", "input", "weight")
def _(
    grads: Any,
    grad_out: Any,
    input: Any,
    normalized_shape: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    needs: Any,
) -> tuple:
    to_input, to_weight, to_bias = grads
    count = math.prod(normalized_shape)
    rows = (math.prod(input.shape[: input.ndim - len(normalized_shape)]), count)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    mean, rstd = _with_history(input, mean, rstd, dims)
    x, g = F.reshape(input, rows), F.reshape(grad_out, rows)
    mean, rstd = (F.to(F.reshape(saved, (rows[0], 1)), x.dtype) for saved in (mean, rstd))
    gamma = ones((1,), dtype=x.dtype) if weight is None else F.reshape(weight, (1, count))
    to_weight = None if to_weight is None else F.reshape(to_weight, (1, count))
    to_bias = None if to_bias is None else F.reshape(to_bias, (1, count))
    to_input = None if to_input is None else F.reshape(to_input, rows)

    def total(values: Any) -> Any:
        return F.sum(values, (1,), True)

    norm = _NormAgain(x, mean, rstd, total, count)
    first = second = third = None
    if to_input is not None:
        weighted = g * gamma
        second = norm.input_gradient(to_input, weighted, total(weighted * norm.center), total(weighted))
    if to_weight is not None:
        direct = g * to_weight * rstd
        level = div_scalar.inplace(total(g * to_weight) * rstd, -count)
        tilt = div_scalar.inplace(norm.center_cubed * total(g * to_weight * norm.center), -count)
        second = _added_to(second, F.add_(F.add_(direct, level), tilt))
    if to_input is not None and weight is not None:
        one = ones((), dtype=x.dtype)
        third = F.reshape_as(F.sum(g * norm.backward(to_input, one), (0,)), weight)
    if to_input is not None:
        first = norm.backward(to_input, gamma)
    if to_weight is not None:
        first = _added_to(first, to_weight * norm.center * rstd)
    if to_bias is not None:
        first = _added_to(first, to_bias)
    if first is not None:
        first = F.reshape_as(F.expand(first, rows), grad_out)
    if second is not None:
        second = F.reshape_as(second, input)
    return _needed((first, second, third), needs)


def _needed(gradients: tuple, needs: tuple) -> tuple:
    """Gradients without those that nothing needs: torch computes them all, and frees these in the node."""
    return tuple([gradient if need else None for gradient, need in zip(gradients, needs)])


class _NormAgain:
    """Parts of the second derivatives of a normalisation, with the ops that torch computes them by.

    total: the sum over all elements that are normalised together, `count` of them, that keeps dimensions.
    """

    def __init__(self, x: Any, mean: Any, rstd: Any, total: Any, count: int) -> None:
        self.rstd, self.total, self.count = rstd, total, count
        self.center = F.sub(x, mean)
        self.rstd_squared, self.rstd_cubed = F.pow(rstd, 2), F.pow(rstd, 3)
        self.center_cubed = self.center * self.rstd_cubed

    def input_gradient(self, gg: Any, g: Any, g_center: Any, g_total: Any) -> Any:
        """The gradient for the input of what `gg` weights; g_center, g_total: the sums of `g * center` and of `g`."""
        total, count = self.total, self.count
        gg_total = total(gg)
        gg_center = total(gg * self.center)
        bend = F.sub_(div_scalar.inplace(gg_total * g_total, count), total(g * gg))
        bend = F.add_(bend, mul_scalar.inplace(self.rstd_squared * g_center * gg_center, 3 / count))
        gradient = div_scalar.inplace(self.center_cubed * bend, count)
        spread = div_scalar(g_total, count) - g
        F.add_(gradient, div_scalar.inplace(gg_center * self.rstd_cubed, count) * spread)
        spread = div_scalar(gg_total, count) - gg
        return F.add_(gradient, div_scalar.inplace(g_center * self.rstd_cubed, count) * spread)

    def backward(self, g: Any, gamma: Any) -> Any:
        """The gradient for the input of a norm with weight `gamma`."""
        scale = div_scalar.inplace(gamma * self.rstd, self.count)
        direct = F.sub_(mul_scalar(g, self.count), self.total(g))
        tilt = self.center * self.rstd_squared * self.total(g * self.center)
        return scale * F.sub_(direct, tilt)


def _added_to(first: Any, second: Any) -> Any:
    return second if first is None else F.add_(first, second)


class NormStatisticsBackward(Node):
    """The history of the mean and reciprocal deviation that a norm saved: only third and higher derivatives pass through it."""

    n_outputs = 2
    input: Any
    saved: tuple  # mean and reciprocal deviation
    dims: tuple  # those that are normalised together

    def apply(self, to_mean: Any, to_rstd: Any) -> tuple:
        x, dims, (mean, rstd) = self.input, self.dims, self.saved
        shape = tuple([1 if d in dims else n for d, n in enumerate(x.shape)])
        mean, rstd = (values.view(shape) for values in _with_history(x, mean, rstd, dims))
        gradient = None
        if to_rstd is not None:
            gradient = -(to_rstd.view(shape) * rstd.pow(3)) * (x - mean)
        if to_mean is not None:
            to_mean = to_mean.view(shape).expand(x.shape)
            gradient = to_mean if gradient is None else to_mean + gradient
        return (None if gradient is None else gradient / math.prod([x.shape[d] for d in dims]),)


def _with_history(x: Any, mean: Any, rstd: Any, dims: tuple) -> tuple:
    """The mean and reciprocal deviation of `x` that a norm saved, as functions of `x` if gradients are enabled."""
    source = edge(x) if grad_state.enabled else None
    if source is None or mean._array_missing:
        return mean, rstd
    node = NormStatisticsBackward()
    node.input, node.saved, node.dims = x, (mean, rstd), dims
    node.next, node.seq = (source,), grad_state.seq
    node.shapes = mean._array.shape, rstd._array.shape
    node.dtypes = mean._array.dtype, rstd._array.dtype
    statistics = _dispatch.wrap(mean._array), _dispatch.wrap(rstd._array)
    for number, tensor in enumerate(statistics):
        attach(tensor, node, number)
    return statistics


# ---------------------------------------------------------------------------------------------------- batch norm


def _per_channel(array: Any, ndim: int) -> Any:
    return array if array is None else array.reshape(1, -1, *(1,) * (ndim - 2))


def _batch_norm(
    input: np.ndarray,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    x, w, b = _wide(input, weight, bias)
    axes = (0, *range(2, x.ndim))
    if training:
        center = _mean(x, axes)
        away = np.subtract(x, center)
        variance = _mean(np.multiply(away, away, away), axes)
        if running_mean is not None and x.size:  # torch leaves them as they are for a batch without elements
            _update(running_mean, center.reshape(-1), momentum)
            count = x.size // max(x.shape[1], 1)
            _update(running_var, variance.reshape(-1) * (count / max(count - 1, 1)), momentum)
        rstd = np.reciprocal(np.sqrt(variance + variance.dtype.type(eps)))
        save_mean, save_rstd = center.reshape(-1), rstd.reshape(-1)
    else:
        center = _per_channel(running_mean, x.ndim).astype(x.dtype, copy=False)
        rstd = _per_channel(np.reciprocal(np.sqrt(running_var + running_var.dtype.type(eps))), x.ndim).astype(
            x.dtype, copy=False
        )
        save_mean = save_rstd = np.empty(0, x.dtype)
    scale = rstd if w is None else rstd * _per_channel(w, x.ndim)
    normalized = _scaled_planes(x, center, scale, b)
    if not normalized.flags.c_contiguous and not (
        x.ndim > 3 and np.moveaxis(normalized, 1, -1).flags.c_contiguous
    ):
        normalized = np.ascontiguousarray(normalized)  # in torch's layouts: contiguous, or channels last
    normalized = normalized if normalized.dtype is input.dtype else normalized.astype(input.dtype)
    return (normalized, *_statistics(input, weight, bias, save_mean, save_rstd))


def _scaled_planes(x: np.ndarray, center: np.ndarray, scale: np.ndarray, shift: Any) -> np.ndarray:
    """(x - center) * scale + shift with one number per channel each."""
    fused = _core.planes_affine(x, center, scale, shift)
    if fused is not None:
        return fused
    scaled = np.subtract(x, center)
    np.multiply(scaled, scale, scaled)
    if shift is not None:
        np.add(scaled, _per_channel(shift, x.ndim), scaled)
    return scaled


def _update(running: np.ndarray, current: np.ndarray, momentum: float) -> None:
    """running = (1 - momentum) * running + momentum * current, in place."""
    np.multiply(running, 1 - momentum, running)
    np.add(
        running, np.multiply(current, current.dtype.type(momentum)).astype(running.dtype, copy=False), running
    )


def _batch_norm_gradients(
    grads: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    result1: Any,
    result2: Any,
    training: bool,
    eps: float,
    needs: Any,
) -> Any:
    return F.native_batch_norm_backward(
        grads[0], input, weight, running_mean, running_var, result1, result2, training, eps, needs
    )


native_batch_norm = op(
    "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    expose="function",
    outputs=1,
)(_batch_norm)
native_batch_norm.backward("input", "weight", "bias")(_batch_norm_gradients)

# The forms of the same op whose schema says what they write to.
_legit = op(
    "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    node="NativeBatchNormLegitBackward0",
    expose="no",
    outputs=1,
)(_batch_norm)
_legit.backward("input", "weight", "bias")(_batch_norm_gradients)


@op(
    "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    node="NativeBatchNormLegitBackward1",
    expose="no",
    outputs=1,
)
def _legit_without_statistics(
    input: np.ndarray, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    if not training:
        raise RuntimeError("running_mean must be defined in evaluation mode")
    return _batch_norm(input, weight, bias, None, None, True, momentum, eps)


@_legit_without_statistics.backward("input", "weight", "bias")
def _(grads: Any, input: Any, weight: Any, result1: Any, result2: Any, eps: float, needs: Any) -> Any:
    return _batch_norm_gradients(grads, input, weight, None, None, result1, result2, True, eps, needs)


@function(expose="function")
def _native_batch_norm_legit(input: Any, weight: Any, bias: Any, *rest: Any, **named: Any) -> Any:
    """Batch norm, with running statistics or without."""
    with_statistics = "running_mean" in named or len(rest) + len(named) > 3
    return (_legit if with_statistics else _legit_without_statistics)(input, weight, bias, *rest, **named)


@op(
    "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
    expose="function",
    outputs=1,
)
def _batch_norm_with_update(
    input: np.ndarray,
    weight: Any,
    bias: Any,
    running_mean: np.ndarray,
    running_var: np.ndarray,
    momentum: float,
    eps: float,
) -> Any:
    results = _batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results, np.empty(0, np.uint8))  # what other back ends keep for the backward pass


@_batch_norm_with_update.backward("input", "weight", "bias")
def _(grads: Any, input: Any, weight: Any, result1: Any, result2: Any, eps: float, needs: Any) -> Any:
    return _batch_norm_gradients(grads, input, weight, None, None, result1, result2, True, eps, needs)


@op(
    "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, "
    "Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    expose="no",
    on="tensors",
)
def native_batch_norm_backward(
    grad_out: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Any,
) -> Any:
    g, x, w = _wide(grad_out._array, input._array, None if weight is None else weight._array)
    axes = (0, *range(2, x.ndim))
    if train:
        center, rstd = (_per_channel(a, x.ndim) for a in _wide(save_mean._array, save_invstd._array))
    else:
        center = _per_channel(running_mean._array, x.ndim)
        rstd = _per_channel(
            np.reciprocal(np.sqrt(running_var._array + running_var._array.dtype.type(eps))), x.ndim
        )
    total = np.add.reduce(g, axis=axes)
    normal = np.multiply(np.subtract(x, center), rstd)
    product = np.add.reduce(np.multiply(g, normal), axis=axes)
    first = second = third = np.empty(0, input._array.dtype)
    if output_mask[0]:
        scale = rstd if w is None else rstd * _per_channel(w, x.ndim)
        if train:
            count = x.dtype.type(x.size // max(x.shape[1], 1))
            np.multiply(normal, _per_channel(product, x.ndim) / count, normal)
            first = np.subtract(g, _per_channel(total.astype(x.dtype, copy=False), x.ndim) / count)
            np.subtract(first, normal, first)
            np.multiply(first, scale, first)
        else:
            first = np.multiply(g, scale)
    if output_mask[1]:
        second = product
    if output_mask[2]:
        third = np.array(total)
    kind = input._array.dtype
    return tuple(_dispatch.wrap(a.astype(kind, copy=False)) for a in (first, second, third))


@native_batch_norm_backward.backward("grad_out", "input", "weight")
def _(
    grads: Any,
    grad_out: Any,
    input: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    needs: Any,
) -> tuple:
    to_input, to_weight, to_bias = grads
    ndim, g = input.ndim, grad_out

    def expanded(value: Any) -> Any:
        return F.expand_as(_with_dims(value, ndim - 2), input)

    gamma = ones((), dtype=input.dtype) if weight is None else expanded(weight)
    to_weight = None if to_weight is None else expanded(to_weight)
    to_bias = None if to_bias is None else expanded(to_bias)
    if train:
        statistics = _with_history(input, save_mean, save_invstd, (0, *range(2, ndim)))
        mean, rstd = (F.to(saved, input.dtype) for saved in statistics)
    else:
        mean, rstd = running_mean, F.pow(add_scalar(running_var, eps), -0.5)
    mean, rstd = (F.unsqueeze(_with_dims(value, ndim - 2), 0) for value in (mean, rstd))
    count = input.numel() // max(input.shape[1], 1)
    norm = _NormAgain(input, mean, rstd, _sum_per_channel, count)
    g_center, g_total = _sum_per_channel(g * norm.center), _sum_per_channel(g)
    first = second = third = None
    if to_input is not None and train:
        second = gamma * norm.input_gradient(to_input, g, g_center, g_total)
    if to_weight is not None:
        direct = g * rstd
        if train:
            level = div_scalar.inplace(g_total * rstd, -count)
            tilt = div_scalar.inplace(norm.center_cubed * _sum_per_channel(g * norm.center), -count)
            direct = F.add_(F.add_(direct, level), tilt)
        second = _added_to(second, to_weight * direct)
    if to_input is not None and weight is not None:
        one = ones((), dtype=input.dtype) if train else None
        product = g * norm.backward(to_input, one) if train else to_input * g * rstd
        third = _sum_per_channel(product, False)
    if to_input is not None:
        first = norm.backward(to_input, gamma) if train else to_input * (gamma * rstd)
    if to_weight is not None:
        first = _added_to(first, to_weight * norm.center * rstd)
    if to_bias is not None:
        first = _added_to(first, to_bias)
    return _needed((first, second, third), needs)


def _with_dims(value: Any, count: int) -> Any:
    """A value per channel, with dimensions after it."""
    for _ in range(count):
        value = F.unsqueeze(value, 1)
    return value


def _sum_per_channel(values: Any, keepdim: bool = True) -> Any:
    """The sum over all dimensions but the second, one after the other."""
    values = F.sum(values, (0,), keepdim)
    for dim in range(values.ndim - 1, 1 if keepdim else 0, -1):
        values = F.sum(values, (dim,), keepdim)
    return values


@composite(
    "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
    expose="no",
)
def _batch_norm_impl_index(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, value in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if value is not None and value.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.numel()}")
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    if Switches.asked is not None and Switches.asked(input):
        F.empty((0,), dtype=_dispatch._dtype.uint8)  # torch's reserve tensor, used by other back ends
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if input.ndim < 2:
        if not input.numel():
            return F.clone(input), running_mean, running_var, None, 0
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got 1)"
        )
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(
    "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    expose="function",
)
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    return _batch_norm_impl_index(
        input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
    )[0]


@composite(
    "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    expose="function",
)
def instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = input.shape[0], input.shape[1]
    rest = tuple(input.shape[2:])

    def repeated(value: Any) -> Any:
        return None if value is None else F.repeat(value, (n,))

    weight, bias, mean, var = map(repeated, (weight, bias, running_mean, running_var))
    flat = F.view(F.contiguous(input), (1, n * c, *rest))
    normalized = batch_norm(flat, weight, bias, mean, var, use_input_stats, momentum, eps, cudnn_enabled)
    if use_input_stats:
        for running, new in ((running_mean, mean), (running_var, var)):
            if running is not None:
                _dispatch.OPS["alias"].entry(running).copy_(new.view(n, c).mean(0))
    return F.view(normalized, (n, c, *rest))


# ---------------------------------------------------------------------------------------------------- group norm


@composite(
    "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    expose="function",
)
def group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: bool) -> Any:
    n, c = input.shape[0], input.shape[1]
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and (value.ndim != 1 or value.numel() != c):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(value.shape)} and input of shape {list(input.shape)}"
            )
    return native_group_norm(input, weight, bias, n, c, math.prod(input.shape[2:]), num_groups, eps)[0]


@op(
    "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) "
    "-> (Tensor, Tensor, Tensor)",
    expose="function",
)
def native_group_norm(
    input: np.ndarray, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    x, w, b = _wide(input, weight, bias)
    flat = x.reshape(N, group, C // group * HxW)
    normalized, center, rstd = _core.layer_norm(flat, 1, None, None, eps) or _normalized(flat, -1, eps)
    normalized = normalized.reshape(x.shape)
    if w is not None:
        np.multiply(normalized, _per_channel(w, x.ndim), normalized)
    if b is not None:
        np.add(normalized, _per_channel(b, x.ndim), normalized)
    statistics = _statistics(input, weight, bias, center.reshape(N, group), rstd.reshape(N, group))
    return (normalized.astype(input.dtype, copy=False), *statistics)


@native_group_norm.backward("input", "weight", "bias")
def _(
    grads: Any,
    input: Any,
    weight: Any,
    result1: Any,
    result2: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
    needs: Any,
) -> Any:
    if grad_state.enabled or grads[1] is not None or grads[2] is not None:
        return _open_group_norm_backward(
            grads, input, weight, result1, result2, (N, group, C // group, HxW), eps, needs
        )
    return F.native_group_norm_backward(
        F.contiguous(grads[0]), input, result1, result2, weight, N, C, HxW, group, needs
    )


def _open_group_norm_backward(
    grads: Any, input: Any, weight: Any, mean: Any, rstd: Any, shape: tuple, eps: float, needs: Any
) -> tuple:
    """The backward of a group norm by differentiable ops. Its statistics are outputs, through which derivatives of any order pass."""
    g, to_mean, to_rstd = grads
    per_group = (*shape[:2], 1, 1)
    channels = (1, shape[1], shape[2], 1)
    count = shape[2] * shape[3]
    x, mean, rstd = F.reshape(input, shape), F.reshape(mean, per_group), F.reshape(rstd, per_group)
    first = second = third = None
    if g is not None:
        g = F.reshape(g, shape)
        product = F.unsqueeze_(F.sum(g * x, (3,)), -1)
        total = F.unsqueeze_(F.sum(g, (3,)), -1)
    if needs[0]:
        if g is not None:
            gamma = None if weight is None else F.reshape(weight, channels)
        # torch computes the variance here, and no gradient needs it
        F.clamp_min(sub_scalar(F.reciprocal_(rstd * rstd), eps), 0)
        rstd_cubed = rstd * rstd * rstd
        to_variance = None
        if to_rstd is not None:
            to_variance = mul_scalar(rstd_cubed, -0.5) * F.view(to_rstd, per_group)
        if g is not None:
            scale = rstd if gamma is None else rstd * gamma
            products, totals = (
                F.unsqueeze_(F.sum(values if gamma is None else values * gamma, (2,)), -2)
                for values in (product, total)
            )
            tilt = mul_scalar((totals * mean - products) * rstd_cubed, 1 / count)
            level = mul_scalar(totals * rstd, 1 / count)
            level = F.neg(tilt) * mean - level
            tilted = tilt * x
            first = scale * g + tilted + level
        if to_mean is not None or to_rstd is not None:
            to_statistics = _through_statistics(x, to_mean, to_variance, per_group, count)
            first = _added_to(first, to_statistics)
        first = F.reshape_as(first, input)
    if needs[1] and g is not None:
        second = F.reshape_as(F.sum((product - total * mean) * rstd, (0,)), weight)
    if needs[2] and g is not None:
        third = F.reshape_as(F.sum(total, (0,)), weight)
    return first, second, third


def _through_statistics(x: Any, to_mean: Any, to_variance: Any, per_group: tuple, count: int) -> Any:
    """The gradient for `x` of its mean and variance."""
    first = second = None
    if to_mean is not None:
        to_mean = F.view(to_mean, per_group)
    if to_variance is not None:
        center = x - F.mean(x, (2, 3), True)
        second = mul_scalar(to_variance, 2 / count) * center
    if to_mean is not None:
        first = div_scalar(F.expand(to_mean, tuple(x.shape)), count)
    return second if first is None else first if second is None else first + second


@op(
    "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, "
    "int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    expose="no",
    nondifferentiable=True,
)
def native_group_norm_backward(
    grad_out: np.ndarray,
    input: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Any,
) -> Any:
    g, x, w = _wide(grad_out, input, weight)
    axes = (0, *range(2, x.ndim))
    scale = rstd.reshape(N, group, 1)
    normal = np.multiply(np.subtract(x.reshape(N, group, C // group * HxW), mean.reshape(N, group, 1)), scale)
    first = second = third = np.empty(0, input.dtype)
    if output_mask[1]:
        second = np.add.reduce(g * normal.reshape(x.shape), axis=axes)
    if output_mask[2]:
        third = np.add.reduce(g, axis=axes)
    if output_mask[0]:
        weighted = (g if w is None else g * _per_channel(w, x.ndim)).reshape(N, group, C // group * HxW)
        first = weighted - _mean(weighted, -1) - normal * _mean(weighted * normal, -1)
        first = np.multiply(first, scale).reshape(x.shape)
    return tuple(a.astype(input.dtype, copy=False) for a in (first, second, third))


# ---------------------------------------------------------------------------------------------------- rms norm


@composite(
    "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    expose="function",
)
def rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    shape = _dispatch.ints(normalized_shape)
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {list(shape)}"
        )
    if input.ndim < len(shape):
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {input.ndim}")
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        sizes = ", ".join(map(str, shape))  # torch has no comma after the star here, unlike in layer_norm
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{sizes}], but got input of size{list(input.shape)}"
        )
    _check_normalized(
        input._array if not input._array_missing else input._array_description,
        shape,
        None if weight is None else weight._array,
        None,
    )
    normalized, _ = _fused_rms_norm(input, shape, weight, eps)
    return normalized


@composite(
    "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    expose="no",
)
def _fused_rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: Any) -> Any:
    from .._dtype import finfo

    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    eps = finfo(input.dtype).eps if eps is None else eps
    wide = F.to(input, _dispatch._dtype.float32 if input._array.dtype in LOW_FLOATS else input.dtype)
    scale = F.rsqrt(add_scalar.inplace(F.mean(F.pow(wide, 2), dims, True), eps))
    normalized = F.mul(wide, scale)
    if weight is not None:
        normalized = F.mul(normalized, weight)
    return F.type_as(normalized, input), scale
