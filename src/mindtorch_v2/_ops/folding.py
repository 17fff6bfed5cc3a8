"""Rearranging images: im2col and col2im, pixel_shuffle and pixel_unshuffle, channel_shuffle; one_hot."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .. import _op_errors
from .._dispatch import composite, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, int64
from .._meta import is_meta, meta_tensor
from . import _dims
from ._layout import is_channels_last
from ._namespace import functions as F
from .creation import _zeros

# ---------------------------------------------------------------------------------------------------- windows


def _check_windows(kernel: tuple, dilation: tuple, padding: tuple, stride: tuple, **sizes: tuple) -> None:
    named = {**sizes, "kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    for name, value in named.items():
        if len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    for label, short, value in (
        ("kernel size", "kernel", kernel),
        ("stride", "stride", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(value) <= 0:
            raise RuntimeError(
                f"{label} should be greater than zero, but got {short}_height: {value[0]} {short}_width: {value[1]}"
            )
    if min(padding) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}"
        )


def _pair(values: tuple) -> str:
    return f"({values[0]}, {values[1]})"


def _window_counts(size: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> tuple:
    return tuple(
        [
            (n + 2 * p - (d * (k - 1) + 1)) // s + 1
            for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)
        ]
    )


def _refuse_integers(x: np.ndarray, kernel: str) -> None:
    if x.dtype.num in INTEGRAL_NUMS and x.dtype != bool:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{BY_NUM[x.dtype.num]._abbr}'")


@op(
    "aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    expose="no",
    node="Im2ColBackward0",
)
def im2col(
    self: np.ndarray, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple
) -> np.ndarray:
    _check_windows(kernel_size, dilation, padding, stride)
    if self.ndim < 3:
        _dims.one(self.ndim, self.ndim)
    if self.ndim not in (3, 4) or 0 in self.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    size = self.shape[-2:]
    out = _window_counts(size, kernel_size, dilation, padding, stride)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_pair(size)}, kernel_size={_pair(kernel_size)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, calculated shape of the array of sliding blocks as {_pair(out)}, "
            "but its components must be at least one."
        )
    _refuse_integers(self, "im2col_out_cpu")
    x = self
    if any(padding):
        x = np.zeros((*self.shape[:-2], *[n + 2 * p for n, p in zip(size, padding)]), self.dtype)
        x[(..., *[slice(p, p + n) for n, p in zip(size, padding)])] = self
    (h, w), lead = x.strides[-2:], x.strides[:-2]
    windows = np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:-2], *kernel_size, *out),
        (*lead, h * dilation[0], w * dilation[1], h * stride[0], w * stride[1]),
        writeable=False,
    )
    columns = np.empty(windows.shape, x.dtype)
    np.copyto(columns, windows)
    return columns.reshape(*x.shape[:-3], x.shape[-3] * math.prod(kernel_size), math.prod(out))


@op(
    "aten::col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    expose="no",
    node="Col2ImBackward0",
)
def col2im(
    self: np.ndarray, output_size: tuple, kernel_size: tuple, dilation: tuple, padding: tuple, stride: tuple
) -> np.ndarray:
    _check_windows(kernel_size, dilation, padding, stride, output_size=output_size)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, "
            f"but got: {list(self.shape)}"
        )
    rows, columns = self.shape[-2:]
    places = math.prod(kernel_size)
    if rows % places:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={rows} and kernel_size={_pair(kernel_size)}."
        )
    out = _window_counts(output_size, kernel_size, dilation, padding, stride)
    if out[0] * out[1] != columns or min(out) < 1:
        raise RuntimeError(
            f"Given output_size={_pair(output_size)}, kernel_size={_pair(kernel_size)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension 2 to match the calculated "
            f"number of sliding blocks {out[0]} * {out[1]} = {out[0] * out[1]}, but got input.size(2)={columns}."
        )
    _refuse_integers(self, "col2im_out_cpu")
    lead = (*self.shape[:-2], rows // places)
    windows = self.reshape(*lead, *kernel_size, *out)
    image = np.zeros((*lead, *[n + 2 * p for n, p in zip(output_size, padding)]), self.dtype)
    for i, j in itertools.product(*map(range, kernel_size)):
        top, left = i * dilation[0], j * dilation[1]
        image[
            ...,
            top : top + (out[0] - 1) * stride[0] + 1 : stride[0],
            left : left + (out[1] - 1) * stride[1] + 1 : stride[1],
        ] += windows[..., i, j, :, :]
    if any(padding):
        image = image[(..., *[slice(p, p + n) for n, p in zip(output_size, padding)])]
    return np.ascontiguousarray(image)


im2col.derivative(
    self=lambda g, self_shape, kernel_size, dilation, padding, stride: col2im(
        g, self_shape[-2:], kernel_size, dilation, padding, stride
    )
)
col2im.derivative(
    self=lambda g, kernel_size, dilation, padding, stride: im2col(g, kernel_size, dilation, padding, stride)
)


# ---------------------------------------------------------------------------------------------------- pixels


def _as_input(made: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The result, channels-last if the input is."""
    if is_channels_last(like):
        return np.moveaxis(np.moveaxis(made, 1, -1).copy(), -1, 1)
    return made


