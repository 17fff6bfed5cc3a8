"""Pooling of nn.functional: sizes completed and checked, the aten op called, a tensor (or two) out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from .._ops import functions as ops
from .modules.utils import _list_with_default, _pair, _single, _triple

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

_Size = int | Sequence[int]
_OptionalSize = Any  # int, None or a sequence of them
_Ratio = float | Sequence[float]


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window and its index."""
    return ops.max_pool1d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def _max_pool1d(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window, with its index if `return_indices`."""
    op = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window and its index in the plane."""
    return ops.max_pool2d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def _max_pool2d(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window, with its index if `return_indices`."""
    op = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window and its index in the volume."""
    return ops.max_pool3d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def _max_pool3d(
    input: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The maximum of each window, with its index if `return_indices`."""
    op = ops.max_pool3d_with_indices if return_indices else ops.max_pool3d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


max_pool1d, max_pool2d, max_pool3d = _max_pool1d, _max_pool2d, _max_pool3d


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover the input, and their indices."""
    return ops.adaptive_max_pool1d(input, output_size)


def _adaptive_max_pool1d(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover the input."""
    pooled = ops.adaptive_max_pool1d(input, output_size)
    return pooled if return_indices else pooled[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover each plane, and their indices."""
    return ops.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def _adaptive_max_pool2d(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover each plane."""
    pooled = ops.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))
    return pooled if return_indices else pooled[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover each volume, and their indices."""
    return ops.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


def _adaptive_max_pool3d(
    input: Tensor, output_size: _OptionalSize, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over `output_size` windows that cover each volume."""
    pooled = ops.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))
    return pooled if return_indices else pooled[0]


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    _adaptive_max_pool1d,
    _adaptive_max_pool2d,
    _adaptive_max_pool3d,
)


def adaptive_avg_pool2d(input: Tensor, output_size: _OptionalSize) -> Tensor:
    """Means over `output_size` windows that cover each plane."""
    return ops.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: _OptionalSize) -> Tensor:
    """Means over `output_size` windows that cover each volume."""
    return ops.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: _Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random steps, and their indices."""
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool2d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if len(output_ratio) > 2:  # type: ignore[arg-type]
            raise ValueError(
                "fractional_max_pool2d requires output_ratio to either be a single Int or tuple of Ints."
            )
        ratio = _pair(output_ratio)
        output_size = tuple(int(input.size(d - 2) * ratio[d]) for d in range(2))
    if _random_samples is None:
        batch = 1 if input.dim() == 3 else input.size(0)
        _random_samples = torch.rand(batch, input.size(-3), 2, dtype=input.dtype, device=input.device)
    return ops.fractional_max_pool2d(input, kernel_size, output_size, _random_samples)


def _fractional_max_pool2d(
    input: Tensor,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: _Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over windows at random steps."""
    pooled = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return pooled if return_indices else pooled[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: _Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random steps in three dimensions, and their indices."""
    if output_size is None and output_ratio is None:
        raise ValueError("fractional_max_pool3d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratio = _triple(output_ratio)
        output_size = tuple(int(input.size(d - 3) * ratio[d]) for d in range(3))
    if _random_samples is None:
        batch = 1 if input.dim() == 4 else input.size(0)
        _random_samples = torch.rand(batch, input.size(-4), 3, dtype=input.dtype, device=input.device)
    return ops.fractional_max_pool3d(input, kernel_size, output_size, _random_samples)


def _fractional_max_pool3d(
    input: Tensor,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: _Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Maxima over windows at random steps in three dimensions."""
    pooled = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return pooled if return_indices else pooled[0]


fractional_max_pool2d, fractional_max_pool3d = _fractional_max_pool2d, _fractional_max_pool3d


def _check_unpool_output_size(output_size: Sequence[int], dim: int) -> None:
    if len(output_size) not in (dim, dim + 2):
        raise ValueError(
            f"output_size should be a sequence containing {dim} or {dim + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )


def _unpool_output_size(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_size: Sequence[int] | None,
) -> Sequence[int]:
    """The input size of the max pooling that produced `input`; `output_size` decides where several are
    possible.
    """
    spatial = input.size()[-len(kernel_size) :]
    default = [
        (spatial[d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(len(kernel_size))
    ]
    if output_size is None:
        return default
    _check_unpool_output_size(output_size, len(kernel_size))
    if len(output_size) == len(kernel_size) + 2:
        output_size = output_size[2:]
    for d, size in enumerate(default):
        low, high = size - stride[d], size + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return output_size


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The maxima at their original positions, zeros elsewhere."""
    kernel = _single(kernel_size)
    steps = _single(stride) if stride is not None else kernel
    size = _unpool_output_size(input, kernel, steps, _single(padding), output_size)
    return ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The maxima at their original positions in the plane, zeros elsewhere."""
    kernel = _pair(kernel_size)
    steps = _pair(stride) if stride is not None else kernel
    size = _unpool_output_size(input, kernel, steps, _pair(padding), output_size)
    return ops.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The maxima at their original positions in the volume, zeros elsewhere."""
    kernel = _triple(kernel_size)
    steps = _triple(stride) if stride is not None else kernel
    pads = _triple(padding)
    size = _unpool_output_size(input, kernel, steps, pads, output_size)
    return ops.max_unpool3d(input, indices, size, steps, pads)


def _power_mean(pooled: Tensor, count: int, norm_type: float) -> Tensor:
    return (ops.sign(pooled) * ops.relu(ops.abs(pooled))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window."""
    steps: _Size = [] if stride is None else stride
    pooled = ops.avg_pool1d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _power_mean(pooled, kernel_size, norm_type)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Size,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window of a plane."""
    height, width = _pair(kernel_size)
    steps: _Size = [] if stride is None else stride
    pooled = ops.avg_pool2d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _power_mean(pooled, height * width, norm_type)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: _Size,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of each window of a volume."""
    depth, height, width = _triple(kernel_size)
    steps: _Size = [] if stride is None else stride
    pooled = ops.avg_pool3d(input.pow(norm_type), kernel_size, steps, 0, ceil_mode)
    return _power_mean(pooled, depth * height * width, norm_type)
