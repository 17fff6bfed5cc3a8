"""The runner on Dask: paths and a task in; one merged Sketch out. One task per file, merged in a tree on the cluster.

Needs the extra `dask`. Files are opened on the workers: with a scheduler on other machines, paths must mean the same there.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from .runners import Progress, Read, in_processes, memory_to_read, worker_count
from .sketch import Sketch, merge_all
from .task import missing

if TYPE_CHECKING:
    from distributed import Client, LocalCluster
    from distributed import Future as DaskFuture

    Future = DaskFuture[bytes]

_BRANCHES = 16  # sketches that one task merges
_START_TIMEOUT = "30s"
_POLL_S, _RESULT_S = 0.01, 1.0  # between two looks at the cluster
_ABANDON_S = 3.0  # for the end of a cluster that is still starting
_NO_WORKER_S = 60.0  # after which a cluster without workers is given up


class DaskError(Exception):
    """The cluster cannot be used: not installed, not reachable, or without this package. One sentence."""


class WorkersLostError(DaskError):
    """The cluster has lost its workers for good. A worker that dies while it starts is not started again."""

    def __init__(self, sketches: list[Sketch], paths: list[str]) -> None:
        super().__init__(
            f"the cluster has had no worker for {_NO_WORKER_S:g} seconds; {len(paths)} files are not read"
        )
        self.sketches = sketches  # of the other files
        self.paths = paths


def on_dask(
    paths: Sequence[str],
    read: Read,
    progress: Progress | None = None,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Sketch:
    """On the cluster of a scheduler's address; None: on a cluster of this machine that is started for it and closed afterwards."""
    try:
        with _client(scheduler, paths, workers) as client:
            return run_on(client, paths, read, progress)
    except WorkersLostError as lost:
        if scheduler is not None:
            raise
        done = len(paths) - len(lost.paths)

        def further(count: int, _: int) -> object:
            return None if progress is None else progress(done + count, len(paths))

        return merge_all([*lost.sketches, in_processes(lost.paths, read, further, workers)])


@contextlib.contextmanager
def _client(scheduler: str | None, paths: Sequence[str], workers: int | None) -> Iterator[Client]:
    try:
        import distributed
    except ImportError as error:
        raise DaskError("Dask is not installed: pip install 'mindtorch-v2[dask]'") from error
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=_START_TIMEOUT)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TimeoutError) as error:
            raise DaskError(f"no Dask scheduler answers at {scheduler}: {error}") from error
        with client:
            yield client
        return
    with _local_cluster(paths, workers) as cluster, distributed.Client(cluster) as client:  # type: ignore[no-untyped-call]
        yield client


def _local_cluster(paths: Sequence[str], workers: int | None) -> LocalCluster:
    """A cluster of this machine. An interrupt while it starts kills what has been started: Dask would report its own failure at length."""
    import distributed

    started: list[LocalCluster] = []
    failed: list[BaseException] = []

    def start() -> None:
        # the workers inherit this: Ctrl-C, which the terminal sends to all processes, is this process's to handle
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # workers are processes with one thread each: reading holds the interpreter's lock, and its memory cannot be spilled
            cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=worker_count(paths, workers),
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # any free port: the usual one may be taken by another cluster
                memory_limit=_memory_limit(paths),
            )
            started.append(cluster)
        except BaseException as error:
            failed.append(error)

    resource_tracker.ensure_running()  # its start would unblock the signal in the thread that starts the workers
    others = set(multiprocessing.active_children())
    thread = threading.Thread(target=start, name="start of a Dask cluster", daemon=True)
    try:
        thread.start()
        thread.join()
    except BaseException:
        _abandon(thread, others, started)
        raise
    if failed:
        raise failed[0]
    return started[0]


