"""Element by element: functions of one tensor. A plain NumPy function is one row of a table: name, kernel, derivative."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS, NP_BOOL
from . import _core, _dims
from ._children import child, empty_like, tensor
from ._erf import erf as erf_float32
from ._exp import exp as exp_float32
from ._exp import expm1 as expm1_float32
from ._exp import sigmoid as sigmoid_float32
from ._layout import laid_out
from ._log import log as log_float32
from ._log import log1p as log1p_float32
from ._namespace import functions as F
from ._where import where
from .pointwise import add_scalar, conj, mul_scalar, one_minus, sub_scalar


def declare(
    aten_name: str,
    inplace: str,
    kernel: Any,
    derivative: Any = None,
    promote: str = "float",
    aliases: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    """Declare a function of one tensor with its in-place and out= forms."""
    if derivative is None:
        options.setdefault("nondifferentiable", True)
    schema = f"{aten_name}(Tensor self) -> Tensor"
    entry = op(schema, promote=promote, inplace=inplace, out=True, **options)(kernel)
    if derivative is not None:
        entry.derivative(self=derivative)
    for alias in aliases:
        function(alias)(entry)
        function(alias + "_", expose="both")(entry.inplace)
    return entry


def _scipy(name: str, shown: str) -> Any:
    """A kernel from scipy.special, loaded at its first use; half and bfloat16 in float32."""

    @functools.cache
    def function() -> Any:
        from scipy import special

        return getattr(special, name)

    def kernel(self: np.ndarray) -> np.ndarray:
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{shown}_vml_cpu", self)
        if self.dtype in LOW_FLOATS:
            return function()(self.astype(np.float32)).astype(self.dtype)
        return function()(self)

    return kernel


def _sign(self: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if self.dtype is NP_BOOL:
        return self.copy()
    if out is None:
        fused = _core.sign(self)
        if fused is not None:
            return fused
    if self.dtype.kind == "f":
        self = np.sign(self, out)
        if not np.count_nonzero(np.isnan(self)):
            return self
    # not np.sign alone: the sign of NaN is 0
    return np.subtract(self > 0, self < 0, out, dtype=self.dtype)


def _sgn(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind not in "cW":
        return _sign(self)
    size = np.abs(self)
    return where(size == 0, self, self / where(size == 0, 1, size).astype(self.dtype))


def _neg(self: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype is NP_BOOL:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return _negated(self, out)


def _negated(self: np.ndarray, out: Any) -> np.ndarray:
    """`np.negative`; NumPy 2.4 gives wrong numbers in place for some strides, so arrays with gaps get their values from a new one."""
    if out is None or out.flags.c_contiguous:
        return np.negative(self, out)
    np.copyto(out, np.negative(self))
    return out


def _abs(self: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype is NP_BOOL:
        raise _op_errors.not_implemented("abs_cpu", self)
    if out is not None and self.dtype.kind in "cW":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return np.absolute(self, out)


def _rounded(ufunc: Any) -> Any:
    name = ufunc.__name__

    def kernel(self: np.ndarray, out: Any = None) -> np.ndarray:
        if self.dtype.num in INTEGRAL_NUMS:
            if self.dtype is NP_BOOL:
                raise _op_errors.not_implemented(f"{name}_vml_cpu", self)
            if out is None:
                return self.copy()
            np.copyto(out, self)
            return out
        if self.dtype.kind in "cW":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return ufunc(self, out)

    return kernel


def _sigmoid(self: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype in LOW_FLOATS:
        result = _sigmoid(self.astype(np.float32)).astype(self.dtype)
        if out is None:
            return result
        np.copyto(out, result)
        return out
    if self.dtype.char == "f" and (out is None or out is self):
        result = sigmoid_float32(self)
        if out is None:
            return result
        np.copyto(out, result)
        return out
    buffer = _negated(self, out)
    if buffer.__class__ is not np.ndarray:
        return (1 / (1 + np.exp(buffer))).astype(self.dtype)
    np.exp(buffer, buffer)
    np.add(buffer, 1, buffer)
    return np.reciprocal(buffer, buffer)


def _rsqrt(self: np.ndarray, out: Any = None) -> np.ndarray:
    fused = None if out is not None else _core.rsqrt(self)
    return np.reciprocal(np.sqrt(self, out), out) if fused is None else fused


def _reciprocal(self: np.ndarray, out: Any = None) -> np.ndarray:
    fused = None if out is not None else _core.reciprocal(self)
    return np.reciprocal(self, out) if fused is None else fused


def _erf(self: np.ndarray) -> np.ndarray:
    return erf_float32(self) if self.dtype == np.float32 and self.ndim else _erf_of_others(self)


_erf_of_others = _scipy("erf", "erf")


def _frac(self: np.ndarray) -> np.ndarray:
    if self.dtype.num in INTEGRAL_NUMS or self.dtype.kind in "cW":
        raise _op_errors.not_implemented("frac_cpu", self)
    return self - np.trunc(self)


def _lgamma(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("lgamma_vml_cpu", self)
    return where(np.isneginf(self), np.array(np.inf, self.dtype), _gammaln(self))


_gammaln = _scipy("gammaln", "lgamma")


def _to_degrees(name: str, factor: float) -> Any:
    def kernel(self: np.ndarray) -> np.ndarray:
        if self.dtype.kind in "cW":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return np.multiply(self, factor).astype(self.dtype)

    return kernel


def _scaled_by(factor: float) -> Any:
    return lambda g: g * factor


def _zero(g: Any) -> Any:
    return F.zeros_like(g)


# Where a rule has several factors, the right one is computed first, as in torch: its node gets the lower number.


def _rsqrt_grad(g: Any, out: Any) -> Any:
    cube = out.pow(3)
    return mul_scalar(g, -0.5) * conj(cube)


def _bell(g: Any, self: Any, factor: float) -> Any:
    return mul_scalar(F.exp(-self.pow(2)), factor) * g


def _abs_grad(g: Any, self: Any) -> Any:
    return g * F.sgn(self)


declare("aten::neg", "aten::neg_", _neg, lambda g: F.neg(g), promote="same", aliases=("negative",))
function("__neg__", expose="method")(F_NEG := _dispatch.FUNCTIONS["neg"])
declare("aten::abs", "aten::abs_", _abs, _abs_grad, promote="same", aliases=("absolute",))
function("__abs__", expose="method")(_dispatch.FUNCTIONS["abs"])
_dispatch.OPS["abs_"].children(lambda self: [child("aten::abs.out", self, self)])


declare("aten::exp", "aten::exp_", exp_float32, lambda g, out: g * conj(out))
declare("aten::exp2", "aten::exp2_", np.exp2, lambda g, out: mul_scalar(g * conj(out), math.log(2)))
declare("aten::expm1", "aten::expm1_", expm1_float32, lambda g, out: g * add_scalar(conj(out), 1))
declare("aten::log", "aten::log_", log_float32, lambda g, self: g / conj(self))
declare("aten::log2", "aten::log2_", np.log2, lambda g, self: g / mul_scalar(conj(self), math.log(2)))
declare("aten::log10", "aten::log10_", np.log10, lambda g, self: g / mul_scalar(conj(self), math.log(10)))
declare("aten::log1p", "aten::log1p_", log1p_float32, lambda g, self: g / conj(add_scalar(self, 1)))
declare("aten::sqrt", "aten::sqrt_", np.sqrt, lambda g, out: g / mul_scalar(conj(out), 2))
declare("aten::rsqrt", "aten::rsqrt_", _rsqrt, _rsqrt_grad)
declare("aten::reciprocal", "aten::reciprocal_", _reciprocal, lambda g, out: -g * conj(out * out))
declare("aten::sin", "aten::sin_", np.sin, lambda g, self: g * conj(F.cos(self)))
declare("aten::cos", "aten::cos_", np.cos, lambda g, self: g * -conj(F.sin(self)))
declare("aten::tan", "aten::tan_", np.tan, lambda g, out: g * conj(add_scalar(out.pow(2), 1)))
declare(
    "aten::asin",
    "aten::asin_",
    np.arcsin,
    lambda g, self: g * conj(F.rsqrt(add_scalar(-self * self, 1))),
    aliases=("arcsin",),
)
declare(
    "aten::acos",
    "aten::acos_",
    np.arccos,
    lambda g, self: g * -conj(F.rsqrt(add_scalar(-self * self, 1))),
    aliases=("arccos",),
)
declare(
    "aten::atan",
    "aten::atan_",
    np.arctan,
    lambda g, self: g / conj(add_scalar(self * self, 1)),
    aliases=("arctan",),
)
declare("aten::sinh", "aten::sinh_", np.sinh, lambda g, self: g * conj(F.cosh(self)))
declare("aten::cosh", "aten::cosh_", np.cosh, lambda g, self: g * conj(F.sinh(self)))
declare(
    "aten::asinh",
    "aten::asinh_",
    np.arcsinh,
    lambda g, self: g * conj(F.rsqrt(add_scalar(self.pow(2), 1))),
    aliases=("arcsinh",),
)


def _acosh_grad(g: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return g * F.rsqrt(sub_scalar(self * self, 1))
    return g * conj(F.rsqrt(add_scalar(self, 1)) * F.rsqrt(sub_scalar(self, 1)))


declare(
    "aten::acosh",
    "aten::acosh_",
    np.arccosh,
    _acosh_grad,
    aliases=("arccosh",),
)
declare(
    "aten::atanh",
    "aten::atanh_",
    np.arctanh,
    lambda g, self: mul_scalar(g, 1) / conj(one_minus(self.pow(2))),
    aliases=("arctanh",),
)
declare("aten::floor", "aten::floor_", _rounded(np.floor), _zero, promote="same")
declare("aten::ceil", "aten::ceil_", _rounded(np.ceil), _zero, promote="same")
declare("aten::trunc", "aten::trunc_", _rounded(np.trunc), _zero, promote="same", aliases=("fix",))
declare("aten::frac", "aten::frac_", _frac, lambda g: g, promote="same")
declare("aten::sign", "aten::sign_", _sign, _zero, promote="same")
declare(
    "aten::erf",
    "aten::erf_",
    _erf,
    lambda g, self: _bell(g, self, 2 / math.sqrt(math.pi)),
)
declare(
    "aten::erfc",
    "aten::erfc_",
    _scipy("erfc", "erfc"),
    lambda g, self: _bell(g, self, -2 / math.sqrt(math.pi)),
)
declare(
    "aten::erfinv",
    "aten::erfinv_",
    _scipy("erfinv", "erfinv"),
    lambda g, self: mul_scalar(F.exp(F.erfinv(self).pow(2)), 0.5 * math.sqrt(math.pi)) * g,
)
declare("aten::lgamma", "aten::lgamma_", _lgamma, lambda g, self: g * F.digamma(self))
declare(
    "aten::deg2rad",
    "aten::deg2rad_",
    _to_degrees("deg2rad", math.pi / 180),
    _scaled_by(math.pi / 180),
    node="Deg2RadBackward0",
)
declare(
    "aten::rad2deg",
    "aten::rad2deg_",
    _to_degrees("rad2deg", 180 / math.pi),
    _scaled_by(180 / math.pi),
    node="Rad2DegBackward0",
)
declare("aten::i0", "aten::i0_", _scipy("i0", "i0"), lambda g, self: g * F.special_i1(self))


@op("aten::digamma(Tensor self) -> Tensor", promote="float", inplace="aten::digamma_", out=True)
def digamma(self: np.ndarray) -> np.ndarray:
    from scipy import special

    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("digamma", self)
    wide = self.astype(np.float32) if self.dtype in LOW_FLOATS else self
    values = np.asarray(special.digamma(wide))
    poles = wide == np.floor(wide)
    poles &= wide <= 0
    if np.count_nonzero(poles):
        values[poles] = np.nan
        zeros = wide == 0
        values[zeros] = np.copysign(np.inf, -wide[zeros])
    return values.astype(self.dtype, copy=False)


digamma.derivative(self=lambda g, self: g * F.polygamma(1, self))


@op("aten::polygamma(int n, Tensor self) -> Tensor", promote="float", expose="no")
def polygamma_op(n: int, self: np.ndarray) -> np.ndarray:
    from scipy import special

    return special.polygamma(n, self).astype(self.dtype)


polygamma_op.derivative(self=lambda g, n, self: g * F.polygamma(n + 1, self))


@function(expose="function")
def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """The n-th derivative of digamma."""
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return digamma(input, out=out) if n == 0 else polygamma_op(n, input)


@function("polygamma", expose="method")
def polygamma_method(self: Any, n: int) -> Any:
    """The n-th derivative of digamma."""
    return polygamma(n, self)


@op("aten::sgn(Tensor self) -> Tensor", promote="same", inplace="aten::sgn_", out=True)
def sgn(self: np.ndarray) -> np.ndarray:
    return _sgn(self)


def _sgn_grad(g: Any, self: Any, out: Any) -> Any:
    if not self.dtype.is_complex:
        return F.zeros_like(g)
    size = F.abs(self)
    inner = g / size - (F.real(g / self) * F.sgn(self))
    return F.masked_fill(inner, size == 0, 0)


sgn.derivative(self=_sgn_grad)


@op("aten::sigmoid(Tensor self) -> Tensor", promote="float", inplace="aten::sigmoid_", out=True)
def sigmoid(self: np.ndarray, out: Any = None) -> np.ndarray:
    return _sigmoid(self, out)


sigmoid.derivative(self=lambda g, out: F.sigmoid_backward(g, out))


@op("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", pointwise=True, expose="no")
def sigmoid_backward(grad_output: np.ndarray, output: np.ndarray) -> np.ndarray:
    fused = _core.sigmoid_backward(grad_output, output)
    if fused is not None:
        return fused
    slope = np.subtract(1, output)
    slope = np.multiply(slope, output)
    return np.multiply(slope if slope.dtype.kind not in "cW" else np.conj(slope), grad_output)


sigmoid_backward.derivative(
    grad_output=lambda g, output: sigmoid_backward(g, conj(output)),
    output=lambda g, grad_output, output: grad_output * conj(g) * (-2 * conj(output) + 1),
)


@op("aten::tanh(Tensor self) -> Tensor", promote="float", inplace="aten::tanh_", out=True)
def tanh(self: np.ndarray, out: Any = None) -> np.ndarray:
    return np.tanh(self, out)


tanh.derivative(self=lambda g, out: F.tanh_backward(g, out))


@op("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor", pointwise=True, expose="no")
def tanh_backward(grad_output: np.ndarray, output: np.ndarray) -> np.ndarray:
    fused = _core.tanh_backward(grad_output, output)
    if fused is not None:
        return fused
    slope = np.multiply(output, output)
    slope = np.subtract(1, slope)
    return np.multiply(np.conj(slope) if slope.dtype.kind in "cW" else slope, grad_output)


tanh_backward.derivative(
    grad_output=lambda g, output: tanh_backward(g, conj(output)),
    output=lambda g, grad_output, output: grad_output * (mul_scalar(conj(output), -2) * conj(g)),
)


@op("aten::logit(Tensor self, float? eps=None) -> Tensor", promote="float", inplace="aten::logit_", out=True)
def logit(self: np.ndarray, eps: Any) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("logit_cpu", self)
    z = self
    if eps is not None:  # of two bounds that cross, the lower one counts below it
        z = where(self < eps, eps, where(self > 1 - eps, 1 - eps, self))
    return np.log(z / (1 - z)).astype(self.dtype)


def _logit_grad(g: Any, self: Any, eps: Any) -> Any:
    if eps is None:
        return F.where(
            F.logical_and(self >= 0.0, self <= 1.0),
            g / (self * (1.0 - self)),
            F.full((), math.nan, dtype=g.dtype),
        )
    outside = F.logical_or(self < eps, self > 1.0 - eps)
    return F.where(outside, F.zeros((), dtype=g.dtype), g / (self * (1.0 - self)))


logit.derivative(self=_logit_grad)


def sinc_kernel(self: np.ndarray) -> np.ndarray:
    wide = self.astype(np.float32) if self.dtype in LOW_FLOATS else self
    return np.sinc(wide).astype(self.dtype)


def _sinc_grad(g: Any, self: Any) -> Any:
    product = mul_scalar(self, math.pi)
    value = g * conj((product * F.cos(product) - F.sin(product)) / (mul_scalar(self, math.pi) * self))
    return F.where(self == 0.0, _dispatch.OPS["scalar_tensor"].entry(0, dtype=value.dtype), value)


declare("aten::sinc", "aten::sinc_", sinc_kernel, _sinc_grad)


@op(
    "aten::mvlgamma(Tensor self, int p) -> Tensor",
    promote="float",
    pointwise=False,
    inplace="aten::mvlgamma_",
    out=True,
)
def mvlgamma(self: np.ndarray, p: int) -> np.ndarray:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    shift = -0.5 * np.arange(p)
    sums = _lgamma(self[..., None] + shift).sum(-1) + p * (p - 1) * math.log(math.pi) / 4
    return sums.astype(self.dtype, "C")


def _mvlgamma_grad(g: Any, self: Any, p: int) -> Any:
    shift = F.arange(-p / 2 + 0.5, 0.5, 0.5, dtype=self.dtype)
    return g * F.digamma(self.unsqueeze(-1) + shift).sum(-1)


mvlgamma.derivative(self=_mvlgamma_grad)


@op("aten::round(Tensor self) -> Tensor", promote="same", inplace="aten::round_", expose="no")
def round_plain(self: np.ndarray) -> np.ndarray:
    if self.dtype is NP_BOOL or self.dtype.kind in "cW":
        raise _op_errors.not_implemented("round_vml_cpu", self)
    return self.copy() if self.dtype.num in INTEGRAL_NUMS else np.rint(self)


@op(
    "aten::round.decimals(Tensor self, *, int decimals) -> Tensor",
    promote="same",
    inplace="aten::round_.decimals",
    expose="no",
    node="RoundBackward1",
)
def round_decimals(self: np.ndarray, decimals: int) -> np.ndarray:
    if self.dtype.num in INTEGRAL_NUMS or self.dtype.kind in "cW":
        raise _op_errors.not_implemented("round_cpu", self)
    scale = 10.0 ** abs(decimals)
    return (np.rint(self * scale) / scale if decimals >= 0 else np.rint(self / scale) * scale).astype(
        self.dtype
    )


round_plain.derivative(self=_zero)
round_decimals.derivative(self=_zero)


@function("round")
def round_(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """Round half to even, optionally to some decimals."""
    rounded = round_plain(input) if decimals == 0 else round_decimals(input, decimals=decimals)
    return _dispatch.into_out(rounded, out)


@function("round_", expose="both")
def round_inplace(input: Any, *, decimals: int = 0) -> Any:
    """In-place rounding."""
    return round_plain.inplace(input) if decimals == 0 else round_decimals.inplace(input, decimals=decimals)


@op("aten::positive(Tensor(a) self) -> Tensor(a)", on="tensors", expose="no", nondifferentiable=True)
def positive_op(self: Any) -> Any:
    return self


@function("positive")
def positive(input: Any) -> Any:
    """The tensor itself."""
    if input.dtype._rank == 0:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


function("__pos__", expose="method")(positive)


@op("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", expose="no", outputs=1)
def frexp_op(self: np.ndarray) -> tuple:
    mantissa, exponent = np.frexp(self)
    return laid_out(mantissa, self), laid_out(np.asarray(exponent, np.int32), self)


frexp_op.derivative(self=lambda g, exponent: g / F.exp2(exponent.to(g.dtype)))


@function()
def frexp(input: Any, *, out: Any = None) -> Any:
    """Mantissa and exponent."""
    from .. import return_types

    if input.dtype._rank != 2:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return _dispatch.into_out(return_types.frexp(frexp_op(input)), out)


# ---------------------------------------------------------------------------------------------------- clamping


def _clamp(self: np.ndarray, low: Any, high: Any, out: Any = None) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    fused = _core.clamp(self, low, high, out)
    if fused is not None:
        return fused
    if low.__class__ is not np.ndarray and low is not None:
        self, low = _dispatch.promote_number(self, low)
    if high.__class__ is not np.ndarray and high is not None:
        self, high = _dispatch.promote_number(self, high)
    if low is not None:
        bounded = np.maximum(self, low, out=out)
        return (
            bounded
            if high is None
            else np.minimum(bounded, high, out=bounded if np.ndim(high) == 0 and bounded.ndim else None)
        )
    return np.minimum(self, high, out=out)


@op(
    "aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    pointwise=True,
    inplace="aten::clamp_",
    expose="no",
    node="ClampBackward1",
)
def clamp_number(self: np.ndarray, min: Any, max: Any) -> np.ndarray:
    return _clamp(self, min, max)


def _inside(self: Any, low: Any, high: Any) -> Any:
    if low is None:
        return self <= high
    if high is None:
        return self >= low
    return F.logical_and_(self >= low, self <= high)


def _where_inside(g: Any, self: Any, low: Any, high: Any) -> Any:
    zero = F.scalar_tensor(0.0, dtype=g.dtype)
    return F.where(_inside(self, low, high), g, zero)


clamp_number.derivative(self=lambda g, self, min, max: _where_inside(g, self, min, max))


@op(
    "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    pointwise=True,
    inplace="aten::clamp_.Tensor",
    expose="no",
    node="ClampBackward0",
)
def clamp_tensor(self: np.ndarray, min: Any, max: Any) -> np.ndarray:
    operands = [x for x in (self, min, max) if x is not None]
    promoted = _dispatch.promote_all(*operands)
    low = promoted[1] if min is not None else None
    high = promoted[-1] if max is not None else None
    return _clamp(promoted[0], low, high)


clamp_tensor.derivative(
    self=lambda g, self, min, max: F.where(_inside(self, min, max), g, 0),
    min=lambda g, self, min, max: F.where(
        (self < min) if max is None else F.logical_and(self < min, min < max), g, 0
    ),
    max=lambda g, self, min, max: F.where(
        (self > max) if min is None else F.logical_or(self > max, max < min), g, 0
    ),
)


def _pick_clamp(low: Any, high: Any) -> Any:
    for name, bound in (("min", low), ("max", high)):
        if (
            bound is not None
            and bound.__class__ not in _dispatch.NUMBERS
            and not isinstance(bound, _dispatch.Tensor)
        ):
            raise TypeError(
                f"clamp(): argument '{name}' must be Number or Tensor, not {type(bound).__name__}"
            )
    tensors = isinstance(low, _dispatch.Tensor) or isinstance(high, _dispatch.Tensor)
    if not tensors:
        return clamp_number, low, high

    def as_tensor(bound: Any) -> Any:
        return bound if bound is None or isinstance(bound, _dispatch.Tensor) else F.tensor(bound)

    return clamp_tensor, as_tensor(low), as_tensor(high)


@function()
def clamp(input: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Every element brought into [min, max]."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    chosen, low, high = _pick_clamp(min, max)
    return chosen(input, low, high) if out is None else _dispatch.made(chosen, out, input, low, high)


@function(expose="both")
def clamp_(input: Any, min: Any = None, max: Any = None) -> Any:
    """In-place clamp."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    chosen, low, high = _pick_clamp(min, max)
    return chosen.inplace(input, low, high)


