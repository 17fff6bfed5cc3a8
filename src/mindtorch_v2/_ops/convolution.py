"""Convolutions of one to three dimensions and their transposes: patches are gathered into columns and multiplied by BLAS.

Three kernels do all the work: `forward`, `input_gradient` and `weight_gradient`. A transposed convolution is the input gradient
of a plain one, and the derivatives of each are made of the other two.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from mindtorch_prof.flops import conv2d_flops

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import BY_NUM, LOW_FLOATS
from . import _core, _layout
from ._half_precision import widened
from ._namespace import functions as F
from .pointwise import conj


def output_size(n: int, k: int, stride: int, padding: int, dilation: int) -> int:
    return (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1


def _padded(x: np.ndarray, padding: tuple) -> np.ndarray:
    if not any(padding):
        return x
    shape = (*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], padding)])
    made = np.zeros(shape, x.dtype)
    made[(slice(None), slice(None), *[slice(p, p + n) for n, p in zip(x.shape[2:], padding)])] = x
    return made


def _windows(kernel: tuple, out: tuple, stride: tuple, dilation: tuple) -> Any:
    """For each place in the kernel, the slices of a padded input that it is multiplied with."""
    for place in itertools.product(*map(range, kernel)):
        yield (
            place,
            tuple(
                slice(i * d, i * d + (n - 1) * s + 1, s) for i, n, s, d in zip(place, out, stride, dilation)
            ),
        )


def _columns(
    x: np.ndarray, kernel: tuple, out: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> np.ndarray:
    """Patches as columns: (N, C, *kernel, *out)."""
    x = _padded(x, padding)
    n, c = x.shape[:2]
    made = np.empty((n, c, *kernel, *out), x.dtype)
    if _core.move_columns(made, x, tuple(stride), tuple(dilation), False) is not None:
        return made
    for place, window in _windows(kernel, out, stride, dilation):
        made[(slice(None), slice(None), *place)] = x[(slice(None), slice(None), *window)]
    return made


class _Grid:
    """How a convolution of stride 1 reads its padded input: as flat runs.

    The output is computed on a grid as wide as the padded input, so that the column of each kernel place is one contiguous run of it
    (one copy per run instead of one per row). What lies beyond the output's width is cut off at the end; in the backward pass it is zero.
    """

    def __init__(self, spatial: tuple, kernel: tuple, padding: tuple, dilation: tuple) -> None:
        self.spatial, self.padding = spatial, padding
        self.padded = tuple(n + 2 * p for n, p in zip(spatial, padding))
        self.out = tuple(n - d * (k - 1) for n, k, d in zip(self.padded, kernel, dilation))
        steps = [math.prod(self.padded[d + 1 :]) for d in range(len(spatial))]
        self.offsets = [
            sum(i * d * s for i, d, s in zip(place, dilation, steps))
            for place in itertools.product(*map(range, kernel))
        ]
        self.places = np.array(self.offsets, np.int64)
        self.grid = (self.out[0], *self.padded[1:])
        self.length = math.prod(self.grid)
        self.total = max(self.offsets) + self.length
        self.size = math.prod(self.padded)
        self.inside = (..., *[slice(p, p + n) for p, n in zip(padding, spatial)])
        self.crop = (..., *[slice(0, n) for n in self.out])

    def flat(self, x: np.ndarray) -> np.ndarray:
        """Padded images with flat channels: (N, C, total)."""
        n, c = x.shape[:2]
        flat = np.zeros((n, c, self.total), x.dtype)
        flat[:, :, : self.size].reshape(n, c, *self.padded)[self.inside] = x
        return flat

    def columns(self, flat: np.ndarray) -> np.ndarray:
        """Patches as columns: (N, C, places, length)."""
        n, c = flat.shape[:2]
        made = np.empty((n, c, len(self.offsets), self.length), flat.dtype)
        for place, offset in enumerate(self.offsets):
            made[:, :, place] = flat[:, :, offset : offset + self.length]
        return made

    def cropped(self, made: np.ndarray) -> np.ndarray:
        """Results on the grid, (N, C, length), without what lies beyond the output."""
        return np.ascontiguousarray(made.reshape(*made.shape[:2], *self.grid)[self.crop])

    def spread(self, g: np.ndarray) -> np.ndarray:
        """An output's gradient on the grid, zero beyond the output: (N, C, length)."""
        made = np.zeros((*g.shape[:2], *self.grid), g.dtype)
        made[self.crop] = g
        return made.reshape(*g.shape[:2], self.length)

    def gathered(self, columns: np.ndarray) -> np.ndarray:
        """Gradients of columns (N, C, places, length), summed at the input elements they were read from: (N, C, *spatial)."""
        n, c = columns.shape[:2]
        flat = np.zeros((n, c, self.total), columns.dtype)
        for place, offset in enumerate(self.offsets):
            part = flat[:, :, offset : offset + self.length]
            np.add(part, columns[:, :, place], part)
        return self.unpadded(flat)

    def unpadded(self, flat: np.ndarray) -> np.ndarray:
        """Flat images (N, C, total) without their padding: (N, C, *spatial)."""
        return np.ascontiguousarray(
            flat[:, :, : self.size].reshape(*flat.shape[:2], *self.padded)[self.inside]
        )


