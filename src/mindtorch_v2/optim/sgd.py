"""SGD with momentum, dampening, weight decay and Nesterov momentum. Updates parameters in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_fused,
    _check_fused_param,
    _check_lr,
    _refuse_scale,
    _to_scalar,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Stochastic gradient descent."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _check_fused(self, fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        if group["fused"]:
            for param in params:
                _check_fused_param(param)
        buffers = [state.get("momentum_buffer") for state in states]
        sgd(
            params,
            grads,
            buffers,
            has_sparse_grad=any(grad.is_sparse for grad in grads),
            foreach=group["foreach"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        if group["momentum"] != 0:
            for param, state, buffer in zip(params, states, buffers):
                if "momentum_buffer" not in state and buffer is not None:
                    self.state[param]["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Update `params` in place; a buffer that is None is created from the gradient in its list."""
    if fused and has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    options: dict[str, Any] = {"weight_decay": weight_decay, "momentum": momentum, "lr": _to_scalar(lr), "dampening": dampening,
                               "nesterov": nesterov, "maximize": maximize}  # fmt: skip
    if fused:
        _foreach.fused_sgd(params, d_p_list, momentum_buffer_list, grad_scale, found_inf, **options)
        return
    _refuse_scale(grad_scale, found_inf)
    if foreach:
        indices = list(range(len(params)))
        for group in _foreach.by_dtype(params, d_p_list, momentum_buffer_list, indices) if params else ():
            _foreach.sgd(*group[:3], **options)
            for index, buffer in zip(group[3], group[2]):
                momentum_buffer_list[index] = buffer
        return
    lr = options["lr"]
    learned_lr = isinstance(lr, torch.Tensor) and lr.requires_grad
    learned_decay = isinstance(weight_decay, torch.Tensor) and weight_decay.requires_grad
    for i, (param, grad) in enumerate(zip(params, d_p_list)):
        if maximize:
            grad = -grad
        if weight_decay != 0:
            if learned_decay:
                grad = grad.addcmul_(param.clone(), weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if learned_lr:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-lr)
