"""Adadelta: scales steps by the ratio of past steps to past gradients. Updates parameters in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_flags,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _get_scalar_dtype,
    _to_scalar,
    _view_as_real,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """Adadelta."""

    _sparse_refusal = "Adadelta does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_not_negative(eps, "Invalid epsilon value")
        _check_not_negative(weight_decay, "Invalid weight_decay value")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(foreach=None, maximize=False, differentiable=False, capturable=False)
        self._numbers_to_tensors("step")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": torch.zeros((), dtype=_get_scalar_dtype()),
            "square_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "acc_delta": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        adadelta(
            params,
            grads,
            [state["square_avg"] for state in states],
            [state["acc_delta"] for state in states],
            [state["step"] for state in states],
            capturable=group["capturable"],
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            lr=group["lr"],
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Update `params` and their running means in place."""
    _check_steps(state_steps)
    _check_flags(params, foreach, differentiable, capturable, supports_xla=False)
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.adadelta, params, grads, square_avgs, acc_deltas, state_steps, lr=lr, rho=rho, eps=eps,
                      weight_decay=weight_decay, maximize=maximize)  # fmt: skip
        return
    for param, grad, square_avg, acc_delta, step in zip(params, grads, square_avgs, acc_deltas, state_steps):
        step += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        is_complex = param.is_complex()
        if is_complex:
            square_avg, acc_delta, grad = _view_as_real(square_avg, acc_delta, grad)
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        if is_complex:
            delta = torch.view_as_complex(delta)
        param.add_(delta, alpha=-lr)
