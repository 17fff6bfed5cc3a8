"""Normalisation: layer, batch, group, instance and root-mean-square norm, forward and backward in few passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import FLOAT_NUMS, LOW_FLOATS
from .._graph import Switches
from ._children import child, is_contiguous
from ._namespace import functions as F
from .pointwise import add_scalar


def _wide(*arrays: Any) -> list[Any]:
    return [
        a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype in LOW_FLOATS else a for a in arrays
    ]


def _mean(array: np.ndarray, axis: Any) -> np.ndarray:
    """The mean along axes with keepdims, without np.mean's overhead in Python."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    count = math.prod([array.shape[a] for a in axes])
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
        raise _dispatch.not_implemented("LayerNormKernelImpl", input)
    x, w, b = _wide(input, weight, bias)
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    axis: Any = axes if len(axes) > 1 else -1
    center = _mean(x, axis)
    normalized = np.subtract(x, center, order="C")
    rstd = _mean(np.multiply(normalized, normalized), axis)
    np.add(rstd, x.dtype.type(eps), rstd)
    np.sqrt(rstd, rstd)
    np.reciprocal(rstd, rstd)
    np.multiply(normalized, rstd, normalized)
    if w is not None:
        np.multiply(normalized, w, normalized)
    if b is not None:
        np.add(normalized, b, normalized)
    return (normalized if normalized.dtype is input.dtype else normalized.astype(input.dtype)), center, rstd


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
    output_mask: Any,
) -> Any:
    def differentiable_backward(g: Any, x: Any, w: Any) -> tuple:
        dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
        return _differentiable_norm_backward(
            g,
            x,
            w,
            mean.detach(),
            rstd.detach(),
            dims,
            tuple(range(x.ndim - len(normalized_shape))),
            output_mask,
        )

    return _through(differentiable_backward, grads, output_mask, grad_out, input, weight)


def _differentiable_norm_backward(
    g: Any, x: Any, w: Any, mean: Any, rstd: Any, dims: Any, outer: Any, mask: Any
) -> tuple:
    """The backward of a normalisation over `dims`, by differentiable ops, for second derivatives."""
    center = x - x.mean(dims, True)
    # equals the saved value, but is computed again so that it has a graph
    variance = (center * center).mean(dims, True)
    eps = (1 / (rstd * rstd) - variance).detach()
    spread = F.rsqrt(variance + eps)
    normal = center * spread
    weighted = g if w is None else g * w
    first = spread * (weighted - weighted.mean(dims, True) - normal * (weighted * normal).mean(dims, True))
    second = (g * normal).sum(outer) if outer else g * normal
    third = g.sum(outer) if outer else g
    return first, second, third


def _through(function: Any, grads: Any, mask: Any, *arguments: Any) -> tuple:
    """Differentiate `function(*arguments)` (a tuple of results) against `grads`."""
    from ..autograd import grad

    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = True
    try:
        inputs = [
            None if a is None else (a if a._rg and enabled else a.detach().requires_grad_())
            for a in arguments
        ]
        results = function(*inputs)
        outputs, gradients = [], []
        for result, gradient, wanted in zip(results, grads, mask):
            if gradient is not None and wanted:
                outputs.append(result)
                gradients.append(gradient)
        present = [i for i in inputs if i is not None]
        input_grads = (
            iter(
                grad(outputs, present, gradients, create_graph=enabled, allow_unused=True, retain_graph=True)
            )
            if outputs
            else iter([None] * len(present))
        )
        return tuple(None if a is None else next(input_grads) for a in arguments)
    finally:
        state.enabled = enabled


# ---------------------------------------------------------------------------------------------------- batch norm


def _per_channel(array: Any, ndim: int) -> Any:
    return array if array is None else array.reshape(1, -1, *(1,) * (ndim - 2))


