"""torch.distributed.distributed_c10d: collectives, messages between two processes and pickled objects, as functions.

The groups that they run in are made in `_groups.py`; torch has both here.
"""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

import mindtorch_v2 as torch

from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._groups import (
    Backend,
    BackendConfig,
    GroupMember,
    _check_backend,
    _get_default_group,
    _get_default_store,
    _get_group_size_by_name,
    _group,
    _is_member,
    _rank_not_in_group,
    _store_based_barrier,
    _World,
    _world,
    destroy_process_group,
    distributed_info,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    supports_complex,
)
from ._process_group import ProcessGroup
from ._reduce_op import ReduceOp
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from ._work import Work
from .constants import default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous

__all__ = [
    "Backend", "BackendConfig", "GroupMember", "P2POp", "ProcessGroup", "PrefixStore", "ReduceOp", "Store", "Work", "all_gather",
    "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_reduce_coalesced", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_backend_config", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group",
    "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send", "send_object_list", "supports_complex",
]  # fmt: skip

_get_global_rank = get_global_rank  # its old name

_exported = (
    DistBackendError, DistError, DistNetworkError, DistStoreError, FileStore, HashStore, QueueEmptyError, TCPStore,
    register_rendezvous_handler, rendezvous, default_pg_timeout, _World, _check_backend, _get_default_group, _get_default_store, _rank_not_in_group, distributed_info, _store_based_barrier, _get_group_size_by_name,
)  # fmt: skip  # torch has these names here


# ---------------------------------------------------------------------------------------------------- arguments


def _check_tensor(tensor: Any, name: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(tensor)} instead."
        )


def _check_tensors(tensors: Any, name: str) -> None:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(tensors)} "
            "instead."
        )


def _check_dtypes(tensors: list[Any]) -> None:
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypesFound {tensor.dtype} and  {tensors[0].dtype}"
            )


def _root(
    group: ProcessGroup, global_rank: int | None, group_rank: int | None, default: int | None = None
) -> int:
    """A rank in the group, from a rank in the job or in the group."""
    if global_rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is not None:
        return group_rank
    if global_rank is None:
        if default is None:
            raise ValueError("Must specify global_rank or group_rank")
        global_rank = default
    if group is _world.default:
        return global_rank
    return get_group_rank(group, global_rank)


def _root_with(
    pg: ProcessGroup, rank: int | None, group_rank: int | None, tensors: Any, argument: str, role: str
) -> int:
    """The rank of the root of a gather or scatter, which alone has a list of tensors."""
    root = _root(pg, rank, group_rank, default=0)
    if pg.rank() == root and not tensors:
        raise ValueError(f"Argument ``{argument}`` must be specified on {role} rank.")
    if pg.rank() != root and tensors:
        raise ValueError(f"Argument ``{argument}`` must NOT be specified on non-{role} ranks.")
    return root


