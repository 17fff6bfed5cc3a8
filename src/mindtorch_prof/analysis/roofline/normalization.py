"""Normalizations and softmax: inputs of batch, layer, group and RMS norms and of softmax, forward and backward, in; work out.

Operations per element: 5 where mean and variance are computed (3 for these, 2 for scale and shift), 2 where they are given, 9 backward.
Input and result are moved once, parameters and statistics too.
"""

from __future__ import annotations

from math import prod

from .work import FLOAT32, VECTOR, Call, Model, NotModelled, Tensor, Work, contiguous, moved

FORWARD, BACKWARD, SOFTMAX = "normalization", "normalization backward", "softmax"
_WITH_STATISTICS, _STATISTICS_GIVEN, _ROOT_MEAN_SQUARE = 5, 2, 4
_BACKWARD, _ROOT_MEAN_SQUARE_BACKWARD = 9, 8
_PER_PARAMETER = 6  # operations on each variance and scale: add epsilon, root, reciprocal, and their products
_SOFTMAX, _SOFTMAX_BACKWARD = (
    5,
    4,
)  # largest, difference, exponential, sum, quotient; product, sum, difference, product


def _work(image: Tensor, per_element: int, parameters: int, nbytes: int, category: str) -> Work:
    flop = per_element * image.numel + _PER_PARAMETER * parameters
    return Work(flop, nbytes, category, VECTOR, image.element.dtype)


def _like(tensor: Tensor) -> Tensor:
    return contiguous(tensor.shape, tensor.element)


def batch_norm(call: Call) -> Work:
    """input, weight, bias, running mean, running variance, training, ..."""
    return _batch_norm(call, call.flag(5))


def batch_norm_with_update(call: Call) -> Work:
    """input, weight, bias, running mean, running variance, ...; always training"""
    return _batch_norm(call, True)


def _batch_norm(call: Call, training: bool) -> Work:
    image = call.tensor(0)
    if len(image.shape) < 2:
        raise NotModelled("the input has no channels")
    parameters = [call.optional(place) for place in range(1, 5)]
    nbytes = moved(image, _like(image), *parameters)
    if training:  # running statistics are written, too
        nbytes += moved(*parameters[2:])
    per_element = _WITH_STATISTICS if training else _STATISTICS_GIVEN
    return _work(image, per_element, image.shape[1], nbytes, FORWARD)


