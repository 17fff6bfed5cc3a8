"""Communication: the name of an event in; whether it is communication between ranks, and which collective, out. The only place that
knows such names.

NCCL, RCCL, oneCCL and HCCL run kernels on a device; gloo, MPI and UCC work on the host and record an annotation around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .arrays import BoolArray

_ON_DEVICE = re.compile(
    r"nccl|rccl|hccl|hcom_|oneccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|sendrecv|broadcastkernel",
    re.IGNORECASE,
)
_ON_HOST = re.compile(r"(gloo|mpi|ucc|nccl|xccl|hccl|ccl):|c10d::(?!record)", re.IGNORECASE)
_RECORDED = re.compile(r"^record_param_comms|broadcast_coalesced", re.IGNORECASE)


def on_device(names: Sequence[str]) -> BoolArray:
    """By name of a kernel: whether it moves data between ranks."""
    return np.array([_ON_DEVICE.search(name) is not None for name in names], bool)


def on_host(names: Sequence[str]) -> BoolArray:
    """By name of a host event: whether it is a collective, or a message to one rank, from its call to its end."""
    return np.array([_ON_HOST.match(name) is not None for name in names], bool)


def is_communication(name: str) -> bool:
    """Whether an event of this name, on the host or on a device, is about communication: also the events that only carry a
    collective's arguments, such as `record_param_comms`."""
    return (
        any(pattern.search(name) for pattern in (_ON_DEVICE, _RECORDED)) or _ON_HOST.match(name) is not None
    )


# Collectives by their words, without case, "_" and "-"; the first that fits, as "reduce" is in "allreduce".
_TYPES = (
    ("all_to_all", re.compile(r"all(2|to)all")),
    ("reduce_scatter", re.compile(r"reducescatter")),
    ("all_gather", re.compile(r"allgather")),
    ("all_reduce", re.compile(r"allreduce")),
    ("broadcast", re.compile(r"broadcast")),
    ("barrier", re.compile(r"barrier")),
    ("send_recv", re.compile(r"sendrecv")),
    ("reduce", re.compile(r"reduce")),
    ("scatter", re.compile(r"scatter")),
    ("gather", re.compile(r"gather")),
    ("send", re.compile(r"send")),
    ("recv", re.compile(r"recv|receive")),
)
# Collectives that no rank leaves before all ranks have come: their ends are a common point of time.
SYNCHRONISING = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
POINT_TO_POINT = frozenset({"send", "recv", "send_recv"})
UNKNOWN_TYPE = "unknown"


def collective_type(name: str) -> str:
    """The collective that a kernel, annotation or op of this name runs, as torch's distributed functions are called."""
    words = re.sub(r"[_\-]", "", name).lower()
    return next((kind for kind, pattern in _TYPES if pattern.search(words)), UNKNOWN_TYPE)