def _check_pixels(x: np.ndarray, name: str, factor_name: str, factor: int) -> None:
    if x.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {factor_name}, but got {factor}")


@op("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", expose="function")
def pixel_shuffle(self: np.ndarray, upscale_factor: int) -> np.ndarray:
    _check_pixels(self, "pixel_shuffle", "upscale_factor", upscale_factor)
    r, (*lead, channels, height, width) = upscale_factor, self.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    c, n = channels // (r * r), len(lead)
    parts = self.reshape(*lead, c, r, r, height, width)
    shuffled = np.empty((*lead, c, height, r, width, r), self.dtype)
    shuffled[...] = parts.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _as_input(shuffled.reshape(*lead, c, height * r, width * r), self)


@op("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", expose="function")
def pixel_unshuffle(self: np.ndarray, downscale_factor: int) -> np.ndarray:
    _check_pixels(self, "pixel_unshuffle", "downscale_factor", downscale_factor)
    r, (*lead, c, height, width) = downscale_factor, self.shape
    for name, size, d in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({d})={size} is not divisible by {r}"
            )
    if not self.size:
        return self.copy()  # torch leaves an empty image's shape as it is
    n, high, wide = len(lead), height // r, width // r
    parts = self.reshape(*lead, c, high, r, wide, r)
    unshuffled = np.empty((*lead, c, r, r, high, wide), self.dtype)
    unshuffled[...] = parts.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _as_input(unshuffled.reshape(*lead, c * r * r, high, wide), self)


pixel_shuffle.derivative(self=lambda g, upscale_factor: pixel_unshuffle(g, upscale_factor))
pixel_unshuffle.derivative(self=lambda g, downscale_factor: pixel_shuffle(g, downscale_factor))


# ---------------------------------------------------------------------------------------------------- channels


def _check_groups(shape: tuple, groups: int) -> None:
    if len(shape) < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )


@op("aten::native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", expose="function")
def native_channel_shuffle(self: np.ndarray, groups: int) -> np.ndarray:
    _check_groups(self.shape, groups)
    batch, channels, *size = self.shape
    made = np.empty((batch, channels // groups, groups, *size), self.dtype)
    made[...] = self.reshape(batch, groups, channels // groups, *size).swapaxes(1, 2)
    return _as_input(made.reshape(self.shape), self)


@op("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor", expose="function", on="tensors")
def channel_shuffle(self: Any, groups: int) -> Any:
    return native_channel_shuffle(self, groups)


channel_shuffle.derivative(self=lambda g, self_shape, groups: channel_shuffle(g, self_shape[1] // groups))


# ---------------------------------------------------------------------------------------------------- classes


@composite("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", expose="no")
def one_hot(self: Any, num_classes: int) -> Any:
    _op_errors.bad_argument(one_hot.op, (self, num_classes))
    if self.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if is_meta(self) and num_classes != -1:
        return meta_tensor((*self.shape, num_classes), int64._np)
    if not self.numel():
        return F.empty((*self.shape, _classes_of_none(num_classes)), dtype=int64)
    least, most = F.aminmax(self)
    classes = _classes(least.item(), most.item(), num_classes)
    return _zeros((*self.shape, classes), dtype=int64).scatter_(-1, F.unsqueeze(self, -1), 1)


def _classes_of_none(num_classes: int) -> int:
    if num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    return num_classes


def _classes(least: int, most: int, num_classes: int) -> int:
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        return most + 1
    if num_classes <= most:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return num_classes
