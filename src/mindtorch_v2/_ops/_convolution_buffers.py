"""What torch's kernels for convolutions do besides computing, as children (`_children.py`): described tensors in, children out."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ._children import (
    Child,
    child,
    clone,
    contiguous,
    contiguous_strides,
    copy_,
    dtype_number,
    empty,
    is_contiguous,
    is_dense,
    tensor,
    zero_,
)

_CONTIGUOUS, _CHANNELS_LAST = 0, 2  # torch's numbers of memory formats


def is_channels_last(x: Any) -> bool:
    """Whether the channels of a described batch of images lie next to each other in memory."""
    return len(x.shape) == 4 and x.strides[1] == 1 and is_dense(x) and not is_contiguous(x)


def in_channels_last(x: Any) -> list[Child]:
    """A copy of a described batch of images whose channels do not lie next to each other; with one pixel or one channel they always do."""
    if is_channels_last(x) or len(x.shape) != 4 or x.shape[1] == 1 or prod(x.shape[2:]) == 1:
        return []
    return [child("aten::contiguous", x, _CHANNELS_LAST, children=[clone(x, _CHANNELS_LAST)])]


def _resized(x: Any, shape: Sequence[int], memory_format: int | None = None) -> Child:
    return child("aten::resize_", x, tuple(shape), memory_format)


def onednn_buffer(x: Any) -> list[Child]:
    """A tensor that oneDNN allocates."""
    strided = child("aten::as_strided_", x, x.shape, x.strides)
    return [empty(x.shape, dtype_number(x)), strided, _resized(x, x.shape, _CONTIGUOUS)]


def onednn_output(output: Any, channels_last: bool) -> list[Child]:
    """An output that is given to oneDNN."""
    unsized = empty((0,), dtype_number(output))
    if channels_last:
        return [unsized, _resized(tensor((0,), output), output.shape, _CHANNELS_LAST)]
    return [unsized, *onednn_buffer(output)]


def onednn_transposed_output(output: Any, channels_last: bool, is_copied: bool) -> list[Child]:
    """The output of a transposed convolution. is_copied: oneDNN writes channels next to each other."""
    if channels_last or not is_copied:
        return onednn_output(output, channels_last)
    strides = (
        output.strides[0],
        1,
        *[step * output.shape[1] for step in contiguous_strides(output.shape[2:])],
    )
    return [
        empty((0,), dtype_number(output)),
        empty(output.shape, dtype_number(output)),
        child("aten::as_strided_", output, output.shape, strides),
        child("aten::contiguous", output, _CONTIGUOUS, children=[clone(output, _CONTIGUOUS)]),
        _resized(output, output.shape, _CONTIGUOUS),
    ]


def _matrix_of(weight: Any) -> Child:
    return child("aten::view", weight, (weight.shape[0], prod(weight.shape[1:])))


def _columns(input: Any, weight: Any, output: Any, is_pointwise: bool) -> list[Child]:
    """The patches of an input as columns; a kernel of one element reads the input itself."""
    if not is_pointwise:
        shape = (input.shape[0], prod(weight.shape[1:]), prod(output.shape[2:]))
        return [empty(shape, dtype_number(input), allocates=False)]
    rows = tensor((*input.shape[:2], prod(input.shape[2:])), input)
    return [child("aten::view", input, rows.shape), child("aten::detach", rows, children=())]


def plain_forward(input: Any, weight: Any, bias: Any, output: Any, is_pointwise: bool) -> list[Child]:
    """Inside torch's own kernels for two and three spatial dimensions."""
    dims = len(weight.shape) - 2
    rows = [
        empty((0,), dtype_number(input)),
        _matrix_of(weight),
        *_columns(input, weight, output, is_pointwise),
        _resized(tensor((0,), input), output.shape, _CONTIGUOUS if dims == 2 else None),
    ]
    if bias is not None:
        shape = (-1, *(1,) * dims)
        spread = tensor((bias.shape[0], *(1,) * dims), bias)
        rows += [
            child("aten::reshape", bias, shape, children=[child("aten::view", bias, shape)]),
            copy_(output, spread),
        ]
    return rows


def plain_backward(
    grad_output: Any, input: Any, weight: Any, wanted: Sequence[bool], is_pointwise: bool
) -> list[Child]:
    """The gradients by torch's own kernels."""
    dims = len(weight.shape) - 2
    memory_format = _CONTIGUOUS if dims == 2 else None
    unsized = tensor((0,), input)
    rows = [empty((0,), dtype_number(input), allocates=False) for each in wanted if each]
    if wanted[0]:
        resized = child(
            "aten::resize_as_", unsized, input, memory_format, children=[_resized(unsized, input.shape)]
        )
        rows += [_matrix_of(weight), *contiguous(grad_output), resized]
        if dims == 2:
            rows.append(zero_(tensor(input.shape, input)))
        else:
            shape = (input.shape[0], prod(weight.shape[1:]), prod(grad_output.shape[2:]))
            rows.append(empty(shape, dtype_number(input), allocates=False))
    if wanted[2]:
        over = (0, *range(2, dims + 2))
        rows.append(child("aten::sum.IntList_out", grad_output, over, False, None, unsized))
    if wanted[1]:
        gradient = tensor(weight.shape, weight)
        rows += [_resized(unsized, weight.shape, memory_format), zero_(gradient), _matrix_of(gradient)]
        rows += [*contiguous(grad_output), *_columns(input, weight, grad_output, is_pointwise)]
    return rows