function("clip")(clamp)
function("clip_", expose="both")(clamp_)


def _one_sided(aten_name: str, inplace: str, ufunc: Any) -> None:
    name = aten_name.removeprefix("aten::")
    side = name[-3:]

    @op(
        f"{aten_name}(Tensor self, Scalar {side}) -> Tensor",
        pointwise=True,
        inplace=inplace,
        expose="no",
        node=None,
    )
    def by_number(self: np.ndarray, bound: Any, out: Any = None) -> np.ndarray:
        if self.dtype.kind in "cW":
            raise NotImplementedError("clamp is not supported for complex types")
        low, high = (bound, None) if side == "min" else (None, bound)
        fused = _core.clamp(self, low, high, out)
        if fused is not None:
            return fused
        promoted, number = _dispatch.promote_number(self, bound)
        if promoted.dtype.kind == "b":
            raise _op_errors.not_implemented(f"{name}_scalar_cpu", promoted)
        if out is not None and promoted is not self:
            source, wanted = (BY_NUM[a.dtype.num]._abbr for a in (promoted, self))
            raise RuntimeError(f"result type {source} can't be cast to the desired output type {wanted}")
        return ufunc(promoted, number, out=out)

    if side == "min":
        by_number.derivative(self=lambda g, self, min: _where_inside(g, self, min, None))
    else:
        by_number.derivative(self=lambda g, self, max: _where_inside(g, self, None, max))

    @op(
        f"{aten_name}.Tensor(Tensor self, Tensor {side}) -> Tensor",
        inplace=f"{inplace}.Tensor",
        expose="no",
        promote="same",
        node=f"Clamp{side.title()}Backward1",
    )
    def by_tensor(self: np.ndarray, bound: Any, out: Any = None) -> np.ndarray:
        if self.dtype.kind in "cW":
            raise NotImplementedError(f"{name} is not supported for complex types")
        return ufunc(self, bound, out=out)

    def masked(g: Any, mask: Any) -> Any:
        return F.where(mask, g, F.scalar_tensor(0.0, dtype=g.dtype))

    if side == "min":
        by_tensor.derivative(
            self=lambda g, self, min: masked(g, self >= min), min=lambda g, self, min: masked(g, self < min)
        )
    else:
        by_tensor.derivative(
            self=lambda g, self, max: masked(g, self <= max), max=lambda g, self, max: masked(g, self > max)
        )

    def front(input: Any, bound: Any, *, out: Any = None) -> Any:
        chosen = by_tensor if isinstance(bound, _dispatch.Tensor) else by_number
        return chosen(input, bound) if out is None else _dispatch.made(chosen, out, input, bound)

    def front_inplace(input: Any, bound: Any) -> Any:
        return (by_tensor if isinstance(bound, _dispatch.Tensor) else by_number).inplace(input, bound)

    def named(inner: Any, inplace: bool) -> Any:
        # the public parameter is called min or max
        if side == "min":

            def call(input: Any, min: Any, **kwargs: Any) -> Any:
                return inner(input, min, **kwargs)
        else:

            def call(input: Any, max: Any, **kwargs: Any) -> Any:
                return inner(input, max, **kwargs)

        call.__name__ = name + ("_" if inplace else "")
        return call

    function(name)(named(front, False))
    function(name + "_", expose="both")(named(front_inplace, True))


