"""Dropout: a tensor and a probability in, the tensor with elements or whole features dropped out."""

from __future__ import annotations

import math
from typing import Any

from .. import _dtype
from .._dispatch import Tensor, composite, op
from ._namespace import functions as F
from .creation import _empty_like, _zeros
from .pointwise import mul_scalar
from .random_draws import bernoulli_float_

mul_scalar_ = mul_scalar.inplace

_ALPHA = 1.7580993408473766  # scale times alpha of SELU: what a dropped element is set to, negated


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def _noise(input: Any, keep: float) -> Any:
    """1 / keep where an element stays, else 0."""
    return bernoulli_float_(_empty_like(input), keep).div_(keep)


def _feature_noise(input: Any, keep: float) -> Any:
    """Ones and zeros, one for each feature map of each sample."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *[1] * (input.dim() - 2))
    return bernoulli_float_(input.new_empty(shape), keep)


def _alpha_parts(noise: Any, p: float) -> tuple[Any, Any]:
    """Factor and offset that keep mean and variance of self-normalising activations."""
    a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    moved = mul_scalar_(noise.add(-1), _ALPHA * a).add_(_ALPHA * a * p)
    return mul_scalar_(noise, a), moved


def _declare(aten_name: str, inplace_name: str, feature: bool, alpha: bool) -> tuple[Any, Any]:
    """Declare a kind of dropout and its in-place form."""
    name = aten_name.removeprefix("aten::")

    def body(input: Any, p: Any, train: Any, multiply: Any) -> Any:
        _check(p)
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
            )
        if p == 0 or not train or not input.numel():
            return input
        if p == 1:
            return multiply(input, _zeros((), dtype=input.dtype))
        if alpha:
            noise = _feature_noise(input, 1 - p) if feature else bernoulli_float_(_empty_like(input), 1 - p)
            factor, offset = _alpha_parts(noise, p)
            return multiply(input, factor).add_(offset)
        if feature:
            return multiply(input, _feature_noise(input, 1 - p).div_(1 - p))
        return multiply(input, _noise(input, 1 - p))

    @composite(f"{aten_name}(Tensor input, float p, bool train) -> Tensor", expose="function")
    def plain(input: Any, p: Any, train: Any) -> Any:
        return body(input, p, train, F.mul)

    @composite(f"{inplace_name}(Tensor(a!) self, float p, bool train) -> Tensor(a!)", expose="function")
    def inplace(self: Any, p: Any, train: Any) -> Any:
        return body(self, p, train, F.mul_)

    return plain, inplace


dropout, dropout_ = _declare("aten::dropout", "aten::dropout_", False, False)
alpha_dropout, alpha_dropout_ = _declare("aten::alpha_dropout", "aten::alpha_dropout_", False, True)
feature_dropout, feature_dropout_ = _declare("aten::feature_dropout", "aten::feature_dropout_", True, False)
feature_alpha_dropout, feature_alpha_dropout_ = _declare(
    "aten::feature_alpha_dropout", "aten::feature_alpha_dropout_", True, True
)


@op(
    "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    on="tensors",
    expose="function",
)
def native_dropout(input: Any, p: Any, train: Any) -> Any:
    if not input.numel():
        return input.clone(), F.empty_like(input, dtype=_dtype.bool_)
    if train is False:
        return input.clone(), F.ones_like(input, dtype=_dtype.bool_)
    mask = bernoulli_float_(_empty_like(input, dtype=_dtype.bool_), 1 - p)
    return input.mul(mask).mul_(_scale(p)), mask


def _scale(p: float) -> float:
    return 0.0 if p == 1 else 1.0 / (1.0 - p)


def _native_backward(g: Any, result1: Any, p: float, train: Any) -> Any:
    return native_dropout_backward(g, result1, 1.0 if train is False else _scale(p))


native_dropout.derivative(input=_native_backward)


@op("aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", on="tensors",
    expose="no")  # fmt: skip
def native_dropout_backward(grad_output: Any, mask: Any, scale: float) -> Any:
    return grad_output.mul(mask).mul(scale)


native_dropout_backward.derivative(grad_output=lambda g, mask, scale: g.mul(mask).mul(scale))
