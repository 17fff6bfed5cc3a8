"""The data loader: batches of a dataset, fetched in this process or by worker processes.

Each worker has its own connection and replies in the order of its tasks, so the next batch is always the next
reply of a known worker. A worker that dies closes its connection and leaves no lock behind.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import signal
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import mindtorch_v2 as torch

from ..._exception_wrapper import ExceptionWrapper
from . import _utils
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.worker import (
    WorkerTask,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    _worker_loop,
    get_worker_info,
)
from .datapipes.datapipe import (
    IterDataPipe,
    MapDataPipe,
    _IterDataPipeSerializationWrapper,
    _MapDataPipeSerializationWrapper,
)
from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .dataset import Dataset, IterableDataset
from .graph_settings import apply_random_seed, apply_sharding, apply_shuffle_settings
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_worker_init_fn_t = Callable[[int], None]  # torch's names of the types of DataLoader's functions
_collate_fn_t = Callable[[list[_T]], Any]


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        """The fetcher for a kind of dataset."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """Yields None for ever: the sampler of iterable datasets."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[_T_co]):
    """Iterable over the batches of a dataset."""

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    pin_memory_device: str
    prefetch_factor: int | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = _wrap_pipe(dataset)
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Map
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if isinstance(dataset, IterDataPipe):
                apply_shuffle_settings(dataset, shuffle=shuffle)
                shuffle = None
            for option, value in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {option} option, "
                        f"but got {option}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                    "drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator: _BaseDataLoaderIter | None = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """The `multiprocessing` context that starts workers, or None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context: Any) -> None:
        if multiprocessing_context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            multiprocessing_context = _context(multiprocessing_context)
        self.__multiprocessing_context = multiprocessing_context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None or getattr(self._iterator, "_shutdown", False):
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        if not self.num_workers:
            return
        affinity = getattr(os, "sched_getaffinity", None)
        available = len(affinity(0)) if affinity else os.cpu_count()
        if available is not None and self.num_workers > available:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested "
                "max "
                f"number of worker in current system is {available}, which is smaller than what this "
                "DataLoader "
                "is going to create. Please be aware that excessive worker creation might get DataLoader "
                "running "
                "slow or even freeze, lower the worker number to avoid potential slowness/freeze if "
                "necessary.",
                stacklevel=3,
            )


def _wrap_pipe(dataset: Any) -> Any:
    """A dataset in the form that the loader stores: pipes are wrapped."""
    if isinstance(dataset, IterDataPipe):
        return _IterDataPipeSerializationWrapper(dataset)
    return _MapDataPipeSerializationWrapper(dataset) if isinstance(dataset, MapDataPipe) else dataset


def _seed_pipes(dataset: Any, generator: Any) -> int | None:
    """A seed for all pipes that take one, and for their copies in workers."""
    if not isinstance(dataset, IterDataPipe):
        return None
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
    apply_random_seed(dataset, torch.Generator().manual_seed(seed))
    return seed


def _sharding_worker_init_fn(
    worker_init_fn: Callable[[int], None] | None, world_size: int, rank_id: int, worker_id: int
) -> None:
    """In a worker: assign this worker of this rank its share of the items of sharding pipes, then call the user's
    `worker_init_fn`.
    """
    info = get_worker_info()
    assert info is not None
    share = worker_id * world_size + rank_id
    apply_sharding(info.dataset, info.num_workers * world_size, share, SHARDING_PRIORITIES.MULTIPROCESSING)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


def _context(context: Any) -> Any:
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, "
                f"but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the "
            "start "
            f"method, but got multiprocessing_context={context}"
        )
    return context


class _BaseDataLoaderIter:
    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = False
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._shared_seed = _seed_pipes(self._dataset, loader.generator)
        self._base_seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        if loader.pin_memory:
            _warn_of_pinning(loader.pin_memory_device)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._shared_seed = _seed_pipes(self._dataset, loader.generator)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        with torch.autograd.profiler.record_function(self._profile_name):
            data = self._next_data()
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if (
            expected is not None
            and self._num_yielded > expected
            and self._dataset_kind == _DatasetKind.Iterable
        ):
            self._warn_of_length(expected)
        return data

    def _warn_of_length(self, expected: int) -> None:
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {expected}(when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


def _warn_of_pinning(device: str) -> None:
    if device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{device}'.",
            stacklevel=6,
        )
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't "
        "be used.",
        stacklevel=6,
    )


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch on demand."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Keeps `prefetch_factor` tasks queued at each worker and yields their results."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._shutdown = True  # until there is something to shut down
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if not self._prefetch_factor or self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._owner_pid = os.getpid()
        self._workers: list[Any] = []
        self._connections: list[Any] = []
        self._shutdown = False
        _live.add(self)
        _shut_down_at_exit()
        try:
            self._start_workers(loader)
        except BaseException:
            self._shutdown_workers()
            raise
        self._begin()

    def _start_workers(self, loader: DataLoader[Any]) -> None:
        import multiprocessing

        context: Any = loader.multiprocessing_context or multiprocessing
        make_fetcher = functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last,
        )  # fmt: skip
        init_fn = loader.worker_init_fn
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            init_fn = functools.partial(_sharding_worker_init_fn, init_fn, 1, 0)
        for worker_id in range(self._num_workers):
            loader_end, worker_end = context.Pipe()
            self._connections.append(loader_end)
            task = WorkerTask(
                make_fetcher, self._dataset, self._dataset_kind == _DatasetKind.Iterable, self._base_seed,
                init_fn, worker_id, self._num_workers,
            )  # fmt: skip
            worker = context.Process(
                target=_worker_loop, args=(task, worker_end, _forget_loaders), daemon=True
            )
            try:
                worker.start()
            except (TypeError, AttributeError, ValueError, OSError) as error:
                _explain_start_failure(error, context)
                raise
            finally:
                worker_end.close()  # the worker then holds the only reference, so the connection ends with it
            self._workers.append(worker)

    def _begin(self) -> None:
        """Send out the first tasks of a pass."""
        assert self._prefetch_factor is not None
        self._tasks: deque[int] = deque()  # the worker of each unanswered task, oldest first
        self._n_waiting = [0] * self._num_workers
        self._working = [True] * self._num_workers  # with an iterable dataset, each worker ends separately
        self._turn = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        for connection in self._connections:
            self._send(connection, _ResumeIteration())
        for worker_id in range(self._num_workers):  # results left over from the last pass come first
            while not isinstance(_utils.transport.decode(self._receive(worker_id)), _ResumeIteration):
                pass
        self._begin()

    def _try_put_index(self) -> None:
        worker_id = self._next_worker()
        if worker_id is None:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._turn = (worker_id + 1) % self._num_workers
        self._send(self._connections[worker_id], (index,))
        self._tasks.append(worker_id)
        self._n_waiting[worker_id] += 1

    def _next_worker(self) -> int | None:
        """Round robin; with `in_order=False`, the next worker with the fewest tasks, so that a slow one
        delays nobody.
        """
        order = [(self._turn + i) % self._num_workers for i in range(self._num_workers)]
        able = [i for i in order if self._working[i]]
        if not able:
            return None
        return able[0] if self._in_order else min(able, key=self._n_waiting.__getitem__)

    def _send(self, connection: Any, task: Any) -> None:
        try:
            connection.send(task)
        except OSError:  # a dead worker is reported when its result is due
            pass

    def _next_data(self) -> Any:
        if self._shutdown:
            raise StopIteration
        while True:
            while self._tasks and not self._working[self._tasks[0]]:
                self._tasks.popleft()
            if not self._tasks:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            worker_id = self._tasks[0] if self._in_order else self._first_ready()
            message = self._receive(worker_id)
            self._tasks.remove(worker_id)
            self._n_waiting[worker_id] -= 1
            data = _utils.transport.decode(message)
            if isinstance(data, _IterableDatasetStopIteration):
                self._working[worker_id] = False
                if not self._in_order:
                    self._tasks = deque(i for i in self._tasks if i != worker_id)
                self._try_put_index()
                continue
            self._try_put_index()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data

    def _first_ready(self) -> int:
        """The worker whose result arrives first."""
        from multiprocessing.connection import wait

        busy = {self._connections[i]: i for i in self._tasks}
        deadline = time.monotonic() + self._timeout if self._timeout else None
        while True:
            ready = wait(list(busy), self._poll_timeout(deadline))
            if ready:
                return busy[ready[0]]  # type: ignore[index]
            self._check(deadline)

    def _receive(self, worker_id: int) -> Any:
        connection = self._connections[worker_id]
        deadline = time.monotonic() + self._timeout if self._timeout else None
        try:
            while not connection.poll(self._poll_timeout(deadline)):
                self._check(deadline)
        except (EOFError, ConnectionError):
            self._raise_dead([self._workers[worker_id]])
        try:
            return _utils.transport.receive(connection)
        except (EOFError, ConnectionError):
            self._raise_dead([self._workers[worker_id]])
        except BaseException:  # interrupted inside a message: the rest of this connection is unusable
            self._shutdown_workers()
            raise

    def _poll_timeout(self, deadline: float | None) -> float:
        longest = _utils.MP_STATUS_CHECK_INTERVAL
        return longest if deadline is None else max(0.0, min(longest, deadline - time.monotonic()))

    def _check(self, deadline: float | None) -> None:
        """No result arrived: raise if the time limit is exceeded or a worker died without closing its
        connection.
        """
        if deadline is not None and time.monotonic() >= deadline:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        dead = [self._workers[i] for i in set(self._tasks) if not self._workers[i].is_alive()]
        if dead:
            self._raise_dead(dead)

    def _raise_dead(self, workers: list[Any]) -> NoReturn:
        for worker in workers:  # its connection may close shortly before the process ends
            worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
        pids = ", ".join(str(worker.pid) for worker in workers)
        cause = next((_killed_error(worker) for worker in workers if (worker.exitcode or 0) < 0), None)
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause

    def _shutdown_workers(self) -> None:
        if self._shutdown or self._owner_pid != os.getpid():
            return
        self._shutdown = True
        _live.discard(self)
        for connection in self._connections:
            self._send(connection, None)
            connection.close()
        deadline = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                worker.terminate()
                worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
            if worker.is_alive():
                worker.kill()
                worker.join()

    def __del__(self) -> None:
        self._shutdown_workers()


# The iterators with workers. A forked worker inherits this and must not act for its parent.
_live: weakref.WeakSet[_MultiProcessingDataLoaderIter] = weakref.WeakSet()


@functools.cache
def _shut_down_at_exit() -> None:
    """Register once: stop the workers before the interpreter shuts down, while the modules they need still
    exist.
    """

    def shut_down() -> None:
        for iterator in list(_live):
            iterator._shutdown_workers()

    atexit.register(shut_down)


def _forget_loaders() -> None:
    """In a new worker: drop the connections inherited from the parent."""
    for iterator in list(_live):
        iterator._shutdown = True
        for connection in iterator._connections:
            connection.close()
    _live.clear()


def _killed_error(worker: Any) -> RuntimeError:
    name = signal.strsignal(-worker.exitcode) or f"signal {-worker.exitcode}"
    return RuntimeError(f"DataLoader worker (pid {worker.pid}) is killed by signal: {name}. ")


def _explain_start_failure(error: Exception, context: Any) -> None:
    if "pickle" not in str(error) or context.get_start_method() == "fork":
        return
    warnings.warn(
        "Got pickle error when attempting to start a worker Process. This might be because the worker "
        "Process "
        "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
        "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can "
        "also "
        "try multiprocessing.set_start_method('fork').",
        stacklevel=6,
    )
