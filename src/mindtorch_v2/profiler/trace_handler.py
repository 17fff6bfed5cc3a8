"""`tensorboard_trace_handler`: a folder in, a callback for `on_trace_ready` out that writes each trace to a new file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Write each finished trace to `dir_name` as {worker}.{time_ns}.pt.trace.json, with .gz if `use_gzip`.

    `use_python_export` has no effect: there is only one writer.
    """

    import socket  # takes 5 ms, and only programs that write a trace need it

    def handler_fn(prof: Any) -> None:
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        os.makedirs(dir_name, exist_ok=True)
        suffix = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        while True:
            path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.{suffix}")
            try:
                prof._export_chrome_trace(path, exclusive=True)
            except FileExistsError:  # another process wrote at the same nanosecond: try again
                continue
            return

    return handler_fn
