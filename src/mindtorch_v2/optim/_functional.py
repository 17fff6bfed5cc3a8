"""The updates as functions of lists of tensors, collected from the optimisers' files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mindtorch_v2 as torch

from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """Update the rows of `params` and of their moments at the indices of the sparse `grads`."""
    for param, grad, exp_avg, exp_avg_sq, step in zip(params, grads, exp_avgs, exp_avg_sqs, state_steps):
        grad = (-grad if maximize else grad).coalesce()
        indices, values, size = grad._indices(), grad._values(), grad.size()
        if values.numel() == 0:
            continue
        old_avg = exp_avg.sparse_mask(grad)._values()
        new_avg = values.sub(old_avg).mul_(1 - beta1)
        exp_avg.add_(torch.sparse_coo_tensor(indices, new_avg, size, check_invariants=False))
        old_sq = exp_avg_sq.sparse_mask(grad)._values()
        new_sq = values.pow(2).sub_(old_sq).mul_(1 - beta2)
        exp_avg_sq.add_(torch.sparse_coo_tensor(indices, new_sq, size, check_invariants=False))

        new_avg.add_(old_avg)
        root = new_sq.add_(old_sq).sqrt_().add_(eps)
        step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        param.add_(
            torch.sparse_coo_tensor(indices, -step_size * new_avg.div_(root), size, check_invariants=False)
        )
