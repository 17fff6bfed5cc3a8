"""torch.distributed.checkpoint.default_planner: every tensor is saved whole and once; loading copies into the state dict's own tensors."""

from __future__ import annotations

import dataclasses
import io
from collections import ChainMap
from collections.abc import Iterable
from typing import Any

from ... import serialization
from ..._size import Size
from ..._tensor import Tensor
from ._nested_dict import flatten_state_dict, set_element
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
    total_bytes,
)

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]

_VERSION = "1.0.0"


def _write_item(name: str, value: Any) -> WriteItem:
    if not isinstance(value, Tensor):
        return WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO)
    size = Size(value.shape)
    start = Size([0] * len(size))
    data = TensorWriteData(
        ChunkStorageMetadata(start, size), TensorProperties.create_from_tensor(value), size
    )
    return WriteItem(MetadataIndex(name, start), WriteItemType.TENSOR, tensor_data=data)


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Every entry of this rank."""
    return SavePlan([_write_item(name, value) for name, value in state_dict.items()])


def _without_duplicates(plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Each entry in one plan only: of the ranks that have it, the one with the fewest bytes so far."""
    ranks: dict[MetadataIndex, list[int]] = {}
    items: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            ranks.setdefault(item.index, []).append(rank)
            items.setdefault(item.index, item)
    loads = [0] * len(plans)
    writer: dict[MetadataIndex, int] = {}
    for index, candidates in ranks.items():
        rank = min(candidates) if save_to_lowest_rank else min(candidates, key=loads.__getitem__)
        writer[index] = rank
        loads[rank] += total_bytes([items[index]])
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if writer[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans with the position of each part in its tensor's list of parts, and the metadata of all entries."""
    entries: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            if item.tensor_data is None:
                entries[item.index.fqn] = BytesStorageMetadata()
            else:
                data = item.tensor_data
                tensor = entries.setdefault(
                    item.index.fqn, TensorStorageMetadata(data.properties, data.size, [])
                )
                if rewrite_index_hints:
                    item = dataclasses.replace(
                        item, index=MetadataIndex(item.index.fqn, item.index.offset, len(tensor.chunks))
                    )
                tensor.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(entries)


class DefaultSavePlanner(SavePlanner):
    """Saves every tensor whole; what several ranks have is written by one of them."""

    mappings: dict[str, tuple]

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors  # this library has no sharded tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        if enable_plan_caching:
            raise NotImplementedError(
                "DefaultSavePlanner(enable_plan_caching=True): plans are made anew here"
            )
        self.mappings = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Take the state dict, flattened."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Every entry of this rank, and the paths of their names."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Each entry on one rank, and the metadata."""
        plans, metadata = create_default_global_save_plan(
            _without_duplicates(all_plans, self.dedup_save_to_lowest_rank)
        )
        if self.flatten_state_dict:
            metadata.planner_data = dict(ChainMap(*(plan.planner_data for plan in plans)))
        metadata.version = _VERSION
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Keep this rank's plan."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the object as `torch.save` writes it."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of an entry."""
        return self.state_dict[index.fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """A value as it is handed to the storage."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        stream = io.BytesIO()
        serialization.save(object, stream)
        return stream


def _read_items(name: str, saved: TensorStorageMetadata, value: Any) -> Iterable[ReadItem]:
    """The saved parts of a tensor, each going where it was in the whole."""
    for i, chunk in enumerate(saved.chunks):
        if chunk.sizes.numel():
            yield ReadItem(
                LoadItemType.TENSOR,
                MetadataIndex(name, [0] * value.dim()),
                chunk.offsets,
                MetadataIndex(name, chunk.offsets, i),
                Size([0] * value.dim()),
                chunk.sizes,
            )


def _read_bytes(name: str) -> ReadItem:
    index, start = MetadataIndex(name), Size((0,))
    return ReadItem(LoadItemType.BYTE_IO, index, start, index, start, Size((0,)))


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """Every entry of the state dict that is in the checkpoint; a missing one raises if `strict`."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        saved = metadata.state_dict_metadata.get(name)
        if saved is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        elif isinstance(saved, BytesStorageMetadata):
            items.append(_read_bytes(name))
        elif not isinstance(value, Tensor):
            raise ValueError(
                f"{name} is a tensor in the checkpoint and a {type(value).__name__} in the state dict"
            )
        elif saved.size != value.shape:
            raise ValueError(
                f"Size mismatch between saved {saved.size} and current: {Size(value.shape)} for {name}"
            )
        else:
            items += _read_items(name, saved, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: ranks read on their own."""
    return all_plans


class DefaultLoadPlanner(LoadPlanner):
    """Copies saved tensors into those of the state dict; other entries are replaced."""

    original_state_dict: dict[str, Any]
    mappings: dict[str, tuple]

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors  # this library has no sharded tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state dict, flattened, and the metadata."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """What this rank reads."""
        if self.metadata is None:
            raise AssertionError("metadata is None")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This rank's plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Unpickle an object and put it in the state dict."""
        name = read_item.dest_index.fqn
        loaded = serialization.load(value, weights_only=False)
        self.state_dict[name] = loaded
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The part of the state dict's tensor that a saved part goes to."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Nothing is left to do: the tensor is the state dict's own."""

    def lookup_tensor(self, index: MetadataIndex) -> Any:
        """The state dict's tensor."""
        return self.state_dict[index.fqn]

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """The part of a tensor that is read into."""
        return narrowed(tensor, read_item.dest_offsets, read_item.lengths)


def narrowed(tensor: Any, offsets: Iterable[int], lengths: Iterable[int]) -> Any:
    """A rectangular part of a tensor, as a view."""
    for dim, (offset, length) in enumerate(zip(offsets, lengths)):
        if (offset, length) != (0, tensor.size(dim)):
            tensor = tensor.narrow(dim, offset, length)
    return tensor
