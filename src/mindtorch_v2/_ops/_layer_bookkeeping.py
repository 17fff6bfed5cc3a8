"""What the kernels of layers, pools and losses do besides computing, as children (`_kernel_bookkeeping.py`)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ._children import (
    INT64,
    Child,
    child,
    clone,
    contiguous,
    copy_,
    dtype_number,
    empty,
    empty_like,
    is_contiguous,
    known,
    tensor,
    tensor_of,
    zero_,
    zeros_like,
)
from ._convolution_buffers import is_channels_last
from ._kernel_bookkeeping import Rule, bookkeeping_of, unsized

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings


# ---------------------------------------------------------------------------------------------------- normalisation and activations


@bookkeeping_of("_batch_norm_impl_index")
def _(*_: Any) -> list[Child]:
    return [empty((0,), 0)]  # a reserve that only another back end uses


def _has_channels_last(x: Any) -> bool:
    """Whether the channels of a described tensor lie next to each other: without spatial dimensions, with one pixel, or by its strides."""
    return prod(x.shape[2:]) == 1 or is_channels_last(x)


def _memory_format(x: Any) -> int:
    """torch's number of the memory format of a described tensor."""
    return 2 if is_channels_last(x) else 0


@bookkeeping_of("native_batch_norm")
def _(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: Any, *_: Any
) -> list[Child]:
    known(input)
    if len(input.shape) < 2:
        return []
    dtype, n_channels = dtype_number(input), input.shape[1]
    saved = [empty((n_channels if training else 0,), dtype)] * 2
    factors = [empty((n_channels,), dtype)] * 2
    rows = [empty_like(input, _memory_format(input)), *saved]
    if not training:
        return rows + factors
    if not _has_channels_last(input):
        return rows + [empty((n_channels,), dtype)] * 2 + factors
    sums = tensor_of((1, n_channels), dtype)
    return [
        *rows,
        *[empty((n_channels,), dtype)] * 2,
        child("aten::zeros", sums.shape, dtype, 0),
        zero_(sums),
        *factors,
    ]


@bookkeeping_of("native_batch_norm_backward")
def _(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any, save_invstd: Any, train: Any,
    eps: Any, output_mask: Any,
) -> list[Child]:  # fmt: skip
    known(grad_out, input)
    if len(input.shape) < 2:
        return []
    dtype, n_channels = dtype_number(input), input.shape[1]
    memory_format = _memory_format(input)
    rows = [empty_like(input, memory_format)] if output_mask[0] else []
    rows += [empty((n_channels,), dtype) for wanted in output_mask[1:] if wanted]
    if not is_contiguous(grad_out) and not is_channels_last(grad_out):
        # gradients of another layout are summed by an op
        return [*rows, child("aten::sum.dim_IntList", grad_out, (0, *range(2, len(input.shape))))]
    rows.append(empty_like(grad_out, memory_format))
    if _has_channels_last(input) and train:
        rows += [unsized(dtype), child("aten::zeros", (2, 1, n_channels), dtype, 0)]
    return rows


@bookkeeping_of("native_layer_norm")
def _(input: Any, normalized_shape: Any, *_: Any) -> list[Child]:
    known(input)
    dtype, outer = dtype_number(input), input.shape[: len(input.shape) - len(normalized_shape)]
    saved = tensor((prod(outer),), input)
    shape = (*outer, *(1,) * len(normalized_shape))
    return [
        *contiguous(input),
        empty(input.shape, dtype, 0, None, 0),
        *[empty(saved.shape, dtype)] * 2,
        *[child("aten::view", saved, shape)] * 2,
    ]


@bookkeeping_of("native_layer_norm_backward")
def _(
    grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, output_mask: Any, *,
    settings: Settings,
) -> list[Child]:  # fmt: skip
    known(grad_out, input)
    dtype = dtype_number(input)
    shapes = (input.shape, normalized_shape, normalized_shape)
    rows = [*contiguous(grad_out), *contiguous(input)]
    rows += [empty(shape, dtype, 0, None, 0) for shape, wanted in zip(shapes, output_mask) if wanted]
    rows.append(unsized(dtype))
    if output_mask[1] or output_mask[2]:  # sums of each thread
        sums = tensor((2, settings.num_threads, prod(normalized_shape)), input)
        rows += [child("aten::resize_", tensor((0,), input), sums.shape, None), zero_(sums)]
    return rows


