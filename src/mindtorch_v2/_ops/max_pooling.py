"""Max pooling over one to three dimensions, with the indices of the maxima: plain, adaptive, fractional; and its inverse.

The kernels loop over the offsets in a window, each for whole arrays at once.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import INTEGRAL_NUMS
from .._graph import Switches, grad_state
from . import _core, _dims, _layout
from ._double_backward import zeros_of
from ._namespace import functions as F
from ._pooling_windows import bins, check_sizes, check_window, one_int, per_dim, pooled_size, widened
from .creation import _empty


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.num not in INTEGRAL_NUMS else np.iinfo(dtype).min


def max_pool(
    x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Maxima and their flat indices in the input's last dimensions."""
    x = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    fused = _core.max_pool(x, kernel, stride, padding, dilation, ceil_mode)
    if fused is not None:
        return fused
    dims = len(kernel)
    spatial = x.shape[-dims:]
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    out = tuple(pooled_size(*args, ceil_mode) for args in zip(spatial, kernel, padding, stride, dilation))
    check_sizes(x, kernel, stride, padding, out)
    lowest = _lowest(x.dtype)
    frame = widened(x, padding, kernel, stride, dilation, out, lowest)
    pieces = [np.ascontiguousarray(frame[window]) for _, window in _windows(kernel, out, stride, dilation)]
    best = pieces[0].copy()
    for values in pieces[1:]:
        np.maximum(best, values, out=best)
    which = _first_equal(pieces, best)
    if best.dtype.kind in "fV" and (nan := np.isnan(best)).any():
        for number, values in enumerate(pieces):
            which[nan & np.isnan(values)] = number
    if frame is not x and (best == lowest).any():  # a maximum is not in the padding
        filled = np.zeros(spatial, bool)
        padded = widened(filled, padding, kernel, stride, dilation, out, True)
        outside = np.stack([padded[window] for _, window in _windows(kernel, out, stride, dilation)])
        which = np.where(best == lowest, outside.argmin(0), which)
    return best, _flat_places(which, kernel, out, stride, padding, dilation, spatial)


def _windows(kernel: tuple, out: tuple, stride: tuple, dilation: tuple) -> Any:
    for place in itertools.product(*map(range, kernel)):
        yield (
            place,
            (
                ...,
                *[
                    slice(i * d, i * d + (n - 1) * s + 1, s)
                    for i, n, s, d in zip(place, out, stride, dilation)
                ],
            ),
        )


def _first_equal(pieces: list[np.ndarray], best: np.ndarray) -> np.ndarray:
    """The number of the first piece that holds each maximum: sums and products of flags, much faster than masked writes."""
    kind = np.int8 if len(pieces) < 128 else np.int16
    which = np.zeros(best.shape, kind)
    for values in reversed(pieces[:-1]):
        np.add(which, 1, which)
        np.multiply(which, (values != best).view(np.int8), which)
    return which


def _flat_places(
    which: np.ndarray,
    kernel: tuple,
    out: tuple,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    spatial: tuple,
) -> np.ndarray:
    """Window places (numbers in the kernel) as flat indices into the input's spatial dimensions."""
    steps = [math.prod(spatial[d + 1 :]) for d in range(len(spatial))]
    shifts = np.array(
        [
            sum((i * e - p) * s for i, e, p, s in zip(place, dilation, padding, steps))
            for place in itertools.product(*map(range, kernel))
        ],
        np.int64,
    )
    start = np.zeros(out, np.int64)
    for d, (n, s) in enumerate(zip(out, stride)):
        start = start + (np.arange(n, dtype=np.int64) * s * steps[d]).reshape(
            *[-1 if e == d else 1 for e in range(len(out))]
        )
    return shifts[which] + start


