"""Pipes that reorder items."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import mindtorch_v2 as torch

from ...sampler import Sampler, SequentialSampler
from .._decorator import functional_datapipe
from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[Any]):
    """The items that a sampler of the pipe yields."""

    datapipe: IterDataPipe
    sampler: Any

    def __init__(
        self,
        datapipe: IterDataPipe,
        sampler: type[Sampler] = SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = self.datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if hasattr(self.sampler, "__len__"):
            return len(self.sampler)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """Shuffles items: each is drawn at random from a buffer of `buffer_size`. `unbatch_level`: levels of
    batches to flatten first.
    """

    datapipe: IterDataPipe[Any]
    buffer_size: int
    _buffer: list[Any]
    _enabled: bool
    _seed: int | None
    _rng: random.Random

    def __init__(
        self, datapipe: IterDataPipe[Any], *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        super().__init__()
        self._buffer = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

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
            yield from self.datapipe
            return
        for item in self.datapipe:
            if len(self._buffer) == self.buffer_size:
                index = self._rng.randint(0, len(self._buffer) - 1)
                drawn_item, self._buffer[index] = self._buffer[index], item
                yield drawn_item
            else:
                self._buffer.append(item)
        while self._buffer:
            index = self._rng.randint(0, len(self._buffer) - 1)
            yield self._buffer.pop(index)

    def __len__(self) -> int:
        if hasattr(self.datapipe, "__len__"):
            return len(self.datapipe)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def reset(self) -> None:
        """Clear the buffer; set the seed, or a random one."""
        self._buffer = []
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None

    def __getstate__(self) -> Any:
        state = (
            self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, self._rng.getstate(), self._valid_iterator_id,
            self._number_of_samples_yielded,
        )  # fmt: skip
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        (
            self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, rng_state, self._valid_iterator_id,
            self._number_of_samples_yielded,
        ) = state  # fmt: skip
        self._rng = random.Random()
        self._rng.setstate(rng_state)
        self._snapshot_state = _SnapshotState.NotStarted