_one_sided("aten::clamp_min", "aten::clamp_min_", np.maximum)
_one_sided("aten::clamp_max", "aten::clamp_max_", np.minimum)


@op(
    "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    pointwise=True,
    inplace="aten::nan_to_num_",
    out=True,
)
def nan_to_num(self: np.ndarray, nan: Any, posinf: Any, neginf: Any) -> np.ndarray:
    return nan_to_num_kernel(self, nan, posinf, neginf)


def nan_to_num_kernel(self: np.ndarray, nan: Any, posinf: Any, neginf: Any) -> np.ndarray:
    if self.dtype.num in INTEGRAL_NUMS:
        return self.copy()
    if self.dtype.kind in "cW":
        replaced = np.empty(self.shape, self.dtype)
        replaced.real, replaced.imag = (
            nan_to_num_kernel(part, nan, posinf, neginf) for part in (self.real, self.imag)
        )
        return replaced
    import ml_dtypes

    info = ml_dtypes.finfo(self.dtype)
    replaced = self.copy()
    replaced[np.isnan(self)] = 0.0 if nan is None else nan
    replaced[np.isposinf(self)] = info.max if posinf is None else posinf
    replaced[np.isneginf(self)] = info.min if neginf is None else neginf
    return replaced


nan_to_num.inplace.children(
    lambda self, nan, posinf, neginf: [child("aten::nan_to_num.out", self, nan, posinf, neginf, self)]
)
nan_to_num.derivative(self=lambda g, self: g * F.isfinite(self))


