"""torch.distributed.checkpoint.filesystem: a checkpoint as a folder. Each rank writes `__<rank>_<number>.distcp`, one `torch.save` after
another; the coordinator writes `.metadata`, a pickle under torch's names, when all are done. torch reads these folders and writes such.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ... import serialization
from ..._pickle_names import resolve
from ..._pickling import dumps
from ...futures import Future
from .default_planner import narrowed
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
    total_bytes,
)
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_METADATA_FILE = ".metadata"
_SUFFIX = ".distcp"


class SerializationFormat(Enum):
    """How tensors are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


@dataclass
class _StorageInfo:
    """Where an entry is: file, first byte and length."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # torch leaves descriptors that are None out of the file
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class _StoragePrefix:
    prefix: str


def _completed(value: Any) -> Any:
    future: Any = Future()
    future.set_result(value)
    return future


class _FileSystem:
    """A folder, and whether an id names one."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Use another folder, if one is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether an id is a path: not an address such as `s3://...`, and its parents can be made."""
        return isinstance(checkpoint_id, Path) or "://" not in str(checkpoint_id)


class FileSystemWriter(_FileSystem, StorageWriter):
    """Writes checkpoints to a folder."""

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        super().__init__(path)
        if _extensions or serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(
                "FileSystemWriter writes with torch.save; for safetensors use safetensors.torch.save_file"
            )
        self.single_file_per_rank, self.sync_files, self.thread_count = (
            single_file_per_rank,
            sync_files,
            thread_count,
        )
        # both are about copies from a GPU, of which there are none here
        self.per_thread_copy_ahead, self.cache_staged_state_dict = (
            per_thread_copy_ahead,
            cache_staged_state_dict,
        )
        self.overwrite = overwrite
        self.save_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """A checkpoint begins."""
        super().reset(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Nothing to prepare."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Make the folder; refuse to replace a checkpoint if so asked."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / _METADATA_FILE).exists() and not self.overwrite:
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank the beginning of its files' names."""
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        """Write the entries: to one file per thread, or to one file each."""
        if self.single_file_per_rank:
            groups = _spread(plan.items, self.thread_count)
        else:
            groups = [[item] for item in plan.items]
        prefix = plan.storage_data.prefix
        files = [(f"{prefix}{number}{_SUFFIX}", items) for number, items in enumerate(groups)]
        with ThreadPoolExecutor(self.thread_count) as threads:
            written = list(threads.map(lambda file: self._write_file(file[0], file[1], planner), files))
        return _completed([result for results in written for result in results])

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        results = []
        with open(self.path / name, "wb") as stream:
            for item in sorted(items, key=lambda item: item.type is not WriteItemType.BYTE_IO):
                start = stream.tell()
                data = planner.resolve_data(item)
                if item.type is WriteItemType.BYTE_IO:
                    stream.write(data.getbuffer())
                else:
                    _save_tensor(data, stream)
                length = stream.tell() - start
                results.append(WriteResult(item.index, length, _StorageInfo(name, start, length)))
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write `.metadata`, under another name first: where it is, the checkpoint is complete."""
        metadata.storage_data = {result.index: result.storage_data for rank in results for result in rank}
        metadata.storage_meta = self.storage_meta()
        temporary = self.path / f"{_METADATA_FILE}.tmp"
        with open(temporary, "wb") as stream:
            stream.write(dumps(metadata, lambda obj: None, pickle, 4))
            if self.sync_files:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(self.path / _METADATA_FILE)

    def storage_meta(self) -> StorageMeta:
        """The folder and the number of this save."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)


def _spread(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """The entries in groups of about equal size, the largest first; objects that are no tensors in turn."""
    if count == 1:
        return [items]
    groups: list[list[WriteItem]] = [[] for _ in range(count)]
    for i, item in enumerate(item for item in items if item.type is WriteItemType.BYTE_IO):
        groups[i % count].append(item)
    tensors = [item for item in items if item.type is not WriteItemType.BYTE_IO]
    for item in sorted(tensors, key=lambda item: -total_bytes([item])):
        min(groups, key=total_bytes).append(item)
    return [group for group in groups if group]


def _save_tensor(tensor: Any, stream: Any) -> None:
    """Write a tensor and nothing else of its storage."""
    tensor = tensor.detach()
    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
        tensor = tensor.clone()
    # torch.save into a buffer: an archive starts at the beginning of its file
    buffer = io.BytesIO()
    serialization.save(tensor, buffer)
    stream.write(buffer.getbuffer())


class _MetadataUnpickler(pickle.Unpickler):
    """Reads `.metadata`. Its file may come from anywhere, so only what a checkpoint's metadata consist of is allowed."""

    _MODULES = frozenset({"metadata", "filesystem", "planner"})
    _NAMES = frozenset(
        {("torch", "Size"), ("torch.serialization", "_get_layout"), ("collections", "OrderedDict")}
    )

    def find_class(self, module: str, name: str) -> Any:
        package, _, inner = module.rpartition(".")
        ours = package == "torch.distributed.checkpoint" and inner in self._MODULES
        path = module.startswith("pathlib") and name.endswith("Path")
        if not (ours or path or (module, name) in self._NAMES or _is_dtype(module, name)):
            raise pickle.UnpicklingError(
                f"the metadata of this checkpoint name {module}.{name}; only classes of torch.distributed.checkpoint are loaded"
            )
        if path:
            return Path  # the file may come from another operating system
        return resolve(module, name)


def _is_dtype(module: str, name: str) -> bool:
    from ... import _dtype

    return module == "torch" and isinstance(getattr(_dtype, name, None), _dtype.dtype)


class FileSystemReader(_FileSystem, StorageReader):
    """Reads checkpoints from a folder."""

    def __init__(self, path: str | os.PathLike, _extension_registry: Any = None) -> None:
        super().__init__(path)
        if _extension_registry is not None:
            raise NotImplementedError("FileSystemReader: extensions of the format are not read")
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """A load begins."""
        super().reset(checkpoint_id)
        self.storage_data = {}
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint contains; `rank` asks for the metadata of one rank."""
        rank = kwargs.get("rank")
        name = _METADATA_FILE if rank is None else f"__{rank}{_METADATA_FILE}"
        with open(self.path / name, "rb") as stream:
            metadata = _MetadataUnpickler(stream).load()
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Take where the entries are."""
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read the entries, file by file."""
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in by_file.items():
            with open(self.path / name, "rb") as stream:
                for item in items:
                    self._read(item, stream, planner)
        return _completed(None)

    def _read(self, item: ReadItem, stream: Any, planner: LoadPlanner) -> None:
        place = self.storage_data[item.storage_index]
        if place.transform_descriptors:
            raise NotImplementedError(
                f"{item.storage_index.fqn} was saved with {place.transform_descriptors}, which is not read here"
            )
        stream.seek(place.offset)
        data = io.BytesIO(stream.read(place.length))
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, data)
            return
        saved = serialization.load(data, map_location="cpu", weights_only=True)
        target = planner.resolve_tensor(item).detach()
        target.copy_(narrowed(saved, item.storage_offsets, item.lengths))
        planner.commit_tensor(item, target)
