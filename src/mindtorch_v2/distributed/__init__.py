"""torch.distributed: processes that compute together, over TCP sockets (the back end gloo)."""

from __future__ import annotations

import importlib
from typing import Any

from . import distributed_c10d
from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from .constants import default_pg_timeout
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import (
    _get_default_group,
    _get_default_store,
    all_gather_single,
    reduce_scatter_single,
)
from .rendezvous import register_rendezvous_handler, rendezvous

__all__ = distributed_c10d.__all__ + [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "Store",
    "TCPStore",
    "all_gather_single",
    "default_pg_timeout",
    "reduce_scatter_single",
    "register_rendezvous_handler",
    "rendezvous",
]
_exported = (_get_default_group, _get_default_store)  # torch has these names here

_LAZY = frozenset(
    "algorithms autograd checkpoint device_mesh elastic fsdp nn optim rpc run launch launcher tensor utils".split()
)
_LAZY_NAMES = {
    "DeviceMesh": ".device_mesh",
    "init_device_mesh": ".device_mesh",
    "GradBucket": "..nn.parallel.distributed",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module("." + name, __name__)
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(_LAZY_NAMES[name], __name__), name)
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")
