"""torch.distributed.checkpoint.format_utils: between a checkpoint folder and a file of `torch.save`."""

from __future__ import annotations

import os
from typing import Any

from mindtorch_v2 import empty

from ... import serialization
from ._nested_dict import unflatten_state_dict
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import Metadata, TensorStorageMetadata
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all entries, or those below `keys`, into an empty state dict."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Fill the state dict with tensors to load into."""
        assert not state_dict, "the state dict is filled from the checkpoint; it must be empty"
        assert metadata is not None
        entries = {
            name: empty(saved.size, dtype=saved.properties.dtype)
            if isinstance(saved, TensorStorageMetadata)
            else saved
            for name, saved in metadata.state_dict_metadata.items()
            if self._is_asked_for(name)
        }
        paths = metadata.planner_data
        state_dict.update(unflatten_state_dict(entries, paths) if paths else entries)
        super().set_up_planner(state_dict, metadata, is_coordinator)

    def _is_asked_for(self, name: str) -> bool:
        return self.keys is None or any(name == key or name.startswith(f"{key}.") for key in self.keys)


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Write a checkpoint folder as one file."""
    state_dict: dict[str, Any] = {}
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load_state_dict(state_dict, reader, no_dist=True, planner=_EmptyStateDictLoadPlanner())
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Write a file of `torch.save` as a checkpoint folder."""
    state_dict = serialization.load(torch_save_path, weights_only=False)
    _save_state_dict(state_dict, FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
