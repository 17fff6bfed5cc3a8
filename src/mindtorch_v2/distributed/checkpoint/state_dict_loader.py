"""torch.distributed.checkpoint.state_dict_loader: a checkpoint in; the tensors of a state dict are filled in place."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .. import distributed_c10d as c10d
from .default_planner import DefaultLoadPlanner
from .metadata import Metadata
from .planner import LoadPlan, LoadPlanner
from .state_dict_saver import storage_of, uses_group
from .stateful import Stateful
from .storage import StorageReader
from .utils import _DistWrapper

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load into a state dict; every rank of the group calls this."""
    use_dist = uses_group(no_dist, "load")
    reader = storage_of(storage_reader, checkpoint_id, is_reader=True)
    reader.reset(checkpoint_id)
    states = {
        key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()
    }
    _load_state_dict(states, reader, process_group, no_dist=not use_dist, planner=planner)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """The older form of `load`."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    no_dist = no_dist or not c10d.is_initialized()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _metadata(reader: Any, rank: int) -> Metadata:
    """The metadata of the checkpoint, or those of this rank alone."""
    try:
        return reader.read_metadata()
    except OSError as all_ranks:
        try:
            return reader.read_metadata(rank=rank)
        except OSError as own:
            raise AssertionError(
                f"metadata is None; global metadata read failed: {all_ranks}; rank local metadata read failed: {own}"
            ) from None


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = planner or DefaultLoadPlanner()

    def local_plan() -> LoadPlan:
        metadata = _metadata(storage_reader, ranks.rank)
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(planner.create_local_plan())

    def global_plan(plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    ranks.all_gather("read", lambda: storage_reader.read_data(planner.finish_plan(plan), planner).wait())
