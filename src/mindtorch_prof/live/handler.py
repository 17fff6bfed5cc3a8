"""A handler of finished recordings: a folder in, a function for `on_trace_ready` out. It writes the trace, a report and a summary.

torch writes a trace while holding the interpreter, so no thread can do it aside. A forked child can: it has the recording's memory, writes
the files and ends, and training goes on after the time that a fork takes. A child that fails or hangs is noticed: its files are then
written here.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..files import open_for_export
from .ranks import rank_from_environment
from .run_torch import export_trace

_AT_ONCE = 8  # children that may write at the same time; further recordings wait for the oldest
_PATIENCE = 600.0  # seconds after which a child counts as hanging


@dataclass
class _Job:
    """The files of one recording, and the child that writes them."""

    prof: Any  # kept until its files are there
    base: str  # path without suffixes
    step: int
    child: int = 0  # its process id; 0: none
    begun: float = 0.0


@dataclass
class TraceHandler:
    """What `trace_handler` gives. Call it with a finished profile; `wait` until all files are written."""

    folder: str
    report: bool = True
    keep: int | None = 5
    background: bool = True
    worker_name: str | None = None
    quiet: bool = False
    pauses: list[float] = field(default_factory=list)  # seconds for which each recording held up the program
    written: deque[str] = field(default_factory=deque)  # paths of the traces that are there, oldest first
    _jobs: deque[_Job] = field(default_factory=deque)
    _pid: int = 0

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise ValueError(f"keep={self.keep}: expected 1 or more, or None to keep all")
        if self.worker_name and os.path.basename(self.worker_name) != self.worker_name:
            raise ValueError(f"worker_name={self.worker_name!r}: expected a file name without folders")
        os.makedirs(self.folder, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            raise PermissionError(f"{self.folder}: traces cannot be written to this folder")

    def __call__(self, prof: Any) -> None:
        """Hand a finished recording over."""
        begun = time.perf_counter()
        self._prepare()
        step = int(getattr(prof, "step_num", 0))
        job = _Job(_snapshot(prof), os.path.join(self.folder, self._name(step)), step)
        while len(self._jobs) >= _AT_ONCE:
            self._collect(self._jobs.popleft(), wait=True)
        if self.background and hasattr(os, "fork"):
            self._fork(job)
        else:
            self._write(job)
        pause = time.perf_counter() - begun
        self.pauses.append(pause)
        how = "a child process writes it" if job.child else "it is written"
        self._say(
            f"step {step}: the program was held up for {pause * 1e3:.1f} ms; {how}: {job.base}.pt.trace.json.gz"
        )

    def wait(self) -> None:
        """Wait until all files are written. Also called when the program ends."""
        if os.getpid() == self._pid:
            while self._jobs:
                self._collect(self._jobs.popleft(), wait=True)

    # ------------------------------------------------------------------------------------------------ children

    def _prepare(self) -> None:
        if self._pid != os.getpid():  # the first call, or the first one of a forked process
            self._pid = os.getpid()
            self._jobs.clear()
            atexit.register(self.wait)
        running: deque[_Job] = deque()
        for job in self._jobs:
            if not self._collect(job, wait=False):
                running.append(job)
        self._jobs = running

    def _fork(self, job: _Job) -> None:
        _flush()
        job.begun = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # Python 3.12: of forking a process with threads
                job.child = os.fork()
        except OSError:  # no memory for another process
            self._write(job)
            return
        if job.child == 0:
            _run_child(lambda: self._files(job))
        self._jobs.append(job)

    def _collect(self, job: _Job, wait: bool) -> bool:
        """Look after the child of a job; whether it has ended. Where it failed, the files are written here."""
        code = _ended(job, wait)
        if code is None:
            return False
        if code == 0:
            self._done(job)
        else:
            self._say(
                f"step {job.step}: the child process that should have written {job.base} failed ({code}); it is written now"
            )
            self._write(job)
        return True

    def _write(self, job: _Job) -> None:
        try:
            self._files(job)
        except Exception as error:  # a program must not end because its trace cannot be written
            self._say(f"{job.base}: cannot be written: {error}")
        else:
            self._done(job)

    def _done(self, job: _Job) -> None:
        self.written.append(f"{job.base}.pt.trace.json.gz")
        while self.keep is not None and len(self.written) > self.keep:
            base = self.written.popleft().removesuffix(".pt.trace.json.gz")
            for suffix in (".pt.trace.json.gz", ".html", ".summary.txt"):
                if os.path.exists(base + suffix):
                    os.unlink(base + suffix)

    # ------------------------------------------------------------------------------------------------ files

    def _name(self, step: int) -> str:
        worker = self.worker_name or f"{socket.gethostname()}_{os.getpid()}"
        rank = current_rank()
        return ".".join([worker, *([] if rank is None else [f"rank{rank}"]), f"step{step}"])

    def _files(self, job: _Job) -> None:
        """Write the trace and, with `report`, a page and a summary. Each is written under another name and renamed."""
        if self.report:
            from ..analysis.summary import summary, summary_text
            from ..load import from_torch

            recording = from_torch(job.prof)
            recording.export_html(f"{job.base}.html")
            with open_for_export(f"{job.base}.summary.txt") as out:
                out.write(summary_text(summary(recording)).encode())
        export_trace(job.prof, f"{job.base}.pt.trace.json.gz")

    def _say(self, text: str) -> None:
        if self.quiet:
            return
        try:
            print(f"mindtorch-prof: {text}", file=sys.stderr, flush=True)  # noqa: T201
        except (OSError, ValueError, AttributeError):
            pass


def current_rank() -> int | None:
    """The rank of this process: as torch.distributed has it, else as its launcher says; None: there is one process only."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except (AttributeError, RuntimeError, ValueError):
        pass
    rank = rank_from_environment()
    return None if rank is None else rank[0]


class _Snapshot:
    """A profile as it is now: torch's own object gets another recording in the next cycle."""

    def __init__(self, prof: Any) -> None:
        self._prof, self.profiler = prof, prof.profiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._prof, name)

    def export_chrome_trace(self, path: str) -> None:
        self.profiler.export_chrome_trace(path)


def _snapshot(prof: Any) -> Any:
    return _Snapshot(prof) if getattr(prof, "profiler", None) is not None else prof


def _run_child(work: Callable[[], None]) -> NoReturn:
    """What a forked child does: one piece of work, then it ends at once, without what the program does at its end."""
    code = 1
    try:
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.nice(5)
        work()
        code = 0
    except BaseException as error:
        try:
            os.write(2, f"mindtorch-prof: {type(error).__name__}: {error}\n".encode())
        except OSError:
            pass
    finally:
        os._exit(code)


def _ended(job: _Job, wait: bool) -> int | None:
    """The exit code of a job's child; None: it is still at work."""
    while True:
        try:
            pid, status = os.waitpid(job.child, os.WNOHANG)
        except ChildProcessError:  # someone else has waited for it: the file tells
            return 0 if os.path.exists(f"{job.base}.pt.trace.json.gz") else 1
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() - job.begun > _PATIENCE:
            os.kill(job.child, signal.SIGKILL)
            os.waitpid(job.child, 0)
            return -int(signal.SIGKILL)
        if not wait:
            return None
        time.sleep(0.01)


def _flush() -> None:
    """What is buffered would otherwise be written twice."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
