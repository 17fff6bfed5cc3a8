"""Pins the tensors of a batch. Without an accelerator, pinning a tensor raises."""

from __future__ import annotations

import collections.abc
from typing import Any

import mindtorch_v2 as torch

from .collate import _is_namedtuple, _mapping_like, _sequence_like


def pin_memory(data: Any, device: Any = None) -> Any:
    """Pin every tensor in `data`, and every object with a `pin_memory` method."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _mapping_like(data, {key: pin_memory(value, device) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(pin_memory(item, device) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item, device) for item in data]
    if isinstance(data, collections.abc.Sequence):
        return _sequence_like(data, [pin_memory(item, device) for item in data])
    return data
