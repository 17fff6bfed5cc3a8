"""softmax and log_softmax, and their gradients, in few passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _op_errors
from .._dispatch import composite, function, op
from .._dtype import FLOAT_NUMS, LOW_FLOATS
from . import _core, _dims, _lanes
from ._exp import exp
from ._namespace import functions as F
from .copies import _to as to_dtype_layout


def _prepare(self: np.ndarray, dim: int, name: str) -> tuple[np.ndarray, int]:
    dim = _dims.one(dim, self.ndim)
    if self.dtype.num not in FLOAT_NUMS:
        where = "lastdim_" if dim >= self.ndim - 1 else ""
        raise _op_errors.not_implemented(f"{name}_{where}kernel_impl", self)
    return (self.astype(np.float32) if self.dtype in LOW_FLOATS else self), dim


def _finish(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    return result if result.dtype is like.dtype else result.astype(like.dtype)


@op(
    "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    expose="function",
    node="SoftmaxBackward0",
)
def _softmax(self: np.ndarray, dim: int, half_to_float: bool) -> np.ndarray:
    wide, dim = _prepare(self, dim, "softmax")
    if not self.ndim:
        return np.where(np.isfinite(wide), 1, np.nan).astype(self.dtype)
    if not self.size:
        return self.copy()
    fused = _core.softmax(self) if dim == self.ndim - 1 else None
    if fused is not None:
        return fused
    probabilities = np.subtract(wide, np.maximum.reduce(wide, axis=dim, keepdims=True), order="C")
    probabilities = exp(probabilities)
    np.true_divide(probabilities, _lanes.along(probabilities, dim), probabilities)
    return _finish(probabilities, self)


_softmax.derivative(self=lambda g, out, dim, self_dtype: F._softmax_backward_data(g, out, dim, self_dtype))


@op(
    "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    expose="no",
)
def _softmax_backward_data(
    grad_output: np.ndarray, output: np.ndarray, dim: int, input_dtype: Any
) -> np.ndarray:
    dim = _dims.one(dim, output.ndim)
    if not output.ndim:
        return np.zeros((), output.dtype)
    fused = _core.softmax_backward(grad_output, output) if dim == output.ndim - 1 else None
    if fused is not None:
        return fused
    wide = output.astype(np.float32) if output.dtype in LOW_FLOATS else output
    gradient = np.multiply(grad_output, wide)
    total = _lanes.along(gradient, dim)
    np.subtract(gradient, wide * total, gradient)
    return _finish(gradient, output)


_softmax_backward_data.derivative(
    grad_output=lambda g, output, dim, input_dtype: _softmax_backward_data(
        F.to(g, output.dtype), output, dim, input_dtype
    ),
    output=lambda g, grad_output, output, dim: _softmax_double(
        F.to(g, output.dtype), grad_output, output, dim
    ),
)


def _softmax_double(g: Any, grad_output: Any, output: Any, dim: int) -> Any:
    second = g * grad_output - (output * g).sum(dim, True) * grad_output
    return F.to(second - g * (output * grad_output).sum(dim, True), output.dtype)


@op(
    "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    expose="function",
    node="LogSoftmaxBackward0",
)
def _log_softmax(self: np.ndarray, dim: int, half_to_float: bool) -> np.ndarray:
    wide, dim = _prepare(self, dim, "log_softmax")
    if not self.ndim:
        return np.where(np.isfinite(wide), 0, np.nan).astype(self.dtype)
    if not self.size:
        return self.copy()
    fused = _core.log_softmax(self) if dim == self.ndim - 1 else None
    if fused is not None:
        return fused
    logs = np.subtract(wide, np.maximum.reduce(wide, axis=dim, keepdims=True), order="C")
    np.subtract(logs, np.log(_lanes.along(exp(logs), dim)), logs)
    return _finish(logs, self)


_log_softmax.derivative(
    self=lambda g, out, dim, self_dtype: F._log_softmax_backward_data(g, out, dim, self_dtype)
)


@op(
    "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    expose="no",
)
def _log_softmax_backward_data(
    grad_output: np.ndarray, output: np.ndarray, dim: int, input_dtype: Any
) -> np.ndarray:
    dim = _dims.one(dim, output.ndim)
    if not output.ndim:
        return np.zeros((), output.dtype)
    fused = _core.log_softmax_backward(grad_output, output) if dim == output.ndim - 1 else None
    if fused is not None:
        return fused
    wide = output.astype(np.float32) if output.dtype in LOW_FLOATS else output
    gradient = np.asarray(exp(wide))
    np.multiply(gradient, _lanes.along(grad_output, dim), gradient)
    np.subtract(grad_output, gradient, gradient)
    return _finish(gradient, output)


_log_softmax_backward_data.derivative(
    grad_output=lambda g, output, dim: (
        F.to(g, output.dtype) - (F.to(g, output.dtype) * F.exp(output)).sum(dim, True)
    ),
    output=lambda g, grad_output, output, dim: F.to(
        -grad_output.sum(dim, True) * F.exp(output) * F.to(g, output.dtype), output.dtype
    ),
)


def _public(aten_name: str, inner: Any) -> Any:
    name = aten_name.removeprefix("aten::")

    @composite(f"{aten_name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", expose="no")
    def public(self: Any, dim: int, dtype: Any) -> Any:
        if dtype is not None:
            self = to_dtype_layout(self, dtype=dtype)
        return inner(self, dim, False)

    def front(input: Any, dim: Any = None, dtype: Any = None, *, out: Any = None, **aliases: Any) -> Any:
        if aliases:
            return _dispatch.unalias(front, aliases, input=input, dim=dim, dtype=dtype, out=out)
        if dim is None:
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        return public(input, dim, dtype) if out is None else _dispatch.made(public, out, input, dim, dtype)

    front.__name__ = name
    front.__doc__ = f"{name} along a dimension."
    function(name)(front)
    return public


softmax_int = _public("aten::softmax", _softmax)
log_softmax_int = _public("aten::log_softmax", _log_softmax)
