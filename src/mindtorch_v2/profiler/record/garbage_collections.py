"""Garbage collections: the collector's callbacks while recording in, rows among the Python calls out."""

from __future__ import annotations

import time
from threading import get_ident

import numpy as np

from mindtorch_prof.trace import Frames
from mindtorch_prof.tree import depths, parents, thread_slices

from ... import _recording_hooks as hooks

clock = time.perf_counter_ns


class GarbageCollections:
    """Records the runs of Python's garbage collector from `begin` to `finish`."""

    NAME = "Python GC"

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

    def merged_with(self, frames: Frames) -> Frames:
        """The calls, and the collections inside them."""
        if not self.rows:
            return frames
        start, end, thread = np.array(self.rows, np.int64).reshape(-1, 3).T
        count = len(start)
        line = np.zeros(len(frames), np.int64) if frames.line is None else frames.line
        columns = [
            np.concatenate([frames.name, np.full(count, len(frames.names), np.int32)]),
            np.concatenate([frames.start_ns, start]),
            np.concatenate([frames.end_ns, end]),
            np.concatenate([frames.thread, thread]),
            np.concatenate([frames.module, np.full(count, -1, np.int64)]),
            np.concatenate([line, np.zeros(count, np.int64)]),
        ]
        # of rows that start at the same time the longest is the outermost; calls of equal times keep their order
        order = np.lexsort((np.arange(len(columns[0])), -columns[2], columns[1], columns[3]))
        name, start, end, thread, module, line = (column[order] for column in columns)
        parent = np.full(len(order), -1, np.int64)
        for first, last in thread_slices(thread):
            parent_in_slice = parents(depths(start[first:last], end[first:last]))
            parent[first:last] = np.where(parent_in_slice < 0, -1, parent_in_slice + first)
        return Frames((*frames.names, self.NAME), name, start, end, thread, parent, module, line)
