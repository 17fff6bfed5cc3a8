"""torch.distributed.checkpoint.utils: steps that all ranks of a group take together. An error on one is raised on all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import distributed_c10d as c10d
from .api import CheckpointException, _is_wrapped_exception, _wrap_exception

__all__ = ["CheckpointException"]

T = TypeVar("T")
R = TypeVar("R")


def _attempt(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function, or its error as data."""
    try:
        return function(*args)
    except Exception as error:
        return _wrap_exception(error)


class _DistWrapper:
    """The ranks of a group, or this process alone."""

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank = c10d.get_rank(group) if use_dist else 0
        self.world_size = c10d.get_world_size(group) if use_dist else 1
        self.is_coordinator = self.rank == coordinator_rank

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """What each rank's function returned."""
        return self._checked(step, self._gathered(_attempt(map_fun)))

    def reduce_scatter(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]
    ) -> R:
        """This rank's element of what the coordinator makes of all ranks' results."""
        return self.all_reduce(step, map_fun, reduce_fun)[self.rank]

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """What the coordinator makes of all ranks' results."""
        results = self.all_gather(step, map_fun)
        return self.broadcast(step, lambda: reduce_fun(results))

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """What the coordinator's function returned; it runs there alone."""
        box: list[Any] = [_attempt(map_fun) if self.is_coordinator else None]
        if self.use_dist:
            group = self.group or c10d._get_default_group()
            source = c10d.get_global_rank(group, self.coordinator_rank)
            c10d.broadcast_object_list(box, src=source, group=group)
        if _is_wrapped_exception(box[0]):
            raise CheckpointException(step, {self.coordinator_rank: box[0]})
        return box[0]

    def _gathered(self, value: Any) -> list[Any]:
        if not self.use_dist:
            return [value]
        values: list[Any] = [None] * self.world_size
        c10d.all_gather_object(values, value, group=self.group)
        return values

    @staticmethod
    def _checked(step: str, values: list[Any]) -> list[Any]:
        failures = {rank: value for rank, value in enumerate(values) if _is_wrapped_exception(value)}
        if failures:
            raise CheckpointException(step, failures)
        return values
