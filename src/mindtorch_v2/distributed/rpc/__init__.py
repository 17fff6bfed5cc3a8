"""torch.distributed.rpc: names only. Processes of this library exchange tensors by collectives; there are no remote calls."""

from __future__ import annotations

from typing import Any

from ..._refused import refused_class, refused_function

_REASON = "there are no remote procedure calls; use the collectives of torch.distributed"


def is_available() -> bool:
    """Whether there are remote procedure calls: no."""
    return False


RRef: Any = refused_class("torch.distributed.rpc", "RRef", _REASON)
PyRRef: Any = RRef
WorkerInfo: Any = refused_class("torch.distributed.rpc", "WorkerInfo", _REASON)
RpcBackendOptions: Any = refused_class("torch.distributed.rpc", "RpcBackendOptions", _REASON)
TensorPipeRpcBackendOptions: Any = refused_class(
    "torch.distributed.rpc", "TensorPipeRpcBackendOptions", _REASON
)
init_rpc = refused_function("torch.distributed.rpc", "init_rpc", _REASON)
rpc_sync = refused_function("torch.distributed.rpc", "rpc_sync", _REASON)
rpc_async = refused_function("torch.distributed.rpc", "rpc_async", _REASON)
remote = refused_function("torch.distributed.rpc", "remote", _REASON)
shutdown = refused_function("torch.distributed.rpc", "shutdown", _REASON)
get_worker_info = refused_function("torch.distributed.rpc", "get_worker_info", _REASON)

__all__ = [
    "PyRRef", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo", "get_worker_info", "init_rpc", "is_available",
    "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip
