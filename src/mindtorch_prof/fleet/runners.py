"""Runners: paths and a task in; one merged Sketch out. In this process, in worker processes, or on a Dask cluster, with the same result.

Workers of the process pool are `python` processes of their own that read paths from a pipe. Nothing of the program that calls is started
again in them (no fork, no import of its main module), and a worker that dies takes only the file with it that it was reading.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

from .sketch import Sketch, merge_all
from .task import missing

Read = Callable[[str], bytes]  # a task, or what stands for one in tests
Progress = Callable[[int, int], object]  # files done, files in all

FEW_FILES = 3  # up to so many are read in this process: workers take longer to start
_RETRIES = 1  # of a file whose worker died
_EXPANSION = {".gz": 30, "": 4}  # memory that reading takes, as a multiple of the file's size
_LEAST_MEMORY = 256 << 20


def in_process(paths: Sequence[str], read: Read, progress: Progress | None = None) -> Sketch:
    """One file after the other."""
    return merge_all(_counted((Sketch.from_bytes(read(path)) for path in paths), len(paths), progress))


def _counted(sketches: Iterable[Sketch], total: int, progress: Progress | None) -> Iterator[Sketch]:
    for done, sketch in enumerate(sketches, 1):
        if progress is not None:
            progress(done, total)
        yield sketch


def worker_count(paths: Sequence[str], wanted: int | None = None) -> int:
    """How many workers: one per processor, but not more than files, nor than fit into memory while each reads the largest file."""
    if wanted is not None:
        return max(1, min(wanted, len(paths)))
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = _free_memory()
    largest = max((memory_to_read(path) for path in paths), default=_LEAST_MEMORY)
    fit = processors if memory is None else memory // largest
    return max(1, min(processors, len(paths), fit))


def memory_to_read(path: str) -> int:
    """About how many bytes reading a file takes, at most."""
    try:
        size = os.path.getsize(path)
    except OSError:
        return _LEAST_MEMORY
    return max(_LEAST_MEMORY, size * _EXPANSION[".gz" if path.endswith(".gz") else ""])


def _free_memory() -> int | None:
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


# ---------------------------------------------------------------------------------------------------- process pool


def in_processes(
    paths: Sequence[str], read: Read, progress: Progress | None = None, workers: int | None = None
) -> Sketch:
    """On worker processes of this machine. `read` must be importable by name or picklable, as `Task` is."""
    count = worker_count(paths, workers)
    todo: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    for path in paths:
        todo.put((path, 0))
    done: queue.SimpleQueue[Sketch | BaseException] = queue.SimpleQueue()
    pool = [_Worker(read) for _ in range(count)]
    threads = [threading.Thread(target=_serve, args=(worker, todo, done), daemon=True) for worker in pool]
    try:
        for thread in threads:
            thread.start()
        return merge_all(_counted(_results(done, len(paths)), len(paths), progress))
    finally:
        for worker in pool:
            worker.kill()
        for thread in threads:
            thread.join()


def _results(done: queue.SimpleQueue[Sketch | BaseException], count: int) -> Iterator[Sketch]:
    for _ in range(count):
        while True:
            try:
                result = done.get(
                    timeout=0.2
                )  # not for ever: Ctrl-C is served between two waits on every platform
                break
            except queue.Empty:
                continue
        if isinstance(result, BaseException):
            raise result
        yield result


class _Worker:
    """A process that reads one file after the other; started when it is first needed, and again after it died."""

    def __init__(self, read: Read) -> None:
        self._start_message = _framed(pickle.dumps(read))
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_killed = False

    def read(self, path: str) -> bytes:
        """The task's answer; WorkerDiedError if the process ends before it gives one."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(_framed(path.encode("utf-8", "surrogateescape")))
            process.stdin.flush()
            return _read_frame(process.stdout)
        except (OSError, EOFError, ValueError) as error:
            code = process.wait()
            with self._lock:
                self._process = None
            _close_pipes(process)
            raise WorkerDiedError(_how_it_ended(code)) from error

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_killed:
                raise WorkerDiedError("stopped")
            if self._process is None:
                # the same modules as here, wherever this process found them
                code = f"import sys; sys.path[:0] = {sys.path!r}; from mindtorch_prof.fleet.worker import main; main()"
                self._process = subprocess.Popen(  # noqa: S603  # this interpreter and this package
                    [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
                assert self._process.stdin is not None
                with contextlib.suppress(OSError):  # a process that dies at once is noticed when it is asked
                    self._process.stdin.write(self._start_message)
            return self._process

    def kill(self) -> None:
        """End the process, now; also one that is in the middle of a file."""
        with self._lock:
            self._is_killed = True
            process = self._process
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not written yet cannot be
                pipe.close()


class WorkerDiedError(Exception):
    """A worker process ended in the middle of a file."""


def _serve(
    worker: _Worker,
    todo: queue.SimpleQueue[tuple[str, int]],
    done: queue.SimpleQueue[Sketch | BaseException],
) -> None:
    """Give files to one worker until there are none left."""
    while True:
        try:
            path, failures = todo.get_nowait()
        except queue.Empty:
            return
        try:
            done.put(Sketch.from_bytes(worker.read(path)))
        except WorkerDiedError as error:
            if str(error) == "stopped":
                return
            if failures < _RETRIES:
                todo.put((path, failures + 1))
            else:
                done.put(missing(path, f"the process that read it ended: {error}"))
        except BaseException as error:  # an error of this package: it must not leave the caller waiting
            done.put(error)
            return


def _how_it_ended(code: int) -> str:
    if code == -9:
        return "killed (signal 9), probably for want of memory"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def _read_frame(pipe: IO[bytes]) -> bytes:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError("the pipe was closed")
    size = int.from_bytes(head, "little")
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError("the pipe was closed")
    return data
