"""SparseAdam: Adam that updates only the rows at the indices of a sparse gradient. Dense gradients are
rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from . import _functional
from .optimizer import Optimizer, ParamsT, _check_betas, _check_lr, _to_scalar

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, such as an embedding's with `sparse=True`."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        _check_lr(lr)
        if not 0.0 < lr:  # noqa: SIM300 -- a wrong type is named as torch names it
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [
            [group_index, index]
            for group_index, group in enumerate(self.param_groups)
            for index, param in enumerate(group["params"])
            if param.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _first_state(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        return {
            "step": 0,
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update_group(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[dict[str, Any]]
    ) -> None:
        if not all(grad.is_sparse for grad in grads):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        for state in states:
            state["step"] += 1
        beta1, beta2 = group["betas"]
        _functional.sparse_adam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=_to_scalar(group["lr"]),
            maximize=group.get("maximize", False),
        )
