"""Adafactor: stores the mean square of a matrix's gradient as a row and a column. Updates parameters in
place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _foreach
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_lr,
    _check_not_negative,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
)

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    """Adafactor, with steps relative to the size of the parameter."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr)
        _check_not_negative(lr, "Learning rate should be >= 0 but is")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            _check_not_negative(eps[0], "epsilon1 should be >= 0 but is")
        _check_not_negative(eps[1], "epsilon2 should be >= 0 but is")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        _check_not_negative(weight_decay, "weight_decay should be >= 0 but is")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._fill_groups(foreach=None)
        self._numbers_to_tensors("step")

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if grad.is_sparse:
            raise RuntimeError("Adafactor does not support sparse gradients")
        step = torch.tensor(0.0, dtype=_get_scalar_dtype())
        if grad.dim() <= 1:
            return {"step": step, "variance": torch.zeros_like(grad, memory_format=torch.preserve_format)}
        row, column = list(grad.shape), list(grad.shape)
        row[-1] = column[-2] = 1
        return {"step": step, "row_var": grad.new_zeros(row), "col_var": grad.new_zeros(column)}

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        if any(grad.is_sparse for grad in grads):
            raise RuntimeError("Adafactor does not support sparse gradients")
        eps1, eps2 = group["eps"]
        adafactor(
            params,
            grads,
            [state.get("row_var") for state in states],
            [state.get("col_var") for state in states],
            [state.get("variance") for state in states],
            [state["step"] for state in states],
            foreach=group["foreach"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            d=group["d"],
            lr=group["lr"],
            beta2_decay=group["beta2_decay"],
            weight_decay=group["weight_decay"],
            eps1=eps1,
            eps2=eps2,
            maximize=group["maximize"],
        )


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float,
    eps2: float,
    maximize: bool,
) -> None:
    """Update `params` and their mean squares in place."""
    if not all(isinstance(step, torch.Tensor) for step in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    lr = _to_scalar(lr)
    if foreach:
        for matrices in (True, False):
            indices = [index for index, grad in enumerate(grads) if (grad.dim() > 1) is matrices]
            all_lists = (params, grads, row_vars, col_vars, variances, state_steps)
            for group in _foreach.by_dtype(*[[tensors[index] for index in indices] for tensors in all_lists]):
                floor = torch.finfo(group[0][0].dtype).eps if eps1 is None else eps1
                _foreach.adafactor(*group, d=d, lr=lr, beta2_decay=beta2_decay, weight_decay=weight_decay, eps1=floor,
                                   eps2=eps2, maximize=maximize)  # fmt: skip
        return
    lists = zip(params, grads, row_vars, col_vars, variances, state_steps)
    for param, grad, row_var, col_var, variance, step in lists:
        grad = -grad if maximize else grad
        step += 1
        count = _get_value(step)
        decay = count**beta2_decay
        floor = torch.finfo(param.dtype).eps if eps1 is None else eps1
        relative_size = min(lr, 1 / count**0.5)
        size = max(eps2, param.norm(2).item() / param.numel() ** 0.5) * relative_size
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            row_var.lerp_(torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), decay)
            col_var.lerp_(torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), decay)
            update = row_var @ col_var
            update.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=floor))
        else:
            variance.lerp_(grad * grad, decay)
            update = variance.clone()
        update.clamp_(min=floor * floor).rsqrt_().mul_(grad)
        clip = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * d))
        param.add_(update, alpha=-size / clip)
