"""Convolutions: inputs of forward and backward ops in; work out.

Forward, each element of the result takes 2 operations per weight that it sees (per element of the input if transposed). Backward,
the gradients of input and weight each take as many as forward; only those that the output mask asks for are counted. Each gradient
is a kernel of its own, so that the gradient of the result is read for each.
"""

from __future__ import annotations

from math import prod

from .work import MATRIX, Call, Model, NotModelled, Tensor, Work, contiguous, moved

FORWARD, BACKWARD = "convolution", "convolution backward"


def _forward(
    call: Call,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    transposed: bool = False,
    output_padding: tuple[int, ...] | None = None,
    added: Tensor | None = None,
) -> Work:
    image, weight = call.tensor(0), call.tensor(1)
    result = _result(image, weight, stride, padding, dilation, groups, transposed, output_padding)
    flop = _multiplications(image, weight, result, transposed)
    flop += result.numel * ((bias is not None) + (added is not None))
    return Work(flop, moved(image, weight, bias, added, result), FORWARD, MATRIX, image.element.dtype)


def _multiplications(image: Tensor, weight: Tensor, result: Tensor, transposed: bool) -> int:
    return 2 * (image.numel if transposed else result.numel) * prod(weight.shape[1:])


def _dimensions(call: Call, weight_place: int = 1) -> int:
    """How many dimensions the convolution runs along."""
    count = len(call.tensor(weight_place).shape) - 2
    if count < 1:
        raise NotModelled("the weight has too few dimensions")
    return count


def _result(
    image: Tensor,
    weight: Tensor,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    transposed: bool,
    output_padding: tuple[int, ...] | None,
) -> Tensor:
    count = len(weight.shape) - 2
    if len(image.shape) not in (count + 1, count + 2) or min(stride) < 1:
        raise NotModelled("the shapes of the input and of the weight do not fit")
    sizes, taps = image.shape[-count:], weight.shape[2:]
    if transposed:
        channels = weight.shape[1] * groups
        more = output_padding or (0,) * count
        extent = [
            (size - 1) * step - 2 * pad + spacing * (tap - 1) + extra + 1
            for size, tap, step, pad, spacing, extra in zip(sizes, taps, stride, padding, dilation, more)
        ]
    else:
        channels = weight.shape[0]
        extent = [
            (size + 2 * pad - spacing * (tap - 1) - 1) // step + 1
            for size, tap, step, pad, spacing in zip(sizes, taps, stride, padding, dilation)
        ]
    if min(extent) < 0:
        raise NotModelled("the shapes of the input and of the weight do not fit")
    batch = image.shape[: len(image.shape) - count - 1]
    return contiguous((*batch, channels, *extent), image.element)


def convolution(call: Call) -> Work:
    """input, weight, bias, stride, padding, dilation, transposed, output_padding, groups"""
    count = _dimensions(call)
    return _forward(
        call,
        call.optional(2),
        call.numbers(3, count),
        call.numbers(4, count),
        call.numbers(5, count),
        call.number(8),
        call.flag(6),
        call.numbers(7, count, default=0),
    )