def scatter_max(g: np.ndarray, places: np.ndarray, shape: tuple, dims: int, overlapping: bool) -> np.ndarray:
    """Add gradients at the input indices of the maxima."""
    fused = _core.scatter_planes(g, places, shape, dims, overlapping)
    if fused is not None:
        return fused
    count = math.prod(shape[-dims:])
    lead = math.prod(shape[:-dims])
    flat = _dims.rows(_dims.flat_from(places, places.ndim - dims))
    flat = flat + (np.arange(lead, dtype=np.int64) * count)[:, None]
    values = g.reshape(flat.shape)
    if not overlapping:
        gradient = np.zeros(lead * count, g.dtype)
        gradient[flat] = values
    else:
        gradient = np.bincount(flat.ravel(), weights=values.ravel(), minlength=lead * count).astype(g.dtype)
    return gradient.reshape(shape)


def _flat_view(tensor: Any, dims: int) -> Any:
    dense = tensor if tensor.is_contiguous() else tensor.contiguous()
    return dense.view(*tensor.shape[:-dims], math.prod(tensor.shape[-dims:]))


def _at_indices(g: Any, indices: Any, dims: int) -> Any:
    """The gradients at the indices of the maxima."""
    return F.view(F.gather(_flat_view(g, dims), -1, _flat_view(indices, dims)), tuple(indices.shape))


def _declare_max(dims: int, aten_name: str, backward_name: str) -> Any:
    @op(
        f"{aten_name}(Tensor self, int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, int[{dims}] dilation=1, "
        "bool ceil_mode=False) -> (Tensor, Tensor)",
        expose="no",
        node=f"MaxPool{dims}DWithIndicesBackward0",
        outputs=1,
    )
    def with_indices(
        self: np.ndarray, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        check_window(f"max_pool{dims}d", dims, kernel_size, stride, padding, dilation)
        kernel = per_dim(kernel_size, dims)
        if self.ndim not in (dims + 1, dims + 2):
            kind = {1: "2D or 3D", 2: "3D or 4D", 3: "4D or 5D"}[dims]
            raise RuntimeError(f"non-empty {kind} (batch mode) tensor expected for input")
        if dims == 3 and 0 in self.shape[-dims - 1 :]:
            raise RuntimeError(
                "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have positive length, "
                f"but input has a shape of {list(self.shape)}"
            )
        pooled = max_pool(
            self,
            kernel,
            per_dim(stride, dims) if stride else kernel,
            per_dim(padding, dims),
            per_dim(dilation, dims),
            ceil_mode,
        )
        if dims == 2 and _layout.is_channels_last(self):
            return tuple(_layout.copied(part, _layout.channels_last) for part in pooled)
        return pooled

    @with_indices.backward("self")
    def _(
        grads: Any,
        self: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        result1: Any,
    ) -> Any:
        return (backward(grads[0], self, kernel_size, stride, padding, dilation, ceil_mode, result1),)

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, int[{dims}] kernel_size, int[{dims}] stride, int[{dims}] padding, "
        f"int[{dims}] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        expose="no",
        node=f"MaxPool{dims}DWithIndicesBackwardBackward0",
    )
    def backward(
        grad_output: np.ndarray,
        self: np.ndarray,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        indices: np.ndarray,
    ) -> np.ndarray:
        kernel, steps = per_dim(kernel_size, dims), per_dim(stride or kernel_size, dims)
        spread = per_dim(dilation, dims)
        overlapping = any(s < (k - 1) * d + 1 for k, s, d in zip(kernel, steps, spread))
        return scatter_max(grad_output, indices, self.shape, dims, overlapping)

    backward.derivative(
        grad_output=lambda g, indices: _at_indices(g, indices, dims),
        self=lambda self: F.zeros(tuple(self.shape), dtype=self.dtype),
    )
    return with_indices


max_pool2d_with_indices = _declare_max(
    2, "aten::max_pool2d_with_indices", "aten::max_pool2d_with_indices_backward"
)
max_pool3d_with_indices = _declare_max(
    3, "aten::max_pool3d_with_indices", "aten::max_pool3d_with_indices_backward"
)


