"""Garbage collections: the collector's callbacks while recording in, rows of integers out."""

from __future__ import annotations

import time
from threading import get_ident

from ... import _recording_hooks as hooks

clock = time.perf_counter_ns


class GarbageCollections:
    """Records the runs of Python's garbage collector from `begin` to `finish`."""

    def __init__(self) -> None:
        self.rows: list[int] = []  # start, end, thread
        self.started = 0

    def begin(self) -> None:
        """Record each run from now on."""
        hooks.add_collector_callback(self.on_run)

    def finish(self) -> None:
        """Record no further runs."""
        hooks.remove_collector_callback(self.on_run)

    def on_run(self, phase: str, information: dict[str, int]) -> None:
        """Called by the collector at the start and the end of a run."""
        if phase == "start":
            self.started = clock()
        elif self.started:
            self.rows.extend((self.started, clock(), get_ident()))
            self.started = 0
