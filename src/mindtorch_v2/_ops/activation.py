"""Activation functions, each with its backward kernel under torch's name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, op
from .._dtype import BY_NUM, FLOAT_NUMS, INTEGRAL_NUMS, LOW_FLOATS, finfo
from . import _core, _dims
from . import _erf as _erf_fast
from ._children import Child, cast, child, dtype_number, empty, narrow, tensor
from ._exp import exp, expm1, sigmoid
from ._half_precision import in_float32, run_in_float32
from ._log import log1p
from ._namespace import functions as F
from ._where import where
from .pointwise import add_scalar, mul_scalar, one_minus, one_over, sub_scalar

# ---------------------------------------------------------------------------------------------------- relu and thresholds


@op("aten::relu(Tensor self) -> Tensor", pointwise=True, inplace="aten::relu_")
def relu(self: np.ndarray, out: Any = None) -> np.ndarray:
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    fused = _core.clamp(self, 0, None, out)
    return np.maximum(self, 0, out=out) if fused is None else fused


relu.derivative(self=lambda g, out: F.threshold_backward(g, out, 0))
relu.children(lambda self: [child("aten::clamp_min", self, 0, allocates=True)])
relu.op.inplace.children(lambda self: [child("aten::clamp_min_", self, 0)])


@op(
    "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    pointwise=True,
    expose="no",
)
def threshold_backward(grad_output: np.ndarray, self: np.ndarray, threshold: Any) -> np.ndarray:
    fused = _core.threshold_backward(grad_output, self, threshold)
    if fused is not None:
        return fused
    return where(self <= threshold, grad_output.dtype.type(0), grad_output)  # NaN lets gradients through


threshold_backward.derivative(
    grad_output=lambda g, self, threshold: threshold_backward(g, self, threshold),
    self=lambda g: F.zeros_like(g),
)


def from_result(base: Any, inplace: str, node: str, **rules: Any) -> None:
    """Declare the in-place form of an op with a backward node of its own, as torch does."""
    schema = base.op.text.replace("(", ".written(", 1)
    declared = op(
        schema,
        pointwise=base.op.pointwise,
        inplace=f"{inplace}.written",
        expose="no",
        node=node,
        on=base.op.body,
    )(base.op.kernel)
    declared.derivative(**rules)
    base.inplace = declared.inplace


@op("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", pointwise=True)
def threshold(self: np.ndarray, threshold: Any, value: Any) -> np.ndarray:
    if self.dtype.kind in "bc":
        raise _op_errors.not_implemented("threshold_cpu", self)
    bound = int(threshold) if self.dtype.num in INTEGRAL_NUMS else threshold
    return where(self <= bound, np.asarray(value).astype(self.dtype), self)


threshold.derivative(self=lambda g, self, threshold: threshold_backward(g, self, threshold))
from_result(
    threshold,
    "aten::threshold_",
    "ThresholdBackward1",
    self=lambda g, self, threshold: threshold_backward(g, self, threshold),
)
_dispatch.FUNCTIONS["threshold_"] = threshold.inplace


@op("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", pointwise=True, expose="no")
def leaky_relu(self: np.ndarray, negative_slope: Any) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("leaky_relu_cpu", self)
    fused = _core.leaky_relu(self, negative_slope)
    return where(self > 0, self, self * self.dtype.type(negative_slope)) if fused is None else fused


leaky_relu.derivative(
    self=lambda g, self, negative_slope: F.leaky_relu_backward(g, self, negative_slope, False)
)
from_result(
    leaky_relu,
    "aten::leaky_relu_",
    "LeakyReluBackward1",
    self=lambda g, out, negative_slope: F.leaky_relu_backward(g, out, negative_slope, True),
)


@op(
    "aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    pointwise=True,
    expose="no",
)
def leaky_relu_backward(
    grad_output: np.ndarray, self: np.ndarray, negative_slope: Any, self_is_result: bool
) -> np.ndarray:
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported. This is caused by calling "
            "in-place forward function with a negative slope, please call out-of-place version instead. File an issue at "
            "https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward calculation with negative slope"
        )
    fused = _core.leaky_relu_backward(grad_output, self, negative_slope)
    if fused is not None:
        return fused
    return where(self > 0, grad_output, grad_output * grad_output.dtype.type(negative_slope))


leaky_relu_backward.derivative(
    grad_output=lambda g, self, negative_slope: leaky_relu_backward(g, self, negative_slope, False),
    self=lambda g: F.zeros_like(g),
)


@op(
    "aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    pointwise=True,
    inplace="aten::hardtanh_",
    expose="no",
)
def hardtanh(self: np.ndarray, min_val: Any, max_val: Any) -> np.ndarray:
    kind = self.dtype
    if kind.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind.kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    fused = _core.clamp(self, min_val, max_val, None)
    if fused is not None:
        return fused
    return np.minimum(np.maximum(self, kind.type(min_val)), kind.type(max_val))


hardtanh.derivative(self=lambda g, self, min_val, max_val: F.hardtanh_backward(g, self, min_val, max_val))


def _clamped_into_self(self: Any, low: Any, high: Any) -> Child:
    clamp = child("aten::clamp.out", self, low, high, self, children=[cast(self, dtype_number(self))])
    return child("aten::hardtanh.out", self, low, high, self, children=[clamp])


hardtanh.children(
    lambda self, low, high: [
        child("aten::empty_like", self, allocates=True),
        _clamped_into_self(self, low, high),
    ]
)
hardtanh.op.inplace.children(lambda self, low, high: [_clamped_into_self(self, low, high)])


@op(
    "aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    pointwise=True,
    expose="no",
)
def hardtanh_backward(grad_output: np.ndarray, self: np.ndarray, min_val: Any, max_val: Any) -> np.ndarray:
    fused = _core.hardtanh_backward(grad_output, self, min_val, max_val)
    if fused is not None:
        return fused
    return where((self <= min_val) | (self >= max_val), np.zeros((), grad_output.dtype), grad_output)


hardtanh_backward.derivative(
    grad_output=lambda g, self, min_val, max_val: hardtanh_backward(g, self, min_val, max_val),
    self=lambda g: F.zeros_like(g),
)


@composite("aten::relu6(Tensor self) -> Tensor", expose="no")
def relu6(self: Any) -> Any:
    return hardtanh(self, 0, 6)


@composite("aten::relu6_(Tensor(a!) self) -> Tensor(a!)", expose="no")
def relu6_(self: Any) -> Any:
    return hardtanh.inplace(self, 0, 6)


@composite("aten::prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(self: Any, weight: Any) -> Any:
    if weight.numel() != 1:
        if self.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.ndim >= 2 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if self.ndim > 1 or weight.ndim:
        weight = F.reshape(
            weight,
            [1, -1, *([1] * (self.ndim - 2))][: max(self.ndim, 1)] if self.ndim > 1 else [-1][: self.ndim],
        )
    return _prelu_kernel(self, weight)


@op("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor", pointwise=True, expose="no")
def _prelu_kernel(self: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return where(self > 0, self, weight * self)


@_prelu_kernel.backward("self", "weight")
def _(g: Any, self: Any, weight: Any, needs: Any) -> Any:
    return F._prelu_kernel_backward(g, self, weight)


@op(
    "aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    expose="no",
)
def _prelu_kernel_backward(grad_output: np.ndarray, self: np.ndarray, weight: np.ndarray) -> tuple:
    positive = self > 0
    zero = np.zeros((), grad_output.dtype)
    return where(positive, grad_output, weight * grad_output), where(positive, zero, self * grad_output)


@_prelu_kernel_backward.backward("grad_output", "self", "weight")
def _(grads: Any, grad_output: Any, self: Any, weight: Any) -> Any:
    of_input, of_weight = grads

    def where_negative(gradient: Any) -> Any:
        return F.where(F.ge(self, 0), F.zeros((), dtype=self.dtype), gradient)

    by_gradient = by_self = by_weight = None
    if of_input is not None and of_weight is not None:
        negative = of_weight * self + of_input * weight
        by_gradient = F.where(F.ge(self, 0), of_input, negative)
    elif of_input is not None:
        by_gradient = F.where(F.ge(self, 0), of_input, of_input * weight)
    elif of_weight is not None:
        by_gradient = where_negative(of_weight * self)
    if of_weight is not None:
        by_self = where_negative(of_weight * grad_output)
    if of_input is not None:
        by_weight = where_negative(of_input * grad_output)
    return by_gradient, by_self, by_weight


@op("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", pointwise=True, out=True)
def hardshrink(self: np.ndarray, lambd: Any) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("hardshrink_cpu", self)
    return where(np.abs(self) <= lambd, np.zeros((), self.dtype), self)


hardshrink.derivative(self=lambda g, self, lambd: F.hardshrink_backward(g, self, lambd))


@op(
    "aten::hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    pointwise=True,
    expose="no",
)
def hardshrink_backward(grad_out: np.ndarray, self: np.ndarray, lambd: Any) -> np.ndarray:
    return where(np.abs(self) <= lambd, np.zeros((), self.dtype), grad_out)


hardshrink_backward.derivative(
    grad_out=lambda g, self, lambd: hardshrink_backward(g, self, lambd), self=lambda g: F.zeros_like(g)
)


@op("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", pointwise=True, expose="no", out=True)
def softshrink(self: np.ndarray, lambd: Any) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("softshrink_check", self)
    if not 0 <= lambd <= 448:  # the largest number of all types; others are looked at
        _check_lambda(lambd, BY_NUM[self.dtype.num])
    return _shrunk(self, lambd)


def _check_lambda(lambd: Any, kind: Any) -> None:
    if not 0 <= lambd <= finfo(kind).max:
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(kind).max:g}] for input dtype {kind._abbr}, but found {lambd:g}"
        )


@in_float32
def _shrunk(x: np.ndarray, lambd: Any) -> np.ndarray:
    edge = x.dtype.type(lambd)
    return where(x > edge, x - edge, where(x < -edge, x + edge, x * 0))


softshrink.derivative(self=lambda g, self, lambd: F.softshrink_backward(g, self, lambd))


@op(
    "aten::softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    pointwise=True,
    expose="no",
)
def softshrink_backward(grad_output: np.ndarray, self: np.ndarray, lambd: Any) -> np.ndarray:
    return where(np.abs(self) <= lambd, np.zeros((), self.dtype), grad_output)


softshrink_backward.derivative(
    grad_output=lambda g, self, lambd: softshrink_backward(g, self, lambd), self=lambda g: F.zeros_like(g)
)


# ---------------------------------------------------------------------------------------------------- smooth ones


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
from_result(
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


from_result(
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


def _hard_logistic(x: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@op("aten::hardsigmoid(Tensor self) -> Tensor", pointwise=True, inplace="aten::hardsigmoid_", expose="no")
def hardsigmoid(self: np.ndarray) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("hardsigmoid_cpu", self)
    return run_in_float32(_hard_logistic, self)


hardsigmoid.derivative(self=lambda g, self: F.hardsigmoid_backward(g, self))


_SIXTH = np.float32(1 / 6)  # single precision for doubles too, as in torch


@op("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", pointwise=True, expose="no")
def hardsigmoid_backward(grad_output: np.ndarray, self: np.ndarray) -> np.ndarray:
    return where(
        (self > -3) & (self < 3),
        grad_output * grad_output.dtype.type(_SIXTH),
        np.zeros((), grad_output.dtype),
    )


hardsigmoid_backward.derivative(
    grad_output=lambda g, self: hardsigmoid_backward(g, self), self=lambda g: F.zeros_like(g)
)


@op("aten::hardswish(Tensor self) -> Tensor", pointwise=True, inplace="aten::hardswish_", expose="no")
def hardswish(self: np.ndarray) -> np.ndarray:
    if self.dtype.num not in FLOAT_NUMS:
        raise _op_errors.not_implemented("hardswish_cpu", self)
    fused = _core.hardswish(self)
    return run_in_float32(lambda x: x * _hard_logistic(x), self) if fused is None else fused


hardswish.derivative(self=lambda g, self: F.hardswish_backward(g, self))


@op("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", pointwise=True, expose="no")
def hardswish_backward(grad_output: np.ndarray, self: np.ndarray) -> np.ndarray:
    fused = _core.hardswish_backward(grad_output, self)
    if fused is not None:
        return fused
    kind = self.dtype.type
    return where(
        self <= -3,
        np.zeros((), self.dtype),
        where(self >= 3, grad_output, grad_output * (self / kind(3) + kind(0.5))),
    )


hardswish_backward.derivative(
    grad_output=lambda g, self: hardswish_backward(g, self),
    self=lambda g, grad_output, self: F.where(
        F.logical_and(self > -3, self < 3), g * grad_output / 3, F.zeros((), dtype=g.dtype)
    ),
)


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


@op(
    "aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor",
    expose="no",
    inplace="aten::rrelu_with_noise_",
)
def rrelu_with_noise(
    self: np.ndarray, noise: np.ndarray, lower: Any, upper: Any, training: bool, generator: Any
) -> np.ndarray:
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return where(self > 0, self, self * self.dtype.type((lower + upper) / 2))
    from .. import _random, _sampling

    source = generator or _random.default_generator
    flat, keep = self.reshape(-1), noise.reshape(-1)
    negative = np.flatnonzero(flat <= 0)
    keep[...] = 1
    low, high = (float(self.dtype.type(v)) for v in (lower, upper))
    keep[negative] = (_sampling.unit53(source, negative.size) * (high - low) + low).astype(self.dtype)
    if not np.shares_memory(keep, noise):
        noise[...] = keep.reshape(noise.shape)
    return (flat * keep).reshape(self.shape)


# The result has the input's sign, so the rule is right for the in-place form too.
rrelu_with_noise.derivative(
    self=lambda g, out, noise, lower, upper, training: rrelu_with_noise_backward(
        g, out, noise, lower, upper, training, True
    )
)


@rrelu_with_noise.children
def _(self: Any, noise: Any, lower: Any, upper: Any, training: Any, generator: Any) -> list[Child]:
    result = child("aten::empty_like", self, None, None, None, None, 0, allocates=True)
    if training is True:
        return [result]
    return [result, child("aten::leaky_relu.out", self, (lower + upper) * 0.5, self)]


@op(
    "aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
    "bool self_is_result) -> Tensor",
    expose="no",
    on="tensors",
)
def rrelu_with_noise_backward(
    grad_output: Any, self: Any, noise: Any, lower: Any, upper: Any, training: bool, self_is_result: bool
) -> Any:
    if training:
        return grad_output * noise
    return leaky_relu_backward(grad_output, self, (lower + upper) / 2, self_is_result)


rrelu_with_noise_backward.derivative(
    grad_output=lambda g, self, noise, lower, upper, training: rrelu_with_noise_backward(
        g, self, noise, lower, upper, training, True
    ),
    self=lambda self: F.zeros_like(self),
)

_RRELU = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"


@composite(f"aten::rrelu(Tensor self, {_RRELU}) -> Tensor", expose="function")
def rrelu(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    return rrelu_with_noise(self, _noise(self), lower, upper, training, generator)


def _noise(self: Any) -> Any:
    return _dispatch.OPS["empty_like"].entry(self, memory_format=_dispatch._dtype.contiguous_format)


@composite(f"aten::rrelu_(Tensor(a!) self, {_RRELU}) -> Tensor(a!)", expose="function")
def rrelu_(self: Any, lower: Any, upper: Any, training: bool, generator: Any) -> Any:
    return F.rrelu_with_noise_(self, F.empty_like(self), lower, upper, training, generator)
