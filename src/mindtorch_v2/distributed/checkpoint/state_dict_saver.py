"""torch.distributed.checkpoint.state_dict_saver: a state dict in, a checkpoint out, written by all ranks together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from ..._tensor import Tensor
from .. import distributed_c10d as c10d
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import Metadata
from .planner import SavePlan, SavePlanner
from .stateful import Stateful
from .storage import StorageWriter
from .utils import _DistWrapper

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Where `async_save` writes."""

    THREAD = "thread"
    PROCESS = "process"


def uses_group(no_dist: bool, verb: str) -> bool:
    """Whether all ranks take part; alone with a warning if there is no group."""
    alone = no_dist or not c10d.is_initialized()
    if alone:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
            f"{verb} in a single process.",
            stacklevel=3,
        )
    return not alone


def storage_of(storage: Any, checkpoint_id: str | os.PathLike | None, is_reader: bool) -> Any:
    """The storage, or the folder that the id names."""
    if storage is not None:
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    return FileSystemReader(checkpoint_id) if is_reader else FileSystemWriter(checkpoint_id)


def _state_dicts(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """The entries, objects with a state dict by theirs."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()
    }


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state dict; every rank of the group calls this."""
    if not use_collectives:
        raise NotImplementedError(
            "save(use_collectives=False): ranks agree on what each writes by collectives here"
        )
    use_dist = uses_group(no_dist, "save")
    writer = storage_of(storage_writer, checkpoint_id, is_reader=False)
    writer.reset(checkpoint_id)
    return _save_state_dict(
        _state_dicts(state_dict), writer, process_group, no_dist=not use_dist, planner=planner
    )


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """The older form of `save`."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions.Please use 'save' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    no_dist = no_dist or not c10d.is_initialized()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultSavePlanner()
    metadata: Metadata | None = None

    def local_plan() -> SavePlan:
        planner.set_up_planner(state_dict, storage_writer.storage_meta(), ranks.is_coordinator)
        storage_writer.set_up_storage_writer(ranks.is_coordinator)
        return storage_writer.prepare_local_plan(planner.create_local_plan())

    def global_plan(plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)

    def write() -> Any:
        future = storage_writer.write_data(planner.finish_plan(plan), planner)
        future.wait()
        return future.value()

    def finish(results: list[Any]) -> Metadata:
        assert metadata is not None  # the coordinator made it
        storage_writer.finish(metadata, results)
        return metadata

    return ranks.all_reduce("write", write, finish)


def _copied(value: Any) -> Any:
    """A state dict with tensors of its own."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future:
    """Copy a state dict, and save the copy in a thread; the result of the future is the metadata."""
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD or async_stager is not None:
        raise NotImplementedError(
            "async_save writes in a thread, from a copy of the state dict that it makes itself"
        )
    if process_group is None and not no_dist and c10d.is_initialized() and c10d.get_world_size() > 1:
        raise NotImplementedError(
            "async_save on several ranks needs a process_group of its own (torch.distributed.new_group()): its collectives "
            "run in a thread, beside those of the program"
        )
    copied = _copied(_state_dicts(state_dict))
    thread = ThreadPoolExecutor(max_workers=1)
    future = thread.submit(
        save,
        copied,
        checkpoint_id=checkpoint_id,
        storage_writer=storage_writer,
        planner=planner,
        process_group=process_group,
        no_dist=no_dist,
        use_collectives=use_collectives,
    )
    thread.shutdown(wait=False)
    return future