def conv_nd(call: Call) -> Work:
    """input, weight, bias, stride, padding, dilation, groups; padding may be the text `same` or `valid`"""
    count = _dimensions(call)
    taps, dilation = call.tensor(1).shape[2:], call.numbers(5, count, default=1)
    text = call.value(4)
    if text == "same":
        padding = tuple(spacing * (tap - 1) // 2 for tap, spacing in zip(taps, dilation))
    else:
        padding = (0,) * count if text == "valid" else call.numbers(4, count, default=0)
    stride = call.numbers(3, count, default=1)
    return _forward(call, call.optional(2), stride, padding, dilation, call.number(6))


def conv_transpose(call: Call) -> Work:
    """input, weight, bias, stride, padding, output_padding, groups, dilation"""
    count = _dimensions(call)
    stride, padding = call.numbers(3, count, default=1), call.numbers(4, count, default=0)
    output_padding, dilation = call.numbers(5, count, default=0), call.numbers(7, count, default=1)
    return _forward(call, call.optional(2), stride, padding, dilation, call.number(6), True, output_padding)


def vendor(call: Call) -> Work:
    """cuDNN: input, weight, padding, stride, dilation, groups. MIOpen, oneDNN and cuDNN before 2020 have a bias after the weight."""
    count, first = _dimensions(call), 2
    if call.optional(2) is not None or call.is_absent(2):
        first = 3
    padding, stride, dilation = (call.numbers(first + place, count) for place in range(3))
    return _forward(call, call.optional(2), stride, padding, dilation, call.number(first + 3))


def vendor_transpose(call: Call) -> Work:
    """The same with output_padding after padding."""
    count, first = _dimensions(call), 2
    if call.optional(2) is not None or call.is_absent(2):
        first = 3
    padding, output_padding, stride, dilation = (call.numbers(first + place, count) for place in range(4))
    groups = call.number(first + 4)
    return _forward(call, call.optional(2), stride, padding, dilation, groups, True, output_padding)


def relu(call: Call) -> Work:
    """input, weight, bias, stride, padding, dilation, groups"""
    count = _dimensions(call)
    stride, padding, dilation = (call.numbers(place, count) for place in (3, 4, 5))
    return _forward(call, call.optional(2), stride, padding, dilation, call.number(6))


def add_relu(call: Call) -> Work:
    """input, weight, what is added, alpha, bias, stride, padding, dilation, groups"""
    count = _dimensions(call)
    stride, padding, dilation = (call.numbers(place, count) for place in (5, 6, 7))
    return _forward(call, call.optional(4), stride, padding, dilation, call.number(8), added=call.optional(2))


def depthwise(call: Call) -> Work:
    """input, weight, size of the kernel, bias, stride, padding, dilation"""
    count = _dimensions(call)
    stride, padding = call.numbers(4, count), call.numbers(5, count)
    dilation = call.numbers(6, count, default=1)
    return _forward(call, call.optional(3), stride, padding, dilation, call.tensor(1).shape[0])


def slow(call: Call) -> Work:
    """input, weight, size of the kernel, bias, stride, padding"""
    count = _dimensions(call)
    stride, padding = call.numbers(4, count), call.numbers(5, count)
    return _forward(call, call.optional(3), stride, padding, (1,) * count, 1)


def _backward(
    gradient: Tensor, image: Tensor, weight: Tensor, transposed: bool, mask: tuple[int, ...]
) -> Work:
    """mask: whether the gradients of input, weight and bias are computed."""
    of_input, of_weight, of_bias = (*mask, 0, 0)[:3]
    products = 2 * (image.numel if transposed else gradient.numel) * prod(weight.shape[1:])
    flop = products * (bool(of_input) + bool(of_weight)) + (gradient.numel if of_bias else 0)
    nbytes = 0
    if of_input:
        nbytes += moved(gradient, weight, contiguous(image.shape, image.element))
    if of_weight:
        nbytes += moved(gradient, image, contiguous(weight.shape, weight.element))
    if of_bias:
        channels = gradient.shape[1 - (len(gradient.shape) < len(weight.shape))]
        nbytes += moved(gradient, contiguous((channels,), gradient.element))
    return Work(flop, nbytes, BACKWARD, MATRIX, image.element.dtype)


def convolution_backward(call: Call) -> Work:
    """gradient, input, weight, sizes of the bias, stride, padding, dilation, transposed, output_padding, groups, output mask"""
    gradient, image, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    return _backward(gradient, image, weight, call.flag(7), call.numbers(10, 3))


def overrideable_backward(call: Call) -> Work:
    """gradient, input, weight, stride, padding, dilation, transposed, output_padding, groups, output mask"""
    gradient, image, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    return _backward(gradient, image, weight, call.flag(6), call.numbers(9, 3))


def vendor_backward(call: Call) -> Work:
    """input, gradient, weight, ..., output mask"""
    return _backward(call.tensor(1), call.tensor(0), call.tensor(2), False, call.numbers(len(call) - 1))


def backward_of_input(call: Call) -> Work:
    """sizes of the input, gradient, weight, ..."""
    weight = call.tensor(2)
    image = contiguous(call.numbers(0), weight.element)
    return _backward(call.tensor(1), image, weight, False, (1, 0, 0))


def backward_of_weight(call: Call) -> Work:
    """sizes of the weight, gradient, input, ..."""
    image = call.tensor(2)
    weight = contiguous(call.numbers(0), image.element)
    return _backward(call.tensor(1), image, weight, False, (0, 1, 0))


MODELS: dict[str, Model] = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::convolution_overrideable": convolution,
    "aten::conv1d": conv_nd,
    "aten::conv2d": conv_nd,
    "aten::conv3d": conv_nd,
    "npu::npu_conv2d": conv_nd,
    "npu::npu_conv3d": conv_nd,
    "aten::conv_transpose1d": conv_transpose,
    "aten::conv_transpose2d": conv_transpose,
    "aten::conv_transpose3d": conv_transpose,
    "aten::cudnn_convolution": vendor,
    "aten::miopen_convolution": vendor,
    "aten::miopen_depthwise_convolution": vendor,
    "aten::mkldnn_convolution": vendor,
    "aten::cudnn_convolution_transpose": vendor_transpose,
    "aten::miopen_convolution_transpose": vendor_transpose,
    "aten::cudnn_convolution_relu": relu,
    "aten::miopen_convolution_relu": relu,
    "aten::cudnn_convolution_add_relu": add_relu,
    "aten::miopen_convolution_add_relu": add_relu,
    "aten::_conv_depthwise2d": depthwise,
    "aten::conv_depthwise3d": depthwise,
    "aten::_slow_conv2d_forward": slow,
    "aten::slow_conv3d_forward": slow,
    "aten::thnn_conv2d": slow,
    "aten::convolution_backward": convolution_backward,
    "aten::convolution_backward_overrideable": overrideable_backward,
    "aten::cudnn_convolution_backward": vendor_backward,
    "aten::miopen_convolution_backward": vendor_backward,
    "aten::cudnn_convolution_backward_input": backward_of_input,
    "aten::miopen_convolution_backward_input": backward_of_input,
    "aten::cudnn_convolution_backward_weight": backward_of_weight,
    "aten::miopen_convolution_backward_weight": backward_of_weight,
}
