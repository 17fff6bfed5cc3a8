"""Adagrad: divides steps by the root of the sum of squared gradients, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_flags,
    _check_fused,
    _check_fused_param,
    _check_lr,
    _check_not_negative,
    _check_steps,
    _get_scalar_dtype,
    _get_value,
    _refuse_scale,
    _to_scalar,
    _view_as_real,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """Adagrad; its state is created in the constructor, so that processes can share it."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        _check_not_negative(lr_decay, "Invalid lr_decay value")
        _check_not_negative(weight_decay, "Invalid weight_decay value")
        _check_not_negative(initial_accumulator_value, "Invalid initial_accumulator_value value")
        _check_not_negative(eps, "Invalid epsilon value")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self._first_state(param, param, group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(foreach=None, maximize=False, differentiable=False, fused=None)
        self._numbers_to_tensors("step")

    def share_memory(self) -> None:
        """Move the state into memory shared between processes."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        dtype = _get_scalar_dtype(group["fused"])
        if group["fused"]:
            step = torch.zeros((), dtype=dtype, device=param.device)
        else:
            step = torch.tensor(0.0, dtype=dtype)
        start = group["initial_accumulator_value"]
        if param.is_complex():
            start = complex(start, start)
        return {"step": step, "sum": torch.full_like(param, start, memory_format=torch.preserve_format)}

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        if group["fused"]:
            for param in params:
                _check_fused_param(param)
        adagrad(
            params,
            grads,
            [state["sum"] for state in states],
            [state["step"] for state in states],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            has_sparse_grad=any(grad.is_sparse for grad in grads),
            foreach=group["foreach"],
            differentiable=group["differentiable"],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update `params` and the sums of squares in place."""
    _check_steps(state_steps)
    if fused and (has_sparse_grad or has_complex):
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    _check_flags(params, foreach, differentiable)
    if fused:
        _foreach.fused("_fused_adagrad_", (params, grads, state_sums, state_steps), grad_scale, found_inf, lr=lr,
                       lr_decay=lr_decay, weight_decay=weight_decay, eps=eps, maximize=maximize)  # fmt: skip
        return
    _refuse_scale(grad_scale, found_inf)
    lr = _to_scalar(lr)
    if foreach and not has_sparse_grad:
        _foreach.apply_by_dtype(_foreach.adagrad, params, grads, state_sums, state_steps, lr=lr, weight_decay=weight_decay,
                      lr_decay=lr_decay, eps=eps, maximize=maximize)  # fmt: skip
        return
    for param, grad, total, step in zip(params, grads, state_sums, state_steps):
        step += 1
        count = _get_value(step)
        grad = -grad if maximize else grad
        if weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=weight_decay)
        step_lr = lr / (1 + (count - 1) * lr_decay)
        if grad.is_sparse:
            _update_rows(param, grad, total, step_lr, eps)
            continue
        if param.is_complex():
            grad, total, param = _view_as_real(grad, total, param)
        total.addcmul_(grad, grad, value=1)
        root = total.sqrt()
        param.addcdiv_(grad, root + eps if differentiable else root.add_(eps), value=-step_lr)


def _update_rows(param: Tensor, grad: Tensor, total: Tensor, lr: Any, eps: float) -> None:
    """Update the rows at the indices of a sparse gradient."""
    grad = grad.coalesce()
    indices, values = grad._indices(), grad._values()
    total.add_(torch.sparse_coo_tensor(indices, values.pow(2), grad.size(), check_invariants=False))
    root = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(
        torch.sparse_coo_tensor(indices, values / root, grad.size(), check_invariants=False), alpha=-lr
    )
