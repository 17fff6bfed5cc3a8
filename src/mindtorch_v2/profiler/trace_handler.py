"""`tensorboard_trace_handler`: a folder in, a callback for `on_trace_ready` out that writes each trace to a new file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Write each finished trace to `dir_name` as {worker}.{time_ns}.pt.trace.json, with .gz if `use_gzip`.

    A trace that cannot be written is a warning: the program that is watched goes on. `use_python_export` has no effect: there is only
    one writer.
    """
    if worker_name and os.path.basename(worker_name) != worker_name:
        raise ValueError(f"worker_name must be a file name without folders, got {worker_name!r}")

    import socket  # takes 5 ms, and only programs that write a trace need it

    def handler_fn(prof: Any) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        suffix = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        while True:
            path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.{suffix}")
            try:
                prof._export_chrome_trace(path, exclusive=True)
            except FileExistsError:  # another process wrote at the same nanosecond: try again
                continue
            except OSError as error:
                warn_not_written(path, error)
            return

    return handler_fn


def warn_not_written(path: str | os.PathLike[str], error: OSError) -> None:
    """Say that a file was not written, and why."""
    warnings.warn(
        f"{os.fspath(path)}: not written ({error.strerror or error}); the profile can still be exported elsewhere",
        stacklevel=3,
    )
