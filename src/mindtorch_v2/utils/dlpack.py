"""DLPack: exports a tensor's memory as a capsule, and imports other libraries' arrays as tensors."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

import mindtorch_v2 as torch

__all__ = ["DLDeviceType", "from_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The protocol's numbers for device types."""

    kDLCPU = 1  # noqa: N815
    kDLCUDA = 2  # noqa: N815
    kDLCUDAHost = 3  # noqa: N815
    kDLOpenCL = 4  # noqa: N815
    kDLVulkan = 7  # noqa: N815
    kDLMetal = 8  # noqa: N815
    kDLVPI = 9  # noqa: N815
    kDLROCM = 10  # noqa: N815
    kDLROCMHost = 11  # noqa: N815
    kDLExtDev = 12  # noqa: N815
    kDLCUDAManaged = 13  # noqa: N815
    kDLOneAPI = 14  # noqa: N815
    kDLWebGPU = 15  # noqa: N815
    kDLHexagon = 16  # noqa: N815
    kDLMAIA = 17  # noqa: N815


class _Exporter:
    """Wraps a bare capsule in the interface that NumPy imports."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


class _Writeable:
    """An array that NumPy imported from a capsule without a version, which cannot state that writing is
    allowed.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def to_dlpack(tensor: Any) -> Any:
    """A capsule on the tensor's memory. It can be consumed once."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type(tensor).__name__}"
        )
    return tensor.detach().__dlpack__()


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor on the memory of an array, tensor or capsule; on a copy on request, or if the memory is
    read-only.
    """
    if device is not None and torch.device(device).type != "cpu":
        raise BufferError(f"Cannot pack tensors on {torch.device(device).type}")
    if isinstance(ext_tensor, torch.Tensor):
        if ext_tensor.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if ext_tensor.is_meta:
            raise BufferError("Cannot pack tensors on meta")
        return ext_tensor.clone() if copy else ext_tensor.detach()
    if hasattr(ext_tensor, "__dlpack__"):
        array = np.from_dlpack(ext_tensor)
    elif type(ext_tensor).__name__ == "PyCapsule" and '"dltensor' in repr(ext_tensor):
        array = np.from_dlpack(_Exporter(ext_tensor))
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
            "once, so "
            "you might have already constructed a tensor from it once."
        )
    if not array.flags.writeable and not isinstance(ext_tensor, np.ndarray):
        array = np.asarray(_Writeable(array))
    return torch.from_numpy(array.copy() if copy or not array.flags.writeable else array)