@bookkeeping_of("native_group_norm")
def _(input: Any, weight: Any, bias: Any, N: Any, C: Any, HxW: Any, group: Any, eps: Any) -> list[Child]:
    known(input)
    dtype = dtype_number(input)
    rows = [empty(input.shape, dtype, 0, None, _memory_format(input)), *[empty((N, group), dtype)] * 2]
    return [*rows, empty((N * group, C), dtype)] if is_channels_last(input) else rows


@bookkeeping_of("group_norm")
def _(input: Any, *_: Any) -> list[Child]:
    known(input)
    return [] if is_channels_last(input) else [*contiguous(input)]


@bookkeeping_of("native_group_norm_backward")
def _(
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    N: Any,
    C: Any,
    HxW: Any,
    group: Any,
    mask: Any,
) -> list[Child]:
    known(input)
    dtype = dtype_number(input)
    rows = [*contiguous(grad_out), *contiguous(input)]
    rows += [empty(x, dtype, 0, None, 0) for x, wanted in zip((input.shape, (C,), (C,)), mask) if wanted]
    return rows + [empty((N, C), dtype)] * 2


@bookkeeping_of("_softmax", "_log_softmax")
def _(self: Any, *_: Any) -> list[Child]:
    return [*contiguous(self)]


@bookkeeping_of("_softmax_backward_data", "_log_softmax_backward_data")
def _(grad_output: Any, output: Any, *_: Any) -> list[Child]:
    return [*contiguous(grad_output), *contiguous(output)]


@bookkeeping_of("log_sigmoid_forward")
def _(self: Any) -> list[Child]:
    return [empty_like(self, 0)] * 2


@bookkeeping_of("hardswish", "angle")
def _(self: Any) -> list[Child]:
    return [empty(self.shape, dtype_number(self), None, None, 0)]


@bookkeeping_of("hardtanh_backward", "hardswish_backward")
def _(grad_output: Any, self: Any, *_: Any) -> list[Child]:
    return [empty(self.shape, dtype_number(self), None)]


@bookkeeping_of(
    "max_pool2d_with_indices_backward",
    "avg_pool2d_backward",
    "avg_pool3d_backward",
    "adaptive_max_pool2d_backward",
)
def _(grad_output: Any, self: Any, *_: Any) -> list[Child]:
    known(self)
    return [zero_(tensor(self.shape, self)), *contiguous(grad_output)]


def _sized_output(self: Any, shape: Any, memory_format: Any = 0) -> list[Child]:
    """An output that is made without a size and given its size."""
    return [
        unsized(dtype_number(self)),
        child("aten::resize_", tensor((0,), self), tuple(shape), memory_format),
    ]


@bookkeeping_of("upsample_nearest2d.vec", "upsample_bilinear2d.vec")
def _(input: Any, output_size: Any, *options: Any) -> list[Child]:
    """Computed with channels next to each other, between two copies."""
    known(input)
    factors = options[-1]
    size = output_size or [int(n * factor) for n, factor in zip(input.shape[2:], factors)]
    if input.shape[1] == 1 or not is_contiguous(input):
        return []
    output = tensor((*input.shape[:2], *size), input)
    copies = [child("aten::contiguous", x, 2, children=[clone(x, 2)]) for x in (input, output)]
    return [*copies, copy_(output, output)]


@bookkeeping_of(
    "upsample_nearest2d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward",
    "_upsample_bilinear2d_aa_backward",
)  # fmt: skip
def _(grad_output: Any, output_size: Any, input_size: Any, *_: Any) -> list[Child]:
    known(grad_output, input_size)
    return [zero_(tensor(input_size, grad_output)), *contiguous(grad_output)]


def _padded(self: Any, padding: Any) -> tuple[int, ...]:
    """The shape of a padded tensor: padding starts at the last dimension."""
    added = [padding[i] + padding[i + 1] for i in range(0, len(padding), 2)][::-1]
    first = len(self.shape) - len(added)
    return (*self.shape[:first], *[n + more for n, more in zip(self.shape[first:], added)])


@bookkeeping_of("reflection_pad2d")
def _(self: Any, padding: Any) -> list[Child]:
    known(self)
    return _sized_output(self, _padded(self, padding))


@bookkeeping_of("replication_pad2d")
def _(self: Any, padding: Any) -> list[Child]:
    known(self)
    shape = _padded(self, padding)
    return [child("aten::resize_", tensor(shape, self), shape, 0)]


@bookkeeping_of("reflection_pad2d_backward", "replication_pad2d_backward")
def _(grad_output: Any, self: Any, padding: Any) -> list[Child]:
    return [zeros_like(self, 0)]


