"""Which devices have multi-tensor ops, and tensors grouped for them: lists of tensors in, lists by device and dtype out."""

from __future__ import annotations

from typing import Any, TypeAlias

import mindtorch_v2 as torch

TensorListList: TypeAlias = list[list[torch.Tensor | None]]
Indices: TypeAlias = list[int]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The device types of torch whose multi-tensor ops run as one kernel. None of them is there."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The device types of torch with fused optimizers."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[torch.device, torch.dtype], tuple[TensorListList, Indices]]:
    """Split parallel lists by the device and dtype of the first list's tensors, with their places on request."""
    groups: dict[Any, tuple[TensorListList, Indices]] = {}
    for index, tensor in enumerate(tensorlistlist[0]):
        if tensor is None:
            raise RuntimeError("Tensors of the same index must be on the same device and the same dtype")
        lists, places = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for part, source in zip(lists, tensorlistlist):
            part.append(source[index] if source else None)
        if with_indices:
            places.append(index)
    return groups


def _device_has_foreach_support(device: torch.device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[torch.Tensor], device: torch.device) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) is torch.Tensor for t in tensors)
