"""Reductions, pooling and losses that pick an element: inputs in; work out.

A reduction takes one operation per element of its input, which is read once; the result is written once.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ...inputs import ElementType
from .work import (
    BOOL,
    FLOAT32,
    INT64,
    VECTOR,
    Call,
    Model,
    NotModelled,
    Tensor,
    Work,
    broadcast,
    contiguous,
    is_float,
    moved,
    promoted,
)

CATEGORY, POOLING = "reduction", "pooling"


class _Reduction(NamedTuple):
    dimensions: int | None  # place of the dimensions; None: all are reduced
    result: ElementType | None = None  # of the result; None: as the input
    per_element: int = 1
    with_indices: bool = False


_REDUCTIONS = {
    "sum": _Reduction(1),
    "nansum": _Reduction(1),
    "mean": _Reduction(1),
    "prod": _Reduction(1),
    "amax": _Reduction(1),
    "amin": _Reduction(1),
    "max": _Reduction(1, with_indices=True),
    "min": _Reduction(1, with_indices=True),
    "median": _Reduction(1, with_indices=True),
    "all": _Reduction(1, BOOL),
    "any": _Reduction(1, BOOL),
    "argmax": _Reduction(1, INT64),
    "argmin": _Reduction(1, INT64),
    "count_nonzero": _Reduction(1, INT64),
    "logsumexp": _Reduction(1, per_element=4),
    "norm": _Reduction(2, per_element=2),
    "linalg_vector_norm": _Reduction(2, per_element=2),
    "var": _Reduction(1, per_element=3),
    "std": _Reduction(1, per_element=3),
    "var_mean": _Reduction(1, per_element=3),
    "std_mean": _Reduction(1, per_element=3),
}


def reduction(call: Call) -> Work:
    """input, dimensions, keepdim, ...; or two tensors, of `max` and `min`"""
    fact = _REDUCTIONS[call.name.removeprefix("aten::")]
    image = call.tensor(0)
    other = call.optional(1)
    if fact.with_indices and other is not None and len(call) <= 3:
        shape = broadcast([image.shape, other.shape])
        result = contiguous(shape, promoted([image, other]))
        return Work(result.numel, moved(image, other, result), "elementwise", VECTOR, image.element.dtype)
    kept = _kept_shape(call, image.shape, fact.dimensions)
    element = fact.result or image.element
    if call.name in ("aten::sum", "aten::prod", "aten::nansum") and not is_float(element):
        element = INT64
    nbytes = moved(image, contiguous(kept, element))
    if fact.with_indices and kept != ():
        nbytes += moved(contiguous(kept, INT64))
    if call.name.endswith("_mean"):
        nbytes += moved(contiguous(kept, element))
    return Work(fact.per_element * image.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


def _kept_shape(call: Call, shape: tuple[int, ...], place: int | None) -> tuple[int, ...]:
    """The shape of the result, without reduced dimensions."""
    if place is None or place >= len(call) or call.is_absent(place):
        return ()
    value = call.value(place)
    if value is None:
        raise NotModelled("the dimensions that are reduced were not recorded")
    if isinstance(value, bool) or value == ():  # of `var(unbiased)`; an empty list stands for all dimensions
        return ()
    numbers = [value] if isinstance(value, int) else value
    if not isinstance(numbers, (list, tuple)) or not all(isinstance(number, int) for number in numbers):
        return ()  # a dtype or an order, where all dimensions are reduced
    reduced = {int(number) % max(len(shape), 1) for number in numbers if isinstance(number, int)}
    return tuple(size for place, size in enumerate(shape) if place not in reduced)


def scan(call: Call) -> Work:
    """cumsum ...: input, dimension"""
    image = call.tensor(0)
    element = image.element if is_float(image.element) else INT64
    nbytes = moved(image, contiguous(image.shape, element))
    return Work(image.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


# ---------------------------------------------------------------------------------------------------- pooling


def _pooled(
    call: Call,
    taps: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil: bool,
) -> tuple[Tensor, Tensor]:
    """The input and the result."""
    image, count = call.tensor(0), len(taps)
    if len(image.shape) <= count or min(stride) < 1:
        raise NotModelled("the shape of the input does not fit the pooling window")
    extent = []
    for size, tap, step, pad, spacing in zip(image.shape[-count:], taps, stride, padding, dilation):
        reach = size + 2 * pad - spacing * (tap - 1) - 1
        steps = -(-reach // step) if ceil else reach // step
        if ceil and steps * step >= size + pad:  # a window that would begin in the padding on the right
            steps -= 1
        extent.append(max(steps + 1, 0))
    return image, contiguous((*image.shape[:-count], *extent), image.element)


def _window(call: Call, count: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Size, stride (which defaults to the size) and padding."""
    taps = call.numbers(1, count)
    stride = taps if call.value(2) in ((), None) else call.numbers(2, count)
    return taps, stride, call.numbers(3, count, default=0)


