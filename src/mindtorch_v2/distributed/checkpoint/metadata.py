"""torch.distributed.checkpoint.metadata: what the file `.metadata` of a checkpoint says about its entries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..._dtype import channels_last as _channels_last
from ..._dtype import contiguous_format, dtype, float32, layout, memory_format, preserve_format, strided
from ..._size import Size

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata",
]  # fmt: skip


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as numbers; the format itself cannot be pickled."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_MEMORY_FORMATS: dict[_MEM_FORMAT_ENCODING, memory_format] = {
    _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: contiguous_format,
    _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: _channels_last,
    _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: preserve_format,
}


@dataclass
class ChunkStorageMetadata:
    """A rectangular part of a tensor: where it starts, and its extent."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """What a tensor is, except for its size."""

    dtype: dtype = field(default=float32)
    layout: layout = field(default=strided)
    requires_grad: bool = False
    memory_format: memory_format = field(default=contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        encoding = next(code for code, value in _MEMORY_FORMATS.items() if value is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        self.memory_format = _MEMORY_FORMATS[encoding]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint and the parts it was saved in."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An entry that is not a tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Where and in which call a checkpoint was written."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All entries of a checkpoint."""

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an entry; for a part of a tensor also its offset. `index` is a hint that takes no part in comparison."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))

    def __getstate__(self) -> dict[str, Any]:
        # torch leaves an offset of None out of the file
        state = {"fqn": self.fqn, "index": self.index}
        return state if self.offset is None else {**state, "offset": self.offset}
