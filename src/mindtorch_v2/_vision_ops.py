"""torchvision's ops, which its wheel has in C++: the same schemas with kernels in Python, composed of differentiable ops of this library.

Imported where a program asks for `torch.ops.torchvision` or loads torchvision's C++ library. A region of interest (roi) is a row
(image, x1, y1, x2, y2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .library import Library

_LARGEST_CHUNK = 1 << 22  # elements that are sampled at once
_library = Library("torchvision", "FRAGMENT")


def _define(schema: str) -> Callable[[Callable], Callable]:
    def register(kernel: Callable) -> Callable:
        _library.impl(_library.define(schema), kernel, "CompositeImplicitAutograd")
        return kernel

    return register


@_define("_cuda_version() -> int")
def _cuda_version() -> int:
    return -1


# ------------------------------------------------------------------------------------------------------- boxes


@_define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Indices of the boxes that overlap no better one by more than the threshold, best first."""
    if dets.dim() != 2 or dets.size(1) != 4:
        raise RuntimeError(f"boxes should be a 2d tensor of shape [N, 4], got {list(dets.shape)}")
    if scores.dim() != 1 or scores.size(0) != dets.size(0):
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {dets.size(0)} and {list(scores.shape)}"
        )
    x1, y1, x2, y2 = dets.detach().to(torch.promote_types(dets.dtype, torch.float32)).numpy().T
    areas = (x2 - x1) * (y2 - y1)
    order = torch.argsort(scores.detach(), dim=0, descending=True, stable=True).numpy()
    kept = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(best)
        width = np.minimum(x2[best], x2[order]) - np.maximum(x1[best], x1[order])
        height = np.minimum(y2[best], y2[order]) - np.maximum(y1[best], y1[order])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            overlap = shared / (areas[best] + areas[order] - shared)
        order = order[~(overlap > iou_threshold)]
    return torch.tensor(kept, dtype=torch.int64)


def _check_rois(input: Any, rois: Any) -> None:
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError("Tensor rois should have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type {input.type()} "
            f"does not equal {rois.type()}"
        )


# ------------------------------------------------------------------------------------------- bilinear sampling


