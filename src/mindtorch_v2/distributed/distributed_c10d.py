"""torch.distributed.distributed_c10d: process groups and collectives, as functions."""

from __future__ import annotations

import itertools
import os
import pickle
import time
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

import mindtorch_v2 as torch

from ._errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from ._process_group import ProcessGroup
from ._reduce_op import ReduceOp
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from ._transport import Transport
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

_exported = (
    DistBackendError, DistError, DistNetworkError, DistStoreError, FileStore, HashStore, QueueEmptyError, TCPStore,
    register_rendezvous_handler,
)  # fmt: skip  # torch has these names here


class Backend(str):
    """The name of a back end. There is one: gloo, here over TCP sockets."""

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return getattr(cls, name.upper(), None) or name.lower()

    @classmethod
    def register_backend(cls, name: str, func: Any, extended_api: bool = False, devices: Any = None) -> None:
        """Refused: groups of this library are its own."""
        raise NotImplementedError(f"register_backend({name!r}): this library has one back end, gloo")


class BackendConfig:
    """Which back end each kind of device uses."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map = dict(
            part.split(":") if ":" in part else ("cpu", part) for part in str(backend).split(",")
        )

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The back end by kind of device."""
        return self.device_backend_map


class _WorldMeta(type):
    """`group.WORLD`: the default group, or None."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _world.default

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default = pg


class group(metaclass=_WorldMeta):
    """Holds the default group: `group.WORLD`."""


class GroupMember(metaclass=_WorldMeta):
    """The same, and what `new_group` returns to processes outside the group."""

    NON_GROUP_MEMBER = -100


class _World:
    """The groups of this process."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.transport: Transport | None = None
        self.store: Store | None = None
        self.count = itertools.count()


_world = _World()


# ---------------------------------------------------------------------------------------------------- availability


def is_available() -> bool:
    """Whether there is distributed computing: yes, with the back end gloo."""
    return True


def is_initialized() -> bool:
    """Whether the default group exists."""
    return _world.default is not None


def is_gloo_available() -> bool:
    """Whether the back end gloo is there: yes. Here it is written in Python, over TCP sockets."""
    return True


def is_nccl_available() -> bool:
    """Whether the back end NCCL is there: no."""
    return False


def is_mpi_available() -> bool:
    """Whether the back end MPI is there: no."""
    return False


def is_ucc_available() -> bool:
    """Whether the back end UCC is there: no."""
    return False


def is_xccl_available() -> bool:
    """Whether the back end XCCL is there: no."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a back end is there."""
    return backend.lower() == "gloo"


def is_torchelastic_launched() -> bool:
    """Whether a launcher such as torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device: Any) -> str:
    """The back end of a kind of device."""
    kind = str(device).partition(":")[0]
    if kind != "cpu":
        raise ValueError(f"Default backend not registered for device : {device}")
    return "gloo"


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex tensors can be reduced this way."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)


# ---------------------------------------------------------------------------------------------------- groups


def _check_backend(backend: str | None) -> str:
    names = dict.fromkeys(BackendConfig(backend or "gloo").device_backend_map.values())
    for name in names:
        if name in ("nccl", "mpi", "ucc", "xccl"):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        if name not in ("gloo", "undefined", "fake"):
            raise ValueError(f"Unknown backend {name!r}: this library has gloo")
    return "gloo"


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: Any = None,
) -> None:
    """Form the default group with the other processes of the job."""
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (world_size <= 0 or rank < 0):
        raise AssertionError("world_size must be positive and rank non-negative if using store")
    limit = default_pg_timeout if timeout is None else timeout
    if not isinstance(limit, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {limit}")
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=limit))
    name = _check_backend(backend)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not between 0 and the number of processes, {world_size}")
    store.set_timeout(limit)
    transport = Transport(PrefixStore("default_pg", store), rank, world_size, limit)
    default = ProcessGroup(transport, store, range(world_size), "0", limit, name, "default_pg")
    _world.transport, _world.store, _world.default, _world.groups = transport, store, default, [default]
    _world.count = itertools.count(1)
    default.barrier(async_op=False).wait()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group; the default one ends all, and the connections."""
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None and _world.default is None:
        raise AssertionError("Process group cannot be None")
    if group is not None and group is not _world.default:
        if group not in _world.groups:
            raise ValueError("Invalid process group specified")
        group.shutdown()
        _world.groups.remove(group)
        return
    for each in _world.groups:
        each.shutdown()
    if _world.transport is not None:
        _world.transport.close()
    close = getattr(_world.store, "close", None)
    if close is not None:
        close()
    _world.default, _world.groups, _world.transport, _world.store = None, [], None, None


