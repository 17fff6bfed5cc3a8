"""Pipes that combine several pipes, or split one into several."""

from __future__ import annotations

import copy as copying
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sized
from typing import Any, Literal

from .._decorator import functional_datapipe
from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """The items of several pipes, one pipe after another."""

    datapipes: tuple[IterDataPipe, ...]

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if len(datapipes) == 0:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(dp, IterDataPipe) for dp in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for datapipe in self.datapipes:
            yield from datapipe

    def __len__(self) -> int:
        if all(isinstance(dp, Sized) for dp in self.datapipes):
            return sum(len(dp) for dp in self.datapipes)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[tuple]):
    """Tuples of items of all pipes, until the shortest ends."""

    datapipes: tuple[IterDataPipe, ...]

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(dp, IterDataPipe) for dp in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple]:
        iterators = [iter(datapipe) for datapipe in self.datapipes]
        yield from zip(*iterators)

    def __len__(self) -> int:
        if all(isinstance(dp, Sized) for dp in self.datapipes):
            return min(len(dp) for dp in self.datapipes)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One item of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes
        self.buffer: list = []  # items of the current round

    def __iter__(self) -> Iterator[Any]:
        iterators = [iter(x) for x in self.datapipes]
        while iterators:
            for iterator in iterators:
                try:
                    self.buffer.append(next(iterator))
                except StopIteration:
                    self.buffer.clear()
                    return
            yield from self.buffer
            self.buffer.clear()

    def __len__(self) -> int:
        if all(isinstance(dp, Sized) for dp in self.datapipes):
            return min(len(dp) for dp in self.datapipes) * len(self.datapipes)
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def reset(self) -> None:
        """Drop the items of the current round."""
        self.buffer = []

    def __getstate__(self) -> Any:
        state = (self.datapipes, self._valid_iterator_id, self._number_of_samples_yielded)
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        self.datapipes, self._valid_iterator_id, self._number_of_samples_yielded = state
        self._snapshot_state = _SnapshotState.NotStarted
        self.buffer = []


# ----------------------------------------------------------------------------------------------------
# splitting one pipe


class _ContainerTemplate(ABC):
    """A pipe that several child pipes take their items from."""

    num_instances: int

    @abstractmethod
    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The items of one child."""

    @abstractmethod
    def is_every_instance_exhausted(self) -> bool:
        """Whether all children have been read to the end, or none has been started."""

    @abstractmethod
    def reset(self) -> None:
        """Restart, for all children."""

    @abstractmethod
    def get_length_by_instance(self, instance_id: int) -> int:
        """The number of items of one child."""


class _ChildDataPipe(IterDataPipe[Any]):
    """One of several child pipes of a pipe. A second pass over it restarts all of them."""

    _is_child_datapipe: bool = True

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        assert isinstance(main_datapipe, _ContainerTemplate)
        self.main_datapipe: Any = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _set_main_datapipe_valid_iterator_id(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child DataPipe "
                    "will read from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id  # type: ignore[return-value]

    def _check_valid_iterator_id(self, iterator_id: int | None) -> bool:
        return iterator_id == self._valid_iterator_id and iterator_id == self.main_datapipe._valid_iterator_id


def _no_op(x: Any) -> Any:
    return x


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Copies a pipe into a list of child pipes with the same items. The buffer for the slowest child holds at
    most `buffer_size` items (-1: any number).
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return datapipe
        container = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]


class _ForkerIterDataPipe(IterDataPipe[Any], _ContainerTemplate):
    def __init__(
        self,
        datapipe: IterDataPipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> None:
        self.main_datapipe = datapipe
        self._datapipe_iterator: Iterator[Any] | None = None
        self.num_instances = num_instances
        self.buffer: deque = deque()
        self.buffer_size = buffer_size
        if buffer_size < 0:
            _warn_unlimited("fork")
        if copy is None:
            self.copy_fn: Callable = _no_op
        elif copy == "shallow":
            self.copy_fn = copying.copy
        elif copy == "deep":
            self.copy_fn = copying.deepcopy
        else:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        self._start()

    def _start(self) -> None:
        """Initialise the positions of each child, the last and the first; they count from the start of the
        pass.
        """
        self.child_pointers = [0] * self.num_instances
        self.slowest_ptr = 0
        self.leading_ptr = 0
        self.end_ptr: int | None = None
        self._child_stop = [True] * self.num_instances

    def __len__(self) -> int:
        return len(self.main_datapipe)  # type: ignore[arg-type]

    def get_length_by_instance(self, instance_id: int) -> int:
        """The number of items of the pipe."""
        return len(self.main_datapipe)  # type: ignore[arg-type]

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The items of one child; those that others have not read yet stay in the buffer."""
        if self._datapipe_iterator is None and self._child_stop[instance_id]:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._snapshot_state = _SnapshotState.Iterating
            self._child_stop = [False] * self.num_instances
        try:
            while not self._child_stop[instance_id]:
                self.child_pointers[instance_id] += 1
                position = self.child_pointers[instance_id]
                if self.end_ptr is not None and position == self.end_ptr:
                    self._child_stop[instance_id] = True
                    break
                if self.buffer and position <= self.leading_ptr:
                    item = self.buffer[position - self.slowest_ptr - 1]
                else:
                    self.leading_ptr = position
                    try:
                        assert self._datapipe_iterator is not None
                        item = next(self._datapipe_iterator)
                        self.buffer.append(item)
                    except StopIteration:
                        self._child_stop[instance_id] = True
                        self._datapipe_iterator = None
                        self.end_ptr = self.leading_ptr
                        continue
                if position == self.slowest_ptr + 1:
                    slowest = min(self.child_pointers)
                    if self.slowest_ptr < slowest:
                        self.slowest_ptr = slowest
                        self.buffer.popleft()
                if self.buffer_size >= 0 and self.leading_ptr > self.buffer_size + self.slowest_ptr:
                    raise BufferError(
                        f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient."
                    )
                yield self.copy_fn(item)
        finally:
            self._child_stop[instance_id] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
                self._cleanup()

    def is_every_instance_exhausted(self) -> bool:
        """Whether no child is in the middle of a pass."""
        return self.end_ptr is not None and all(self.end_ptr == place for place in self.child_pointers)

    def reset(self) -> None:
        """Restart, for all children."""
        self._datapipe_iterator = None
        self.buffer = deque()
        self._start()

    def __getstate__(self) -> Any:
        state = (
            self.main_datapipe, self.num_instances, self.buffer_size, self.copy_fn, self._valid_iterator_id,
            self._number_of_samples_yielded,
        )  # fmt: skip
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        (
            self.main_datapipe, self.num_instances, self.buffer_size, self.copy_fn, self._valid_iterator_id,
            self._number_of_samples_yielded,
        ) = state  # fmt: skip
        self._snapshot_state = _SnapshotState.NotStarted
        self.reset()

    def _cleanup(self) -> None:
        while self.buffer:
            StreamWrapper.close_streams(self.buffer.popleft())


