"""Beside running programs under real torch: acceleration of its profiler, handlers, and the runner of unmodified programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from .acceleration import Acceleration
    from .handler import TraceHandler

__all__ = ["accelerate", "trace_handler"]


def accelerate() -> Acceleration:
    """Let the engine answer for real torch's profiler objects: as a context manager, or for good (`undo()` ends it).

    `events()`, `key_averages()`, `table()`, `total_average()` and `export_stacks()` give the same objects and texts as before, in a
    fraction of the time. Raises AccelerationError where torch is not imported, or is of a version that was not checked.
    """
    from .acceleration import switched_on

    return switched_on()


def trace_handler(
    folder: str | os.PathLike[str],
    *,
    report: bool = True,
    keep: int | None = 5,
    background: bool = True,
    worker_name: str | None = None,
    quiet: bool = False,
) -> TraceHandler:
    """A function for `on_trace_ready` that writes each recording to a folder, with the rank and the step in its name.

    report: also write a page (.html) and a summary (.summary.txt).
    keep: how many recordings of this process are kept; None: all.
    background: a forked child process writes, so that the program goes on; where there is no fork, it is written at once.
    worker_name: how names begin; by default with the host and the process.
    quiet: do not print for how long the program was held up.
    Files are complete or not there. The handler's `wait()` waits for them; the end of the program does as well.
    """
    import os

    from .handler import TraceHandler

    return TraceHandler(os.fspath(folder), report, keep, background, worker_name, quiet)
