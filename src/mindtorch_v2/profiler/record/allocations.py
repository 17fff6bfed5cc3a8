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

from ..._tensor_slots import address as address_of

clock = time.perf_counter_ns
clock_unseen = partial(clock)  # where Python calls are traced, calling it is no event

Row = tuple[int, int, int, int]  # time, bytes (negative: freed), allocation id, thread

# the memory of one tensor: where it begins (WHOLE: it is all of the owner's), allocation id, bytes
_Block = tuple[int, int, int]
_WHOLE = -1


class _Watch(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to an array that owns memory. In it is the memory of one tensor, in slots: a tuple takes longer."""

    __slots__ = ("allocation_id", "begin", "further", "key", "nbytes")
    key: int
    begin: int
    allocation_id: int
    nbytes: int
    further: tuple[
        _Block, ...
    ]  # the memory of further tensors, where a kernel returns several parts of one array

    def blocks(self) -> tuple[_Block, ...]:
        """The memory of all tensors in it."""
        return ((self.begin, self.allocation_id, self.nbytes), *self.further)


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
    owner, begin = array, _WHOLE
    if array.base is not None:
        owner = owner_of(array)
        begin = _WHOLE if owner is array else address_of(array)
    key = id(owner)
    if key in _watched:
        known = _watched.get(key)
        if known is not None and known() is not None:
            return _observe_further(known, begin, nbytes)
    watch = _Watch(owner, _freed)
    watch.key = key
    watch.begin = begin
    watch.nbytes = nbytes
    watch.further = ()
    watch.allocation_id = now = clock()
    _watched[key] = watch  # whole: a signal handler may look at it at once
    return now


def _observe_further(watch: _Watch, begin: int, nbytes: int) -> int:
    """Watch one more part of an array of which a part is watched already."""
    if any(block[0] == begin for block in watch.blocks()):
        return 0
    now = clock()
    watch.further += ((begin, now, nbytes),)
    return now


def allocation_id(array: np.ndarray) -> int:
    """The id of the allocation that this array's memory belongs to; 0: it is not watched."""
    owner = array if array.base is None else owner_of(array)
    watch = _watched.get(id(owner))
    if watch is None or watch() is None:
        return 0
    if watch.begin == _WHOLE:
        return watch.allocation_id
    address = address_of(array)
    for begin, allocation_id, nbytes in watch.blocks():
        if begin <= address < begin + nbytes:
            return allocation_id
    return 0


def alive() -> np.ndarray:
    """What is watched now: rows of allocation id, address, bytes."""
    rows: list[tuple[int, int, int]] = []
    for watch in list(_watched.values()):
        owner = watch()
        if owner is not None:
            for begin, allocation_id, nbytes in watch.blocks():
                rows.append((allocation_id, address_of(owner) if begin == _WHOLE else begin, nbytes))
    return np.array(rows, np.int64).reshape(-1, 3)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _freed(watch: _Watch) -> None:
    # Without calls of built-in functions: each is two events where Python calls are traced. No other array can have the same id() before
    # this one is gone, so the entry is its own.
    del _watched[watch.key]
    if not _listeners:
        return
    try:
        thread = _here.ident
    except AttributeError:
        thread = _here.ident = threading.get_ident()
    now = clock_unseen()
    for listener in _listeners:
        listener((now, -watch.nbytes, watch.allocation_id, thread))
        if watch.further:
            for _, allocation_id, nbytes in watch.further:
                listener((now, -nbytes, allocation_id, thread))
