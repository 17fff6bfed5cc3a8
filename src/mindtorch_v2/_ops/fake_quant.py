"""Fake quantisation: floats in, floats rounded to a quantised grid out, with gradients passed straight through. No quantised dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._dispatch import composite, function, op
from .._tensor import Tensor
from . import _dims
from ._namespace import functions as F


def _check_range(quant_min: int, quant_max: int, low: float, high: float) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if low < quant_min or high > quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _snapped(tensor: Any, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    """The nearest values of the grid, computed in float32, and which of the inputs lie within it."""
    made, mask = F.empty_like(tensor), F.empty_like(tensor, dtype=_dtype.bool_)
    steps = np.rint(tensor._array.astype(np.float32) * (np.float32(1) / scale)) + zero
    steps = np.where(np.isnan(steps), -np.inf, steps)
    mask._array[...] = (steps >= low) & (steps <= high)
    made._array[...] = (np.clip(steps, low, high) - zero) * scale
    return made, mask


def _refuse_dtype(tensor: Tensor, name: str) -> None:
    if not tensor.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{tensor.dtype._abbr}'")


@op(
    "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) "
    "-> (Tensor output, Tensor mask)",
    expose="no",
    on="tensors",
    outputs=1,
)
def _per_tensor(self: Any, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Any:
    _check_range(quant_min, quant_max, zero_point, zero_point)
    _refuse_dtype(self, "fake_quantize_tensor_cachemask_kernel_type_handling")
    return _snapped(self, np.float32(scale), np.float32(zero_point), quant_min, quant_max)


@op(
    "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
    "Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
    expose="no",
    on="tensors",
    outputs=1,
)
def _per_tensor_of_tensors(
    self: Any, scale: Any, zero_point: Any, fake_quant_enabled: Any, quant_min: int, quant_max: int
) -> Any:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    _refuse_dtype(self, "fake_quantize_tensor_cachemask_kernel_type_handling")
    step, zero, enabled = scale.item(), zero_point.item(), fake_quant_enabled.item()
    if not enabled:
        return self.clone(), F.ones_like(self, dtype=_dtype.bool_)
    return _snapped(self, np.float32(step), np.float32(zero), quant_min, quant_max)


@op(
    "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
    "int quant_max) -> (Tensor output, Tensor mask)",
    expose="no",
    on="tensors",
    outputs=1,
)
def _per_channel(self: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:
    if scale.dtype not in (_dtype.float32, _dtype.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype._abbr}")
    if zero_point.dtype not in (_dtype.int32, _dtype.float32, _dtype.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype._abbr}")
    axis = _dims.one(axis, self.ndim)
    if scale.ndim != 1 or zero_point.ndim != 1 or not scale.numel() == zero_point.numel() == self.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    if scale.numel():
        _check_range(quant_min, quant_max, F.min(zero_point).item(), F.max(zero_point).item())
    _refuse_dtype(self, "fake_quantize_channel_cachemask_cpu_type_handling")
    shape = [1] * self.ndim
    shape[axis] = -1
    steps = scale._array.astype(np.float32).reshape(shape)
    zeros = zero_point._array.astype(np.float32).reshape(shape)
    return _snapped(self, steps, zeros, quant_min, quant_max)


@op(
    "aten::fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    expose="no",
    on="tensors",
)
def _tensor_backward(grad: Any, mask: Any) -> Any:
    return grad * mask


@op(
    "aten::fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
    expose="no",
    on="tensors",
)
def _channel_backward(grad: Any, mask: Any) -> Any:
    return grad * mask


_per_tensor.derivative(self=lambda g, mask: _tensor_backward(g, mask))
_per_tensor_of_tensors.derivative(self=lambda g, mask: _tensor_backward(g, mask))
_per_channel.derivative(self=lambda g, mask: _channel_backward(g, mask))
_tensor_backward.derivative(grad=lambda g, mask: g * mask)
_channel_backward.derivative(grad=lambda g, mask: g * mask)


@composite(
    "aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
    expose="no",
)
def _with_numbers(self: Any, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Any:
    return _per_tensor(self, scale, zero_point, quant_min, quant_max)[0]


@composite(
    "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
    "int quant_max) -> Tensor",
    expose="no",
)
def _with_tensors(self: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    enabled = F.ones((1,), dtype=_dtype.int64)
    return _per_tensor_of_tensors(self, scale, zero_point, enabled, quant_min, quant_max)[0]


@function(expose="function")
def fake_quantize_per_tensor_affine(
    input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Any:
    """Round to the grid `(k - zero_point) * scale`, k from `quant_min` to `quant_max`; the gradient is passed on inside it."""
    if isinstance(scale, Tensor) and isinstance(zero_point, Tensor):
        return _with_tensors(input, scale, zero_point, quant_min, quant_max)
    return _with_numbers(input, float(scale), int(zero_point), quant_min, quant_max)


@composite(
    "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, "
    "int quant_max) -> Tensor",
    expose="function",
)
def fake_quantize_per_channel_affine(
    self: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    return _per_channel(self, scale, zero_point, axis, quant_min, quant_max)[0]
