"""Sharding of a pipe between workers and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from enum import IntEnum
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """The order in which sharding groups apply."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe[Any]):
    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES
    ) -> None:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Every n-th item, after `apply_sharding` has set the number of shards and the index of this one."""

    def __init__(
        self, source_datapipe: IterDataPipe, sharding_group_filter: SHARDING_PRIORITIES | None = None
    ) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances = 1
        self.instance_id = 0
        self._update_num_of_instances()

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Yield every `num_of_instances`-th item, starting with number `instance_id`."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        mixed = (
            default in self.groups if sharding_group != default else any(g != default for g in self.groups)
        )
        if self.groups and mixed:
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._update_num_of_instances()

    def _update_num_of_instances(self) -> None:
        chosen = self.sharding_group_filter
        groups = [self.groups[g] for g in sorted(self.groups, reverse=True) if chosen is None or g == chosen]
        self.num_of_instances, self.instance_id = 1, 0
        for count, number in groups:
            self.instance_id += self.num_of_instances * number
            self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for place, item in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        if isinstance(self.source_datapipe, Sized):
            count = len(self.source_datapipe)
            return count // self.num_of_instances + (self.instance_id < count % self.num_of_instances)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
