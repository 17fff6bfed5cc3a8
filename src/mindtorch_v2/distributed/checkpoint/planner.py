"""torch.distributed.checkpoint.planner: which entries each rank writes or reads. Subclasses of the planners decide."""

from __future__ import annotations

import abc
import io
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any

from ..._size import Size
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData", "WriteItem",
    "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """The kinds of entries that are written."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """The kinds of entries that are read."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The size of an entry that is not a tensor."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A part of a tensor, and the whole tensor's properties and size."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One entry to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the tensor part; None for other entries."""
        if self.tensor_data is None:
            return None
        return self.tensor_data.chunk.sizes.numel() * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One part to read, and where it goes."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what is written: a plan per rank, then all plans together on the coordinator, then each rank's part of them."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state dict to save."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank could write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each rank writes, and the metadata of the checkpoint. Runs on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take this rank's part of the global plan."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor or the bytes of an entry."""

    @cached_property
    def _cached_class_name(self) -> str:
        return type(self).__qualname__


class LoadPlanner(abc.ABC):
    """Decides what is read, and where it is put."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state dict to load into, and what the checkpoint contains."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank reads."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each rank reads. Runs on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take this rank's part of the global plan."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put an entry that is not a tensor in its place."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where a storage reader may put the bytes of an entry."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The tensor to copy a part into."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """The tensor of `resolve_tensor` is filled."""


def total_bytes(items: Sequence[WriteItem]) -> int:
    """How much entries count when work is spread over ranks and files: a tensor its bytes, anything else nothing."""
    return sum(item.tensor_storage_size() or 0 for item in items)
