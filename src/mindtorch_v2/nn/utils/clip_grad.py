"""Gradient clipping: scales or clamps the gradients of parameters in place."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import mindtorch_v2 as torch

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]

_F = TypeVar("_F", bound=Callable[..., Any])


def _no_grad(func: _F) -> _F:
    """The function, run with gradients disabled."""

    @functools.wraps(func)
    def without_gradients(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return func(*args, **kwargs)

    return without_gradients  # type: ignore[return-value]


def _as_list(tensors: torch.Tensor | Iterable[torch.Tensor], warn: bool = False) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    made = list(tensors)
    if warn and not made and isinstance(tensors, types.GeneratorType):
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=_CALLER_OF_CLIP
        )
    return made


_CALLER_OF_CLIP = 4


def _groups(tensors: list[torch.Tensor]) -> list[tuple[torch.device, list[torch.Tensor]]]:
    """The tensors by device and dtype, in the order these first occur."""
    found: dict[Any, list[torch.Tensor]] = {}
    for t in tensors:
        found.setdefault((t.device, t.dtype), []).append(t)
    return [(device, group) for (device, _), group in found.items()]


def _use_foreach(group: list[torch.Tensor], device: torch.device, foreach: bool | None) -> bool:
    supported = device.type == "cpu" and not any(t.is_sparse or type(t) is not torch.Tensor for t in group)
    if foreach and device.type != "cpu":
        raise RuntimeError(f"foreach=True was passed, but can't use the foreach API on {device.type} tensors")
    return supported if foreach is None else foreach


@_no_grad
def _get_total_norm(
    tensors: torch.Tensor | Iterable[torch.Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """The norm of all tensors as if they were one vector."""
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    first_device = tensors[0].device
    norms: list[torch.Tensor] = []
    for device, group in _groups(tensors):
        if _use_foreach(group, device, foreach):
            norms.extend(torch._foreach_norm(group, norm_type))
        else:
            norms.extend(torch.linalg.vector_norm(g, norm_type) for g in group)
    total_norm = torch.linalg.vector_norm(torch.stack([norm.to(first_device) for norm in norms]), norm_type)
    if error_if_nonfinite and torch.logical_or(total_norm.isnan(), total_norm.isinf()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total_norm


@_no_grad
def _clip_grads_with_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    total_norm: torch.Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients by `max_norm / total_norm` if that is less than 1."""
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    max_norm = float(max_norm)
    if not grads:
        return
    clip_coef = max_norm / (total_norm + 1e-6)
    # Multiplying by 1 too avoids a comparison on the host, for which a device would have to synchronise.
    clip_coef_clamped = torch.clamp(clip_coef, max=1.0)
    for device, group in _groups(grads):
        factor = clip_coef_clamped.to(device)
        if _use_foreach(group, device, foreach):
            torch._foreach_mul_(group, factor)
        else:
            for g in group:
                g.mul_(factor)


@_no_grad
def clip_grad_norm_(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Scale the gradients in place to a total norm of at most `max_norm`; returns the norm before."""
    parameters = _as_list(parameters, warn=True)
    grads = [p.grad for p in parameters if p.grad is not None]
    total_norm = _get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: torch.Tensor | Iterable[torch.Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> torch.Tensor:
    """Deprecated name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        category=FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@_no_grad
def clip_grad_value_(
    parameters: torch.Tensor | Iterable[torch.Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamp every element of the gradients in place to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    for device, group in _groups(grads):
        if _use_foreach(group, device, foreach):
            torch._foreach_clamp_min_(group, -clip_value)
            torch._foreach_clamp_max_(group, clip_value)
        else:
            for g in group:
                g.clamp_(min=-clip_value, max=clip_value)
