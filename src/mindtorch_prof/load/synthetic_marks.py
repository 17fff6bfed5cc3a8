"""Synthetic events of a file: arguments and columns in; their marks, and the recorded events that they stand in, out.

A file numbers its events (External id) in the order of the recording's rows, in which a synthetic event follows the recorded event that it
stands in. The order of the file itself is not needed.
"""

from __future__ import annotations

import numpy as np

from ..arrays import BoolArray, IntArray
from ..trace import ALLOCATES, SYNTHETIC
from ..tree import recorded_owners
from .json_slices import EventArgs


def mark_of(args: EventArgs, length: object) -> int:
    """The value of `Trace.synthetic` for an event's arguments; 0 also where another program means something else by them."""
    levels = args.get(SYNTHETIC)
    if levels.__class__ is not int or not 0 < levels < 128 or length != 0:
        return 0
    return -levels if args.get(ALLOCATES) else levels


def owners_of(
    marks: IntArray, thread: IntArray, start: IntArray, number: IntArray, is_op: BoolArray
) -> IntArray:
    """The recorded event of each synthetic one, for recorded events themselves; -1: it is not in the file.

    marks: 0 for recorded events. number: External ids. is_op: what has a number of its own; runtime calls have that of an op.
    """
    owner = np.arange(len(marks))
    if not marks.any():
        return owner
    rows = np.flatnonzero(is_op)
    rows = rows[np.lexsort((number[rows], thread[rows]))]
    owner[rows] = rows[recorded_owners(marks[rows])]
    known = (marks[owner] == 0) & (thread[owner] == thread) & (start[owner] == start)
    return np.where(known, owner, -1)


def without_gaps(marks: IntArray) -> IntArray:
    """Marks of rows in order. Where an event between a synthetic one and its recorded one is missing, those below it move up."""
    place = np.arange(len(marks))
    level = np.minimum.accumulate(np.abs(marks.astype(np.int64)) - place) + place
    return np.where(marks < 0, -level, level).astype(np.int8)
