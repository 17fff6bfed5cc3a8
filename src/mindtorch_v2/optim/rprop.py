"""Rprop: each element's step grows while its gradient keeps its sign and shrinks when the sign changes."""

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

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Resilient back-propagation."""

    _sparse_refusal = "Rprop does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
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
        step = torch.zeros((), dtype=_get_scalar_dtype())
        prev = torch.zeros_like(param, memory_format=torch.preserve_format)
        if param.is_complex():
            size = complex(float(group["lr"]), float(group["lr"]))
        else:
            size = _to_scalar(group["lr"])
        return {"step": step, "prev": prev, "step_size": torch.full_like(grad, size)}

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        etaminus, etaplus = group["etas"]
        step_size_min, step_size_max = group["step_sizes"]
        rprop(
            params,
            grads,
            [state["prev"] for state in states],
            [state["step_size"] for state in states],
            [state["step"] for state in states],
            foreach=group["foreach"],
            capturable=group["capturable"],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            step_size_min=step_size_min,
            step_size_max=step_size_max,
            etaminus=etaminus,
            etaplus=etaplus,
        )


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Update `params`, their step sizes and last gradients in place."""
    _check_steps(state_steps)
    _check_flags(params, foreach, differentiable, capturable)
    if foreach:
        _foreach.apply_by_dtype(_foreach.rprop, params, grads, prevs, step_sizes, state_steps, step_size_min=step_size_min,
                      step_size_max=step_size_max, etaminus=etaminus, etaplus=etaplus, maximize=maximize)  # fmt: skip
        return
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps):
        grad = -grad if maximize else grad
        step += 1
        if param.is_complex():
            grad, prev, param, step_size = _view_as_real(grad, prev, param, step_size)
        factor = grad.mul(prev.clone() if differentiable else prev).sign()
        factor[factor.gt(0)] = etaplus
        factor[factor.lt(0)] = etaminus
        factor[factor.eq(0)] = 1
        step_size.mul_(factor).clamp_(step_size_min, step_size_max)
        # An element whose gradient changed its sign is not updated in this step.
        grad = grad.clone(memory_format=torch.preserve_format)
        grad[factor.eq(etaminus)] = 0
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
