"""The ops that torch shows inside convolutions: which of its kernels it takes, and what these do besides computing (`_children.py`)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ._children import UNKNOWN, Child, child, contiguous, tensor
from ._convolution_buffers import (
    in_channels_last,
    is_channels_last,
    onednn_buffer,
    onednn_output,
    onednn_transposed_output,
    plain_backward,
    plain_forward,
)
from .convolution import (
    convolution,
    convolution_backward,
    filled,
    is_pointwise,
    is_unit,
    output_size,
    transposed_size,
)

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings


@convolution.children
def _(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Any,
    output_padding: Any,
    groups: Any,
    *,
    settings: Settings,
) -> list[Child]:
    arguments = (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    before: list[Child] = []
    after: list[Child] = []
    if input is not UNKNOWN and not (is_channels_last(input) or is_channels_last(weight)):
        before += [*contiguous(input), *contiguous(weight)]
        input, weight = tensor(input.shape, input), tensor(weight.shape, weight)
    elif input is not UNKNOWN:
        before += [*in_channels_last(input), *in_channels_last(weight)]
    if input is not UNKNOWN and len(weight.shape) == 3:  # torch computes it over two dimensions
        before += _one_more_dim(input, weight)
        after = _one_dim_less(_output_of(*arguments[:2], *arguments[3:]))
        input, weight = _with_dim(input), _with_dim(weight)
        stride, padding, dilation, output_padding = (
            (1, *stride),
            (0, *padding),
            (1, *dilation),
            (0, *output_padding),
        )
    n_threads = settings.num_threads
    kernels: list[Child] = []
    if transposed is not True:
        kernels = _kernels(input, weight, bias, stride, padding, dilation, groups, n_threads)
    elif input is not UNKNOWN and _takes_onednn(input, weight, stride, dilation, groups, n_threads):
        output = _output_of(input, weight, stride, padding, dilation, True, output_padding, groups)
        kernels = onednn_transposed_output(
            output, is_channels_last(input), groups == 1 and not is_unit(stride)
        )
    inside = [*before, *kernels, *after]
    return [
        child("aten::_convolution", *arguments, False, False, True, True, children=inside, allocates=True)
    ]


def _kernels(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    n_threads: int,
) -> list[Child]:
    """What torch shows for the computation: oneDNN's kernel where it takes that, else its own, once per group."""
    if input is UNKNOWN or _takes_onednn(input, weight, stride, dilation, groups, n_threads):
        whole = (input, weight, bias, padding, stride, dilation, groups)
        buffers: list[Child] = []
        if input is not UNKNOWN:
            output = _output_of(input, weight, stride, padding, dilation)
            buffers = onednn_output(output, is_channels_last(input) or is_channels_last(weight))
        return [child("aten::mkldnn_convolution", *whole, children=buffers, allocates=True)]
    kernel = weight.shape[2:]
    part = tensor((input.shape[0], weight.shape[1], *input.shape[2:]), input) if groups > 1 else input
    weights = tensor((weight.shape[0] // groups, *weight.shape[1:]), weight) if groups > 1 else weight
    share = tensor(weights.shape[:1], bias) if groups > 1 and bias is not None else bias
    stride, padding, dilation = (
        filled(stride, len(kernel)),
        filled(padding, len(kernel)),
        filled(dilation, len(kernel)),
    )
    arguments = (part, weights, kernel, share, stride, padding)
    output = _output_of(part, weights, stride, padding, dilation)
    buffers = plain_forward(part, weights, share, output, is_pointwise(kernel, stride, padding))
    if len(kernel) == 3:
        inside = child("aten::slow_conv3d_forward", *arguments, children=buffers, allocates=True)
        leaf = child("aten::slow_conv3d", *arguments, children=[inside], allocates=True)
    elif any(d != 1 for d in dilation):
        leaf = child("aten::slow_conv_dilated2d", *arguments, dilation, allocates=True)
    else:
        inside = child("aten::_slow_conv2d_forward", *arguments, children=buffers, allocates=True)
        leaf = child("aten::thnn_conv2d", *arguments, children=[inside], allocates=True)
        return [child("aten::_nnpack_available"), *[leaf] * groups]
    return [leaf] * groups


def _takes_onednn(input: Any, weight: Any, stride: Any, dilation: Any, groups: int, n_threads: int) -> bool:
    """torch's choice: oneDNN for float32, but for kernels of one element in one thread and for small inputs."""
    if input.type != "float":
        return input.type in ("c10::BFloat16", "c10::Half")
    pointwise = all(k == 1 for k in weight.shape[-2:]) and is_unit(stride) and is_unit(dilation)
    if pointwise and input.shape[0] < 16 and n_threads == 1:
        return False
    large_kernel = all(k > 3 for k in weight.shape[-2:])
    return groups > 1 or large_kernel or input.shape[0] > 1 or prod(input.shape[:4]) > 20480


def _output_of(
    input: Any,
    weight: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool = False,
    output_padding: Any = (0,),
    groups: int = 1,
) -> Any:
    """The result of a convolution, as rules describe tensors."""
    spatial, kernel = input.shape[2:], weight.shape[2:]
    stride, padding, dilation = (filled(each, len(kernel)) for each in (stride, padding, dilation))
    if transposed:
        size = transposed_size(
            spatial, kernel, stride, padding, dilation, filled(output_padding, len(kernel))
        )
        return tensor((input.shape[0], weight.shape[1] * groups, *size), input)
    size = tuple(output_size(*sizes) for sizes in zip(spatial, kernel, stride, padding, dilation))
    return tensor((input.shape[0], weight.shape[0], *size), input)


def _with_dim(x: Any) -> Any:
    """A described tensor of one spatial dimension, with a second one of size 1."""
    return x._replace(
        shape=(*x.shape[:2], 1, *x.shape[2:]),
        strides=(*x.strides[:2], x.shape[2] * x.strides[2], x.strides[2]),
    )


def _one_more_dim(*tensors: Any) -> list[Child]:
    return [child("aten::unsqueeze", x, 2) for x in tensors]


def _one_dim_less(*tensors: Any) -> list[Child]:
    return [child("aten::squeeze.dim", _with_dim(x), 2) for x in tensors]


@convolution_backward.children
def _(
    grad_output: Any,
    input: Any,
    weight: Any,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Any,
    output_padding: Any,
    groups: Any,
    output_mask: Any,
    *,
    settings: Settings,
) -> list[Child]:
    before: list[Child] = []
    after: list[Child] = []
    if len(weight.shape) == 3:
        gradients = [tensor(x.shape, x) for x, wanted in zip((input, weight), output_mask) if wanted]
        before, after = _one_more_dim(grad_output, input, weight), _one_dim_less(*gradients)
        grad_output, input, weight = _with_dim(grad_output), _with_dim(input), _with_dim(weight)
    dims = len(weight.shape) - 2
    stride, padding, dilation = (filled(each, dims) for each in (stride, padding, dilation))
    kernels: list[Child] = []
    if _takes_onednn(input, weight, stride, dilation, groups, settings.num_threads):
        if not is_channels_last(input):
            kernels = [*contiguous(grad_output), *contiguous(input), *contiguous(weight)]
        if output_mask[0]:
            gradient, is_copied = (
                tensor(input.shape, input),
                groups == 1 and not (transposed or is_unit(stride)),
            )
            kernels += onednn_transposed_output(gradient, is_channels_last(input), is_copied)
        if output_mask[2]:
            kernels += onednn_buffer(
                tensor((weight.shape[1] * groups if transposed else weight.shape[0],), weight)
            )
        if output_mask[1]:
            kernels += onednn_buffer(tensor(weight.shape, weight))
    elif not transposed and groups == 1 and is_unit(dilation):
        kernels = plain_backward(
            grad_output, input, weight, output_mask, is_pointwise(weight.shape[2:], stride, padding)
        )
        if dims == 2:
            arguments = (grad_output, input, weight, weight.shape[2:], stride, padding, output_mask)
            kernels = [
                child("aten::_nnpack_available"),
                child("aten::_slow_conv2d_backward.output_mask", *arguments, children=kernels),
            ]
    return [*before, *kernels, *after]
