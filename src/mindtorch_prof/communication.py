"""Communication: the name of an event in; whether it is communication between ranks out. The only place that knows such names.

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
