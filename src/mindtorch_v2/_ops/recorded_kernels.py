"""What torch's kernels for images and buffers show inside while something records: an op's arguments in, its result out.

Bookkeeping alone (outputs sized late, buffers cleared, gradients made dense): the work is that of the op's own kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import OPS
from . import (  # noqa: F401  (what is told about here has to be declared)
    _shown,
    activation,
    attention,
    creation,
    folding,
    grid_sample,
    normalization,
    padding,
    pooling,
    random_factories,
    resampling,
    rnn,
    softmax,
    sorting,
)
from ._namespace import functions as F
from ._shown import dense, resized


def inside(*names: str) -> Any:
    """Decorator: what the ops of these names show before their own work. What it gives, if anything, takes the result."""

    def declare(shown: Any) -> Any:
        for name in names:
            _declare(OPS[name], shown)
        return shown

    return declare


def _declare(op: Any, shown: Any) -> None:
    def body(*arguments: Any) -> Any:
        made = _shown.kernel_of(op.entry, *arguments)
        target = shown(made, *arguments)
        if target is None:
            return made
        for into, part in zip(target, made) if isinstance(made, tuple) else ((target, made),):
            np.copyto(into._array, part._array)
        return target

    op.recorded(body)


def _absolute(self: Any) -> Any:
    if self.dtype.is_complex or self.dtype is _dtype.bool_:
        OPS["abs"].kernel(self._array, self._array)  # refused
    return _shown.abs_into(self, self)


OPS["abs_"].recorded(_absolute)


# ------------------------------------------------------------------------------------------------- factories


@inside("eye.m")
def _(made: Any, *_: Any) -> Any:
    return F.zero_(resized(made.shape, made.dtype))


@inside("eye")
def _(made: Any, *_: Any) -> Any:
    return F.zero_(resized(made.shape, made.dtype))


@inside("linspace")
def _(made: Any, *_: Any) -> Any:
    return F.empty(made.shape, dtype=made.dtype)


@inside("max", "min", "aminmax")
def _(made: Any, self: Any, *rest: Any) -> None:
    if not rest or rest[0] is None:
        dense(self)


@inside("linalg_vector_norm")
def _(made: Any, self: Any, order: Any, dim: Any, keepdim: bool, *_: Any) -> None:
    if self.numel() == 1 and self.ndim == 1 and not keepdim and order == 2:
        _shown.abs_into(F.squeeze(self, 0), _shown.blank(made))


@inside("unfold_backward")
def _(made: Any, grad_in: Any, input_sizes: Any, dim: int, size: int, step: int) -> Any:
    target = F.zeros(made.shape, dtype=made.dtype)
    if step >= size:
        F.copy_(F.unfold(target, dim, size, step), grad_in)
    elif made.ndim:
        _places(target, grad_in, dim)
    return target


def _places(target: Any, grad_in: Any, dim: int) -> None:
    """Windows that overlap are added place by place, from a count of the places."""
    seen = F.squeeze(grad_in, -1) if grad_in.shape[-1] == 1 else F.squeeze(grad_in, dim)
    for tensor in (target, seen):
        F.as_strided(tensor, tensor.shape, tensor.stride())
    count = F.arange(0, target.shape[dim])
    F.as_strided(count, count.shape, count.stride())


@inside("glu_backward")
def _(made: Any, grad_output: Any, self: Any, dim: int) -> Any:
    target = _shown.sized_as(F.empty((0,), dtype=self.dtype), self)
    _two_halves(self, dim)
    first, second = _two_halves(target, dim)
    F.mul_(_shown.sigmoid_into(second, first), second)
    return target


@inside("complex", "polar")
def _(made: Any, *_: Any) -> None:
    _shown.empty_buffer(made.dtype)


@inside("median")
def _(made: Any, self: Any) -> None:
    F.clone(self)


@inside("nanmedian")
def _(made: Any, self: Any) -> Any:
    F.clone(self)
    return F.empty((), dtype=self.dtype)


@inside("nanmedian.dim")
def _(made: Any, self: Any, dim: int, keepdim: bool) -> None:
    for part in made:
        _shown.empty_buffer(part.dtype)
    _spread(made, self, dim, keepdim)


@inside("median.dim")
def _(made: Any, self: Any, dim: int, keepdim: bool) -> None:
    _spread(made, self, dim, keepdim)


def _spread(made: Any, self: Any, dim: int, keepdim: bool) -> None:
    if not keepdim and self.ndim:
        for part in made:
            F.unsqueeze(part, dim)


# ------------------------------------------------------------------------------------------------ recurrent layers


_PAGE = 4096


def _workspace(shape: tuple, hidden: int) -> int:
    """How many bytes oneDNN keeps of an LSTM's forward pass: buffers of whole pages, most with padded rows."""
    steps, batch, width = shape

    def pages(rows: int, columns: int) -> int:
        return -(-rows * columns * 4 // _PAGE)

    def padded(columns: int) -> int:
        whole = -(-columns // 16) * 16
        return whole + 16 if whole % 256 == 0 else whole

    now, states = steps * batch, 2 * (steps + 1) * batch
    inner = pages(now, padded(4 * hidden)) + pages(now, padded(hidden))
    return _PAGE * (inner + 3 * pages(states, padded(max(width, hidden))) + 2 * pages(states, hidden))


def _lstm_layer() -> None:
    op = OPS["mkldnn_rnn_layer"]

    @op.recorded
    def _(*arguments: Any) -> Any:
        made = _shown.kernel_of(op.entry, *arguments)
        targets = [F.empty(part.shape, dtype=part.dtype) for part in made[:3]]
        weight, second, biased = arguments[3], arguments[4], arguments[12]
        F.add(weight, second) if biased else F.zeros((arguments[1].shape[0],), dtype=weight.dtype)
        for target, part in zip(targets, made):
            np.copyto(target._array, part._array)
        if not any(tensor._rg for tensor in arguments[:7]):
            return (*targets, _dispatch.wrap(np.empty(0, np.uint8)))  # nobody will go back
        space = made[3]._array.view(np.uint8)
        size = max(_workspace(arguments[0].shape, arguments[10]), -(-space.size // _PAGE) * _PAGE)
        kept = F.empty((size,), dtype=_dtype.uint8)
        kept._array[: space.size] = space
        return (*targets, kept)

    back = OPS["mkldnn_rnn_layer_backward"]

    @back.recorded
    def _(*arguments: Any) -> Any:
        made = _shown.kernel_of(back.entry, *arguments)
        first, third, fourth, hidden, cell = (arguments[place] for place in (1, 3, 4, 5, 6))
        for gradient, like in zip(arguments[10:13], (arguments[7], hidden, cell)):
            F.zeros_like(like, memory_format=_dtype.contiguous_format) if gradient is None else dense(
                gradient
            )
        rows = first.shape[0]
        F.add(third, fourth) if arguments[17] else F.zeros((rows,), dtype=third.dtype)
        likes = (made[0], made[5], made[6], made[1], made[2])
        targets = [F.empty(part.shape, dtype=part.dtype) for part in likes]
        for target, part in zip(targets, likes):
            np.copyto(target._array, part._array)
        bias = F.empty((rows,), dtype=third.dtype)
        if made[3].shape == bias.shape:
            np.copyto(bias._array, made[3]._array)
            other = F.clone(bias)
        else:
            bias, other = made[3], made[4]
            F.clone(F.empty((rows,), dtype=third.dtype))
        return targets[0], targets[3], targets[4], bias, other, targets[1], targets[2]


_lstm_layer()


# -------------------------------------------------------------------------------------------------- attention


@inside("_scaled_dot_product_flash_attention_for_cpu_backward")
def _(made: Any, grad_out: Any, query: Any, key: Any, *rest: Any) -> None:
    if not grad_out.transpose(1, 2)._array.flags.c_contiguous:
        F.contiguous(grad_out.transpose(1, 2))
    attention._show_mask(rest[-2], query, key)


# ------------------------------------------------------------------------------------------------- activations


@inside("_softmax", "_log_softmax", "log_sigmoid_forward")
def _(made: Any, self: Any, *_: Any) -> None:
    dense(self)


@inside("_softmax_backward_data", "_log_softmax_backward_data")
def _(made: Any, grad_output: Any, *_: Any) -> None:
    dense(grad_output)


@inside("_prelu_kernel")
def _(made: Any, self: Any, *_: Any) -> Any:
    return F.empty_like(self)


@inside("_prelu_kernel_backward")
def _(made: Any, grad_output: Any, self: Any, weight: Any) -> None:
    _shown.empty_buffer(self.dtype)
    _shown.empty_buffer(weight.dtype)


@inside("hardswish", "hardswish_backward", "hardtanh_backward")
def _(made: Any, *_: Any) -> Any:
    return F.empty(made.shape, dtype=made.dtype)


@inside("mish_backward")
def _(made: Any, *_: Any) -> None:
    _shown.empty_buffer(made.dtype)


@inside("log_sigmoid_backward")
def _(made: Any, grad_output: Any, *_: Any) -> Any:
    return F.empty_like(grad_output)


def _two_halves(tensor: Any, dim: int) -> tuple:
    half = tensor.shape[dim] // 2
    return F.narrow(tensor, dim, 0, half), F.narrow(tensor, dim, half, half)


@inside("glu")
def _(made: Any, self: Any, dim: int) -> None:
    _two_halves(self, dim)


# ---------------------------------------------------------------------------------------------- normalization


@inside("native_batch_norm")
def _(made: Any, input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *_: Any) -> None:
    if training and input.ndim == 2:
        F.zero_(F.zeros((1, input.shape[1]), dtype=input.dtype))


def _batch_norm_backward() -> None:
    op = OPS["native_batch_norm_backward"]

    @op.recorded
    def _(grad_out: Any, input: Any, *rest: Any) -> Any:
        if not grad_out._array.flags.c_contiguous:
            F.sum(grad_out, [0, *range(2, input.ndim)])
        elif input.ndim == 2:
            F.zeros((2, 1, input.shape[1]), dtype=input.dtype)
        return op.kernel(grad_out, input, *rest)


_batch_norm_backward()


@inside("native_layer_norm")
def _(made: Any, input: Any, *_: Any) -> None:
    dense(input)


@inside("native_layer_norm_backward")
def _(made: Any, grad_out: Any, input: Any, *_: Any) -> None:
    dense(grad_out)
    dense(input)


# ---------------------------------------------------------------------------------------------------- pooling


@inside("max_pool2d_with_indices_backward", "avg_pool2d_backward")
def _(made: Any, grad_output: Any, *_: Any) -> None:
    dense(grad_output)


@inside("avg_pool3d_backward", "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward")
def _(made: Any, grad_output: Any, *_: Any) -> Any:
    dense(grad_output)
    return F.zero_(_shown.blank(made))


@inside("max_pool3d_with_indices")
def _(made: Any, self: Any, *_: Any) -> Any:
    targets = [F.empty((0,), dtype=part.dtype) for part in made]
    return tuple([_shown.given_size(target, part.shape) for target, part in zip(targets, made)])


@inside("max_pool3d_with_indices_backward", "_adaptive_avg_pool2d_backward")
def _(made: Any, grad_output: Any, *_: Any) -> Any:
    target = F.zero_(resized(made.shape, made.dtype))
    dense(grad_output)
    return target


@inside("_adaptive_avg_pool3d_backward")
def _(made: Any, grad_output: Any, self: Any) -> Any:
    target = _shown.zeros_like(self)
    dense(grad_output)
    return target


@inside(
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "pixel_shuffle",
    "pixel_unshuffle",
    "max_unpool2d",
    "native_channel_shuffle",
)
def _(made: Any, self: Any, *rest: Any) -> Any:
    target = resized(made.shape, made.dtype)
    dense(self)
    if rest and isinstance(rest[0], _dispatch.Tensor):
        F.zero_(target)
    return target


# ---------------------------------------------------------------------------------------------------- padding


@inside("reflection_pad2d", "reflection_pad3d")
def _(made: Any, self: Any, *_: Any) -> Any:
    return resized(made.shape, made.dtype)


@inside("replication_pad2d", "replication_pad3d")
def _(made: Any, self: Any, *_: Any) -> Any:
    _shown.kept_size(made, tuple(made.shape))


@inside(
    "reflection_pad2d_backward",
    "reflection_pad3d_backward",
    "replication_pad2d_backward",
    "replication_pad3d_backward",
)
def _(made: Any, grad_output: Any, self: Any, *_: Any) -> Any:
    dense(grad_output)
    return F.zeros_like(self, memory_format=_dtype.contiguous_format)


@inside("reflection_pad1d_backward", "replication_pad1d_backward")
def _(made: Any, grad_output: Any, *_: Any) -> Any:
    dense(grad_output)
    return F.zero_(_shown.blank(made))


# ------------------------------------------------------------------------------------------------- resampling


def _channels_last(tensor: Any) -> bool:
    return bool(np.moveaxis(tensor._array, 1, -1).flags.c_contiguous)


def _index_buffers(made: Any, self: Any, each: int) -> None:
    """For each dimension: so many buffers of places, each with one of weights; without any, places and ones."""
    F.as_strided(self, self.shape, self.stride())
    for dim, size in enumerate(made.shape[2:], 2):
        if not each:
            F.empty((size,), dtype=_dtype.int64)
            shape = [1] * made.ndim
            shape[dim] = size
            F.ones(shape, dtype=made.dtype)
        for _ in range(each):
            F.empty((size,), dtype=_dtype.int64)
            F.empty((size,), dtype=made.dtype)


def _resampling(names: Any, each: int) -> None:
    @inside(*[name for name in names if name in OPS])
    def _(made: Any, self: Any, *_: Any) -> None:
        _index_buffers(made, self, each)


_resampling(
    [
        f"{k}upsample_nearest{x}{d}d{v}"
        for k, x in (("", ""), ("_", "_exact"))
        for d in (1, 3)
        for v in ("", ".vec")
    ],
    0,
)
_resampling([f"upsample_{name}{v}" for name in ("linear1d", "trilinear3d") for v in ("", ".vec")], 2)
_resampling([f"upsample_bicubic2d{v}" for v in ("", ".vec")], 4)


def _planes(names: tuple[str, ...], each: int) -> None:
    @inside(*[name for name in names if name in OPS])
    def _(made: Any, self: Any, *_: Any) -> None:
        last = _channels_last(self)
        if not (last and self.shape[1] > 3) and sum(made.shape[2:]) > 128:
            _index_buffers(made, self, each)
            return
        if not last:
            self.contiguous(memory_format=_dtype.channels_last)
        if not _channels_last(made):
            F.copy_(made, made.contiguous(memory_format=_dtype.channels_last))


_planes(
    (
        "upsample_nearest2d.vec",
        "upsample_nearest2d",
        "_upsample_nearest_exact2d.vec",
        "_upsample_nearest_exact2d",
    ),
    0,
)
_planes(("upsample_bilinear2d.vec", "upsample_bilinear2d"), 2)


def _smoothed(names: tuple[str, ...], reach: int) -> None:
    @inside(*[name for name in names if name in OPS])
    def _(made: Any, self: Any, *_: Any) -> None:
        between = F.empty((*made.shape[:2], self.shape[2], made.shape[3]), dtype=made.dtype)
        for dim, source in ((3, self), (2, between)):
            size = made.shape[dim]
            taps = 2 * math.ceil(max(source.shape[dim] / size, 1.0) * reach) + 1
            F.as_strided(source, source.shape, source.stride())
            for _place in range(3):
                F.empty((size,), dtype=_dtype.int64)
            shape = [1] * 4
            shape[dim] = size * taps
            weights = F.empty(tuple(shape), dtype=made.dtype)
            F.empty((size,), dtype=_dtype.int64)
            F.as_strided(weights, weights.shape, weights.stride())


_smoothed(("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa.vec"), 1)
_smoothed(("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa.vec"), 2)


@inside(*[
    f"upsample_{name}_backward"
    for name in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
], *[
    name
    for kind in ("nearest_exact1d", "nearest_exact2d", "nearest_exact3d", "bilinear2d_aa", "bicubic2d_aa")
    if (name := f"_upsample_{kind}_backward") in OPS
])  # fmt: skip
def _(made: Any, grad_output: Any, *_: Any) -> Any:
    dense(grad_output)
    return F.zero_(_shown.blank(made))


# ----------------------------------------------------------------------------------------------------- folding


@inside("im2col", "col2im")
def _(made: Any, self: Any, *_: Any) -> Any:
    target = F.empty_like(self, memory_format=_dtype.contiguous_format)
    dense(self)
    if made.numel() <= target.numel():
        _shown.kept_size(target, tuple(made.shape))
        target = _dispatch.as_view(target, target._array.reshape(-1)[: made.numel()].reshape(made.shape))
    else:
        target = F.resize_(target, made.shape)
    for part in range(self.shape[0]):
        F.select(self, 0, part)
        F.select(target, 0, part)
    return target


# -------------------------------------------------------------------------------------------------------- grid


@inside("grid_sampler_2d", "grid_sampler_3d")
def _(made: Any, input: Any, *_: Any) -> Any:
    return F.empty(made.shape, dtype=made.dtype)


def _sampler_backward(name: str) -> None:
    op = OPS[name]

    def body(grad_output: Any, input: Any, places: Any, *rest: Any) -> Any:
        made = _shown.kernel_of(op.entry, grad_output, input, places, *rest)
        targets = _shown.zeros_like(input), F.empty_like(places, memory_format=_dtype.contiguous_format)
        dense(grad_output)
        for target, part, wanted in zip(targets, made, rest[-1]):
            if wanted:
                np.copyto(target._array, part._array)
        return tuple([t if wanted else part for t, part, wanted in zip(targets, made, rest[-1])])

    op.recorded(body)


_sampler_backward("grid_sampler_2d_backward")
_sampler_backward("grid_sampler_3d_backward")
