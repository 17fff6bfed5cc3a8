"""The process groups of this process: which back ends there are, how groups are made and ended, and who is in them."""

from __future__ import annotations

import itertools
import os
import time
from datetime import timedelta
from typing import Any

from ._errors import DistStoreError
from ._process_group import ProcessGroup
from ._reduce_op import ReduceOp
from ._stores import PrefixStore, Store
from ._transport import Transport
from .constants import default_pg_timeout
from .rendezvous import rendezvous


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
    # what torch knows of back ends, so that programs can choose the one of their device: gloo for the CPU
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}
    backend_capability = {
        "gloo": ["cpu", "cuda"], "nccl": ["cuda"], "xccl": ["xpu"], "ucc": ["cpu", "cuda"], "mpi": ["cpu", "cuda"],
        "fake": ["cpu", "cuda", "hpu", "xpu"],
    }  # fmt: skip

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