@op(
    "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    expose="function",
    outputs=1,
)
def native_batch_norm(
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
        normalized = np.subtract(x, center)
        variance = _mean(np.multiply(normalized, normalized), axes)
        if running_mean is not None:
            _update(running_mean, center.reshape(-1), momentum)
            count = x.size // max(x.shape[1], 1)
            _update(running_var, variance.reshape(-1) * (count / max(count - 1, 1)), momentum)
        rstd = np.reciprocal(np.sqrt(variance + variance.dtype.type(eps)))
        save_mean, save_rstd = center.reshape(-1), rstd.reshape(-1)
    else:
        normalized = np.subtract(x, _per_channel(running_mean, x.ndim).astype(x.dtype, copy=False))
        rstd = _per_channel(np.reciprocal(np.sqrt(running_var + running_var.dtype.type(eps))), x.ndim).astype(
            x.dtype, copy=False
        )
        save_mean = save_rstd = np.empty(0, x.dtype)
    np.multiply(normalized, rstd if w is None else rstd * _per_channel(w, x.ndim), normalized)
    if b is not None:
        np.add(normalized, _per_channel(b, x.ndim), normalized)
    return (
        (normalized if normalized.dtype is input.dtype else normalized.astype(input.dtype)),
        save_mean,
        save_rstd,
    )


def _update(running: np.ndarray, current: np.ndarray, momentum: float) -> None:
    """running = (1 - momentum) * running + momentum * current, in place."""
    np.multiply(running, 1 - momentum, running)
    np.add(
        running, np.multiply(current, current.dtype.type(momentum)).astype(running.dtype, copy=False), running
    )


@native_batch_norm.backward("input", "weight", "bias")
def _(
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
        center, rstd = _per_channel(save_mean._array, x.ndim), _per_channel(save_invstd._array, x.ndim)
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


@native_batch_norm_backward.children
def _(grad_out: Any, input: Any, *_: Any) -> Any:
    """Gradients that are not contiguous are summed by an op."""
    dims = (0, *range(2, len(input.shape)))
    return () if is_contiguous(grad_out) else [child("aten::sum.dim_IntList", grad_out, dims)]


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
    output_mask: Any,
) -> Any:
    def differentiable_backward(g: Any, x: Any, w: Any) -> tuple:
        dims = (0, *range(2, x.ndim))
        shape = (1, -1, *(1,) * (x.ndim - 2))
        shaped = None if w is None else w.view(shape)
        if train:
            first, second, third = _differentiable_norm_backward(
                g, x, shaped, None, save_invstd.detach().view(shape), dims, dims, output_mask
            )
            return first, second, third
        rstd = F.rsqrt(running_var + eps).view(shape)
        normal = (x - running_mean.view(shape)) * rstd
        return (g * rstd if w is None else g * rstd * shaped), (g * normal).sum(dims), g.sum(dims)

    return _through(differentiable_backward, grads, output_mask, grad_out, input, weight)


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
    flat = x.reshape(N, group, -1)
    center = _mean(flat, -1)
    normalized = np.subtract(flat, center)
    rstd = np.reciprocal(np.sqrt(_mean(np.multiply(normalized, normalized), -1) + flat.dtype.type(eps)))
    np.multiply(normalized, rstd, normalized)
    normalized = normalized.reshape(x.shape)
    if w is not None:
        np.multiply(normalized, _per_channel(w, x.ndim), normalized)
    if b is not None:
        np.add(normalized, _per_channel(b, x.ndim), normalized)
    return normalized.astype(input.dtype, copy=False), center.reshape(N, group), rstd.reshape(N, group)


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
    needs: Any,
) -> Any:
    return F.native_group_norm_backward(
        F.contiguous(grads[0]), input, result1, result2, weight, N, C, HxW, group, needs
    )


@op(
    "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, "
    "int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    expose="no",
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
    normal = np.multiply(np.subtract(x.reshape(N, group, -1), mean.reshape(N, group, 1)), scale)
    first = second = third = np.empty(0, input.dtype)
    if output_mask[1]:
        second = np.add.reduce(g * normal.reshape(x.shape), axis=axes)
    if output_mask[2]:
        third = np.add.reduce(g, axis=axes)
    if output_mask[0]:
        weighted = (g if w is None else g * _per_channel(w, x.ndim)).reshape(N, group, -1)
        first = weighted - _mean(weighted, -1) - normal * _mean(weighted * normal, -1)
        first = np.multiply(first, scale).reshape(x.shape)
    return tuple(a.astype(input.dtype, copy=False) for a in (first, second, third))


@native_group_norm_backward.backward("grad_out", "input", "weight")
def _(
    grads: Any,
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    N: int,
    C: int,
    group: int,
    output_mask: Any,
) -> Any:
    def differentiable_backward(g: Any, x: Any, w: Any) -> tuple:
        shape = tuple(x.shape)
        channel = (1, C, *(1,) * (x.ndim - 2))
        weighted = g if w is None else g * w.view(channel)
        flat, gf = x.reshape(N, group, -1), weighted.reshape(N, group, -1)
        center = flat - flat.mean(-1, True)
        variance = (center * center).mean(-1, True)
        eps = (1 / (rstd * rstd)).view(N, group, 1).detach() - variance.detach()
        spread = F.rsqrt(variance + eps)
        normal = center * spread
        first = (spread * (gf - gf.mean(-1, True) - normal * (gf * normal).mean(-1, True))).reshape(shape)
        axes = (0, *range(2, x.ndim))
        return first, (g * normal.reshape(shape)).sum(axes), g.sum(axes)

    return _through(differentiable_backward, grads, output_mask, grad_out, input, weight)


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
        input._array if not input._array_missing else input._meta,
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
