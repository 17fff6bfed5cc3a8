"""Ids of tensors and memory as columns of a Trace: what was noted while recording in, `TensorIds` out."""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from ..trace import Frames, TensorIds
from ..tree import innermost, thread_slices
from .logs import Logs
from .raw import TensorTables

# memory that was freed before the stop gets an address from here on, where no process has any
_MADE_UP = 1 << 60


def tensor_columns(
    tables: TensorTables,
    logs: Logs,
    first: IntArray,
    tensor_log: IntArray,
    storage_ids: IntArray,
    frames: Frames,
) -> TensorIds:
    """All ids as columns. first: by event, where its tensors begin in the log; storage_ids: by row of `Memory`."""
    storages = logs.joined("storages")
    earlier_ids = dict(logs.joined("earlier_ids").tolist())
    if earlier_ids:
        storages = storages.copy()
        storage_ids, storages[:, 1] = (
            np.array([earlier_ids.get(number, number) for number in numbers.tolist()], np.int64)
            for numbers in (storage_ids, storages[:, 1])
        )
    allocated = _distinct(storage_ids)
    own_storages = np.stack([allocated, allocated, _addresses(tables, allocated)], axis=1)
    return TensorIds(
        first,
        tensor_log,
        np.concatenate([storages, own_storages]),
        tables.links,
        storage_ids,
        tuple(tables.owners),
        _owner_of_frames(tables, logs.joined("steps"), frames),
    )


def _addresses(tables: TensorTables, storage_ids: IntArray) -> IntArray:
    """Addresses of storages that were allocated while recording, by id (sorted). Memory that is still allocated has its own."""
    address = _MADE_UP + (storage_ids - tables.first_id) * 16
    alive = tables.alive
    asked = np.array(list(tables.addresses.items()), np.int64).reshape(-1, 2)
    for ids, addresses in (
        ((alive[:, 0], alive[:, 1]), (asked[:, 0], asked[:, 1])) if len(storage_ids) else ()
    ):
        at = np.minimum(np.searchsorted(storage_ids, ids), len(storage_ids) - 1)
        is_known = storage_ids[at] == ids
        address[at[is_known]] = addresses[is_known]
    return address


def _owner_of_frames(tables: TensorTables, steps: IntArray, frames: Frames) -> IntArray:
    """By frame: the module or optimizer whose call it is, as an index of `owners`; -1: none."""
    by_name = np.array([tables.modules.get(text, -1) for text in frames.names] or [-1], np.int64)
    owner = by_name[frames.name] if len(frames) else np.empty(0, np.int64)
    for first, last in thread_slices(frames.thread):
        part = slice(first, last)
        here = steps[steps[:, 1] == frames.thread[first]]
        parent = np.where(frames.parent[part] < 0, -1, frames.parent[part] - first)
        at = innermost(frames.start_ns[part], frames.end_ns[part], parent, here[:, 0])
        owner[at[at >= 0] + first] = here[at >= 0, 2]
    return owner


def _distinct(ids: IntArray) -> IntArray:
    """Each id once, sorted. Allocations are nearly in order already: sorting them takes a fraction of the time of `np.unique`."""
    ids = np.sort(ids, kind="stable")
    return ids[np.append(True, ids[1:] != ids[:-1])] if len(ids) else ids
