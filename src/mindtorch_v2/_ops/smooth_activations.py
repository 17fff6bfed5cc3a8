"""Activation functions through exp, tanh or erf, each with its backward kernel under torch's name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, op
from .._dtype import FLOAT_NUMS, INTEGRAL_NUMS, LOW_FLOATS
from . import _core, _dims
from . import _erf as _erf_fast
from ._children import Child, child, dtype_number, empty, narrow, tensor
from ._exp import exp, expm1, sigmoid
from ._half_precision import in_float32, run_in_float32
from ._inplace_nodes import declare_inplace
from ._log import log1p
from ._namespace import functions as F
from ._where import where
from .pointwise import add_scalar, mul_scalar, one_minus, one_over, sub_scalar


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.reciprocal(np.add(np.exp(np.negative(x)), 1)) if x.dtype.kind in "cW" else sigmoid(x)


_SQRT_HALF, _INV_SQRT_2PI = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
_TANH_SCALE, _TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(x)


@op(
    "aten::gelu(Tensor self, *, str approximate='none') -> Tensor",
    out=True,
    pointwise=True,
    inplace="aten::gelu_",
    expose="no",
)
def gelu(self: np.ndarray, approximate: str) -> np.ndarray:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("GeluKernelImpl", self)
    return _gelu(self, approximate)


@in_float32
def _gelu(x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(_TANH_SCALE * (x + _TANH_CUBIC * x * x * x)))
    if x.dtype == np.float32:
        return _erf_fast.gelu(x)
    made = np.multiply(x, x.dtype.type(_SQRT_HALF))
    made = _erf(made)
    made = np.add(made, 1)
    made = np.multiply(made, x)
    return np.multiply(made, x.dtype.type(0.5))


gelu.derivative(self=lambda g, self, approximate: F.gelu_backward(g, self, approximate=approximate))


@op(
    "aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    pointwise=True,
    expose="no",
)
def gelu_backward(grad_output: np.ndarray, self: np.ndarray, approximate: str) -> np.ndarray:
    return _gelu_slope(self, grad_output, approximate)


@in_float32
def _gelu_slope(x: np.ndarray, g: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "tanh":
        inner = np.tanh(_TANH_SCALE * (x + _TANH_CUBIC * x * x * x))
        slope = 0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * _TANH_SCALE * (
            1 + 3 * _TANH_CUBIC * x * x
        )
        return g * slope
    if x.dtype == np.float32:
        return _erf_fast.gelu_slope(x, g)
    kind = x.dtype.type
    density = np.exp(np.multiply(np.multiply(x, x), kind(-0.5)))
    density = np.multiply(density, kind(_INV_SQRT_2PI))
    cdf = np.multiply(np.add(_erf(np.multiply(x, kind(_SQRT_HALF))), 1), kind(0.5))
    return np.multiply(np.add(np.multiply(density, x), cdf), g)


def _gelu_double(g: Any, grad_output: Any, self: Any, approximate: str) -> Any:
    if approximate == "tanh":
        return _gelu_tanh_double(g, grad_output, self)
    square = self * self
    density = mul_scalar(F.exp(mul_scalar(square, -0.5)), _INV_SQRT_2PI)
    return g * grad_output * (mul_scalar(density, 2) - square * density)


def _gelu_tanh_double(g: Any, grad_output: Any, self: Any) -> Any:
    inner = mul_scalar(self + mul_scalar(F.pow(self, 3), _TANH_CUBIC), _TANH_SCALE)
    tanh, sech = F.tanh(inner), one_over(F.cosh(inner))
    half = mul_scalar(self, 0.5)
    slope = one_minus(tanh * tanh)  # of tanh
    inner_slope = mul_scalar(add_scalar(mul_scalar(self, 3 * _TANH_CUBIC) * self, 1), _TANH_SCALE)
    of_half = mul_scalar(slope, 0.5) * inner_slope
    of_tanh = mul_scalar(-tanh * sech, 2) * sech * inner_slope * inner_slope * half
    inner_curve = mul_scalar(mul_scalar(self, 6 * _TANH_CUBIC), _TANH_SCALE)
    of_inner = half * slope * inner_curve
    return (mul_scalar(of_half, 2) + of_tanh + of_inner) * grad_output * g


gelu_backward.derivative(
    grad_output=lambda g, self, approximate: gelu_backward(g, self, approximate=approximate),
    self=_gelu_double,
)


@op("aten::silu(Tensor self) -> Tensor", pointwise=True, inplace="aten::silu_", expose="no")
def silu(self: np.ndarray) -> np.ndarray:
    if self.dtype.num in INTEGRAL_NUMS:
        raise _op_errors.not_implemented("silu_cpu", self)
    fused = _core.silu(self)
    return run_in_float32(lambda x: np.multiply(x, _logistic(x)), self) if fused is None else fused


silu.derivative(
    self=lambda g, self: F.silu_backward(g, self) if not _dispatch.grad_state.enabled else _silu_open(g, self)
)


def _silu_open(g: Any, self: Any) -> Any:
    logistic = F.sigmoid(self)
    slope = add_scalar(self * one_minus(logistic), 1)
    return g * logistic * slope


@op(
    "aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    pointwise=True,
    expose="no",
    nondifferentiable=True,
)
def silu_backward(grad_output: np.ndarray, self: np.ndarray) -> np.ndarray:
    def slope(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        fused = _core.silu_backward(g, x)
        if fused is not None:
            return fused
        s = _logistic(x)
        return g * s * (1 + x * (1 - s))

    return run_in_float32(slope, self, grad_output)


@op("aten::mish(Tensor self) -> Tensor", pointwise=True, inplace="aten::mish_", expose="no")
def mish(self: np.ndarray) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("mish_cpu", self)

    def kernel(x: np.ndarray) -> np.ndarray:
        fused = _core.mish(x)
        return x * _tanh_of_softplus(x) if fused is None else fused

    return run_in_float32(kernel, self)


def _tanh_of_softplus(x: np.ndarray) -> np.ndarray:
    """tanh(log(1 + exp(x))) = t / (t + 2) with t = exp(x) (exp(x) + 2); 1 from 20 on."""
    e = exp(np.asarray(np.minimum(x, x.dtype.type(20))))
    t = e * (e + 2)
    return t / (t + 2)


def _mish_open(g: Any, self: Any) -> Any:
    # torch takes log1p(exp(x)), which has no second derivative where exp overflows
    logistic, slope = F.sigmoid(self), F.tanh(F.softplus(self))
    rest = one_minus(slope * slope)
    return g * (slope + self * logistic * rest)


mish.derivative(
    self=lambda g, self: F.mish_backward(g, self) if not _dispatch.grad_state.enabled else _mish_open(g, self)
)


@op(
    "aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    pointwise=True,
    expose="no",
    nondifferentiable=True,
)
def mish_backward(grad_output: np.ndarray, self: np.ndarray) -> np.ndarray:
    def slope(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        fused = _core.mish_backward(g, x)
        if fused is not None:
            return fused
        t = _tanh_of_softplus(x)
        return g * (t + x * _logistic(x) * (1 - t * t))

    return run_in_float32(slope, self, grad_output)


@op(
    "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    pointwise=True,
    expose="no",
)
def elu(self: np.ndarray, alpha: Any, scale: Any, input_scale: Any) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("elu_cpu", self)

    def kernel(x: np.ndarray) -> np.ndarray:
        fused = _core.elu(x, alpha * scale, scale, input_scale)
        if fused is not None:
            return fused
        kind = x.dtype.type
        below, above = np.minimum(x, 0), x
        if input_scale != 1:
            below = below * kind(input_scale)
        below = expm1(np.asarray(below))
        if alpha * scale != 1:
            below = kind(alpha * scale) * below
        if scale != 1:
            above = x * kind(scale)
        return where(x < 0, below, above)

    return run_in_float32(kernel, self)


elu.derivative(
    self=lambda g, self, alpha, scale, input_scale: F.elu_backward(g, alpha, scale, input_scale, False, self)
)
declare_inplace(
    elu,
    "aten::elu_",
    "EluBackward1",
    self=lambda g, out, alpha, scale, input_scale: F.elu_backward(g, alpha, scale, input_scale, True, out),
)


@op(
    "aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
    pointwise=True,
    expose="no",
)
def elu_backward(
    grad_output: np.ndarray,
    alpha: Any,
    scale: Any,
    input_scale: Any,
    is_result: bool,
    self_or_result: np.ndarray,
) -> np.ndarray:
    x, kind = self_or_result, self_or_result.dtype.type
    if not is_result:
        fused = _core.elu_backward(grad_output, x, input_scale * alpha * scale, scale, input_scale)
        if fused is not None:
            return fused
    low = (
        kind(input_scale) * (x + kind(alpha * scale))
        if is_result
        else kind(input_scale * alpha * scale) * exp(np.asarray(np.minimum(x, 0) * kind(input_scale)))
    )
    return grad_output * where(x <= 0, low, kind(scale))


elu_backward.derivative(
    grad_output=lambda g, alpha, scale, input_scale, is_result, self_or_result: elu_backward(
        g, alpha, scale, input_scale, is_result, self_or_result
    ),
    self_or_result=lambda g, grad_output, alpha, scale, input_scale, is_result, self_or_result: _elu_double(
        g, grad_output, alpha, scale, input_scale, is_result, self_or_result
    ),
)


def _elu_double(
    g: Any, grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Any
) -> Any:
    scaled = mul_scalar(g * F.type_as(F.lt(self_or_result, 0), g), input_scale)
    if is_result:
        return scaled * grad_output
    return elu_backward(scaled, alpha, scale, input_scale, False, self_or_result) * grad_output


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@composite("aten::selu(Tensor self) -> Tensor", expose="function")
def selu(self: Any) -> Any:
    return elu(self, _SELU_ALPHA, _SELU_SCALE)


@composite("aten::selu_(Tensor(a!) self) -> Tensor(a!)", expose="function")
def selu_(self: Any) -> Any:
    return elu.inplace(self, _SELU_ALPHA, _SELU_SCALE)


@op("aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor", on="tensors", expose="function")
def celu(self: Any, alpha: Any) -> Any:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, alpha, 1.0, 1.0 / alpha)


# torch rounds alpha to single precision here
celu.derivative(
    self=lambda g, self, alpha: F.elu_backward(g, alpha, 1, 1.0 / float(np.float32(alpha)), False, self)
)


declare_inplace(
    celu,
    "aten::celu_",
    "CeluBackward1",
    self=lambda g, out, alpha: F.elu_backward(g, alpha, 1, 1.0 / float(np.float32(alpha)), True, out),
)
celu.inplace.op.kernel = lambda self, alpha: elu.inplace(self, alpha, 1.0, 1.0 / alpha)
celu_ = _dispatch.FUNCTIONS["celu_"] = celu.inplace


@op(
    "aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    pointwise=True,
    expose="no",
    out=True,
)
def softplus(self: np.ndarray, beta: Any, threshold: Any) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("softplus_cpu", self)

    def kernel(x: np.ndarray) -> np.ndarray:
        fused = _core.softplus(x, beta, threshold)
        if fused is not None:
            return fused
        scaled = x * x.dtype.type(beta)
        bounded = scaled if math.isnan(threshold) else np.minimum(scaled, threshold)
        return where(scaled > threshold, x, log1p(exp(np.asarray(bounded))) / x.dtype.type(beta))

    return run_in_float32(kernel, self)


softplus.derivative(self=lambda g, self, beta, threshold: F.softplus_backward(g, self, beta, threshold))


@op(
    "aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    pointwise=True,
    expose="no",
)
def softplus_backward(grad_output: np.ndarray, self: np.ndarray, beta: Any, threshold: Any) -> np.ndarray:
    fused = _core.softplus_backward(grad_output, self, beta, threshold)
    if fused is not None:
        return fused
    scaled = self * self.dtype.type(beta)
    return where(scaled > threshold, grad_output, grad_output * _logistic(scaled))


softplus_backward.derivative(
    grad_output=lambda g, self, beta, threshold: softplus_backward(g, self, beta, threshold),
    self=lambda g, grad_output, self, beta, threshold: _softplus_double(
        g, grad_output, self, beta, threshold
    ),
)


def _softplus_double(g: Any, grad_output: Any, self: Any, beta: Any, threshold: Any) -> Any:
    scaled = mul_scalar(self, beta)
    curved = F.type_as(F.lt(scaled, threshold), g)
    return mul_scalar(F.sigmoid_backward(g * grad_output, F.sigmoid(scaled)) * curved, beta)


@op(
    "aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    expose="no",
    node="LogSigmoidBackward0",
    outputs=1,
)
def log_sigmoid_forward(self: np.ndarray) -> tuple:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("log_sigmoid_cpu", self)
    wide = _dims.dense(self.astype(np.float32) if self.dtype in LOW_FLOATS else self)
    buffer = np.asarray(np.abs(wide))
    buffer = exp(np.negative(buffer, buffer))
    logs = np.minimum(wide, 0)
    logs -= log1p(buffer)
    return logs.astype(self.dtype, copy=False), buffer.astype(self.dtype, copy=False)


@log_sigmoid_forward.backward("self")
def _(grads: Any, self: Any, buffer: Any) -> Any:
    return (F.log_sigmoid_backward(grads[0], self, buffer),)


@op(
    "aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    pointwise=True,
    expose="no",
)
def log_sigmoid_backward(grad_output: np.ndarray, self: np.ndarray, buffer: np.ndarray) -> np.ndarray:
    negative = self < 0
    return grad_output * (where(negative, 1, 0) - where(negative, 1, -1) * (buffer / (1 + buffer))).astype(
        self.dtype
    )


log_sigmoid_backward.derivative(
    grad_output=lambda g, self, buffer: log_sigmoid_backward(g, self, buffer),
    self=lambda g, grad_output, self: _log_sigmoid_double(g, grad_output, self),
)


def _log_sigmoid_double(g: Any, grad_output: Any, self: Any) -> Any:
    logistic = F.sigmoid(self)
    return g * grad_output * sub_scalar(logistic, 1) * logistic


@composite("aten::log_sigmoid(Tensor self) -> Tensor", expose="no", out=True)
def log_sigmoid(self: Any) -> Any:
    return log_sigmoid_forward(self)[0]


@op("aten::glu(Tensor self, int dim=-1) -> Tensor", expose="no")
def glu(self: np.ndarray, dim: int) -> np.ndarray:
    first, second = _halves(self, dim)
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("glu_cpu", self)
    return run_in_float32(lambda a, b: a * _logistic(b), first, second)


@glu.children
def _(self: Any, dim: int) -> list[Child]:
    half = self.shape[dim] // 2
    return [narrow(self, dim % len(self.shape), start, half) for start in (0, half)]


def _halves(self: np.ndarray, dim: int) -> Any:
    if not self.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = _dims.one(dim, self.ndim)
    if self.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {self.shape[dim]}")
    return np.split(self, 2, dim)


glu.derivative(self=lambda g, self, dim: F.glu_backward(g, self, dim))


@op(
    "aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    expose="no",
)
def glu_backward(grad_output: np.ndarray, self: np.ndarray, dim: int) -> np.ndarray:
    first, second = _halves(self, dim)
    s = _logistic(second)
    return np.concatenate([grad_output * s, grad_output * first * s * (1 - s)], _dims.one(dim, self.ndim))


def _tensor_halves(x: Any, dim: int) -> tuple[Any, Any]:
    half = x.shape[dim] // 2
    return F.narrow(x, dim, 0, half), F.narrow(x, dim, half, half)


def _glu_gradient_double(g: Any, grad_output: Any, self: Any, dim: int) -> Any:
    slopes = glu_backward(F.ones(grad_output.shape, dtype=self.dtype), self, dim)
    first, second = _tensor_halves(g * slopes, dim)
    return first + second


def _glu_double(g: Any, grad_output: Any, self: Any, dim: int) -> Any:
    values, gates = _tensor_halves(self, dim)
    logistic = F.sigmoid(gates)
    rest = one_minus(logistic)
    slope = logistic * rest
    of_values, of_gates = _tensor_halves(g, dim)
    by_values = of_gates * grad_output * slope
    curve = slope * rest - slope * logistic
    by_gates = of_values * grad_output * slope + of_gates * grad_output * values * curve
    return F.cat([by_values, by_gates], dim)


glu_backward.derivative(grad_output=_glu_gradient_double, self=_glu_double)


@glu_backward.children
def _(grad_output: Any, self: Any, dim: int) -> Any:
    half, blank = grad_output.shape[dim], tensor((0,), self)
    halves = [narrow(self, dim % len(self.shape), start, half) for start in (0, half)]
    return [
        empty((0,), dtype_number(self), allocates=False),
        child(
            "aten::resize_as_",
            blank,
            self,
            children=[child("aten::resize_", blank, self.shape)],
            allocates=True,
        ),
        *halves * 2,
        child("aten::sigmoid.out", grad_output, grad_output),
        child("aten::mul_.Tensor", grad_output, grad_output),
    ]
