"""Converts a module's convolution weights to another memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import mindtorch_v2 as torch

if TYPE_CHECKING:
    from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

_M = TypeVar("_M", bound="Module")


def _convert(module: Any, kinds: tuple[type, ...], memory_format: torch.memory_format) -> Any:
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: _M, memory_format: torch.memory_format) -> _M:
    """Convert the weights of all Conv2d and ConvTranspose2d layers to a memory format."""
    return _convert(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: _M, memory_format: torch.memory_format) -> _M:
    """Convert the weights of all Conv3d and ConvTranspose3d layers to a memory format."""
    return _convert(module, (torch.nn.Conv3d, torch.nn.ConvTranspose3d), memory_format)
