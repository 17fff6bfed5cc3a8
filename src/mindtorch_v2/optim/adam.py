"""Adam, AdamW and AMSGrad: update parameters and their running moments in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
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

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """Adam: steps scaled by running means of the gradient and of its square."""

    _sparse_refusal = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, torch.Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        _check_lr(lr)
        _check_not_negative(lr, "Invalid learning rate")
        _check_not_negative(eps, "Invalid epsilon value")
        _check_betas(betas)
        _check_not_negative(weight_decay, "Invalid weight_decay value")
        _check_tensor_betas(betas, foreach, capturable)
        defaults = {
            "lr": lr,
            "betas": (_to_scalar(betas[0]), _to_scalar(betas[1])),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        _check_fused(self, fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(
            amsgrad=False,
            maximize=False,
            foreach=None,
            capturable=False,
            differentiable=False,
            decoupled_weight_decay=False,
            fused=None,
        )
        self._numbers_to_tensors("step")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if group["fused"]:
            _check_fused_param(param)
        dtype = _get_scalar_dtype(group["fused"])
        if group["capturable"] or group["fused"]:
            step = torch.zeros((), dtype=dtype, device=param.device)
        else:
            step = torch.tensor(0.0, dtype=dtype, device="cpu")
        state = {
            "step": step,
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        return state

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        steps = [state["step"] for state in states]
        if group["differentiable"] and any(step.requires_grad for step in steps):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        beta1, beta2 = group["betas"]
        adam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else [],
            steps,
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def _check_tensor_betas(betas: tuple[Any, Any], foreach: bool | None, capturable: bool) -> None:
    both_floats = isinstance(betas[0], float) and isinstance(betas[1], float)
    both_tensors = isinstance(betas[0], torch.Tensor) and isinstance(betas[1], torch.Tensor)
    if not (both_floats or both_tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for index in range(2 * both_tensors):
        if foreach and not capturable:
            raise ValueError(
                f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if betas[index].numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element")


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Update `params` and their moments in place."""
    _check_steps(state_steps)
    _check_flags(params, foreach, differentiable, capturable)
    if fused:
        options = {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "weight_decay": weight_decay,
            "eps": eps,
            "amsgrad": amsgrad,
        }
        lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [], state_steps)
        _foreach.fused("_fused_adamw_" if decoupled_weight_decay else "_fused_adam_", lists, grad_scale, found_inf,
                       **options, maximize=maximize)  # fmt: skip
        return
    _refuse_scale(grad_scale, found_inf)
    lr = _to_scalar(lr)
    if foreach:
        _foreach.apply_by_dtype(_foreach.adam, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [], state_steps,
                      beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize,
                      decoupled_weight_decay=decoupled_weight_decay)  # fmt: skip
        return
    for i, param in enumerate(params):
        _update(
            param,
            -grads[i] if maximize else grads[i],
            exp_avgs[i],
            exp_avg_sqs[i],
            max_exp_avg_sqs[i] if amsgrad else None,
            state_steps[i],
            beta1,
            beta2,
            lr,
            weight_decay,
            eps,
            decoupled_weight_decay,
            differentiable,
        )


def _update(
    param: Any,
    grad: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    max_exp_avg_sq: Any,
    step: Any,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: Any,
    eps: float,
    decoupled_weight_decay: bool,
    differentiable: bool,
) -> None:
    step += 1
    if weight_decay != 0:
        if decoupled_weight_decay:
            param.mul_(1 - lr * weight_decay)
        elif differentiable and isinstance(weight_decay, torch.Tensor) and weight_decay.requires_grad:
            grad = grad.addcmul_(param.clone(), weight_decay)
        else:
            grad = grad.add(param, alpha=weight_decay)
    if param.is_complex():
        grad, exp_avg, exp_avg_sq, max_exp_avg_sq, param = _view_as_real(
            grad, exp_avg, exp_avg_sq, max_exp_avg_sq, param
        )
    exp_avg.lerp_(grad, 1 - beta1)
    if differentiable and isinstance(beta2, torch.Tensor) and beta2.requires_grad:
        exp_avg_sq.lerp_(torch.square(grad), weight=1 - beta2)
    else:
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    if differentiable:
        _move_differentiably(param, exp_avg, exp_avg_sq, max_exp_avg_sq, step, beta1, beta2, lr, eps)
        return
    count = _get_value(step)
    correction1 = 1 - beta1**count
    correction2 = 1 - beta2**count
    step_size = lr / correction1
    scale = correction2**0.5
    if max_exp_avg_sq is not None:
        torch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
        exp_avg_sq = max_exp_avg_sq
    param.addcdiv_(exp_avg, (exp_avg_sq.sqrt() / scale).add_(eps), value=-step_size)


def _move_differentiably(
    param: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    max_exp_avg_sq: Any,
    step: Any,
    beta1: Any,
    beta2: Any,
    lr: Any,
    eps: float,
) -> None:
    """The end of a differentiable update: the step count stays a tensor."""
    correction1 = 1 - _power(beta1, step)
    correction2 = 1 - _power(beta2, step)
    step_size = (lr / correction1).neg()
    scale = correction2.sqrt()
    if max_exp_avg_sq is not None:
        max_exp_avg_sq.copy_(torch.maximum(max_exp_avg_sq.clone(), exp_avg_sq))
        exp_avg_sq = max_exp_avg_sq
    root = (exp_avg_sq.sqrt() / (scale * step_size)).add_(eps / step_size)
    param.addcdiv_(exp_avg.clone(), root)


def _power(beta: Any, step: Any) -> Any:
    # The backward pass of a learned beta needs its exponent, and the next step changes `step` in place.
    return beta ** (step.clone() if isinstance(beta, torch.Tensor) and beta.requires_grad else step)
