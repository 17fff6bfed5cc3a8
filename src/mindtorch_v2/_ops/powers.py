"""Powers, of a tensor or of a number, and squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, op
from .._dtype import INTEGRAL_NUMS, complex128, float64
from ._children import Child, boxed, cast, casts, child, common_dtype, copy_, known, tensor_of
from ._namespace import functions as F
from .pointwise import conj, mul_scalar, rounded, sub_scalar

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings


def _whole_power(base: Any, exponent: Any, dtype: np.dtype) -> Any:
    """Integer powers; with a negative exponent only the bases 1 and -1 give a result other than 0, as in C."""
    negative = np.less(exponent, 0)
    if not np.any(negative):
        return np.power(base, exponent, dtype=dtype)
    power = np.power(base, np.where(negative, 0, exponent).astype(dtype), dtype=dtype)
    odd = np.where(np.bitwise_and(exponent, 1) == 1, -1, 1)
    negative_power = np.where(np.equal(base, 1), 1, np.where(np.equal(base, -1), odd, 0))
    return np.where(negative, negative_power, power).astype(dtype)


def _real_power(base: np.ndarray, exponent: float) -> Any:
    """Real numbers to a whole power. Of negative ones, NumPy takes about 20 times as long for it as of positive ones."""
    power = np.power(np.abs(base), exponent)
    return np.copysign(power, base) if exponent % 2 == 1 else power


@op(
    "aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    pointwise=True,
    inplace="aten::pow_.Tensor_Scalar",
    expose="no",
)
def pow_tensor_scalar(self: Any, exponent: Any) -> Any:
    if self.dtype.num in INTEGRAL_NUMS and isinstance(exponent, (int, np.integer)) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    self, exponent = _dispatch.promote_number(self, exponent)
    if exponent.__class__ in (int, float):
        if exponent == 2:
            return np.multiply(self, self)
        if exponent == 0.5 and self.dtype.kind in "fV":
            return np.sqrt(self)
        if exponent == 1:
            return np.positive(self) if self.dtype.kind in "fc" else self.copy()
        if exponent == 3:
            return self * self * self
        if exponent == -1 and self.dtype.kind == "f":
            return np.reciprocal(self)
        if exponent == -0.5 and self.dtype.kind == "f":
            return np.reciprocal(np.sqrt(self))
        if exponent == -2 and self.dtype.kind == "f":
            return np.reciprocal(self * self)
        if self.dtype.kind == "f" and exponent % 1 == 0:
            return _real_power(self, exponent)
    if self.dtype.kind == "b":
        return np.logical_or(self, np.logical_not(exponent))
    if self.dtype.num in INTEGRAL_NUMS:
        return np.power(self, np.asarray(exponent).astype(self.dtype), dtype=self.dtype)
    return np.power(self, exponent)


def _pow_self_grad(g: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return F.zeros_like(self)
    power = exponent if isinstance(exponent, complex) else float(exponent)
    return g * conj(mul_scalar(self.pow(power - 1), power))


def _power_children(self: Any, exponent: Any, *, settings: Settings) -> list[Child]:
    """The dtype is asked for first; the powers 0 and 1 are not computed."""
    known(self, exponent)
    dtype = common_dtype(self, exponent, settings=settings)
    result = tensor_of(self.shape, dtype)
    rows = [child("aten::result_type.Scalar", self, exponent), cast(self, dtype)]
    if exponent == 0:
        rows.append(child("aten::fill_.Scalar", result, 1))
    if exponent == 1:
        rows.append(copy_(result, result))
    return rows


pow_tensor_scalar.children(_power_children)
pow_tensor_scalar.op.inplace.children(_power_children)
pow_tensor_scalar.derivative(self=_pow_self_grad)


@op(
    "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    promote="same",
    inplace="aten::pow_.Tensor_Tensor",
    expose="no",
    node="PowBackward1",
)
def pow_tensor_tensor(self: Any, exponent: Any, out: Any = None) -> Any:
    if self.dtype.num in INTEGRAL_NUMS:
        if self.dtype.kind == "b":
            raise _op_errors.not_implemented("pow", self)
        return rounded(_whole_power(self, exponent, self.dtype), self.dtype, out)
    return np.power(self, exponent, out)


def _pow_base_grad(g: Any, self: Any, exponent: Any) -> Any:
    slope = g * conj(exponent * self.pow(sub_scalar(exponent, 1)))
    zero = F.scalar_tensor(0, dtype=g.dtype)
    return F.where(exponent == 0.0, zero, slope)


def _pow_exponent_grad(g: Any, self: Any, exponent: Any, out: Any) -> Any:
    safe = F.logical_and(self == 0, exponent >= 0) if not exponent.dtype.is_complex else (self == 0)
    slope = conj(out * F.log(self))
    return g * F.where(safe, F.scalar_tensor(0, dtype=out.dtype), slope)


pow_tensor_tensor.derivative(self=_pow_base_grad, exponent=_pow_exponent_grad)


@op("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", expose="no", node="PowBackward2")
def pow_scalar(self: Any, exponent: Any) -> Any:
    exponent, base = _dispatch.promote_number(exponent, self)
    if exponent.dtype.num in INTEGRAL_NUMS:
        return _whole_power(np.asarray(base).astype(exponent.dtype), exponent, exponent.dtype)
    return np.power(
        base, exponent, dtype=exponent.dtype, order="C"
    )  # torch's too, whatever the exponent's layout


@pow_scalar.children
def _(self: Any, exponent: Any, *, settings: Settings) -> list[Child]:
    known(self, exponent)
    result = tensor_of(exponent.shape, common_dtype(self, exponent, settings=settings))
    inside = casts(self, exponent, settings=settings)
    return [
        child("aten::result_type.Scalar_Tensor", self, exponent),
        child("aten::pow.Tensor_Tensor_out", boxed(self), exponent, result, children=inside),
    ]


def _pow_scalar_grad(g: Any, self: Any, exponent: Any, out: Any) -> Any:
    import cmath
    import math

    if self == 0:
        return F.where(exponent >= 0, F.zeros((), dtype=out.dtype), g * (out * -math.inf))
    log = cmath.log(self) if isinstance(self, complex) else math.log(self) if self > 0 else math.nan
    return g * conj(out * log)


pow_scalar.derivative(exponent=_pow_scalar_grad)


@function("pow")
def pow_(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """`input` to the power of `exponent`."""
    if isinstance(exponent, _dispatch.Tensor):
        chosen = pow_tensor_tensor if isinstance(input, _dispatch.Tensor) else pow_scalar
    elif exponent.__class__ in _dispatch.NUMBERS:
        chosen = pow_tensor_scalar
    else:
        raise TypeError(
            f"pow(): argument 'exponent' (position 2) must be Tensor, not {type(exponent).__name__}"
        )
    return chosen(input, exponent) if out is None else _dispatch.made(chosen, out, input, exponent)


@function("__pow__", expose="method")
def _pow_operator(self: Any, exponent: Any) -> Any:
    if isinstance(exponent, _dispatch.Tensor):
        return pow_tensor_tensor(self, exponent)
    if exponent.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return pow_tensor_scalar(self, exponent)


@function("pow_", expose="method")
def pow_inplace(input: Any, exponent: Any) -> Any:
    """In-place power."""
    if isinstance(exponent, _dispatch.Tensor):
        return pow_tensor_tensor.inplace(input, exponent)
    return pow_tensor_scalar.inplace(input, exponent)


function("__ipow__", expose="method")(pow_inplace)


@function()
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """A power computed in double precision."""

    def wide(value: Any) -> Any:
        if isinstance(value, _dispatch.Tensor):
            return value.to(complex128 if value.dtype.is_complex else float64)
        return value

    return pow_(wide(input), wide(exponent), out=out)


@composite("aten::square(Tensor self) -> Tensor", expose="both", out=True)
def square(self: Any) -> Any:
    return pow_tensor_scalar(self, 2)


@composite("aten::square_(Tensor(a!) self) -> Tensor(a!)")
def square_(self: Any) -> Any:
    return pow_tensor_scalar.inplace(self, 2)


@function("__rpow__", expose="method")
def _rpow(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return pow_scalar(other, self)