_grid = functools.lru_cache(maxsize=256)(_Grid)


def is_pointwise(kernel: tuple, stride: tuple, padding: tuple) -> bool:
    return not any(padding) and all(k == 1 for k in kernel) and all(s == 1 for s in stride)


def forward(
    x: np.ndarray, w: np.ndarray, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> np.ndarray:
    """The plain convolution, without bias."""
    if x.dtype in LOW_FLOATS:
        return forward(x.astype(np.float32), w.astype(np.float32), stride, padding, dilation, groups).astype(
            x.dtype
        )
    n, kernel = x.shape[0], w.shape[2:]
    if not n:
        sizes = zip(x.shape[2:], kernel, stride, padding, dilation)
        return np.zeros((0, w.shape[0], *[output_size(*s) for s in sizes]), x.dtype)
    out = tuple(output_size(*sizes) for sizes in zip(x.shape[2:], kernel, stride, padding, dilation))
    length = math.prod(out)
    if is_depthwise(w.shape, groups):
        return _depthwise(x, w, out, stride, padding, dilation)
    if groups == 1 and math.prod(kernel) > max(length, 64):
        return _patch_by_patch(x, w, out, stride, padding, dilation)
    grid = None
    if is_pointwise(kernel, stride, padding):
        columns = np.ascontiguousarray(x)
    elif is_unit(stride):
        grid = _grid(x.shape[2:], kernel, tuple(padding), tuple(dilation))
        flat, length = grid.flat(x), grid.length
        if groups == 1:
            fused = _core.convolve(flat, grid.places, length, w.reshape(w.shape[0], -1))
            if fused is not None:
                return grid.cropped(fused)
        columns = grid.columns(flat)
    else:
        columns = _columns(x, kernel, out, stride, padding, dilation)
    if groups == 1:
        product = np.matmul(w.reshape(w.shape[0], -1), columns.reshape(n, w[0].size, length))
    else:
        product = np.matmul(
            w.reshape(1, groups, w.shape[0] // groups, -1), columns.reshape(n, groups, w[0].size, length)
        )
    return (
        product.reshape(n, w.shape[0], *out)
        if grid is None
        else grid.cropped(product.reshape(n, w.shape[0], length))
    )


def is_unit(stride: tuple) -> bool:
    return all(s == 1 for s in stride)


def _depthwise(
    x: np.ndarray, w: np.ndarray, out: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> np.ndarray:
    """One filter per channel: multiply and add window by window, since there is no matrix product."""
    x = _padded(x, padding)
    made = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    if (
        _core.depthwise(made, x, np.ascontiguousarray(w[:, 0]), tuple(stride), tuple(dilation), False)
        is not None
    ):
        return made
    ones = (1,) * len(out)
    for place, window in _windows(w.shape[2:], out, stride, dilation):
        made += x[(slice(None), slice(None), *window)] * w[(slice(None), 0, *place)].reshape(-1, *ones)
    return made


def _depthwise_input(
    g: np.ndarray, w: np.ndarray, spatial: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> np.ndarray:
    """The gradient of `_depthwise` by its input."""
    padded = np.zeros((*g.shape[:2], *[s + 2 * p for s, p in zip(spatial, padding)]), g.dtype)
    g = np.ascontiguousarray(g)
    if (
        _core.depthwise(g, padded, np.ascontiguousarray(w[:, 0]), tuple(stride), tuple(dilation), True)
        is None
    ):
        ones = (1,) * len(spatial)
        for place, window in _windows(w.shape[2:], g.shape[2:], stride, dilation):
            padded[(slice(None), slice(None), *window)] += g * w[(slice(None), 0, *place)].reshape(-1, *ones)
    return _without_padding(padded, spatial, padding)


def _depthwise_weight(
    g: np.ndarray, x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> np.ndarray:
    """The gradient of `_depthwise` by its weight: products summed plane by plane, then over the batch."""
    x, g = _padded(x, padding), np.ascontiguousarray(g)
    fused = _core.depthwise_weight(g, x, tuple(kernel), tuple(stride), tuple(dilation))
    if fused is not None:
        return fused.reshape(g.shape[1], 1, *kernel)
    gradient = np.empty((g.shape[1], 1, *kernel), g.dtype)
    for place, window in _windows(kernel, g.shape[2:], stride, dilation):
        products = (g * x[(slice(None), slice(None), *window)]).reshape(*g.shape[:2], -1)
        gradient[(slice(None), 0, *place)] = np.add.reduce(np.add.reduce(products, axis=2), axis=0)
    return gradient


def _without_padding(padded: np.ndarray, spatial: tuple, padding: tuple) -> np.ndarray:
    if not any(padding):
        return padded
    inner = [slice(p, p + s) for s, p in zip(spatial, padding)]
    return np.ascontiguousarray(padded[(slice(None), slice(None), *inner)])


def is_depthwise(w_shape: tuple, groups: int) -> bool:
    """Whether there is one filter per channel."""
    return w_shape[1] == 1 and groups > 1 and w_shape[0] == groups


def _patch_by_patch(
    x: np.ndarray, w: np.ndarray, out: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> np.ndarray:
    """A large kernel with few places to be at, as in second derivatives: one product for each place."""
    x = _padded(x, padding)
    result = np.empty((x.shape[0], w.shape[0], *out), x.dtype)
    weights = w.reshape(w.shape[0], -1).T
    for place, window in _windows(out, w.shape[2:], dilation, stride):
        patch = x[(slice(None), slice(None), *window)].reshape(x.shape[0], -1)
        result[(slice(None), slice(None), *place)] = np.matmul(patch, weights)
    return result


def input_gradient(
    g: np.ndarray, w: np.ndarray, spatial: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> np.ndarray:
    """The gradient of a plain convolution of weight `w` by its input of `spatial` size; also the transposed convolution."""
    if g.dtype in LOW_FLOATS:
        return input_gradient(
            g.astype(np.float32), w.astype(np.float32), spatial, stride, padding, dilation, groups
        ).astype(g.dtype)
    n, out, kernel = g.shape[0], g.shape[2:], w.shape[2:]
    per_group = w.shape[1]
    length = math.prod(out)
    if is_depthwise(w.shape, groups) and g.dtype.char in "fd" and g.size:
        return _depthwise_input(g, w, spatial, stride, padding, dilation)
    grid = None
    if is_unit(stride) and not is_pointwise(kernel, stride, padding):
        grid = _grid(tuple(spatial), kernel, tuple(padding), tuple(dilation))
        grid = grid if grid.out == tuple(out) else None
    g = np.ascontiguousarray(g) if grid is None else grid.spread(g)
    length = length if grid is None else grid.length
    channels = per_group * groups
    if groups == 1 and grid is not None:
        flat = np.zeros((n, channels, grid.total), g.dtype)
        if _core.convolve_input(flat, grid.places, length, w.reshape(w.shape[0], -1), g) is not None:
            return grid.unpadded(flat)
    if groups == 1:
        columns = np.matmul(w.reshape(w.shape[0], -1).T, g.reshape(n, w.shape[0], length))
    else:
        turned = w.reshape(1, groups, w.shape[0] // groups, -1).swapaxes(-1, -2)
        columns = np.matmul(turned, g.reshape(n, groups, w.shape[0] // groups, length))
    if grid is not None:
        return grid.gathered(columns.reshape(n, channels, math.prod(kernel), length))
    if is_pointwise(kernel, stride, padding) and tuple(spatial) == tuple(out):
        return columns.reshape(n, channels, *spatial)
    columns = columns.reshape(n, channels, *kernel, *out)
    padded = np.zeros((n, channels, *[s + 2 * p for s, p in zip(spatial, padding)]), g.dtype)
    if _core.move_columns(columns, padded, tuple(stride), tuple(dilation), True) is None:
        for place, window in _windows(kernel, out, stride, dilation):
            padded[(slice(None), slice(None), *window)] += columns[(slice(None), slice(None), *place)]
    return _without_padding(padded, spatial, padding)


def _by_group(array: np.ndarray, groups: int, length: int) -> np.ndarray:
    """(batch, channels ..., positions) as (batch, groups, channels of one, positions), with or without elements."""
    n = array.shape[0]
    per_group = math.prod(array.shape[1:]) // max(groups * length, 1)
    return array.reshape(n, groups, per_group, length)


def weight_gradient(
    g: np.ndarray, x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int
) -> np.ndarray:
    """The gradient of a plain convolution of input `x` by its weight."""
    if g.dtype in LOW_FLOATS:
        return weight_gradient(
            g.astype(np.float32), x.astype(np.float32), kernel, stride, padding, dilation, groups
        ).astype(g.dtype)
    channels, out = x.shape[1], g.shape[2:]
    length = math.prod(out)
    if groups > 1 and channels == groups == g.shape[1] and g.dtype.char in "fd" and g.size and x.size:
        return _depthwise_weight(g, x, kernel, stride, padding, dilation)
    grid = None
    if is_unit(stride) and not is_pointwise(kernel, stride, padding):
        grid = _grid(x.shape[2:], kernel, tuple(padding), tuple(dilation))
    if grid is not None and grid.out == tuple(out):
        flat, g, length = grid.flat(x), grid.spread(g), grid.length
        if groups == 1:
            fused = _core.convolve_weight(flat, grid.places, length, g)
            if fused is not None:
                return fused.reshape(g.shape[1], channels, *kernel)
        columns = grid.columns(flat)
    else:
        pointwise = is_pointwise(kernel, stride, padding)
        columns = (
            np.ascontiguousarray(x) if pointwise else _columns(x, kernel, out, stride, padding, dilation)
        )
        g = np.ascontiguousarray(g)
    if groups == 1:
        rows, patches = _by_group(g, 1, length)[:, 0], _by_group(columns, 1, length)[:, 0]
        gradient = np.matmul(rows, patches.swapaxes(1, 2)).sum(0)
    else:
        gradient = np.matmul(
            _by_group(g, groups, length), _by_group(columns, groups, length).swapaxes(2, 3)
        ).sum(0)
    return gradient.reshape(g.shape[1], channels // groups, *kernel)


# ---------------------------------------------------------------------------------------------------- the op


_C_NAMES = {
    "Float": "float",
    "Double": "double",
    "Long": "long int",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
}


def filled(values: tuple, dims: int) -> tuple:
    return values * dims if len(values) == 1 else values


def _check(
    x: np.ndarray,
    w: np.ndarray,
    bias: Any,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    transposed: bool,
    groups: int,
) -> None:
    for name, values in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        if len(values) != w.ndim - 2:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of {w.ndim - 2} values to match the convolution dimensions, "
                f"but got {name}={list(values)}"
            )
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError("dilation should be greater than zero")
    shape = list(w.shape)
    if x.ndim != w.ndim:
        raise RuntimeError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight {shape}, but got {x.ndim}-dimensional input of size "
            f"{list(x.shape)} instead"
        )
    if w.shape[0] < groups or w.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {shape} instead"
        )
    expected = w.shape[0] if transposed else w.shape[1] * groups
    if x.shape[1] != expected:
        how = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {how if not transposed else 'transposed=1'}, weight of size {shape}, expected input{list(x.shape)} to have {expected} "
            f"channels, but got {x.shape[1]} channels instead"
        )
    outputs = w.shape[1] * groups if transposed else w.shape[0]
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != outputs):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {shape}, expected bias to be 1-dimensional with "
            f"{outputs} elements, but got bias of size {list(bias.shape)} instead"
        )
    if x.dtype != w.dtype:
        a, b = BY_NUM[x.dtype.num]._abbr, BY_NUM[w.dtype.num]._abbr
        if a == "Float":  # torch tries oneDNN first, whose message names the tensors
            raise RuntimeError(
                f"Input type (torch.{a}Tensor) and weight type (torch.{b}Tensor) should be the same or input should be a MKLDNN tensor "
                "and weight is a dense tensor"
            )
        raise RuntimeError(f"expected scalar type {a} but found {b}")
    if bias is not None and x.dtype != bias.dtype:
        a, b = (_C_NAMES.get(v, v) for v in (BY_NUM[t.dtype.num]._abbr for t in (x, bias)))
        raise RuntimeError(f"Input type ({a}) and bias type ({b}) should be the same")
    if not transposed:
        for n, k, p, d in zip(x.shape[2:], w.shape[2:], padding, dilation):
            if n + 2 * p < d * (k - 1) + 1:
                spans = " x ".join(str(m + 2 * q) for m, q in zip(x.shape[2:], padding))
                sizes = " x ".join(str(e * (m - 1) + 1) for m, e in zip(w.shape[2:], dilation))
                raise RuntimeError(
                    f"Calculated padded input size per channel: ({spans}). Kernel size: ({sizes}). Kernel size can't be greater than actual input size"
                )


def transposed_size(
    spatial: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, output_padding: tuple
) -> tuple:
    """The spatial size of a transposed convolution's output."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, d, o in zip(spatial, kernel, stride, padding, dilation, output_padding)
    )


def _convolve(
    input: np.ndarray,
    weight: np.ndarray,
    bias: Any,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    transposed: bool,
    output_padding: tuple,
    groups: int,
) -> np.ndarray:
    dims = weight.ndim - 2
    stride, padding, dilation = filled(stride, dims), filled(padding, dims), filled(dilation, dims)
    _check(input, weight, bias, stride, padding, dilation, transposed, groups)
    if transposed:
        size = transposed_size(
            input.shape[2:], weight.shape[2:], stride, padding, dilation, filled(output_padding, dims)
        )
    last = dims == 2 and (_layout.is_channels_last(input) or _layout.is_channels_last(weight))
    kind = input.dtype
    if kind in LOW_FLOATS:  # the bias is added before the result is rounded
        input, weight = input.astype(np.float32), weight.astype(np.float32)
    if transposed:
        result = input_gradient(input, weight, size, stride, padding, dilation, groups)
    else:
        result = forward(input, weight, stride, padding, dilation, groups)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * dims).astype(result.dtype, copy=False)
    if kind in LOW_FLOATS:
        result = result.astype(kind)
    return _layout.copied(result, _layout.channels_last) if last else result


_ARGUMENTS = (
    "Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups"
)


@op(f"aten::convolution({_ARGUMENTS}) -> Tensor", expose="function")
def convolution(*arguments: Any) -> np.ndarray:
    return _convolve(*arguments)


@composite(
    f"aten::_convolution({_ARGUMENTS}, bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
    expose="function",
)
def _convolution(*arguments: Any) -> Any:
    return convolution(*arguments[:9])  # the rest chooses between back ends of GPUs


@convolution.backward("input", "weight", "bias")
def _(
    g: Any,
    input: Any,
    weight: Any,
    bias_shape: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    needs: Any,
) -> Any:
    return F.convolution_backward(
        g, input, weight, bias_shape, stride, padding, dilation, transposed, output_padding, groups, needs
    )


@op(
    "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    expose="no",
    on="tensors",
)
def convolution_backward(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> Any:
    dims = weight.ndim - 2
    stride, padding, dilation = filled(stride, dims), filled(padding, dims), filled(dilation, dims)
    g, x, w = grad_output._array, input._array, weight._array
    if g.dtype.kind in "cW":
        x, w = np.conjugate(x), np.conjugate(w)
    first = second = third = np.empty(0, g.dtype)
    kernel = w.shape[2:]
    if output_mask[0]:
        if transposed:
            # an output padding from the stride on gives windows that no element of the input has
            first = forward(g, w, stride, padding, dilation, groups)[(..., *map(slice, x.shape[2:]))]
        else:
            first = input_gradient(g, w, x.shape[2:], stride, padding, dilation, groups)
    if output_mask[1]:
        pair = (x, g) if transposed else (g, x)
        second = weight_gradient(*pair, kernel, stride, padding, dilation, groups)
    if output_mask[2]:
        third = np.add.reduce(widened(g), axis=(0, *range(2, g.ndim))).astype(g.dtype, copy=False)
    return tuple(_dispatch.wrap(a) for a in (first, second, third))


@convolution_backward.backward("grad_output", "input", "weight")
def _(
    grads: Any,
    grad_output: Any,
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
    needs: Any,
) -> Any:
    to_input, to_weight, to_bias = (g if m else None for g, m in zip(grads, output_mask))
    gradients = _double_backward(
        to_input, to_weight, to_bias, grad_output, weight, input, stride, padding, dilation, transposed, output_padding, groups, needs
    )  # fmt: skip
    return tuple([gradient if need else None for gradient, need in zip(gradients, needs)])


@composite(
    "aten::_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) "
    "-> (Tensor, Tensor, Tensor)",
    expose="no",
)
def _double_backward(
    ggI: Any, ggW: Any, ggb: Any, gO: Any, weight: Any, self: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    """Gradients for the output's gradient, the input and the weight: as in torch all that can be computed, whatever the mask says."""
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    first = second = third = None
    if ggI is not None:
        first = convolution(ggI, weight, None, *geometry)
    if ggW is not None:
        part = convolution(self, ggW, None, *geometry)
        first = part if first is None else F.add(first, part)
    if ggb is not None:
        part = F.expand(F.view(ggb, (1, -1, *(1,) * (weight.ndim - 2))), tuple(gO.shape))
        first = part if first is None else F.add(first, part)
    if ggI is not None:
        third = _weight_by_convolution(gO, conj(ggI), weight, stride, padding, dilation, transposed, groups)
    if ggW is not None:
        extra = (0,) * len(stride)
        if not transposed:
            plain = transposed_size(gO.shape[2:], weight.shape[2:], stride, padding, dilation, extra)
            extra = tuple(n - m for n, m in zip(self.shape[2:], plain))
        second = convolution(gO, conj(ggW), None, stride, padding, dilation, not transposed, extra, groups)
        for d in range(2, self.ndim):  # an output padding from the stride on gives more windows than inputs
            if second.shape[d] > self.shape[d]:
                second = F.narrow(second, d, 0, self.shape[d])
    return first, second, third


def _weight_by_convolution(
    gO: Any,
    ggI: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    groups: int,
) -> Any:
    """The weight's gradient by a convolution: batch and channels are swapped, and so are stride and dilation."""
    outputs, inputs = F.transpose(gO, 0, 1), F.transpose(ggI, 0, 1)
    n, m = inputs.shape[0] // groups, outputs.shape[0] // groups
    gradients = []
    for k in range(groups):
        images, kernels = inputs, outputs
        if groups > 1:
            images, kernels = F.narrow(inputs, 0, k * n, n), F.narrow(outputs, 0, k * m, m)
        if transposed:
            images, kernels = kernels, images
        no_padding = (0,) * len(stride)
        gradients.append(convolution(images, kernels, None, dilation, padding, stride, False, no_padding, 1))
    gradient = F.transpose(gradients[0] if groups == 1 else F.cat(gradients, 1), 0, 1)
    for d in range(2, weight.ndim):
        if gradient.shape[d] > weight.shape[d]:
            gradient = F.narrow(gradient, d, 0, weight.shape[d])
    return gradient


# ---------------------------------------------------------------------------------------------------- public names


def _batched(name: str, input: Any, dims: int) -> tuple[Any, bool]:
    if input.ndim == dims + 2:
        return input, True
    if input.ndim == dims + 1:
        return F.unsqueeze(input, 0), False
    raise RuntimeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}"
    )


def _conv2d_flops(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> int:
    if isinstance(padding, str) or input.ndim != 4:
        return 0
    stride, padding, dilation = (_dispatch.ints(v, 2) for v in (stride, padding, dilation))
    return conv2d_flops(input.shape, weight.shape, stride, padding, dilation, groups)


@composite(
    "aten::_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] dilation, "
    "SymInt groups) -> Tensor",
    expose="no",
)
def _convolution_mode(
    input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Any:
    if padding == "valid":
        zeros = (0,) * len(stride)
        return convolution(input, weight, bias, stride, zeros, dilation, False, zeros, groups)
    if padding == "same":
        return _same(input, weight, bias, stride, dilation, groups)
    raise RuntimeError(f"Invalid padding string: '{padding}'")


def _declare_conv(dims: int, aten_name: str, transposed: str) -> None:
    name = aten_name.removeprefix("aten::")

    @composite(
        f"{aten_name}(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dims}] stride=1, SymInt[{dims}] padding=0, "
        f"SymInt[{dims}] dilation=1, SymInt groups=1) -> Tensor",
        expose="no",
        flops=_conv2d_flops if dims == 2 else None,
    )
    def conv(
        input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        stride, padding, dilation = (_dispatch.ints(v, dims) for v in (stride, padding, dilation))
        x, batched = _batched(name, input, dims)
        result = convolution(
            x,
            weight,
            bias,
            filled(stride, dims),
            filled(padding, dims),
            filled(dilation, dims),
            False,
            (0,) * dims,
            groups,
        )
        return result if batched else F.squeeze(result, 0)

    @composite(
        f'{aten_name}.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dims}] stride=1, str padding="valid", '
        f"SymInt[{dims}] dilation=1, SymInt groups=1) -> Tensor",
        expose="no",
    )
    def conv_named(
        input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
    ) -> Any:
        stride, dilation = (
            filled(_dispatch.ints(stride, dims), dims),
            filled(_dispatch.ints(dilation, dims), dims),
        )
        x, batched = _batched(name, input, dims)
        made = _convolution_mode(x, weight, bias, stride, padding, dilation, groups)
        return made if batched else F.squeeze(made, 0)

    def front(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        return (conv_named if isinstance(padding, str) else conv)(
            input, weight, bias, stride, padding, dilation, groups
        )

    front.__name__ = name
    front.__doc__ = f"A convolution over {dims} dimension(s)."
    _dispatch.function(name, expose="function")(front)

    @composite(
        f"{transposed}(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dims}] stride=1, "
        f"SymInt[{dims}] padding=0, SymInt[{dims}] output_padding=0, SymInt groups=1, SymInt[{dims}] dilation=1) -> Tensor",
        expose="function",
    )
    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Any:
        stride, padding, output_padding, dilation = (
            filled(_dispatch.ints(v, dims), dims) for v in (stride, padding, output_padding, dilation)
        )
        x, batched = _batched(f"conv_transpose{dims}d", input, dims)
        for extra, s, d in zip(output_padding, stride, dilation):
            if extra >= s and extra >= d:
                raise RuntimeError(
                    "output padding must be smaller than either stride or dilation, but got "
                    f"output_padding_height: {output_padding[0]} output_padding_width: {output_padding[-1]} stride_height: {stride[0]} "
                    f"stride_width: {stride[-1]} dilation_height: {dilation[0]} dilation_width: {dilation[-1]}"
                )
        result = convolution(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
        return result if batched else F.squeeze(result, 0)


def _same(x: Any, weight: Any, bias: Any, stride: tuple, dilation: tuple, groups: int) -> Any:
    """padding="same": where the total is odd, the end gets one more."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dims = len(stride)
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    left = tuple(t // 2 for t in totals)
    if any(t % 2 for t in totals):
        pads: list[int] = []
        for total in reversed(totals):
            pads += [0, total % 2]
        x = F.constant_pad_nd(x, pads, 0)
    return convolution(x, weight, bias, stride, left, dilation, False, (0,) * dims, groups)


_declare_conv(1, "aten::conv1d", "aten::conv_transpose1d")
_declare_conv(2, "aten::conv2d", "aten::conv_transpose2d.input")
_declare_conv(3, "aten::conv3d", "aten::conv_transpose3d.input")


@composite("aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", expose="both")
def conv_tbc(self: Any, weight: Any, bias: Any, pad: int) -> Any:
    made = F.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return made.permute(2, 0, 1)
