"""Garbage collections: calls of Python functions and the collector's runs in, one set of frames out."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from ..trace import Frames
from ..tree import depths, parents, thread_slices

NAME = "Python GC"


def with_collections(frames: Frames, rows: IntArray) -> Frames:
    """The calls, and the collections inside them. rows: (start, end, thread) of each collection."""
    if not len(rows):
        return frames
    start, end, thread = rows.T
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
    return Frames((*frames.names, NAME), name, start, end, thread, parent, module, line)
