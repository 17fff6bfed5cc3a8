"""torch.distributed.checkpoint: names only. Save a state dict with `torch.save` on one rank."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class, refused_function

_REASON = "save with torch.save on one rank, and load with torch.load on each"
save = refused_function("torch.distributed.checkpoint", "save", _REASON)
load = refused_function("torch.distributed.checkpoint", "load", _REASON)
async_save = refused_function("torch.distributed.checkpoint", "async_save", _REASON)
save_state_dict = refused_function("torch.distributed.checkpoint", "save_state_dict", _REASON)
load_state_dict = refused_function("torch.distributed.checkpoint", "load_state_dict", _REASON)
FileSystemReader: Any = refused_class("torch.distributed.checkpoint", "FileSystemReader", _REASON)
FileSystemWriter: Any = refused_class("torch.distributed.checkpoint", "FileSystemWriter", _REASON)

__all__ = [
    "FileSystemReader",
    "FileSystemWriter",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]