def _warn_unlimited(name: str) -> None:
    warnings.warn(
        f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
        UserWarning,
        stacklevel=4,
    )


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Splits a pipe into a list of child pipes by a function that assigns each item to one. The buffer holds
    at most `buffer_size` items.
    """

    def __new__(  # type: ignore[misc]
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        _check_unpickable_fn(classifier_fn)
        container = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(IterDataPipe[Any], _ContainerTemplate):
    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        self.main_datapipe = datapipe
        self._datapipe_iterator: Iterator[Any] | None = None
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        if buffer_size < 0:
            _warn_unlimited("demux")
        self.current_buffer_usage = 0
        self.child_buffers: list[deque] = [deque() for _ in range(num_instances)]
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        self.main_datapipe_exhausted = False
        self._child_stop = [True] * num_instances

    def _find_next(self, instance_id: int) -> Any:
        """The next item of one child; items of others are buffered."""
        while True:
            if self.main_datapipe_exhausted or self._child_stop[instance_id]:
                raise StopIteration
            if self._datapipe_iterator is None:
                raise ValueError(
                    "_datapipe_iterator has not been set, likely because this private method is called directly "
                    "without invoking get_next_element_by_instance() first."
                )
            value = next(self._datapipe_iterator)
            child_id = self.classifier_fn(value)
            if child_id is None and self.drop_none:
                StreamWrapper.close_streams(value)
                continue
            if child_id is None or child_id >= self.num_instances or child_id < 0:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {child_id} is returned."
                )
            if child_id == instance_id:
                return value
            self.child_buffers[child_id].append(value)
            self.current_buffer_usage += 1
            if self.buffer_size >= 0 and self.current_buffer_usage > self.buffer_size:
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The items of one child."""
        if self._datapipe_iterator is None and self._child_stop[instance_id]:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._snapshot_state = _SnapshotState.Iterating
            self.main_datapipe_exhausted = False
            self._child_stop = [False] * self.num_instances
        try:
            while not self._child_stop[instance_id]:
                if self.child_buffers[instance_id]:
                    self.current_buffer_usage -= 1
                    yield self.child_buffers[instance_id].popleft()
                else:
                    try:
                        item = self._find_next(instance_id)
                    except StopIteration:
                        self._child_stop[instance_id] = True
                        self.main_datapipe_exhausted = True
                        self._datapipe_iterator = None
                        continue
                    yield item
        finally:
            self._child_stop[instance_id] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
            if self.child_buffers[instance_id]:
                self._cleanup(instance_id)

    def is_every_instance_exhausted(self) -> bool:
        """Whether all items have been read."""
        return self.main_datapipe_exhausted and all(self._child_stop)

    def get_length_by_instance(self, instance_id: int) -> int:
        """Raises: the lengths depend on the function."""
        raise TypeError

    def reset(self) -> None:
        """Restart, for all children."""
        self._datapipe_iterator = None
        self.current_buffer_usage = 0
        self.child_buffers = [deque() for _ in range(self.num_instances)]
        self._child_stop = [True] * self.num_instances
        self.main_datapipe_exhausted = False

    def __getstate__(self) -> Any:
        state = (
            self.main_datapipe, self.num_instances, self.buffer_size, self.classifier_fn, self.drop_none, self._valid_iterator_id,
            self._number_of_samples_yielded,
        )  # fmt: skip
        hook = IterDataPipe.getstate_hook
        return state if hook is None else hook(state)

    def __setstate__(self, state: Any) -> None:
        (
            self.main_datapipe, self.num_instances, self.buffer_size, self.classifier_fn, self.drop_none, self._valid_iterator_id,
            self._number_of_samples_yielded,
        ) = state  # fmt: skip
        self._snapshot_state = _SnapshotState.NotStarted
        self.reset()

    def _cleanup(self, instance_id: int | None = None) -> None:
        places = range(self.num_instances) if instance_id is None else (instance_id,)
        for place in places:
            while self.child_buffers[place]:
                StreamWrapper.close_streams(self.child_buffers[place].popleft())
