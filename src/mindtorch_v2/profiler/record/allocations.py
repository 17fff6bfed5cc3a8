"""Memory of tensors while a recording looks: a new array and the time in, later the row of its free out.

The array that owns the memory is watched by a weak reference, so memory is freed when it really is: a NumPy array that shares it keeps
it. What is watched outlives recordings: a later one shows when memory of an earlier one is freed. This is the plain Python version; the
compiled core learns of frees from NumPy's allocator instead.

A free is noted with its time and thread by a callback of built-in functions only, and told to the recordings later. Python runs the
handlers of signals between the instructions of Python code: in a callback written in Python, what they raise would be lost.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from threading import get_ident
from weakref import getweakrefcount, getweakrefs, ref

import numpy as np

from ..._tensor_slots import address as address_of

clock = time.perf_counter_ns

Rows = list[int]  # one after the other: time, bytes (negative: freed), allocation id, thread

# the memory of one tensor: where it begins (WHOLE: it is all of the owner's), allocation id, bytes
_Block = tuple[int, int, int]
_WHOLE = -1
_AT_ONCE = 64  # frees that are told at once: a call for each takes longer


class _Watch(ref):  # type: ignore[type-arg]
    """A weak reference to an array that owns memory, with the allocation of a tensor in it in slots: a tuple takes longer."""

    __slots__ = ("allocation_id", "nbytes")
    __hash__ = object.__hash__  # that of a weak reference is its object's, which arrays do not have
    __init__ = object.__init__  # that of a weak reference reads its arguments once more, for nothing
    allocation_id: int
    nbytes: int

    def blocks(self) -> tuple[_Block, ...]:
        """The memory of all tensors in it."""
        return _parts.get(self) or ((_WHOLE, self.allocation_id, self.nbytes),)


_watched: set[_Watch] = set()
# Where a tensor's memory is a part of the array's, as where a kernel returns several parts of one array: all of them.
_parts: dict[_Watch, tuple[_Block, ...]] = {}
# Time and thread of the frees that are not told yet. To ask for an entry that is missing makes it, which is all that the callback does.
_frees: defaultdict[_Watch, tuple[int, int]] = defaultdict(zip(iter(clock, -1), iter(get_ident, -1)).__next__)
_note_free = _frees.__getitem__
_listeners: list[Callable[[Rows], object]] = []  # of the recordings of memory under way


def listen(listener: Callable[[Rows], object]) -> None:
    """Tell this of frees from now on."""
    tell_frees()
    _listeners.append(listener)


def unlisten(listener: Callable[[Rows], object]) -> None:
    """Tell this no more."""
    if listener in _listeners:
        tell_frees()
        _listeners.remove(listener)


def tell_frees() -> None:
    """Tell the recordings under way of the memory that was freed since the last time."""
    rows: Rows = []
    try:
        while _frees:
            watch, (now, thread) = _frees.popitem()
            rows += (now, -watch.nbytes, watch.allocation_id, thread)
            _watched.discard(watch)
            if _parts:
                for _, allocation_id, nbytes in _parts.pop(watch, ())[1:]:
                    rows += (now, -nbytes, allocation_id, thread)
    except KeyError:
        pass  # another thread, or the handler of a signal, has told the last one meanwhile
    finally:  # also if the handler of a signal raises
        for listener in _listeners:
            listener(rows)


def observe(array: np.ndarray, now: int) -> int:
    """Watch the memory of an array that is new now: the time, which is given to one array only, is the id of the allocation. How many
    bytes it has; 0: none, or they are watched already."""
    if len(_frees) >= _AT_ONCE:
        tell_frees()
    nbytes = array.nbytes
    if not nbytes:
        return 0
    owner, begin = array, _WHOLE
    if array.base is not None:
        owner = owner_of(array)
        begin = _WHOLE if owner is array else address_of(array)
    if getweakrefcount(owner):
        for known in getweakrefs(owner):
            if known.__class__ is _Watch:
                return _observe_further(known, begin, now, nbytes)
    watch = _Watch(owner, _note_free)
    watch.nbytes = nbytes
    watch.allocation_id = now
    if begin != _WHOLE:
        _parts[watch] = ((begin, now, nbytes),)
    _watched.add(watch)  # whole: a signal handler may look at it at once
    return nbytes


def _observe_further(watch: _Watch, begin: int, now: int, nbytes: int) -> int:
    """Watch one more part of an array of which a part is watched already."""
    blocks = watch.blocks()
    if any(block[0] == begin for block in blocks):
        return 0
    _parts[watch] = (*blocks, (begin, now, nbytes))
    return nbytes


def allocation_id(array: np.ndarray) -> int:
    """The id of the allocation that this array's memory belongs to; 0: it is not watched."""
    owner = array if array.base is None else owner_of(array)
    for watch in getweakrefs(owner):
        if watch.__class__ is _Watch:
            return _id_at(watch, array)
    return 0


def _id_at(watch: _Watch, array: np.ndarray) -> int:
    """The id of the allocation of a watched array that this array, a part of it, belongs to; 0: none."""
    address = address_of(array)
    for begin, allocation_id, nbytes in watch.blocks():
        if begin == _WHOLE or begin <= address < begin + nbytes:
            return allocation_id
    return 0


def alive() -> np.ndarray:
    """What is watched now: rows of allocation id, address, bytes."""
    rows: list[tuple[int, int, int]] = []
    for watch in list(_watched):
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
