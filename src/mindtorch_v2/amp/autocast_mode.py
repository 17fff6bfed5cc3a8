"""The autocast context and its helpers for custom autograd functions. The dispatcher does the casting."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .. import _autocast

__all__ = ["autocast_decorator", "autocast", "is_autocast_available", "custom_fwd", "custom_bwd"]


def is_autocast_available(device_type: str) -> bool:
    """Whether torch has autocast for a device type; in this package only `cpu` computes."""
    known = _autocast.DEFAULT_DTYPES
    return device_type in known or torch.device(device_type).type in known


def autocast_decorator(autocast_instance: autocast, func: Callable) -> Callable:
    """`func`, run inside `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """Context manager or decorator: run matrix products in lower precision.

    On `cpu` the listed ops are cast. Contexts for other devices have no effect on the CPU, as in torch.
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = _autocast.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        if device_type == "privateuseone":
            raise RuntimeError("User specified an unsupported autocast device_type 'privateuseone'")
        if cache_enabled is None:
            cache_enabled = _autocast.is_autocast_cache_enabled()
        self._cache_enabled = cache_enabled
        if enabled and device_type == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and device_type not in ("cuda", "xla"):
            enabled = self._check_dtype(device_type)
        self._enabled = enabled
        self._before: list[tuple[bool, Any, bool]] = []

    def _check_dtype(self, device_type: str) -> bool:
        if self.fast_dtype in (torch.bfloat16, torch.float16):
            return True
        name = device_type.upper()
        warnings.warn(
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self) -> autocast:
        self._before.append(
            (
                _autocast.is_autocast_enabled(self.device),
                _autocast.get_autocast_dtype(self.device),
                _autocast.is_autocast_cache_enabled(),
            )
        )
        _autocast.set_autocast_enabled(self.device, bool(self._enabled))
        _autocast.set_autocast_dtype(self.device, self.fast_dtype)
        _autocast.set_autocast_cache_enabled(self._cache_enabled)
        _autocast.autocast_increment_nesting()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if _autocast.autocast_decrement_nesting() == 0:
            _autocast.clear_autocast_cache()
        enabled, dtype, cache_enabled = self._before.pop()
        _autocast.set_autocast_enabled(self.device, enabled)
        _autocast.set_autocast_dtype(self.device, dtype)
        _autocast.set_autocast_cache_enabled(cache_enabled)

    def __call__(self, func: Callable) -> Callable:
        return autocast_decorator(self, func)


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """`value` with its float tensors on `device_type`, nested ones too, cast to `dtype`; float64 stays."""
    if isinstance(value, torch.Tensor):
        eligible = (
            value.is_floating_point()
            and value.device.type == device_type
            and value.dtype is not torch.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, device_type, dtype) for item in value)
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorate `forward` of an autograd Function: its autocast state is saved for `backward`. With
    `cast_inputs`, float tensors are cast to that dtype under autocast and `forward` runs with autocast off.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = _autocast.get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = _autocast.is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        on = _autocast.is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = False
        if not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Any:
    """Decorate `backward` of an autograd Function: it runs with the autocast state of `forward`."""
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