# ---------------------------------------------------------------------------------------------------- complex


# torch's conjugate is lazy and shares its input's memory: the copy made here does not count as an allocation
@op("aten::_conj(Tensor(a) self) -> Tensor(a)", expose="no", node="ConjBackward0")
def conj_op(self: np.ndarray) -> np.ndarray:
    return np.conjugate(self)


conj_op.derivative(self=lambda g: F.conj(g))


@function("conj")
def conj_function(input: Any) -> Any:
    """The complex conjugate; a real tensor is returned as it is."""
    return conj_op(input) if input._array.dtype.kind in "cW" else input


@op(
    "aten::_conj_physical(Tensor self) -> Tensor",
    pointwise=True,
    expose="no",
    node="ConjPhysicalBackward0",
)
def conjugate(self: np.ndarray) -> np.ndarray:
    return self.copy() if self.dtype.kind not in "cW" else np.conjugate(self)


@composite("aten::conj_physical(Tensor self) -> Tensor", out=True)
def conj_physical(self: Any) -> Any:
    return conjugate(self) if self.is_complex() else self


_conj_physical_inplace = op(
    conj_physical.op.text,
    inplace="aten::conj_physical_",
    listed=False,
    node="ConjPhysicalBackward1",
)(conjugate.op.kernel)
for _op in (conjugate, _conj_physical_inplace):
    _op.derivative(self=lambda g: F.conj(g))
conjugate.children(
    lambda self: [empty_like(self), child("aten::conj_physical.out", self, tensor(self.shape, self))]
)


# conjugates and negatives are never lazy here
@composite("aten::resolve_conj(Tensor(a) self) -> Tensor(a)")
def resolve_conj(self: Any) -> Any:
    return self


@composite("aten::resolve_neg(Tensor(a) self) -> Tensor(a)")
def resolve_neg(self: Any) -> Any:
    return self


@op("aten::angle(Tensor self) -> Tensor", promote="float", out=True, pointwise=False)
def angle(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind == "W":
        raise _op_errors.not_implemented("angle_cpu", self)
    if self.dtype.kind == "c":
        return _dims.dense(np.angle(self))
    angles = where(np.isnan(self), self, where(self < 0, math.pi, 0)).astype(self.dtype)
    return laid_out(angles, self)


def _angle_grad(g: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return F.zeros_like(g)
    size = F.abs(self)
    safe = F.where(size == 0, F.zeros((), dtype=g.dtype), g / size)
    return F.complex(F.zeros_like(safe), safe) * F.sgn(self)


angle.derivative(self=_angle_grad)