@bookkeeping_of("pixel_shuffle")
def _(self: Any, upscale_factor: Any) -> list[Child]:
    known(self)
    *batch, channels, height, width = self.shape
    shape = (*batch, channels // upscale_factor**2, height * upscale_factor, width * upscale_factor)
    return _sized_output(self, shape)


@bookkeeping_of("pixel_unshuffle")
def _(self: Any, downscale_factor: Any) -> list[Child]:
    known(self)
    *batch, channels, height, width = self.shape
    shape = (*batch, channels * downscale_factor**2, height // downscale_factor, width // downscale_factor)
    return _sized_output(self, shape)


@bookkeeping_of("grid_sampler_2d")
def _(input: Any, grid: Any, *_: Any) -> list[Child]:
    known(input)
    return [empty((*input.shape[:2], *grid.shape[1:3]), dtype_number(input))]


@bookkeeping_of("grid_sampler_2d_backward")
def _(
    grad_output: Any, input: Any, grid: Any, mode: Any, padding: Any, corners: Any, output_mask: Any
) -> list[Child]:
    return [*([zeros_like(input, 0)] if output_mask[0] else []), empty_like(grid, 0)]


@bookkeeping_of("nan_to_num")
def _(self: Any, *numbers: Any) -> list[Child]:
    return [empty_like(self), child("aten::nan_to_num.out", self, *numbers, tensor(self.shape, self))]


@bookkeeping_of("bucketize.Tensor", "searchsorted.Tensor")
def _(*_: Any) -> list[Child]:
    return [empty((0,), INT64, None, None, 0)]


@bookkeeping_of("trace")
def _(self: Any) -> list[Child]:
    return [empty((), dtype_number(self))]


@bookkeeping_of("_adaptive_avg_pool2d")
def _(self: Any, output_size: Any) -> list[Child]:
    known(self)
    return _sized_output(self, (*self.shape[:-2], *output_size))


@bookkeeping_of("_adaptive_avg_pool2d_backward")
def _(grad_output: Any, self: Any) -> list[Child]:
    known(self)
    return [*_sized_output(self, self.shape), zero_(tensor(self.shape, self)), *contiguous(grad_output)]


# ------------------------------------------------------------------------------------------------------------------------ losses


@bookkeeping_of("mse_loss", "smooth_l1_loss")
def _(self: Any, target: Any, reduction: Any, *_: Any) -> list[Child]:
    if reduction == 0:
        return []
    known(self)
    losses = empty(self.shape, dtype_number(self), None, None, 0)
    return [child("aten::resize_", tensor(self.shape, self), (), None), losses]


@bookkeeping_of("huber_loss")
def _(self: Any, target: Any, reduction: Any, delta: Any) -> list[Child]:
    return [empty_like(self)]


def _into_zeros(overload: str) -> Rule:
    """A gradient that is added to zeros by the overload that writes into them."""
    return lambda grad_output, self, *rest: [
        zeros_like(self, 0),
        child(overload, grad_output, self, *rest, tensor(self.shape, self)),
    ]


bookkeeping_of("mse_loss_backward")(_into_zeros("aten::mse_loss_backward.grad_input"))
bookkeeping_of("smooth_l1_loss_backward")(_into_zeros("aten::smooth_l1_loss_backward.grad_input"))
bookkeeping_of("huber_loss_backward")(_into_zeros("aten::huber_loss_backward.out"))


@bookkeeping_of("nll_loss_backward", "nll_loss2d_backward")
def _(grad_output: Any, self: Any, *_: Any) -> list[Child]:
    return [zero_(tensor(self.shape, self))]


@bookkeeping_of("binary_cross_entropy")
def _(self: Any, target: Any, weight: Any, reduction: Any) -> list[Child]:
    known(self)
    losses, total = tensor(self.shape, self), tensor((), self)
    rows = [empty_like(self), *[child("aten::squeeze", x) for x in (losses, self, target)]]
    if reduction == 0:
        return rows
    resized = child("aten::resize_", losses, (), None)
    return [*rows, child("aten::resize_as_", losses, total, None, children=[resized]), copy_(total, total)]


@bookkeeping_of("binary_cross_entropy_backward")
def _(grad_output: Any, self: Any, target: Any, *_: Any) -> list[Child]:
    known(self)
    gradient = tensor(self.shape, self)
    return [empty_like(self), *[child("aten::squeeze", x) for x in (gradient, grad_output, self, target)]]


@bookkeeping_of("_prelu_kernel")
def _(self: Any, weight: Any) -> list[Child]:
    return [empty_like(self)]


@bookkeeping_of("_prelu_kernel_backward")
def _(grad_output: Any, self: Any, weight: Any) -> list[Child]:
    return [unsized(dtype_number(self))] * 2