@composite(
    "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
    "bool ceil_mode=False) -> (Tensor, Tensor)",
    expose="function",
)
def max_pool1d_with_indices(
    self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    if self.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for max_pool1d)"
        )
    window = _row_window(kernel_size, stride, padding, dilation)
    maxima, places = max_pool2d_with_indices(F.unsqueeze(self, -2), *window, ceil_mode)
    return F.squeeze(maxima, -2), F.squeeze(places, -2)


def _row_window(kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> tuple:
    """The same arguments for images of one row."""
    kernel = per_dim(kernel_size, 1)
    steps = per_dim(stride, 1) if stride not in ((), [], None) else kernel
    return (1, *kernel), (1, *steps), (0, *per_dim(padding, 1)), (1, *per_dim(dilation, 1))


def _check_line(self: Any, kernel_size: Any, stride: Any, dilation: Any) -> None:
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(self.shape)}"
        )
    kernel, steps = _dispatch.ints(kernel_size), _dispatch.ints(stride)
    if len(kernel) != 1:
        raise RuntimeError(
            f"max_pool1d() kernel_size must be an int, list of ints or tuple of ints of size 1 but got size {len(kernel)}"
        )
    if len(steps) > 1:
        raise RuntimeError(
            f"max_pool1d() stride must be None, an int, list of ints, or tuple of ints of size 1 but got size {len(steps)}"
        )
    for step in _dispatch.ints(dilation):
        if step <= 0:
            raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {step}")


