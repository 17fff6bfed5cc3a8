"""RAdam: Adam that applies its scaling only once the variance estimate is reliable. Updates parameters in
place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
    _check_flags,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
    _view_as_real,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["RAdam", "radam"]


class RAdam(Optimizer):
    """Rectified Adam."""

    _sparse_refusal = "RAdam does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        _check_not_negative(eps, "Invalid epsilon value")
        _check_betas(betas)
        _check_not_negative(weight_decay, "Invalid weight_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(
            foreach=None, maximize=False, differentiable=False, decoupled_weight_decay=False, capturable=False
        )
        self._numbers_to_tensors("step")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": torch.tensor(0.0, dtype=_get_scalar_dtype()),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        beta1, beta2 = group["betas"]
        radam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """Update `params` and their moments in place."""
    _check_steps(state_steps)
    _check_flags(params, foreach, differentiable, capturable)
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.radam, params, grads, exp_avgs, exp_avg_sqs, state_steps, beta1=beta1, beta2=beta2, lr=lr,
                      weight_decay=weight_decay, eps=eps, maximize=maximize,
                      decoupled_weight_decay=decoupled_weight_decay)  # fmt: skip
        return
    rho_inf = 2 / (1 - beta2) - 1
    for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = -grad if maximize else grad
        if param.is_complex():
            param, grad, exp_avg, exp_avg_sq = _view_as_real(param, grad, exp_avg, exp_avg_sq)
        step += 1
        count = _get_value(step)
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction = 1 - beta2**count
        move = exp_avg / (1 - beta1**count) * lr
        rho = rho_inf - 2 * count * beta2**count / correction
        if rho > 5.0:
            root = exp_avg_sq.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            rectification = (rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)
            move = move * (correction**0.5 / root) * rectification**0.5
        param.add_(move, alpha=-1.0)
