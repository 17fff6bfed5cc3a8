"""Averages of a model's weights over training (SWA, EMA), and the learning-rate scheduler for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import mindtorch_v2 as torch

from ..nn.modules.module import Module
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype  # noqa: F401  (torch has this name here)
from ._foreach import by_dtype
from ._lr_scheduler_base import LRScheduler, _format_param, _warn_get_lr_called_within_step
from .optimizer import Optimizer

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor

__all__ = [
    "AveragedModel",
    "update_bn",
    "SWALR",
    "get_ema_multi_avg_fn",
    "get_swa_multi_avg_fn",
    "get_ema_avg_fn",
    "get_swa_avg_fn",
]

PARAM_LIST: TypeAlias = "tuple[Tensor, ...] | list[Tensor]"


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """A function that updates lists of averages from lists of parameters: exponential moving average."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param_list: PARAM_LIST, current_param_list: PARAM_LIST, _: Any) -> None:
        if _is_continuous(ema_param_list[0]):
            torch._foreach_lerp_(ema_param_list, current_param_list, 1 - decay)
            return
        for average, current in zip(ema_param_list, current_param_list):
            average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """A function that updates lists of averages from lists of parameters: mean of all values so far."""

    @torch.no_grad()
    def swa_update(
        averaged_param_list: PARAM_LIST, current_param_list: PARAM_LIST, num_averaged: Any
    ) -> None:
        if _is_continuous(averaged_param_list[0]):
            torch._foreach_lerp_(averaged_param_list, current_param_list, _number(1 / (num_averaged + 1)))
            return
        for average, current in zip(averaged_param_list, current_param_list):
            average.copy_(average + (current - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """A function of an average and a parameter that returns the next exponential moving average."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """A function of an average, a parameter and the number averaged so far that returns the next mean."""

    @torch.no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's parameters at each `update_parameters`."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | torch.device | None = None,
        avg_fn: Callable[[Tensor, Tensor, Tensor | int], Tensor] | None = None,
        multi_avg_fn: Callable[[PARAM_LIST, PARAM_LIST, Tensor | int], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the model's current parameters to the average."""
        own_tensors, new_tensors = self._averaged(self.module), self._averaged(model)
        first = bool(self.n_averaged == 0)
        averages, currents = [], []
        for average, current in zip(own_tensors, new_tensors):
            current = current.detach().to(average.device)
            averages.append(average.detach())
            currents.append(current)
            if first:
                average.detach().copy_(current)
        if self.n_averaged > 0:
            self._average(averages, currents)
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers()):
                average.detach().copy_(current.detach().to(average.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        """The tensors of a model that are averaged."""
        return (
            itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()
        )

    def _average(self, averages: list[Tensor], currents: list[Tensor]) -> None:
        if self.multi_avg_fn is not None:
            for own_group, new_group in by_dtype(averages, currents):
                self.multi_avg_fn(own_group, new_group, self.n_averaged.to(own_group[0].device))
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents):
                n_averaged = self.n_averaged.to(average.device)
                average.detach().copy_(self.avg_fn(average.detach(), current, n_averaged))
        else:
            n_averaged, mean = self.n_averaged.to(averages[0].device), get_swa_avg_fn()
            for average, current in zip(averages, currents):
                average.copy_(mean(average, current, n_averaged))


def update_bn(loader: Iterable[Any], model: Module, device: int | torch.device | None = None) -> None:
    """Recompute a model's batch-norm statistics in one pass over the data."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    with torch.no_grad():
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Changes from the optimiser's learning rates to a constant `swa_lr` within `anneal_epochs`."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr: Any, swa_lr: Any, alpha: float) -> Any:
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self) -> list[float | Tensor]:
        """The learning rates of the groups for this epoch, from those of the epoch before."""
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        previous_alpha = self.anneal_func(max(0, min(1, (step - 1) / epochs)))
        alpha = self.anneal_func(max(0, min(1, step / epochs)))
        lrs = []
        for group in self.optimizer.param_groups:
            first = self._get_initial_lr(group["lr"], group["swa_lr"], previous_alpha)
            lrs.append(group["swa_lr"] * alpha + first * (1 - alpha))
        return lrs

    def _set_anneal_func(self, anneal_strategy: Literal["cos", "linear"]) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimiser and the function of the strategy."""
        left_out = ("optimizer", "anneal_func")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the attributes from `state_dict`."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