def _finished(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


# ---------------------------------------------------------------------------------------------------- collectives


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce the tensors of all processes, in place."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    return _finished(_group(group).allreduce([tensor], op, async_op=async_op), async_op)


def all_reduce_coalesced(
    tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same for several tensors at once."""
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    _check_tensors(tensors, "tensors")
    _check_dtypes(tensors)
    if not _is_member(group):
        return None
    return _finished(_group(group).allreduce(tensors, op, async_op=async_op), async_op)


def broadcast(
    tensor: Any,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give all processes the tensor of one."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    return _finished(pg.broadcast([tensor], _root(pg, src, group_src), async_op=async_op), async_op)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all processes into that of one."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    return _finished(pg.reduce([tensor], _root(pg, dst, group_dst), op, async_op=async_op), async_op)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Work | None:
    """Give all processes the tensors of all."""
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_dtypes([tensor, *tensor_list])
    if not _is_member(group):
        return None
    return _finished(_group(group).allgather([tensor_list], [tensor], async_op=async_op), async_op)


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """The same for several tensors at once."""
    if not _is_member(group):
        return None
    works = [
        _group(group).allgather([[row[index] for row in output_tensor_lists]], [tensor], async_op=async_op)
        for index, tensor in enumerate(input_tensor_list)
    ]
    return works[-1] if async_op else [work.wait() for work in works] and None


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give all processes the tensors of all, in one tensor."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    parts = list(output_tensor.detach().view(pg.size(), *input_tensor.shape).unbind(0))
    return _finished(pg.allgather([parts], [input_tensor.detach()], async_op=async_op), async_op)


all_gather_single = _all_gather_base = all_gather_into_tensor


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Give one process the tensors of all."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    root = _root_with(pg, dst, group_dst, gather_list, "gather_list", "destination")
    return _finished(pg.gather([gather_list or []], [tensor], root, async_op=async_op), async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each process one of the tensors of one process."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    root = _root_with(pg, src, group_src, scatter_list, "scatter_list", "source")
    return _finished(pg.scatter([tensor], [scatter_list or []], root, async_op=async_op), async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a list of tensors of each process; each gets the result for its own rank."""
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    _check_dtypes([output, *input_list])
    if not _is_member(group):
        return None
    return _finished(_group(group).reduce_scatter([output], [input_list], op, async_op=async_op), async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same with the list in one tensor."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if not _is_member(group):
        return None
    pg = _group(group)
    parts = list(input.detach().reshape(pg.size(), *output.shape).unbind(0))
    return _finished(pg.reduce_scatter([output.detach()], [parts], op, async_op=async_op), async_op)


reduce_scatter_single = _reduce_scatter_base = reduce_scatter_tensor


def all_to_all(
    output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give each process one tensor of each."""
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    if not _is_member(group):
        return None
    return _finished(
        _group(group).alltoall(list(output_tensor_list), list(input_tensor_list), async_op=async_op), async_op
    )


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """The same with parts of one tensor, along its first dimension."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if not _is_member(group):
        return None
    pg = _group(group)

    def parts(tensor: Any, sizes: Any) -> list[Any]:
        if not sizes:
            if tensor.shape[0] % pg.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [tensor.shape[0] // pg.size()] * pg.size()
        return list(tensor.detach().split(list(sizes), 0))

    return _finished(
        pg.alltoall(parts(output, output_split_sizes), parts(input, input_split_sizes), async_op=async_op),
        async_op,
    )


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until all processes have called it."""
    if not _is_member(group):
        return None
    return _finished(_group(group).barrier(timeout, async_op=async_op), async_op)


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier whose error names the rank that did not come."""
    if _is_member(group):
        _group(group).barrier(timeout, async_op=False).wait()


# ---------------------------------------------------------------------------------------------------- point to point


def _check_not_self(rank: int, kind: str) -> None:
    if rank == get_rank():
        raise ValueError(
            f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process."
        )


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Send a tensor to one process; a `Work`."""
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    peer = _root(pg, dst, group_dst)
    _check_not_self(pg._ranks[peer] if 0 <= peer < pg.size() else peer, "destination")
    pg._check_root("send", peer)
    return pg.send([tensor], peer, tag)


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to one process."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receive a tensor; a `Work`."""
    return _receive(tensor, src, group, tag, group_src, async_op=True)


def _receive(
    tensor: Any, src: int | None, group: Any, tag: int, group_src: int | None, async_op: bool
) -> Work | None:
    _check_tensor(tensor, "tensor")
    if not _is_member(group):
        return None
    pg = _group(group)
    peer = None if src is None and group_src is None else _root(pg, src, group_src)
    if peer is not None:
        _check_not_self(pg._ranks[peer] if 0 <= peer < pg.size() else peer, "source")
        pg._check_root("recv", peer)
    return pg.recv([tensor], peer, tag, async_op=async_op)


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor from one process, or from any; the rank it came from."""
    work = _receive(tensor, src, group, tag, group_src, async_op=False)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp(NamedTuple):
    """An `isend` or `irecv` for `batch_isend_irecv`."""

    op: Any
    tensor: Any
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several sends and receives."""
    for item in p2p_op_list:
        if item.op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
    works = [item.op(item.tensor, item.peer, item.group, item.tag, item.group_peer) for item in p2p_op_list]
    return [work for work in works if work is not None]


# ---------------------------------------------------------------------------------------------------- objects


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[Any, Any]:
    """An object as a tensor of bytes, and their number."""
    data = torch.from_numpy(np.frombuffer(pickle.dumps(obj), np.uint8).copy())
    return data, torch.tensor([data.numel()])


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any = None) -> Any:
    return pickle.loads(tensor.numpy().tobytes()[: int(tensor_size)])


def _gathered_bytes(obj: Any, group: Any) -> list[Any]:
    """The objects of all processes as tensors of equally many bytes, with their lengths."""
    data, length = _object_to_tensor(obj)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(get_world_size(group))]
    all_gather(lengths, length, group)
    longest = int(max(int(each) for each in lengths))
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: data.numel()] = data
    parts = [torch.zeros(longest, dtype=torch.uint8) for _ in lengths]
    all_gather(parts, padded, group)
    return [_tensor_to_object(part, size) for part, size in zip(parts, lengths)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give all processes the objects of all, which are pickled."""
    if _is_member(group):
        object_list[:] = _gathered_bytes(obj, group)


def gather_object(
    obj: Any,
    object_gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give one process the objects of all."""
    if not _is_member(group):
        return
    pg = _group(group)
    root = _root(pg, dst, group_dst, default=0)
    if pg.rank() == root and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    objects = _gathered_bytes(obj, group)
    if pg.rank() == root:
        object_gather_list[:] = objects


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Give all processes the objects of one, in place."""
    if not _is_member(group):
        return
    pg = _group(group)
    root = _root(pg, src, group_src, default=0)
    data, length = _object_to_tensor(list(object_list))
    broadcast(length, group=group, group_src=root)
    if pg.rank() != root:
        data = torch.zeros(int(length), dtype=torch.uint8)
    broadcast(data, group=group, group_src=root)
    object_list[:] = _tensor_to_object(data, length)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Any = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give each process one of the objects of one process."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if not _is_member(group):
        return
    objects = list(scatter_object_input_list or [None] * get_world_size(group))
    broadcast_object_list(objects, src, group, group_src=group_src)
    scatter_object_output_list[0] = objects[get_rank(group)]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to one process."""
    data, length = _object_to_tensor(list(object_list))
    send(length, dst, group, 0, group_dst)
    send(data, dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects, in place; the rank they came from."""
    length = torch.zeros(1, dtype=torch.int64)
    source = recv(length, src, group, 0, group_src)
    data = torch.zeros(int(length), dtype=torch.uint8)
    recv(data, source, group)
    object_list[:] = _tensor_to_object(data, length)
    return source