def layer_norm(call: Call) -> Work:
    """input, normalized shape, weight, bias, ..."""
    image = call.tensor(0)
    weight, bias = call.optional(2), call.optional(3)
    size = _normalized_size(call, 1, weight)
    statistics = contiguous((2 * image.numel // max(size, 1),), FLOAT32)
    nbytes = moved(image, _like(image), weight, bias, statistics)
    return _work(image, _WITH_STATISTICS, size, nbytes, FORWARD)


def _normalized_size(call: Call, place: int, weight: Tensor | None) -> int:
    """How many elements are normalized together."""
    return weight.numel if weight is not None else prod(call.numbers(place))


def native_group_norm(call: Call) -> Work:
    """input, weight, bias, batch, channels, size, groups, ..."""
    return _group_norm(call, call.optional(1), call.optional(2), call.number(6))


def group_norm(call: Call) -> Work:
    """input, groups, weight, bias, ..."""
    return _group_norm(call, call.optional(2), call.optional(3), call.number(1))


def _group_norm(call: Call, weight: Tensor | None, bias: Tensor | None, groups: int) -> Work:
    image = call.tensor(0)
    if len(image.shape) < 2:
        raise NotModelled("the input has no channels")
    statistics = contiguous((2 * image.shape[0] * groups,), FLOAT32)
    return _work(
        image,
        _WITH_STATISTICS,
        image.shape[1],
        moved(image, _like(image), weight, bias, statistics),
        FORWARD,
    )


def rms_norm(call: Call) -> Work:
    """input, normalized shape, weight, ..."""
    image, weight = call.tensor(0), call.optional(2)
    rows = image.numel // max(_normalized_size(call, 1, weight), 1)
    nbytes = moved(image, _like(image), weight)
    return Work(_ROOT_MEAN_SQUARE * image.numel + 3 * rows, nbytes, FORWARD, VECTOR, image.element.dtype)


def rms_norm_written_to_first(call: Call) -> Work:
    """vLLM: result, input, weight, ..."""
    result, image, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    return rms_norm_of(image, weight, moved(result, image, weight))


def add_and_rms_norm(call: Call) -> Work:
    """vLLM: input, residual, weight, ...; both are read and written"""
    image, residual, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    return rms_norm_of(image, weight, moved(image, image, residual, residual, weight), further=1)


def rms_norm_of(image: Tensor, weight: Tensor, nbytes: int, further: int = 0) -> Work:
    """The norm of the rows that a weight is as long as; further: other operations per element."""
    flop = (_ROOT_MEAN_SQUARE + further) * image.numel + 3 * (image.numel // max(weight.numel, 1))
    return Work(flop, nbytes, FORWARD, VECTOR, image.element.dtype)


def _backward(
    gradient: Tensor, image: Tensor, parameters: tuple[Tensor | None, ...], written: tuple[Tensor | None, ...]
) -> Work:
    nbytes = moved(gradient, image, _like(image), *parameters, *written)
    return _work(image, _BACKWARD, 0, nbytes, BACKWARD)


def batch_norm_backward(call: Call) -> Work:
    """gradient, input, weight, running statistics, saved statistics, ..."""
    weight = call.optional(2)
    return _backward(
        call.tensor(0), call.tensor(1), (weight, call.optional(5), call.optional(6)), (weight, weight)
    )


def vendor_batch_norm_backward(call: Call) -> Work:
    """input, gradient, weight, running statistics, saved statistics, ..."""
    weight = call.optional(2)
    return _backward(
        call.tensor(1), call.tensor(0), (weight, call.optional(5), call.optional(6)), (weight, weight)
    )


def layer_norm_backward(call: Call) -> Work:
    """gradient, input, normalized shape, mean, reciprocal deviation, weight, bias, ..."""
    weight, bias = call.optional(5), call.optional(6)
    statistics = call.optional(3), call.optional(4)
    return _backward(call.tensor(0), call.tensor(1), (weight, *statistics), (weight, bias))


def group_norm_backward(call: Call) -> Work:
    """gradient, input, mean, reciprocal deviation, weight, ..."""
    weight = call.optional(4)
    statistics = call.optional(2), call.optional(3)
    return _backward(call.tensor(0), call.tensor(1), (weight, *statistics), (weight, weight))


def rms_norm_backward(call: Call) -> Work:
    """gradient, input, normalized shape, reciprocal deviation, weight, ..."""
    gradient, image, weight = call.tensor(0), call.tensor(1), call.optional(4)
    nbytes = moved(gradient, image, _like(image), call.optional(3), weight, weight)
    return _work(image, _ROOT_MEAN_SQUARE_BACKWARD, 0, nbytes, BACKWARD)


def softmax(call: Call) -> Work:
    """input, dimension, ..."""
    image = call.tensor(0)
    return _work(image, _SOFTMAX, 0, moved(image, _like(image)), SOFTMAX)


def softmax_backward(call: Call) -> Work:
    """gradient, result, dimension, ..."""
    gradient, result = call.tensor(0), call.tensor(1)
    return _work(result, _SOFTMAX_BACKWARD, 0, moved(gradient, result, _like(result)), SOFTMAX)


MODELS: dict[str, Model] = {
    "aten::batch_norm": batch_norm,
    "aten::_batch_norm_impl_index": batch_norm,
    "aten::native_batch_norm": batch_norm,
    "aten::_native_batch_norm_legit": batch_norm,
    "aten::cudnn_batch_norm": batch_norm,
    "aten::miopen_batch_norm": batch_norm,
    "aten::instance_norm": batch_norm,
    "aten::_batch_norm_with_update": batch_norm_with_update,
    "aten::native_batch_norm_backward": batch_norm_backward,
    "aten::batch_norm_backward": batch_norm_backward,
    "aten::cudnn_batch_norm_backward": vendor_batch_norm_backward,
    "aten::miopen_batch_norm_backward": vendor_batch_norm_backward,
    "aten::layer_norm": layer_norm,
    "aten::native_layer_norm": layer_norm,
    "aten::native_layer_norm_backward": layer_norm_backward,
    "aten::group_norm": group_norm,
    "aten::native_group_norm": native_group_norm,
    "aten::native_group_norm_backward": group_norm_backward,
    "aten::rms_norm": rms_norm,
    "aten::_fused_rms_norm": rms_norm,
    "aten::_fused_rms_norm_backward": rms_norm_backward,
    "_C::rms_norm": rms_norm_written_to_first,
    "aiter::rmsnorm": rms_norm_written_to_first,
    "sgl_kernel::rmsnorm": rms_norm_written_to_first,
    "_C::fused_add_rms_norm": add_and_rms_norm,
    "sgl_kernel::fused_add_rmsnorm": add_and_rms_norm,
    "aiter::_groupnorm_run": group_norm,
    "aten::softmax": softmax,
    "aten::_softmax": softmax,
    "aten::log_softmax": softmax,
    "aten::_log_softmax": softmax,
    "aten::_safe_softmax": softmax,
    "aten::_softmax_backward_data": softmax_backward,
    "aten::_log_softmax_backward_data": softmax_backward,
}
