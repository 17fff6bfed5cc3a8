"""Devices: `torch.device` objects and the default device. This library computes on `cpu`; `meta` keeps shapes only."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["device"]

_KINDS = (
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "privateuseone",
)


class _State(threading.local):
    stack: tuple[device, ...] = ()
    default: device | None = None


_state = _State()


class device:
    """Where a tensor lives. As a context it is the default device of factory functions inside."""

    __module__ = "mindtorch_v2"
    __slots__ = ("type", "index", "_entered")
    type: str
    index: int | None

    def __new__(cls, type: Any = None, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        self = object.__new__(cls)
        self._entered = []
        if isinstance(type, int) and index is None:
            self.type, self.index = "cuda", type
            return self
        if not isinstance(type, str):
            raise TypeError(
                f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}"
            )
        kind, colon, number = type.partition(":")
        if kind not in _KINDS:
            raise RuntimeError(
                "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
                f"mps, meta, hpu, mtia, privateuseone device type at start of device string: {kind}"
            )
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        self.type, self.index = kind, index
        return self

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return (device, (self.type,) if self.index is None else (self.type, self.index))

    def __deepcopy__(self, memo: object) -> device:
        return self

    def __enter__(self) -> device:
        self._entered.append(_state.default)
        _state.default = self
        return self

    def __exit__(self, *exc: object) -> None:
        _state.default = self._entered.pop()

    def __call__(self, func: Any) -> Any:
        import functools

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with device(str(self)):
                return func(*args, **kwargs)

        return inside


CPU = device("cpu")
META = device("meta")


def set_default_device(device: Any) -> None:
    """Set the device on which factory functions make tensors."""
    _state.default = None if device is None else resolve(device)


def get_default_device() -> device:
    """The device on which factory functions make tensors."""
    return _state.default or CPU


def resolve(where: Any) -> device:
    """The `device` meant by None (the default), a string, an index or a device; raises for devices other than cpu and meta."""
    if where is None:
        where = _state.default or CPU
    resolved = where if isinstance(where, device) else device(where)
    if resolved.type == "cpu":
        return CPU
    if resolved.type == "meta":
        return META
    if resolved.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled")
    raise RuntimeError(f"this library computes on 'cpu' and 'meta' devices only, got device '{resolved}'")