def _corners(position: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """The two neighbours of positions along a dimension and their weights; both are zero beyond one element outside."""
    inside = ((position >= -1) & (position <= size)).to(position.dtype)
    position = position.clamp(min=0)
    low = position.floor().to(torch.int64).clamp(max=size - 1)
    high = (low + 1).clamp(max=size - 1)
    position = torch.where(low >= size - 1, low.to(position.dtype), position)
    upper = (position - low) * inside
    return low, high, inside - upper, upper


def _sample(input: Any, image: Any, y: Any, x: Any) -> Any:
    """Values at all pairs of positions y (K, A) and x (K, B) in an image each: (K, A, B, C)."""
    y_corners, x_corners = _corners(y, input.size(2)), _corners(x, input.size(3))
    channels_last = input.permute(0, 2, 3, 1)
    total = 0
    for row, row_weight in ((y_corners[0], y_corners[2]), (y_corners[1], y_corners[3])):
        for column, column_weight in ((x_corners[0], x_corners[2]), (x_corners[1], x_corners[3])):
            values = channels_last[image[:, None, None], row[:, :, None], column[:, None, :]]
            total = total + values * (row_weight[:, :, None] * column_weight[:, None, :]).unsqueeze(-1)
    return total


def _align(
    input: Any, rois: Any, scale: float, height: int, width: int, sampling_ratio: int, aligned: bool
) -> Any:
    """The mean of samples in each of height x width bins of each roi: (K, C, height, width)."""
    count, channels = rois.size(0), input.size(1)
    image = rois[:, 0].detach().to(torch.int64)
    start = rois[:, 1:3] * scale - (0.5 if aligned else 0.0)
    extent = rois[:, 3:5] * scale - (0.5 if aligned else 0.0) - start
    if not aligned:
        extent = extent.clamp(min=1.0)
    bins = extent / torch.tensor([width, height], dtype=extent.dtype)
    if sampling_ratio > 0:
        samples = np.full((count, 2), sampling_ratio)
    else:
        samples = np.ceil(bins.detach().numpy()).astype(np.int64)
    pieces, places = [], []
    for across, down in np.unique(samples, axis=0):
        selected = np.flatnonzero((samples[:, 0] == across) & (samples[:, 1] == down))
        if across <= 0 or down <= 0:
            pieces.append(input.new_zeros(len(selected), channels, height, width))
            places.append(selected)
            continue
        chunk = max(1, _LARGEST_CHUNK // max(1, channels * height * down * width * across))
        for first in range(0, len(selected), chunk):
            part = selected[first : first + chunk]
            index = torch.from_numpy(part)
            y = _positions(start[index, 1], bins[index, 1], height, int(down))
            x = _positions(start[index, 0], bins[index, 0], width, int(across))
            values = _sample(input, image[index], y, x)
            values = values.view(len(part), height, int(down), width, int(across), channels)
            pieces.append((values.sum((2, 4)) / float(down * across)).permute(0, 3, 1, 2))
            places.append(part)
    if not pieces:
        return input.new_zeros(0, channels, height, width) + 0 * input.sum()
    order = torch.from_numpy(np.argsort(np.concatenate(places), kind="stable"))
    return torch.cat(pieces)[order]


def _positions(start: Any, bin_size: Any, bins: int, samples: int) -> Any:
    """Where samples lie along a dimension: (K, bins * samples)."""
    steps = torch.arange(bins, dtype=start.dtype).repeat_interleave(samples)
    within = (torch.arange(samples, dtype=start.dtype) + 0.5).repeat(bins) / samples
    return start[:, None] + (steps + within) * bin_size[:, None]


@_define(
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
    "bool aligned) -> Tensor"
)
def roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    """The mean of bilinear samples in each bin of each roi."""
    _check_rois(input, rois)
    return _align(
        input, rois.detach(), spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned
    ).contiguous()


def _bin_channels(channels: int, height: int, width: int) -> Any:
    """Of position-sensitive pooling, the input channel of each output channel and bin."""
    if channels % (height * width):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return torch.arange(channels).view(channels // (height * width), height, width)


def _select_bins(pooled: Any, mapping: Any) -> Any:
    """Of all channels in all bins, those that belong to each bin."""
    _, height, width = mapping.shape
    return pooled[:, mapping, torch.arange(height)[:, None], torch.arange(width)]


@_define(
    "ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) "
    "-> (Tensor, Tensor)"
)
def ps_roi_align(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> Any:
    """The mean of bilinear samples in each bin, each bin from channels of its own; and those channels."""
    _check_rois(input, rois)
    mapping = _bin_channels(input.size(1), pooled_height, pooled_width)
    pooled = _align(input, rois.detach(), spatial_scale, pooled_height, pooled_width, sampling_ratio, True)
    return _select_bins(pooled, mapping), mapping.to(torch.int32).expand(
        rois.size(0), -1, -1, -1
    ).contiguous()


# ------------------------------------------------------------------------------------------------------- pooling


def _rounded(values: np.ndarray) -> np.ndarray:
    """To the nearest integer, halves away from zero."""
    return (np.sign(values) * np.floor(np.abs(values) + 0.5)).astype(np.int64)


def _bin_edges(start: int, extent: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Begin and end of each bin along a dimension, within 0..size."""
    step = extent / bins
    edges = [(int(np.floor(i * step)) + start, int(np.ceil((i + 1) * step)) + start) for i in range(bins)]
    return [(min(max(a, 0), size), min(max(b, 0), size)) for a, b in edges]


@_define(
    "roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)"
)
def roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """The largest value in each bin of each roi, and where it is in the image; 0 and -1 in an empty bin."""
    _check_rois(input, rois)
    images, boxes = rois.detach().numpy()[:, 0].astype(np.int64), rois.detach().numpy()[:, 1:]
    boxes = _rounded(boxes * spatial_scale)
    values = input.detach().numpy()
    channels, height, width = values.shape[1:]
    largest = np.full((len(boxes), channels, pooled_height, pooled_width), -1, np.int64)
    for k, (x1, y1, x2, y2) in enumerate(boxes):
        rows = _bin_edges(y1, max(y2 - y1 + 1, 1), pooled_height, height)
        columns = _bin_edges(x1, max(x2 - x1 + 1, 1), pooled_width, width)
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    part = values[images[k], :, top:bottom, left:right].reshape(channels, -1)
                    place = part.argmax(1)
                    largest[k, :, i, j] = (
                        (top + place // (right - left)) * width + left + place % (right - left)
                    )
    argmax = torch.from_numpy(largest)
    flat = input.flatten(2)[torch.from_numpy(images)].flatten(0, 1)
    pooled = flat.gather(1, argmax.clamp(min=0).view(len(boxes) * channels, -1)).view(argmax.shape)
    return torch.where(argmax >= 0, pooled, 0.0), argmax.to(torch.int32)


@_define(
    "ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)"
)
def ps_roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """The mean value in each bin, each bin from channels of its own; and those channels."""
    _check_rois(input, rois)
    mapping = _bin_channels(input.size(1), pooled_height, pooled_width)
    boxes = _rounded(rois.detach().numpy()[:, 1:] * spatial_scale)
    images = rois.detach().numpy()[:, 0].astype(np.int64)
    height, width = input.shape[2:]
    pooled = []
    for image, (x1, y1, x2, y2) in zip(images, boxes):
        rows = _bin_edges(y1, max(y2 - y1, 1), pooled_height, height)
        columns = _bin_edges(x1, max(x2 - x1, 1), pooled_width, width)
        means = [
            input[image, mapping[:, i, j], top:bottom, left:right].mean((1, 2))
            if bottom > top and right > left
            else input.new_zeros(mapping.size(0))
            for i, (top, bottom) in enumerate(rows)
            for j, (left, right) in enumerate(columns)
        ]
        pooled.append(torch.stack(means, 1).view(mapping.shape))
    result = torch.stack(pooled) if pooled else input.new_zeros(0, *mapping.shape)
    return result, mapping.to(torch.int32).expand(len(boxes), -1, -1, -1).contiguous()


# ---------------------------------------------------------------------------------------- deformable convolution


def _zero_padded(images: Any, y: Any, x: Any) -> Any:
    """Bilinear samples at y and x (N, G, P) in images (N, G, C, H, W), with zeros outside: (N, G, C, P)."""
    count, groups, channels, height, width = images.shape
    flat = images.flatten(3)
    top, left = y.floor(), x.floor()
    total = 0
    for row, row_weight in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, column_weight in ((left, 1 - (x - left)), (left + 1, x - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            index = row.clamp(0, height - 1).to(torch.int64) * width + column.clamp(0, width - 1).to(
                torch.int64
            )
            index = index.unsqueeze(2).expand(count, groups, channels, index.size(-1))
            total = total + flat.gather(3, index) * (row_weight * column_weight * inside).unsqueeze(2)
    return total


@_define(
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, "
    "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor"
)
def deform_conv2d(
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    """A convolution whose samples are moved by offsets, and scaled by a mask."""
    count, channels, height, width = input.shape
    filters, _, kernel_h, kernel_w = weight.shape
    taps = kernel_h * kernel_w
    out_h = (height + 2 * pad_h - (dilation_h * (kernel_h - 1) + 1)) // stride_h + 1
    out_w = (width + 2 * pad_w - (dilation_w * (kernel_w - 1) + 1)) // stride_w + 1
    if tuple(offset.shape) != (count, 2 * offset_groups * taps, out_h, out_w):
        raise RuntimeError(
            f"offset.shape is not valid: got: {list(offset.shape)} expected: {[count, 2 * offset_groups * taps, out_h, out_w]}"
        )
    if use_mask and tuple(mask.shape) != (count, offset_groups * taps, out_h, out_w):
        raise RuntimeError(
            f"mask.shape is not valid: got: {list(mask.shape)} expected: {[count, offset_groups * taps, out_h, out_w]}"
        )
    moved = offset.view(count, offset_groups, kernel_h, kernel_w, 2, out_h, out_w)
    kind = {"dtype": input.dtype}
    rows = torch.arange(out_h, **kind)[:, None] * stride_h - pad_h
    rows = rows + (torch.arange(kernel_h, **kind) * dilation_h).view(-1, 1, 1, 1)  # (kh, 1, oh, 1)
    columns = torch.arange(out_w, **kind) * stride_w - pad_w
    columns = columns + (torch.arange(kernel_w, **kind) * dilation_w).view(-1, 1, 1)  # (kw, 1, ow)
    y = (moved[:, :, :, :, 0] + rows).flatten(2)
    x = (moved[:, :, :, :, 1] + columns).flatten(2)
    images = input.view(count, offset_groups, channels // offset_groups, height, width)
    samples = _zero_padded(images, y, x).view(
        count, offset_groups, channels // offset_groups, taps, out_h * out_w
    )
    if use_mask:
        samples = samples * mask.view(count, offset_groups, 1, taps, out_h * out_w)
    samples = samples.reshape(count, groups, channels // groups * taps, out_h * out_w)
    result = weight.view(groups, filters // groups, -1) @ samples
    return result.view(count, filters, out_h, out_w) + bias.view(1, -1, 1, 1)


# -------------------------------------------------------------------------------------------------- gradients
# Ops that torchvision's C++ gradients call. The ops above are differentiated themselves; these are for programs that call them.


def _input_gradient(op: Callable, grad: Any, shape: tuple[int, ...], *arguments: Any) -> Any:
    """The gradient of an op that is linear in its first argument."""
    with torch.enable_grad():
        input = grad.new_zeros(shape).requires_grad_()
        result = op(input, *arguments)
    return torch.autograd.grad(result[0] if isinstance(result, tuple) else result, input, grad)[0]


@_define(
    "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, "
    "SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor"
)
def _roi_align_backward(
    grad: Any,
    rois: Any,
    scale: float,
    ph: int,
    pw: int,
    n: int,
    c: int,
    h: int,
    w: int,
    ratio: int,
    aligned: bool,
) -> Any:
    return _input_gradient(roi_align, grad, (n, c, h, w), rois, scale, ph, pw, ratio, aligned)


@_define(
    "_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"
)
def _ps_roi_align_backward(
    grad: Any,
    rois: Any,
    mapping: Any,
    scale: float,
    ph: int,
    pw: int,
    ratio: int,
    n: int,
    c: int,
    h: int,
    w: int,
) -> Any:
    return _input_gradient(ps_roi_align, grad, (n, c, h, w), rois, scale, ph, pw, ratio)


@_define(
    "_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"
)
def _ps_roi_pool_backward(
    grad: Any, rois: Any, mapping: Any, scale: float, ph: int, pw: int, n: int, c: int, h: int, w: int
) -> Any:
    return _input_gradient(ps_roi_pool, grad, (n, c, h, w), rois, scale, ph, pw)


@_define(
    "_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
    "SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"
)
def _roi_pool_backward(
    grad: Any, rois: Any, argmax: Any, scale: float, ph: int, pw: int, n: int, c: int, h: int, w: int
) -> Any:
    image = rois[:, 0].to(torch.int64)[:, None, None, None]
    plane = (image * c + torch.arange(c)[:, None, None]) * (h * w)
    found = argmax >= 0
    places = torch.where(found, plane + argmax.to(torch.int64), 0)
    flat = grad.new_zeros(n * c * h * w)
    return flat.index_add_(0, places.flatten(), (grad * found).flatten()).view(n, c, h, w)


@_define(
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
    "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
    "bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
def _deform_conv2d_backward(grad: Any, *arguments: Any) -> Any:
    with torch.enable_grad():
        tensors = [tensor.detach().requires_grad_() for tensor in arguments[:5]]
        result = deform_conv2d(*tensors, *arguments[5:])
    gradients = torch.autograd.grad(result, tensors, grad, allow_unused=True)
    return tuple(torch.zeros_like(t) if g is None else g for g, t in zip(gradients, tensors))


# ------------------------------------------------------------------------------------------------ not supported


@_define(
    "qnms(Tensor dets, Tensor scores, float iou_threshold, float det_scale, int det_zero_point, float score_scale) -> Tensor"
)
def qnms(*arguments: Any) -> Any:
    """Raises: there are no quantized tensors."""
    raise NotImplementedError("torchvision::qnms: this library has no quantized tensors")


@_define(
    "qroi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
    "bool aligned, float scale, int zero_point) -> Tensor"
)
def qroi_align(*arguments: Any) -> Any:
    """Raises: there are no quantized tensors."""
    raise NotImplementedError("torchvision::qroi_align: this library has no quantized tensors")


@_define("box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor")
def box_iou_rotated(boxes1: Any, boxes2: Any) -> Any:
    """Raises: overlaps of rotated boxes are not implemented."""
    raise NotImplementedError(
        "torchvision::box_iou_rotated: this library computes overlaps of upright boxes only"
    )
