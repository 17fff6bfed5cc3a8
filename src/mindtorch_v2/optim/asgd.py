"""ASGD: gradient descent with a decaying step that also keeps the average of the parameters."""

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
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
    _view_as_real,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """Averaged stochastic gradient descent; the average is `state[param]["ax"]`."""

    _sparse_refusal = "ASGD does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        _check_not_negative(weight_decay, "Invalid weight_decay value")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
        self._numbers_to_tensors("step", "eta", "mu")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        device, dtype = param.device, _get_scalar_dtype()
        return {
            "step": torch.zeros((), device=device, dtype=dtype),
            "eta": torch.as_tensor(_to_scalar(group["lr"]), device=device, dtype=dtype).clone().detach(),
            "mu": torch.ones((), device=device, dtype=dtype),
            "ax": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        asgd(
            params,
            grads,
            [state["ax"] for state in states],
            [state["mu"] for state in states],
            [state["eta"] for state in states],
            [state["step"] for state in states],
            foreach=group["foreach"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            lambd=group["lambd"],
            lr=group["lr"],
            t0=group["t0"],
            alpha=group["alpha"],
            weight_decay=group["weight_decay"],
        )


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Update `params`, their averages and the step sizes in place."""
    _check_flags(params, foreach, differentiable, capturable, "params, mus, etas,")
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.asgd, params, grads, axs, mus, etas, state_steps, lambd=lambd, lr=lr, t0=t0, alpha=alpha,
                      weight_decay=weight_decay, maximize=maximize)  # fmt: skip
        return
    for param, grad, ax, mu, eta, step in zip(params, grads, axs, mus, etas, state_steps):
        grad = -grad if maximize else grad
        if param.is_complex():
            grad, param, ax = _view_as_real(grad, param, ax)
        step += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        size = _get_value(eta)
        param.mul_(1 - lambd * size)
        param.add_(grad, alpha=-size)
        if _get_value(mu) == 1:
            ax.copy_(param)
        else:
            ax.add_(param.sub(ax).mul_(mu))
        count = _get_value(step)
        eta.copy_(torch.as_tensor(lr / ((1 + lambd * lr * count) ** alpha)))
        mu.copy_(torch.as_tensor(1 / max(1, count - t0)))
