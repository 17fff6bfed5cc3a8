"""Activation functions made of straight or quadratic pieces, each with its backward kernel under torch's name."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, op
from .._dtype import BY_NUM, FLOAT_NUMS, INTEGRAL_NUMS, finfo
from . import _core
from ._children import Child, cast, child, dtype_number
from ._half_precision import in_float32, run_in_float32
from ._inplace_nodes import declare_inplace
from ._namespace import functions as F
from ._where import where

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


@op("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", pointwise=True)
def threshold(self: np.ndarray, threshold: Any, value: Any) -> np.ndarray:
    if self.dtype.kind in "bc":
        raise _op_errors.not_implemented("threshold_cpu", self)
    bound = int(threshold) if self.dtype.num in INTEGRAL_NUMS else threshold
    return where(self <= bound, np.asarray(value).astype(self.dtype), self)


threshold.derivative(self=lambda g, self, threshold: threshold_backward(g, self, threshold))
declare_inplace(
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
declare_inplace(
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


# ---------------------------------------------------------------------------------------------------- shrinkage


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


# ---------------------------------------------------------------------------------------------------- hardsigmoid and hardswish


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
