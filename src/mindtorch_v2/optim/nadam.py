"""NAdam: Adam with Nesterov momentum. Updates parameters in place."""

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

__all__ = ["NAdam", "nadam"]


class NAdam(Optimizer):
    """Adam with Nesterov momentum."""

    _sparse_refusal = "NAdam does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        _check_not_negative(momentum_decay, "Invalid momentum_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(
            maximize=False, foreach=None, capturable=False, differentiable=False, decoupled_weight_decay=False
        )
        self._numbers_to_tensors("step", "mu_product")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": torch.tensor(0.0, dtype=_get_scalar_dtype()),
            "mu_product": torch.tensor(1.0, dtype=_get_scalar_dtype()),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        beta1, beta2 = group["betas"]
        nadam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["mu_product"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            eps=group["eps"],
        )


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Update `params`, their moments and the product of momenta in place."""
    _check_steps(state_steps)
    if not all(isinstance(product, torch.Tensor) for product in mu_products):
        raise RuntimeError("API has changed, `mu_products` argument must contain a list of singleton tensors")
    _check_flags(params, foreach, differentiable, capturable, "params, mu_products")
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.nadam, params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, beta1=beta1,
                      beta2=beta2, lr=lr, weight_decay=weight_decay, momentum_decay=momentum_decay, eps=eps,
                      maximize=maximize, decoupled_weight_decay=decoupled_weight_decay)  # fmt: skip
        return
    lists = zip(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps)
    for param, grad, exp_avg, exp_avg_sq, mu_product, step in lists:
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
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((count + 1) * momentum_decay))
        mu_product *= mu
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = exp_avg_sq.div(1 - beta2**count).sqrt()
        if differentiable:
            root = root.add(eps)
            product_next = mu_product * mu_next
            scaled_grad = grad * (-lr * (1.0 - mu) / (1.0 - mu_product))
            scaled_exp_avg = exp_avg * (-lr * mu_next / (1.0 - product_next))
            param.addcdiv_(scaled_grad, root)
            param.addcdiv_(scaled_exp_avg, root)
        else:
            product_next = _get_value(mu_product) * mu_next
            root.add_(eps)
            param.addcdiv_(grad, root, value=-lr * (1.0 - mu) / (1.0 - _get_value(mu_product)))
            param.addcdiv_(exp_avg, root, value=-lr * mu_next / (1.0 - product_next))
