"""Memory of tensors while a recording looks: a new array in, an id and later the row of its free out.

The array that owns the memory is watched by a weak reference, so memory is freed when it really is: a NumPy array that shares it keeps
it. What is watched outlives recordings: a later one shows when memory of an earlier one is freed. This is the plain Python version; the
compiled core learns of frees from NumPy's allocator instead.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from functools import partial

import numpy as np

clock = time.perf_counter_ns
clock_unseen = partial(clock)  # where Python calls are traced, calling it is no event

Row = tuple[int, int, int, int]  # time, bytes (negative: freed), allocation id, thread


# the memory of one tensor: where it begins (WHOLE: it is all of the owner's), allocation id, bytes. A plain tuple: a named one costs
# 0.3 us per allocation.
_Block = tuple[int, int, int]
_WHOLE = -1


class _Watch(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to an array that owns memory."""

    __slots__ = ("blocks", "key")
    key: int
    # the tensors' memory in it: one, unless a kernel returns several parts of one array
    blocks: tuple[_Block, ...]


_watched: dict[int, _Watch] = {}  # by the id() of the owner
_listeners: list[Callable[[Row], None]] = []  # of the recordings of memory under way
_here = threading.local()  # `ident`: of this thread, once memory was freed in it


def listen(listener: Callable[[Row], None]) -> None:
    """Tell this of each free from now on."""
    _listeners.append(listener)


def unlisten(listener: Callable[[Row], None]) -> None:
    """Tell this no more."""
    if listener in _listeners:
        _listeners.remove(listener)


def observe(array: np.ndarray) -> int:
    """Watch the memory of a new array; the id of the allocation, which is its time. 0: it has no memory, or is watched already."""
    nbytes = array.nbytes
    if not nbytes:
        return 0
    owner = array if array.base is None else owner_of(array)
    address = _WHOLE if owner is array else address_of(array)
    key = id(owner)
    watch = _watched.get(key)
    if watch is None or watch() is None:
        now = clock()
        watch = _Watch(owner, _freed)
        watch.key, watch.blocks = key, ((address, now, nbytes),)
        _watched[key] = watch  # whole: a signal handler may look at it at once
        return now
    if any(block[0] == address for block in watch.blocks):
        return 0
    now = clock()
    watch.blocks += ((address, now, nbytes),)
    return now


def allocation_id(array: np.ndarray) -> int:
    """The id of the allocation that this array's memory belongs to; 0: it is not watched."""
    owner = array if array.base is None else owner_of(array)
    watch = _watched.get(id(owner))
    if watch is None or watch() is None:
        return 0
    begin, allocation_id, _ = watch.blocks[0]
    if begin == _WHOLE:
        return allocation_id
    address = address_of(array)
    for begin, allocation_id, nbytes in watch.blocks:
        if begin <= address < begin + nbytes:
            return allocation_id
    return 0


def alive() -> np.ndarray:
    """What is watched now: rows of allocation id, address, bytes."""
    rows: list[tuple[int, int, int]] = []
    for watch in list(_watched.values()):
        owner = watch()
        if owner is not None:
            for begin, allocation_id, nbytes in watch.blocks:
                rows.append((allocation_id, address_of(owner) if begin == _WHOLE else begin, nbytes))
    return np.array(rows, np.int64).reshape(-1, 3)


def address_of(array: np.ndarray) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _freed(watch: _Watch) -> None:
    # without calls of built-in functions: each is two events where Python calls are traced
    if watch.key in _watched and _watched[watch.key] is watch:
        del _watched[watch.key]
    if not _listeners:
        return
    try:
        thread = _here.ident
    except AttributeError:
        thread = _here.ident = threading.get_ident()
    now = clock_unseen()
    for _, allocation_id, nbytes in watch.blocks:
        for listener in _listeners:
            listener((now, -nbytes, allocation_id, thread))