def _abandon(
    thread: threading.Thread, others: set[multiprocessing.process.BaseProcess], started: list[LocalCluster]
) -> None:
    """End the start of a cluster and its processes, all but the others that were there before."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        deadline = time.monotonic() + _ABANDON_S
        while thread.is_alive() and time.monotonic() < deadline:
            for process in set(multiprocessing.active_children()) - others:
                process.kill()
            thread.join(_POLL_S)
        for cluster in started:
            cluster.close(timeout=_ABANDON_S)
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
            process.join(_ABANDON_S)
    finally:
        for logger, level in levels:
            logger.setLevel(level)


def _memory_limit(paths: Sequence[str]) -> int:
    """Bytes of one worker: what reading the largest file takes, and some for the interpreter."""
    return (1 << 30) + 2 * max(map(memory_to_read, paths), default=0)


def run_on(client: Client, paths: Sequence[str], read: Read, progress: Progress | None = None) -> Sketch:
    """On the cluster of a client."""
    # no names from arguments: a file may have changed since an earlier run
    leaves = {client.submit(read, path, pure=False): path for path in paths}
    merges: dict[Future, list[Future]] = {}
    waiting: list[Future] = []
    sketches: list[Sketch] = []  # results that are here
    unread = set(leaves)  # the leaves that are in none of them
    suspects: list[Future] = []
    workers = _Workers(client)
    try:
        for done, future in enumerate(_completed(list(leaves), workers), 1):
            if future.status != "error":  # "pending": its result was lost with a worker, and it is read again
                waiting.append(future)
            elif _is_killed(future):
                suspects.append(future)
            else:
                sketches.append(missing(leaves[future], _failure(future)))
                unread.discard(future)
            if len(waiting) == _BRANCHES:
                merges[client.submit(merged_bytes, waiting, pure=False)] = waiting
                waiting = []
            if progress is not None:
                progress(done, len(leaves))
        for merge, parts in merges.items():
            try:
                sketches.append(Sketch.from_bytes(_result(merge, workers)))
                unread.difference_update(parts)
            except _NoWorkersError:
                raise
            except Exception:  # a worker with some of the parts died for good: they are asked for one by one
                waiting += parts
        for leaf in waiting:
            try:
                sketches.append(Sketch.from_bytes(_result(leaf, workers)))
                unread.discard(leaf)
            except _NoWorkersError:
                raise
            except Exception:  # its result was lost with a worker, and reading it again failed
                suspects.append(leaf)
        for leaf in suspects:
            # Dask blames all tasks of a worker that died, also those that waited there: alone, only the guilty one fails again
            again = client.submit(read, leaves[leaf], pure=False)
            sketches.append(_single(again, leaves[leaf], workers))
            unread.discard(leaf)
    except BaseException as error:
        with contextlib.suppress(Exception):  # the cluster may be what failed
            client.cancel(list(leaves) + list(merges), force=True)  # type: ignore[no-untyped-call]
        if isinstance(error, _NoWorkersError):
            lost = sorted(path for leaf, path in leaves.items() if leaf in unread)
            raise WorkersLostError(sketches, lost) from None
        raise
    return merge_all(sketches)


class _NoWorkersError(Exception):
    """There have been no workers for a while."""


class _Workers:
    """Whether a cluster has workers: without any, its tasks would be waited for without end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last_seen = time.monotonic()

    def check(self) -> None:
        """Call now and then while waiting."""
        now = time.monotonic()
        if now - self._last_seen > _NO_WORKER_S / 10 and self._client.scheduler_info(n_workers=1)["workers"]:
            self._last_seen = now
        if now - self._last_seen > _NO_WORKER_S:
            raise _NoWorkersError


def _completed(futures: list[Future], workers: _Workers) -> Iterator[Future]:
    """Futures as they are done."""
    from distributed import as_completed

    completed = as_completed(futures)  # type: ignore[no-untyped-call]
    for _ in futures:
        while not completed.has_ready():  # type: ignore[no-untyped-call]
            time.sleep(_POLL_S)
            workers.check()
        yield next(completed)


def _result(future: Future, workers: _Workers) -> bytes:
    """The bytes of a task. Those of a finished one may have been lost with its worker: it runs again."""
    from distributed import TimeoutError as DaskTimeoutError

    while True:
        try:
            return future.result(timeout=_RESULT_S)
        except DaskTimeoutError:
            if future.status == "error":  # the task's own
                raise
            workers.check()


def merged_bytes(parts: Sequence[bytes]) -> bytes:
    """The bytes of sketches in, those of the merged one out: the task of a branch."""
    return merge_all(map(Sketch.from_bytes, parts)).to_bytes()


def _single(leaf: Future, path: str, workers: _Workers) -> Sketch:
    try:
        return Sketch.from_bytes(_result(leaf, workers))
    except _NoWorkersError:
        raise
    except Exception:
        return missing(path, _failure(leaf))


def _is_killed(future: Future) -> bool:
    """Whether the workers that had a task died, more often than Dask allows."""
    if future.status != "error":
        return False
    return type(future.exception()).__name__ == "KilledWorker"  # type: ignore[no-untyped-call]


def _failure(future: Future) -> str:
    """Why a task gave no answer."""
    error: BaseException | None = future.exception() if future.status == "error" else None  # type: ignore[no-untyped-call]
    if error is None:
        return f"the task was {future.status}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("mindtorch_prof"):
        raise DaskError(
            "the workers of the cluster cannot import mindtorch_prof: install it there"
        ) from error
    if _is_killed(future):
        return "the workers that read it died, probably for want of memory"
    return f"{type(error).__name__}: {error}"


__all__ = ["DaskError", "WorkersLostError", "merged_bytes", "on_dask", "run_on"]
