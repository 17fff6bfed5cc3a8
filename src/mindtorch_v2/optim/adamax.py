"""Adamax: Adam with the largest gradient so far instead of the mean square. Updates parameters in place."""

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

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """Adamax."""

    _sparse_refusal = "Adamax does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
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
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(foreach=None, maximize=False, differentiable=False, capturable=False)
        self._numbers_to_tensors("step")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": torch.tensor(0.0, dtype=_get_scalar_dtype()),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_inf": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        beta1, beta2 = group["betas"]
        adamax(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_inf"] for state in states],
            [state["step"] for state in states],
            foreach=group["foreach"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
        )


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """Update `params` and their moments in place."""
    _check_steps(state_steps)
    _check_flags(params, foreach, differentiable, capturable)
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.adamax, params, grads, exp_avgs, exp_infs, state_steps, eps=eps, beta1=beta1, beta2=beta2,
                      lr=lr, weight_decay=weight_decay, maximize=maximize)  # fmt: skip
        return
    for param, grad, exp_avg, exp_inf, step in zip(params, grads, exp_avgs, exp_infs, state_steps):
        grad = -grad if maximize else grad
        step += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if param.is_complex():
            param, grad, exp_avg, exp_inf = _view_as_real(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_inf.mul_(beta2)
        if differentiable:
            both = torch.cat([exp_inf.unsqueeze(0), grad.abs().add_(eps).unsqueeze_(0)], 0)
            exp_inf.copy_(torch.amax(both, 0, keepdim=False))
        else:
            torch.maximum(exp_inf, grad.abs().add_(eps), out=exp_inf)
        correction = 1 - beta1 ** _get_value(step)
        param.addcdiv_(exp_avg, exp_inf, value=-(lr / correction))
