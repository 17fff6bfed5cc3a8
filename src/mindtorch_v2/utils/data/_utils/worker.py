"""The worker process: receives tasks over a connection and sends back data or wrapped exceptions, in the same
order.

It uses fetchers and the transport, and does not depend on the loader that started it.
"""

from __future__ import annotations

import os
import queue
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from ...._exception_wrapper import ExceptionWrapper
from . import MP_STATUS_CHECK_INTERVAL, transport


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker's id, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Information about this worker; None in the main process."""
    return _worker_info


class ManagerWatchdog:
    """In a worker: whether the process that started it still runs."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it does; a worker that outlives it has another parent."""
        if not self.manager_dead:
            self.manager_dead = os.getppid() != self.manager_pid
        return not self.manager_dead


class _ResumeIteration:
    """Sent to a persistent worker: start again. Sent back after all results of the last pass."""


class _IterableDatasetStopIteration:
    """Sent to the loader: this worker's copy of the dataset is exhausted."""


@dataclass(frozen=True)
class WorkerTask:
    """The arguments of a worker, besides its connection."""

    make_fetcher: Callable[[], Any]
    dataset: Any
    is_iterable: bool
    base_seed: int
    init_fn: Callable[[int], None] | None
    worker_id: int
    num_workers: int


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words that seed NumPy's global generator, as in torch."""
    return np.random.SeedSequence([worker_id, base_seed]).generate_state(4).tolist()


def _worker_loop(task: WorkerTask, connection: Connection, forget_parent: Callable[[], None]) -> None:
    """Process tasks until the connection ends or None arrives."""
    global _worker_info
    try:
        forget_parent()
        torch.set_num_threads(1)
        seed = task.base_seed + task.worker_id
        random.seed(seed)
        torch.manual_seed(seed)
        # First a new generator: a thread of the parent may hold the lock of the inherited one.
        np.random.set_bit_generator(np.random.MT19937(0))
        np.random.seed(_generate_state(task.base_seed, task.worker_id))  # noqa: NPY002  (users' code draws from it)
        _worker_info = WorkerInfo(task.worker_id, task.num_workers, seed, task.dataset)
        tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Tasks are read from the connection as they arrive: the loader must not wait for a busy worker.
        threading.Thread(target=_read, args=(connection, tasks), daemon=True).start()
        _work(task, tasks, connection, os.getppid())
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass


def _read(connection: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    item: Any = ...
    while item is not None:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            item = None
        except Exception:
            item = ExceptionWrapper(where="in DataLoader worker process, reading a task")
        tasks.put(item)


def _work(task: WorkerTask, tasks: queue.SimpleQueue[Any], connection: Connection, parent: int) -> None:
    where = f"in DataLoader worker process {task.worker_id}"
    fetcher: Any = None
    ended = False
    failure: ExceptionWrapper | None = None
    try:
        if task.init_fn is not None:
            task.init_fn(task.worker_id)
        fetcher = task.make_fetcher()
    except Exception:
        failure = ExceptionWrapper(where=where)
    while (item := _next(tasks, parent)) is not None:
        if isinstance(item, _ResumeIteration):
            if failure is None and task.is_iterable:
                try:
                    fetcher, ended = task.make_fetcher(), False
                except Exception:
                    failure = ExceptionWrapper(where=where)
            transport.send(connection, item)
            continue
        if ended:
            continue
        data: Any = failure or item
        if not isinstance(data, ExceptionWrapper):
            try:
                data = fetcher.fetch(item[0])
            except StopIteration:
                if not task.is_iterable:
                    data = ExceptionWrapper(where=where)
                else:
                    data, ended = _IterableDatasetStopIteration(), True
            except Exception:
                data = ExceptionWrapper(where=where)
        try:
            transport.send(connection, data)
        except OSError:
            raise
        except Exception:  # it cannot be pickled
            transport.send(connection, ExceptionWrapper(where=where))


def _next(tasks: queue.SimpleQueue[Any], parent: int) -> Any:
    """The next task; None if there will be no more, or the loader's process has ended."""
    while True:
        try:
            return tasks.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            if os.getppid() != parent:
                return None
