"""Many ranks: `fleet`. The trace files of a job in; a FleetReport out: which rank the others wait for, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import FleetReport

__all__ = ["fleet"]


def fleet(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    threshold: float = 0.03,
    workers: int | None = None,
    dask: bool = False,
    scheduler: str | None = None,
    cache: str | os.PathLike[str] | None = None,
    strict: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> FleetReport:
    """Compare the ranks of a job: which one do the others wait for, and why?

    files: trace files, one per rank or merged ones; patterns (`run/**/*.json.gz`), folders, and `@list.txt`, a file with one of these per line.
    threshold: the share of a step that the others must wait for a rank, from which on it is a straggler.
    workers: processes that read files; 1 reads them in this process, as is done with few files; None: as many as there are processors.
    dask, scheduler: read them on a Dask cluster instead: one of this machine, or that of an address (tcp://...).
    cache: a folder in which the sketch of each file is kept, by its content: a file is read once.
    strict: a damaged file is left out instead of repaired.
    progress: called with (files done, files in all).
    A file that cannot be read costs its rank alone; `missing` of the report names it. The report is the same however files were read.
    """
    from .files import expanded
    from .report import report_of
    from .runners import FEW_FILES, in_process, in_processes
    from .sketch import Sketch, merge
    from .task import Task

    paths, missing = expanded(files)
    task = Task(strict, None if cache is None else os.fspath(cache))
    if dask or scheduler is not None:
        from .dask_runner import on_dask

        sketch = on_dask(paths, task, progress, scheduler=scheduler, workers=workers)
    elif workers == 1 or (workers is None and len(paths) <= FEW_FILES):
        sketch = in_process(paths, task, progress)
    else:
        sketch = in_processes(paths, task, progress, workers)
    return report_of(merge(sketch, Sketch(missing=tuple(missing))), threshold)