def _get_default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return _world.default


def _get_default_store() -> Store:
    return _get_default_group().get_group_store()


def _group(group: Any) -> ProcessGroup:
    return _get_default_group() if group is None or group is GroupMember else group


def _is_member(group: Any) -> bool:
    return group != GroupMember.NON_GROUP_MEMBER


_rank_not_in_group = lambda group: not _is_member(group)  # noqa: E731  (torch's private name)


def new_group(
    ranks: Any = None,
    timeout: timedelta | None = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: Any = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Form a group of some processes. All processes of the job must call it; those outside get `NON_GROUP_MEMBER`."""
    default = _get_default_group()
    _check_backend(backend)
    members = list(range(default.size())) if ranks is None else list(ranks)
    members = sorted(members) if sort_ranks else members
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: ranks must not repeat, got {members}")
    if len(members) > default.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in members:
        if not 0 <= rank < default.size():
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    name = str(next(_world.count))
    if default.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    if _world.transport is None:
        raise AssertionError("the default group has no connections")
    new = ProcessGroup(
        _world.transport, PrefixStore(name, default.get_group_store()), members, name, timeout or default._timeout, "gloo",
        group_desc or "undefined",
    )  # fmt: skip
    _world.groups.append(new)
    return new


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Any,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    group_desc: Any = None,
) -> tuple[Any, list[Any]]:
    """Form several groups; this process' own, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    own, groups = None, []
    for ranks in ranks_per_subgroup_list:
        formed = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(formed)
        if get_rank() in ranks:
            own = formed
    return own, groups


def new_subgroups(
    group_size: Any = None,
    group: Any = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    group_desc: Any = None,
) -> tuple[Any, list[Any]]:
    """Form groups of equally many neighbouring ranks."""
    world_size = get_world_size()
    if group_size is None:
        raise ValueError("Default group size only takes effect when CUDA is available. Pass group_size.")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world_size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})")
    if world_size % group_size:
        raise ValueError(f"The world size ({world_size}) must be divisible by 'group_size={group_size}'")
    starts = range(0, world_size, group_size)
    return new_subgroups_by_enumeration(
        [list(range(start, start + group_size)) for start in starts], timeout, backend, pg_options, group_desc
    )


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process' rank; -1 outside the group."""
    return _group(group).rank() if _is_member(group) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes there are; -1 outside the group."""
    return _group(group).size() if _is_member(group) else -1


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The back end's name."""
    if not _is_member(group):
        raise ValueError("Invalid process group specified")
    return Backend(_group(group)._backend)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The back end of each kind of device."""
    return f"cpu:{_group(group)._backend}"


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks in the job of a group's processes."""
    return list(_group(group)._ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a rank in the job."""
    ranks = _group(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the job of a rank in a group."""
    ranks = _group(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_world.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this machine, which the launcher says."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are not "
        "running in a multi-device context and want the code to run locally instead."
    )


def distributed_info() -> dict[str, Any] | None:
    """What a trace file says about the job: `distributedInfo`; None without a group."""
    default = _world.default
    if default is None:
        return None
    configs = [
        {
            "pg_name": each.group_name,
            "pg_desc": each.group_desc,
            "backend_config": f"cpu:{each._backend}",
            "pg_size": each.size(),
            "ranks": list(each._ranks),
        }
        for each in _world.groups
    ]
    return {
        "backend": default._backend,
        "rank": default.rank(),
        "world_size": default.size(),
        "pg_count": len(configs),
        "pg_config": configs,
    }


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
    root = _root(pg, dst, group_dst, default=0)
    if pg.rank() == root and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if pg.rank() != root and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
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
    root = _root(pg, src, group_src, default=0)
    if pg.rank() == root and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if pg.rank() != root and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
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


def _store_based_barrier(
    rank: int,
    store: Store,
    group_name: str,
    rendezvous_count: int,
    timeout: timedelta,
    logging_interval: Any = None,
) -> None:
    """Wait until all processes have come, by the store alone."""
    key = f"store_based_barrier_key:{group_name}"
    store.add(key, 1)
    deadline = time.monotonic() + timeout.total_seconds()
    while store.add(key, 0) < rendezvous_count:
        if time.monotonic() > deadline:
            raise DistStoreError(
                f"Timed out waiting for {rendezvous_count} processes at barrier {group_name}"
            )
        time.sleep(0.01)


def _get_group_size_by_name(group_name: str) -> int:
    return next(each.size() for each in _world.groups if each.group_name == group_name)