def _line_maxima(
    self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """The maxima alone, by one kernel: their indices are only needed for a gradient."""
    window = _row_window(kernel_size, stride, padding, dilation)
    maxima, _ = max_pool2d_with_indices.op.kernel(np.expand_dims(self._array, -2), *window, ceil_mode)
    result = _empty((*self.shape[:-1], maxima.shape[-1]), dtype=self.dtype)
    np.copyto(result._array, maxima.squeeze(-2))
    return result


def _is_plain(self: Any) -> bool:
    """Whether nothing but the values of a result is asked for: no gradient, no meta tensor, no `__torch_dispatch__`."""
    differentiates = self._rg and grad_state.enabled
    return not (
        differentiates or self._array_missing or (Switches.asked is not None and Switches.asked(self))
    )


def _declare_plain_max(dims: int, aten_name: str, with_indices: Any) -> None:
    @composite(
        f"{aten_name}(Tensor self, int[{dims}] kernel_size, int[{dims}] stride=[], int[{dims}] padding=0, int[{dims}] dilation=1, "
        "bool ceil_mode=False) -> Tensor",
        expose="function",
    )
    def plain(self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        if stride is None:
            stride = ()
        if dims == 1:
            _check_line(self, kernel_size, stride, dilation)
            if _is_plain(self):
                return _line_maxima(self, kernel_size, stride, padding, dilation, ceil_mode)
        return with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


_declare_plain_max(1, "aten::max_pool1d", max_pool1d_with_indices)
_declare_plain_max(2, "aten::max_pool2d", max_pool2d_with_indices)
_declare_plain_max(3, "aten::max_pool3d", max_pool3d_with_indices)


def _declare_unpool(dims: int, aten_name: str) -> None:
    extra = ", int[3] stride, int[3] padding" if dims == 3 else ""

    @op(
        f"{aten_name}(Tensor self, Tensor indices, SymInt[{dims}] output_size{extra}) -> Tensor",
        expose="no",
        node=f"MaxUnpool{dims}DBackward0",
    )
    def unpool(self: np.ndarray, indices: np.ndarray, output_size: tuple, *_: Any) -> np.ndarray:
        if self.shape != indices.shape:
            raise RuntimeError(
                f"Expected shape of indices to be: {list(self.shape)} but got: {list(indices.shape)}"
            )
        size = tuple(output_size)[-dims:]
        lead, count = math.prod(self.shape[:-dims]), math.prod(size)
        if not _dims.inside(indices, 0, count):
            bad = int(indices[(indices < 0) | (indices >= count)].flat[-1])
            raise RuntimeError(
                f"Found an invalid max index: {bad} (output volumes are of size {'x'.join(map(str, size))})"
            )
        unpooled = np.zeros((lead, count), self.dtype)
        flat = _dims.rows(_dims.flat_from(indices, indices.ndim - dims))
        np.put_along_axis(unpooled, flat, self.reshape(flat.shape), 1)
        return unpooled.reshape(*self.shape[:-dims], *size)

    unpool.derivative(self=lambda g, indices: _at_indices(g, indices, dims))


_declare_unpool(2, "aten::max_unpool2d")
_declare_unpool(3, "aten::max_unpool3d")


# ---------------------------------------------------------------------------------------------------- adaptive


def _last_nan_or_first_maximum(values: np.ndarray) -> np.ndarray:
    """Where torch finds the maximum along the last dimension."""
    best = values.argmax(-1)
    nan = np.isnan(values) if values.dtype.kind in "fV" else np.zeros(1, bool)
    if not nan.any():
        return best
    return np.where(nan.any(-1), values.shape[-1] - 1 - nan[..., ::-1].argmax(-1), best)


def _declare_adaptive_max(dims: int, aten_name: str, backward_name: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(
        f"{aten_name}(Tensor self, int[{dims}] output_size) -> (Tensor, Tensor)",
        expose="no",
        node=f"AdaptiveMaxPool{dims}DBackward0",
        outputs=1,
    )
    def pool(self: np.ndarray, output_size: Any) -> Any:
        if output_size.__class__ is not int and len(output_size) != dims:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
        size = per_dim(output_size, dims)
        fused = _core.adaptive_max_pool(self, size)
        if fused is not None:
            return fused
        spatial = self.shape[-dims:]
        lead = self.shape[:-dims]
        maxima = np.empty((*lead, *size), self.dtype)
        places = np.empty((*lead, *size), np.int64)
        flat = np.arange(math.prod(spatial)).reshape(spatial)
        for place in itertools.product(*map(range, size)):
            window = tuple(slice(*bins(n, o)[i]) for n, o, i in zip(spatial, size, place))
            values = _dims.flat_from(self[(..., *window)], len(lead))
            best = _last_nan_or_first_maximum(values)
            maxima[(..., *place)] = np.take_along_axis(values, best[..., None], -1)[..., 0]
            places[(..., *place)] = flat[window].reshape(-1)[best]
        return maxima, places

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        expose="no",
    )
    def backward(grad_output: np.ndarray, self: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return scatter_max(grad_output, indices, self.shape, dims, True)

    @pool.backward("self")
    def _(grads: Any, self: Any, result1: Any) -> Any:
        return (backward(grads[0], self, result1),)

    backward.derivative(
        grad_output=lambda g, indices: _at_indices(g, indices, dims),
        self=zeros_of,
    )
    return pool


adaptive_max_pool2d = _declare_adaptive_max(
    2, "aten::adaptive_max_pool2d", "aten::adaptive_max_pool2d_backward"
)
adaptive_max_pool3d = _declare_adaptive_max(
    3, "aten::adaptive_max_pool3d", "aten::adaptive_max_pool3d_backward"
)


@composite(
    "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", expose="function"
)
def adaptive_max_pool1d(self: Any, output_size: Any) -> Any:
    size = one_int("adaptive_max_pool1d", "output_size", output_size)
    maxima, places = adaptive_max_pool2d(F.unsqueeze(self, -2), (1, *size))
    places = F.squeeze(places, -2)
    return F.squeeze(maxima, -2), places


# ---------------------------------------------------------------------------------------------------- fractional


def _fractional_starts(samples: np.ndarray, n: int, out: int, k: int) -> np.ndarray:
    """Window starts of one dimension from one random number per plane, as Graham's pseudo-random sequence: (planes, out)."""
    starts = np.empty((samples.size, out), np.int64)
    if out > 1:
        sequence = ((np.arange(out - 1) + samples[:, None]) * ((n - k) / (out - 1))).astype(np.int64)
        np.subtract(sequence, sequence[:, :1], starts[:, :-1])
    starts[:, -1:] = n - k
    return starts


def _fractional_windows(starts: list[np.ndarray], spatial: tuple, size: tuple, kernel: tuple) -> np.ndarray:
    """The flat places that each window has: (planes, windows, places of a window)."""
    dims, planes = len(size), len(starts[0])
    flat: Any = 0
    for d, (n, o, k) in enumerate(zip(spatial, size, kernel)):
        places = starts[d][:, :, None] + np.arange(k)
        shape = [planes] + [1] * (2 * dims)
        shape[1 + d], shape[1 + dims + d] = o, k
        flat = flat * n + places.reshape(shape)
    return flat.reshape(planes, math.prod(size), math.prod(kernel))


def _declare_fractional(dims: int, aten_name: str, backward_name: str) -> None:
    @op(
        f"{aten_name}(Tensor self, int[{dims}] kernel_size, int[{dims}] output_size, Tensor random_samples) "
        "-> (Tensor, Tensor)",
        expose="no",
        outputs=1,
        node=f"FractionalMaxPool{dims}DBackward0",
    )
    def pool(self: np.ndarray, kernel_size: Any, output_size: Any, random_samples: np.ndarray) -> Any:
        kernel, size = per_dim(kernel_size, dims), per_dim(output_size, dims)
        x = self if self.ndim == dims + 2 else self[None]
        spatial = x.shape[-dims:]
        # In three dimensions torch requires one more element than it needs.
        for d, side in (
            ((0, "height"), (1, "width")) if dims == 2 else ((0, "time"), (2, "width"), (1, "height"))
        ):
            n, o, k = spatial[d], size[d], kernel[d]
            if o + k - 1 > n - (dims == 3):
                where = "fractional_max_pool2d()" if dims == 2 else "fractional_max_pool3d_out()"
                raise RuntimeError(f"{where}: pool {side} {k} too large relative to input {side} {n}")
        planes = x.shape[0] * x.shape[1]
        samples = random_samples.reshape(planes, dims)[:, :: -1 if dims == 2 else 1]  # 2-d: width first
        starts = [
            _fractional_starts(samples[:, d], n, o, k)
            for d, (n, o, k) in enumerate(zip(spatial, size, kernel))
        ]
        fused = _core.max_pool_at(self, np.concatenate(starts, 1), kernel, size)
        if fused is not None:
            return fused
        windows = _fractional_windows(starts, spatial, size, kernel)
        values = np.take_along_axis(x.reshape(planes, -1), windows.reshape(planes, -1), 1)
        values = values.reshape(windows.shape)
        best = _last_nan_or_first_maximum(values)[..., None]
        maxima, places = (
            np.take_along_axis(part, best, 2).reshape(*self.shape[:-dims], *size)
            for part in (values, windows)
        )
        return maxima, places

    adaptive = _dispatch.OPS[f"adaptive_max_pool{dims}d_backward"]

    @op(
        f"{backward_name}(Tensor grad_output, Tensor self, int[{dims}] kernel_size, "
        f"int[{dims}] output_size, Tensor indices) -> Tensor",
        expose="no",
    )
    def backward(
        grad_output: np.ndarray, self: np.ndarray, kernel_size: Any, output_size: Any, indices: np.ndarray
    ) -> np.ndarray:
        return adaptive.kernel(grad_output, self, indices)

    @pool.backward("self")
    def _(grads: Any, self: Any, kernel_size: Any, output_size: Any, result1: Any) -> Any:
        return (backward(grads[0], self, kernel_size, output_size, result1),)

    backward.derivative(
        grad_output=lambda g, indices: F.gather(g.flatten(-dims), -1, indices.flatten(-dims)).reshape(
            indices.shape
        ),
        self=zeros_of,
    )


_declare_fractional(2, "aten::fractional_max_pool2d", "aten::fractional_max_pool2d_backward")
_declare_fractional(3, "aten::fractional_max_pool3d", "aten::fractional_max_pool3d_backward")
