"""Process-wide switches of torch's top level: deterministic algorithms, warnings, denormals, device modules. Independent of tensors.

Every kernel here gives the same result each time, so the deterministic switches change no computation; they are only stored.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from . import _device, _dtype
from ._graph import Switches


class _State:
    deterministic = False
    deterministic_warn_only = False
    warn_always = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Request algorithms that give the same result each time. All of them do here."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            where = "argument 'mode' (position 1)" if name == "mode" else "argument 'warn_only'"
            raise TypeError(
                f"_set_deterministic_algorithms(): {where} must be bool, not {type(value).__name__}"
            )
    _State.deterministic, _State.deterministic_warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were requested."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were requested with `warn_only`."""
    return _State.deterministic_warn_only


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch by number or name: 0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see `set_deterministic_debug_mode`."""
    if not _State.deterministic:
        return 0
    return 1 if _State.deterministic_warn_only else 2


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once are given each time."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _State.warn_always = b


def is_warn_always_enabled() -> bool:
    """Whether warnings that are given once are given each time."""
    return _State.warn_always


def set_flush_denormal(mode: bool) -> bool:
    """False: NumPy's kernels keep denormal numbers, and this cannot be changed here."""
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


def is_anomaly_enabled() -> bool:
    """Whether backward passes are watched for errors and NaN."""
    return Switches.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether watched backward passes raise at the first NaN."""
    return Switches.anomaly_check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Watch backward passes (see `torch.autograd.detect_anomaly`)."""
    if bool(enabled) != Switches.anomaly:
        Switches.watch(1 if enabled else -1)
    Switches.anomaly, Switches.anomaly_check_nan = bool(enabled), bool(check_nan)


def get_device_module(device: Any = None) -> Any:
    """The module of a device: `torch.cpu`, `torch.cuda` ..."""
    if isinstance(device, _device.device):
        name = device.type
    elif isinstance(device, str):
        name = _device.device(device).type
    elif device is None:
        name = "cpu"
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    try:
        return importlib.import_module("." + name, __package__)
    except ImportError:
        raise RuntimeError(
            f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'."
        ) from None


def set_vital(*args: Any, **kwargs: Any) -> None:
    """Does nothing, with torch's warning."""
    warnings.warn("'set_vital' is deprecated, please do not call", UserWarning, stacklevel=2)


def set_default_tensor_type(t: Any, /) -> None:
    """The old way to set the default dtype: `torch.DoubleTensor` or its name."""
    from ._legacy import named

    kind = named(t) if isinstance(t, str) else t
    dtype = getattr(kind, "dtype", None)
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    _dtype.set_default_dtype(dtype)
