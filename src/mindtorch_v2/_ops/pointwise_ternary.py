"""Element by element: functions of three tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import function, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS
from . import _core
from ._where import where
from .pointwise import conj, floats_only, one_minus, rounded, wide


@op(
    "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    promote="same",
    inplace="aten::addcmul_",
    out=True,
)
def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any, out: Any = None) -> Any:
    if self.dtype in LOW_FLOATS:
        return rounded(wide(self) + wide(tensor1) * wide(tensor2) * value, self.dtype, out)
    if self.dtype.num in INTEGRAL_NUMS:
        if self.dtype.kind == "b":
            raise _op_errors.not_implemented("addcmul_cpu_out", self)
        value = np.asarray(int(value)).astype(self.dtype)[()]  # wraps around, as in C
    fused = _core.addcmul(self, tensor1, tensor2, value, out)
    if fused is not None:
        return fused
    product = np.multiply(tensor1, tensor2)
    if value != 1:
        if product.__class__ is np.ndarray:
            np.multiply(product, value, product, casting="unsafe")
        else:
            product = (product * value).astype(self.dtype)
    return np.add(self, product, out)


addcmul.derivative(
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * conj(tensor2 * value),
    tensor2=lambda g, tensor1, value: g * conj(tensor1 * value),
)


@op(
    "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    promote="same",
    inplace="aten::addcdiv_",
    out=True,
)
def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any, out: Any = None) -> Any:
    if self.dtype.num in INTEGRAL_NUMS:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
            "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to"
            "(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is "
            "just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )
    if self.dtype in LOW_FLOATS:
        return rounded(wide(self) + wide(tensor1) * value / wide(tensor2), self.dtype, out)
    fused = _core.addcdiv(self, tensor1, tensor2, value, out)
    if fused is not None:
        return fused
    if value == 1:
        quotient = np.true_divide(tensor1, tensor2)
    else:
        quotient = np.multiply(tensor1, value, dtype=self.dtype)
        if quotient.__class__ is np.ndarray and quotient.shape == np.broadcast_shapes(
            quotient.shape, np.shape(tensor2)
        ):
            np.true_divide(quotient, tensor2, quotient)
        else:
            quotient = np.true_divide(quotient, tensor2)
    return np.add(self, quotient, out)


addcdiv.derivative(
    self=lambda g: g,
    tensor1=lambda g, tensor2, value: g * conj(value / tensor2),
    tensor2=lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / (tensor2 * tensor2)),
)


@op(
    "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    pointwise=True,
    inplace="aten::lerp_.Scalar",
    expose="no",
)
def lerp_scalar(self: Any, end: Any, weight: Any, out: Any = None) -> Any:
    floats_only("lerp_kernel_scalar", self)
    _check_same_dtype(self, end, "end")
    if self.dtype in LOW_FLOATS:
        start, stop = wide(self), wide(end)
        nearer_start = abs(weight) < 0.5
        complement = np.float32(1) - np.float32(weight)
        result = start + (stop - start) * weight if nearer_start else stop - (stop - start) * complement
        return rounded(result, self.dtype, out)
    fused = _core.lerp(self, end, weight, out)
    if fused is not None:
        return fused
    step = np.subtract(end, self)
    if abs(weight) < 0.5:
        if step.__class__ is np.ndarray:
            np.multiply(step, weight, step)
        else:
            step = (step * weight).astype(self.dtype)
        return np.add(self, step, out)
    kind = self.dtype.type
    return np.subtract(end, np.multiply(step, kind(1) - kind(weight)).astype(self.dtype, copy=False), out)


def _check_same_dtype(self: np.ndarray, other: np.ndarray, name: str) -> None:
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"expected dtype {BY_NUM[self.dtype.num]._name} for `{name}` but got dtype {BY_NUM[other.dtype.num]._name}".replace(
                "float32", "float"
            ).replace("float64", "double")
        )


lerp_scalar.derivative(self=lambda g, weight: g * conj(1 - weight), end=lambda g, weight: g * conj(weight))


@op(
    "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    pointwise=True,
    inplace="aten::lerp_.Tensor",
    expose="no",
    node="LerpBackward1",
)
def lerp_tensor(self: Any, end: Any, weight: Any) -> Any:
    floats_only("lerp_kernel_tensor", self)
    _check_same_dtype(self, end, "end")
    if weight.ndim or self.dtype.kind in "cW" != weight.dtype.kind:
        _check_same_dtype(self, weight, "weight")
    weight = weight.astype(self.dtype, copy=False)
    fused = _core.lerp_by(self, end, weight)
    if fused is not None:
        return fused
    dtype = self.dtype
    if dtype in LOW_FLOATS:
        self, end, weight = wide(self), wide(end), wide(weight)
    result = where(np.abs(weight) < 0.5, self + weight * (end - self), end - (end - self) * (1 - weight))
    return result.astype(dtype, copy=False)


lerp_tensor.derivative(
    self=lambda g, weight: g * conj(one_minus(weight)),
    end=lambda g, weight: g * conj(weight),
    weight=lambda g, self, end: g * conj(end - self),
)


@function()
def lerp(input: Any, end: Any, weight: Any, *, out: Any = None) -> Any:
    """`input + weight * (end - input)`."""
    chosen = lerp_tensor if isinstance(weight, _dispatch.Tensor) else lerp_scalar
    return chosen(input, end, weight) if out is None else _dispatch.made(chosen, out, input, end, weight)


@function("lerp_", expose="method")
def lerp_inplace(input: Any, end: Any, weight: Any) -> Any:
    """In-place `lerp`."""
    return (lerp_tensor if isinstance(weight, _dispatch.Tensor) else lerp_scalar).inplace(input, end, weight)
