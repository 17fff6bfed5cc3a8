"""Optimiser steps in one op (`fused=True`): lists of parameters, gradients and state in, all changed in place.

Gradients are first divided by the gradient scale, if there is one. If `found_inf` is 1, nothing is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import composite, function, storage_of
from .._tensor import Tensor

_LOW = _dtype.LOW_FLOATS


def _skipped(found_inf: Any) -> bool:
    return found_inf is not None and found_inf._array.item() == 1


def _rate(lr: Any) -> float:
    return lr.item() if isinstance(lr, Tensor) else float(lr)


def _written(*lists: Any) -> None:
    for tensors in lists:
        for tensor in tensors:
            storage_of(tensor)._version += 1


def _in_float(*tensors: Any) -> list[Any]:
    """The tensors' own arrays, or float32 copies of half and bfloat16 ones."""
    arrays = [tensor._array for tensor in tensors]
    return [array.astype(np.float32) if array.dtype in _LOW else array for array in arrays]


def _put_back(tensors: Any, arrays: Any) -> None:
    for tensor, array in zip(tensors, arrays):
        if array is not tensor._array:
            tensor._array[...] = array


def _gradient(tensor: Any, scale: Any, maximize: bool) -> Any:
    """A gradient divided by its scale, which is also written back to the gradient tensor; negated to maximise."""
    array = tensor._array
    if scale is not None:
        array /= scale._array.astype(array.dtype)
    grad = array.astype(np.float32) if array.dtype in _LOW else array
    return -grad if maximize else grad


def _adam_step(tensors: Any, step: float, scale: Any, lr: Any, beta1: Any, beta2: Any, decay: Any, eps: Any, maximize: Any,
               decoupled: bool) -> None:  # fmt: skip
    param, grad, *state = tensors
    gradient = _gradient(grad, scale, maximize)
    arrays = _in_float(param, *state)
    weights, average, square = arrays[:3]
    if decay != 0:
        if decoupled:
            weights *= 1 - lr * decay
        else:
            gradient = gradient + weights * decay
    average += (gradient - average) * (1 - beta1)
    square *= beta2
    square += gradient * gradient * (1 - beta2)
    if len(arrays) > 3:
        square = np.maximum(arrays[3], square, out=arrays[3])
    root = np.sqrt(square)
    root /= (1 - beta2**step) ** 0.5
    root += eps
    np.divide(average, root, root)
    root *= lr / (1 - beta1**step)
    weights -= root
    _put_back((param, *state), arrays)


def _declare_adam(aten_name: str, decoupled: bool) -> None:
    lists = "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs"
    options = "float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None"

    def body(self: Any, grads: Any, exp_avgs: Any, exp_avg_sqs: Any, max_exp_avg_sqs: Any, state_steps: Any, lr: Any, beta1: Any,
             beta2: Any, weight_decay: Any, eps: Any, amsgrad: Any, maximize: Any, grad_scale: Any = None,
             found_inf: Any = None) -> None:  # fmt: skip
        if _skipped(found_inf):
            return
        lists = [self, grads, exp_avgs, exp_avg_sqs] + ([max_exp_avg_sqs] if amsgrad else [])
        lr = _rate(lr)
        for step, *tensors in zip(state_steps, *lists):
            _adam_step(
                tensors, step.item(), grad_scale, lr, beta1, beta2, weight_decay, eps, maximize, decoupled
            )
        _written(*lists)

    _declare(aten_name, f"{lists}, Tensor[] state_steps, *, LR lr, {options}, Tensor? found_inf=None", body)


def _declare(aten_name: str, arguments: str, body: Any) -> None:
    """Declare the two overloads of a step, with a number or a tensor as learning rate, and the function that chooses."""
    seen = _below(body)
    by_number = composite(f"{aten_name}({arguments.replace('LR', 'float')}) -> ()", expose="no")(seen)
    by_tensor = composite(f"{aten_name}.tensor_lr({arguments.replace('LR', 'Tensor')}) -> ()", expose="no")(
        seen
    )

    def step(*args: Any, lr: Any, **kwargs: Any) -> None:
        (by_tensor if isinstance(lr, Tensor) else by_number)(*args, lr=lr, **kwargs)

    function(aten_name.removeprefix("aten::"), expose="function")(step)


def _below(body: Any) -> Any:
    """The body with gradients off: the ops inside have no sequence number in a profile."""

    def seen(*arguments: Any) -> None:
        state = _dispatch.grad_state
        enabled, state.enabled = state.enabled, False
        try:
            body(*arguments)
        finally:
            state.enabled = enabled

    return seen


_declare_adam("aten::_fused_adam_", False)
_declare_adam("aten::_fused_adamw_", True)


def _sgd(self: Any, grads: Any, momentum_buffer_list: Any, weight_decay: Any, momentum: Any, lr: Any, dampening: Any,
         nesterov: Any, maximize: Any, is_first_step: Any, grad_scale: Any = None, found_inf: Any = None) -> None:  # fmt: skip
    if _skipped(found_inf):
        return
    lr = _rate(lr)
    buffers = momentum_buffer_list or [None] * len(self)
    for param, grad, buffer in zip(self, grads, buffers):
        gradient = _gradient(grad, grad_scale, maximize)
        tensors = (param,) if buffer is None else (param, buffer)
        arrays = _in_float(*tensors)
        weights = arrays[0]
        if weight_decay != 0:
            gradient = gradient + weights * weight_decay
        if buffer is not None:
            kept = arrays[1]
            if is_first_step:
                kept[...] = gradient
            else:
                kept *= momentum
                kept += gradient * (1 - dampening)
            gradient = gradient + kept * momentum if nesterov else kept
        weights -= gradient * lr
        _put_back(tensors, arrays)
    _written(self, grads, momentum_buffer_list)


_declare(
    "aten::_fused_sgd_",
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, LR lr, "
    "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None",
    _sgd,
)


def _adagrad(self: Any, grads: Any, state_sums: Any, state_steps: Any, lr: Any, lr_decay: Any, weight_decay: Any, eps: Any,
             maximize: Any, grad_scale: Any = None, found_inf: Any = None) -> None:  # fmt: skip
    if _skipped(found_inf):
        return
    lr = _rate(lr)
    for param, grad, total, step in zip(self, grads, state_sums, state_steps):
        gradient = _gradient(grad, grad_scale, maximize)
        size = lr / (1 + (step.item() - 1) * lr_decay)
        arrays = weights, squares = _in_float(param, total)
        if weight_decay != 0:
            gradient = gradient + weights * weight_decay
        squares += gradient * gradient
        root = np.sqrt(squares)
        root += eps
        np.divide(gradient, root, root)
        root *= size
        weights -= root
        _put_back((param, total), arrays)
    _written(self, grads, state_sums)


_declare(
    "aten::_fused_adagrad_",
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, LR lr, float lr_decay, "
    "float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None",
    _adagrad,
)
