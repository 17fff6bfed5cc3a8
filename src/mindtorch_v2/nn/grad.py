"""Gradients of convolutions as functions: sizes and gradients in, one gradient out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._ops import functions as ops
from .modules.utils import _pair, _single, _triple

if TYPE_CHECKING:
    from .._tensor import Tensor


def _input_gradient(
    repeat: Any,
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    input = grad_output.new_empty(1).expand(input_size)
    options = (repeat(stride), repeat(padding), repeat(dilation), False, [0], groups)
    return ops.convolution_backward(grad_output, input, weight, None, *options, (True, False, False))[0]


def _weight_gradient(
    repeat: Any,
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    weight = grad_output.new_empty(1).expand(weight_size)
    options = (repeat(stride), repeat(padding), repeat(dilation), False, [0], groups)
    return ops.convolution_backward(grad_output, input, weight, None, *options, (False, True, False))[1]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its input."""
    return _input_gradient(_single, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its weight."""
    return _weight_gradient(_single, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its input."""
    return _input_gradient(_pair, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its weight."""
    return _weight_gradient(_pair, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its input."""
    return _input_gradient(_triple, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its weight."""
    return _weight_gradient(_triple, input, weight_size, grad_output, stride, padding, dilation, groups)
