"""A pipe that shuffles an indexed pipe."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The items of an indexed pipe, in random order."""

    datapipe: MapDataPipe[Any]
    _enabled: bool
    _seed: int | None
    _rng: random.Random

    def __init__(self, datapipe: MapDataPipe[Any], *, indices: list | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]
        self._enabled = True
        self._seed = None
        self._rng = random.Random()
        self._shuffled_indices: list = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Enable or disable shuffling."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Set the seed of the next pass."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
        else:
            while self._shuffled_indices:
                yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        """Draw an order, with the seed or a random one."""
        if self._enabled and self._seed is None:
            self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]

    def __getstate__(self) -> Any:
        state = (
            self.datapipe, self.indices, self._enabled, self._seed, self._rng.getstate(), self._shuffled_indices,
            self._valid_iterator_id, self._number_of_samples_yielded,
        )  # fmt: skip
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        (
            self.datapipe, self.indices, self._enabled, self._seed, rng_state, self._shuffled_indices, self._valid_iterator_id,
            self._number_of_samples_yielded,
        ) = state  # fmt: skip
        self._rng = random.Random()
        self._rng.setstate(rng_state)
        self._snapshot_state = _SnapshotState.NotStarted


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
