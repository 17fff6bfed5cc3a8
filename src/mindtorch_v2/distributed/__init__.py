"""torch.distributed: this library runs in one process, so no process group is available or ever initialised."""

from __future__ import annotations

import os
from enum import IntEnum
from typing import Any, NoReturn

__all__ = [
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send",
]


def is_available() -> bool:
    """Whether distributed computing is available: no."""
    return False


def is_initialized() -> bool:
    """Whether a process group is initialised: no."""
    return False


def is_nccl_available() -> bool:
    """Whether there is NCCL: no."""
    return False


def is_gloo_available() -> bool:
    """Whether there is Gloo: no."""
    return False


def is_mpi_available() -> bool:
    """Whether there is MPI: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a back end of that name exists: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchelastic started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


class ReduceOp(IntEnum):
    """How values of several processes are reduced; usable as an argument only."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class ProcessGroup:
    """A process group, for annotations; it cannot be constructed."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise _unavailable("ProcessGroup")


def _unavailable(call: str) -> RuntimeError:
    return RuntimeError(
        f"torch.distributed.{call}: this library runs in one process, "
        "torch.distributed.is_available() is False"
    )


def _no_group() -> ValueError:
    return ValueError(
        "Default process group has not been initialized, please make sure to call init_process_group."
    )


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: Any = None,
) -> NoReturn:
    """Raises: this library runs in one process."""
    raise _unavailable("init_process_group")


def new_group(
    ranks: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: Any = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def destroy_process_group(group: Any = None) -> NoReturn:
    """Raises: no group is initialised."""
    raise AssertionError("Process group cannot be None")


def get_rank(group: Any = None) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def get_world_size(group: Any = None) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def get_backend(group: Any = None) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> NoReturn:
    """Raises: no group is initialised."""
    raise _no_group()