def _max_pool(call: Call, count: int) -> Work:
    """input, size, stride, padding, dilation, ceil; indices are written beside the result"""
    taps, stride, padding = _window(call, count)
    image, result = _pooled(call, taps, stride, padding, call.numbers(4, count, default=1), call.flag(5))
    nbytes = moved(image, result, contiguous(result.shape, INT64))
    return Work(result.numel * prod(taps), nbytes, POOLING, VECTOR, image.element.dtype)


def max_pool2d(call: Call) -> Work:
    return _max_pool(call, 2)


def max_pool3d(call: Call) -> Work:
    return _max_pool(call, 3)


def max_pool_backward(call: Call) -> Work:
    """gradient, input, size, ..., indices last"""
    gradient, image = call.tensor(0), call.tensor(1)
    nbytes = moved(gradient, contiguous(gradient.shape, INT64), contiguous(image.shape, image.element))
    return Work(gradient.numel, nbytes, POOLING, VECTOR, gradient.element.dtype)


def avg_pool2d(call: Call) -> Work:
    """input, size, stride, padding, ceil, ..."""
    taps, stride, padding = _window(call, 2)
    image, result = _pooled(call, taps, stride, padding, (1, 1), call.flag(4))
    return Work(result.numel * prod(taps), moved(image, result), POOLING, VECTOR, image.element.dtype)


def adaptive_pool(call: Call) -> Work:
    """input, size of the result"""
    image, extent = call.tensor(0), call.numbers(1)
    result = contiguous((*image.shape[: len(image.shape) - len(extent)], *extent), image.element)
    return Work(image.numel, moved(image, result), POOLING, VECTOR, image.element.dtype)


def pool_backward(call: Call) -> Work:
    """gradient, input, ..."""
    gradient, image = call.tensor(0), call.tensor(1)
    nbytes = moved(gradient, contiguous(image.shape, image.element))
    return Work(image.numel, nbytes, POOLING, VECTOR, gradient.element.dtype)


# ---------------------------------------------------------------------------------------------------- losses that pick an element


def nll_loss(call: Call) -> Work:
    """log-probabilities, target, weight, reduction, ...: one element per target is read"""
    image, target = call.tensor(0), call.tensor(1)
    picked = contiguous(target.shape, image.element)
    nbytes = moved(picked, target, call.optional(2), contiguous((2,), FLOAT32))
    return Work(2 * target.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


def nll_loss_backward(call: Call) -> Work:
    """gradient, log-probabilities, target, weight, ...: the whole gradient is written"""
    gradient, image, target = call.tensor(0), call.tensor(1), call.tensor(2)
    nbytes = moved(gradient, target, call.optional(3), contiguous(image.shape, image.element))
    return Work(target.numel, nbytes, CATEGORY, VECTOR, image.element.dtype)


MODELS: dict[str, Model] = {
    **{f"aten::{name}": reduction for name in _REDUCTIONS},
    "aten::cumsum": scan,
    "aten::cumprod": scan,
    "aten::logcumsumexp": scan,
    "aten::max_pool2d_with_indices": max_pool2d,
    "aten::max_pool3d_with_indices": max_pool3d,
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::max_pool3d_with_indices_backward": max_pool_backward,
    "aten::avg_pool2d": avg_pool2d,
    "aten::avg_pool2d_backward": pool_backward,
    "aten::_adaptive_avg_pool2d": adaptive_pool,
    "aten::_adaptive_avg_pool3d": adaptive_pool,
    "aten::_adaptive_avg_pool2d_backward": pool_backward,
    "aten::_adaptive_avg_pool3d_backward": pool_backward,
    "aten::nll_loss_forward": nll_loss,
    "aten::nll_loss2d_forward": nll_loss,
    "aten::nll_loss_backward": nll_loss_backward,
    "aten::nll_loss2d_backward": nll_loss_backward,
}
