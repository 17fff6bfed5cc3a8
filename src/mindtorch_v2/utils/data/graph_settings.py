"""Settings for all pipes of a graph: shuffling, seeds and shards."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import mindtorch_v2 as torch

from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipe, DataPipeGraph, traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """All pipes of a graph, each once."""
    pipes: dict[int, DataPipe] = {}

    def collect(part: DataPipeGraph) -> None:
        for number, (pipe, below) in part.items():
            if number not in pipes:
                pipes[number] = pipe
                collect(below)

    collect(graph)
    return list(pipes.values())


def _is_sharding_datapipe(datapipe: Any) -> bool:
    return isinstance(datapipe, _ShardingIterDataPipe) or (
        hasattr(datapipe, "apply_sharding") and inspect.ismethod(datapipe.apply_sharding)
    )


def apply_sharding(
    datapipe: DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
) -> DataPipe:
    """Set the number of shards, and the index of this one, in all sharding pipes."""

    def apply_to(graph: DataPipeGraph, outer_sharding_pipe: Any = None) -> None:
        for pipe, below in graph.values():
            sharding_pipe = outer_sharding_pipe
            if _is_sharding_datapipe(pipe):
                if outer_sharding_pipe is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. Sharding already applied to "
                        f"{outer_sharding_pipe} while trying to apply to {pipe}"
                    )
                takes_group = len(inspect.signature(pipe.apply_sharding).parameters) > 2
                arguments = (num_of_instances, instance_id, *([sharding_group] if takes_group else []))
                pipe.apply_sharding(*arguments)
                sharding_pipe = pipe
            apply_to(below, sharding_pipe)

    apply_to(traverse_dps(datapipe))
    return datapipe


def _is_shuffle_datapipe(datapipe: Any) -> bool:
    return (
        hasattr(datapipe, "set_shuffle")
        and hasattr(datapipe, "set_seed")
        and inspect.ismethod(datapipe.set_shuffle)
        and inspect.ismethod(datapipe.set_seed)
    )


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Enable or disable shuffling in all pipes that can shuffle; None changes nothing. A shuffler is added if
    there is none.
    """
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware that the default buffer "
            "size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """Deprecated name of `apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases.\nPlease use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def _is_random_datapipe(datapipe: Any) -> bool:
    return hasattr(datapipe, "set_seed") and inspect.ismethod(datapipe.set_seed)


def apply_random_seed(datapipe: DataPipe, rng: torch.Generator) -> DataPipe:
    """Set the seed of each pipe that takes one."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _is_random_datapipe(pipe):
            pipe.set_seed(int(torch.empty((), dtype=torch.int64).random_(generator=rng).item()))
    return datapipe
