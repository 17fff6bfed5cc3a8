"""linear_cross_entropy: a linear layer and cross entropy in one call, for the whole batch or in chunks.

The chunked version never holds the logits of the whole batch: it computes the gradients together with the
loss.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from .._ops import functions as ops
from ._reduction import _ENUM, get_enum

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

    from .modules.linear_cross_entropy_options import LinearCrossEntropyOptions


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target)."""
    _check(input, linear_weight, linear_bias)
    num_classes, *out_features = linear_weight.shape[:-1]
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        chunkable = (
            reduction in _ENUM and label_smoothing == 0 and target.dtype == torch.int64 and not out_features
        )
        if not chunkable:
            bias_shape = None if linear_bias is None else tuple(linear_bias.shape)
            warnings.warn(
                "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in "
                "{'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, out_features == (). "
                f"Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
                f"target.dtype={target.dtype}, out_features={tuple(out_features)}, tracing=False, "
                f"linear_bias.shape={bias_shape}.",
                stacklevel=2,
            )
        elif input.dim() == 2:
            resolved = options._adjust(input.shape[0], input.shape[1], num_classes, input.dtype, input.device)
            return LinearCrossEntropyBatchChunked.apply(
                input, linear_weight, linear_bias, target, weight, get_enum(reduction), ignored, resolved
            )
    if out_features:
        linear_weight = linear_weight.reshape(-1, linear_weight.shape[-1])
        if linear_bias is not None:
            linear_bias = linear_bias.reshape(-1)
    logits = ops.linear(input, linear_weight, linear_bias)
    logits = logits.reshape(*input.shape[:-1], num_classes, *out_features)
    return ops.cross_entropy_loss(logits, target, weight, get_enum(reduction), ignored, label_smoothing)


def _check(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
        )
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
            f"batched input, (N, {linear_weight.shape[-1]}), "
            f"got unbatched input with shape {tuple(input.shape)}"
        )


def _gradients_of(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients saved by the forward pass, times the incoming gradient."""
    if ctx.gradients is None:
        raise RuntimeError(
            "linear_cross_entropy chunked backward called twice; "
            "retain_graph=True / double backward are not supported."
        )
    gradients = tuple(None if g is None else g * grad for g in ctx.gradients)
    if not ctx.keep:
        ctx.gradients = None
    return gradients


class LinearCrossEntropyBatchChunked(torch.autograd.Function):
    """The loss of a batch computed in chunks; the arguments are those of _forward."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        """The loss; the gradients are saved for backward unless there is no reduction."""
        return _forward(ctx, *args)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of input, weight and bias."""
        with torch.no_grad():
            gradients = _per_row(ctx, grad) if ctx.reduction == 0 else _gradients_of(ctx, grad)
        return (*gradients, None, None, None, None, None)


def _forward(
    ctx: Any,
    input: Tensor,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    ctx.reduction, ctx.keep = reduction, options.allow_retain_graph
    ctx.ignore_index, ctx.size, ctx.class_weight = ignore_index, options.batch_chunk_size, weight
    ctx.has_bias = linear_bias is not None
    if reduction == 0:
        ctx.save_for_backward(input, linear_weight, target, *(() if linear_bias is None else (linear_bias,)))
        losses = [
            ops.cross_entropy_loss(
                ops.linear(rows, linear_weight, linear_bias), classes, weight, 0, ignore_index, 0.0
            )
            for rows, classes in _chunks(input, target, ctx.size)
        ]
        return torch.cat(losses) if losses else input.new_zeros(0)
    counted = target != ignore_index
    if reduction == 2:
        total: Any = 1.0
    elif weight is None:
        total = counted.sum()
    else:
        total = weight[target.masked_fill(~counted, 0)].masked_fill(~counted, 0).sum()
    acc = options.acc_dtype
    loss = torch.zeros((), dtype=acc, device=input.device)
    g_weight = torch.zeros_like(linear_weight, dtype=acc) if ctx.needs_input_grad[1] else None
    g_bias = (
        torch.zeros_like(linear_bias, dtype=acc)
        if linear_bias is not None and ctx.needs_input_grad[2]
        else None
    )
    g_input = []
    for rows, classes in _chunks(input, target, ctx.size):
        logits = ops.linear(rows, linear_weight, linear_bias)
        loss += ops.cross_entropy_loss(logits, classes, weight, 2, ignore_index, 0.0) / total
        if any(ctx.needs_input_grad[:3]):
            g_logits = _logits_gradient(logits, classes, weight, ignore_index) / total
            if ctx.needs_input_grad[0]:
                g_input.append(g_logits @ linear_weight)
            if g_weight is not None:
                g_weight += g_logits.t() @ rows
            if g_bias is not None:
                g_bias += g_logits.sum(0)
    if input.shape[0] == 0:
        loss = loss / total if reduction == 1 else loss
    ctx.gradients = (
        torch.cat(g_input) if g_input else None,
        None if g_weight is None else g_weight.to(linear_weight.dtype),
        None if g_bias is None or linear_bias is None else g_bias.to(linear_bias.dtype),
    )
    return loss.to(input.dtype)


def _chunks(input: Tensor, target: Tensor, size: int) -> list[tuple[Tensor, Tensor]]:
    count = math.ceil(input.shape[0] / size)
    lengths = [min(size, input.shape[0] - i * size) for i in range(count)]
    return [(input.narrow(0, i * size, n), target.narrow(0, i * size, n)) for i, n in enumerate(lengths)]


def _logits_gradient(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> Tensor:
    """The gradient of each row's own loss: softmax minus one-hot, weighted, zero where ignored."""
    counted = target != ignore_index
    classes = target.masked_fill(~counted, 0)
    gradient = ops.softmax(logits, -1)
    scale = counted.to(gradient.dtype) if weight is None else weight[classes] * counted
    gradient.scatter_add_(1, classes.unsqueeze(1), torch.full_like(gradient[:, :1], -1.0))
    return gradient * scale.unsqueeze(1)


def _per_row(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients without reduction, where each row has an incoming gradient of its own."""
    input, linear_weight, target, *optional_bias = ctx.saved_tensors
    linear_bias = optional_bias[0] if ctx.has_bias else None
    g_input: list[Tensor] = []
    g_weight, g_bias = torch.zeros_like(linear_weight), None
    if linear_bias is not None:
        g_bias = torch.zeros_like(linear_bias)
    start = 0
    for rows, classes in _chunks(input, target, ctx.size):
        logits = ops.linear(rows, linear_weight, linear_bias)
        g_logits = _logits_gradient(logits, classes, ctx.class_weight, ctx.ignore_index)
        g_logits *= grad.narrow(0, start, rows.shape[0]).unsqueeze(1)
        start += rows.shape[0]
        g_input.append(g_logits @ linear_weight)
        g_weight += g_logits.t() @ rows
        if g_bias is not None:
            g_bias += g_logits.sum(0)
    return torch.cat(g_input) if g_input else None, g_weight, g_bias
