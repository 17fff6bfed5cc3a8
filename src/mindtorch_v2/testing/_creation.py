"""make_tensor: a tensor of random values in a range, the same that torch draws for a seed."""

from __future__ import annotations

import math
import warnings
from typing import Any

import mindtorch_v2 as torch

__all__ = ["make_tensor"]


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor with values drawn uniformly from [low, high)."""
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). "
            "To request support, file an issue at: https://github.com/pytorch/pytorch/issues"
        )
    size: tuple[Any, ...] = tuple(shape)
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    inexact = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not inexact:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}"
        )
    low, high = _range(dtype, low, high)
    # every second element of a tensor twice as long in its last dimension
    spread = noncontiguous and math.prod(size) > 1
    result = torch.empty((*size[:-1], 2 * size[-1]) if spread else size, device=device, dtype=dtype)
    _fill(result, dtype, low, high)
    if spread:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = torch.finfo(dtype).tiny if inexact else 1
    return result.requires_grad_() if requires_grad else result


def _range(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """The interval to draw from, within the range of the dtype."""
    inexact = dtype.is_floating_point or dtype.is_complex
    lowest: float
    highest: float
    if dtype is torch.bool:
        lowest, highest, default = 0, 2, (0, 2)
    elif inexact:
        limits = torch.finfo(dtype)
        lowest, highest, default = limits.min, limits.max, (-9, 9)
    else:
        integer_limits = torch.iinfo(dtype)
        lowest, highest = integer_limits.min, integer_limits.max + 1
        default = (0, 10) if integer_limits.min == 0 else (-9, 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and inexact:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
            "since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{lowest}, {highest})"
        )
    low, high = max(low, lowest), min(high, highest)
    return (low, high) if inexact else (math.ceil(low), math.ceil(high))


def _fill(tensor: Any, dtype: Any, low: float, high: float) -> None:
    if dtype.is_complex:
        torch.view_as_real(tensor).uniform_(low, high)
    elif dtype.is_floating_point:
        tensor.uniform_(low, high)
    elif (low, high) == (-(1 << 63), 1 << 63):
        tensor.random_(low, None)
    else:
        tensor.random_(low, high)
