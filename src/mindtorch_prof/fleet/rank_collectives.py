"""Collectives of one rank: a Trace in; one row per collective out, in the order in which the rank came to them.

On a device a collective is a kernel; its arguments, or those of the op that launched it, say which one. On the host (gloo, MPI, UCC) it is
an annotation on a thread of the backend, and the rank came to it when it called `c10d::...`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import communication
from ..analysis.device_breakdown import steps_of_device_work
from ..arrays import IntArray
from ..inputs import ELEMENT_TYPES, Inputs, TensorInput, TensorList
from ..json_types import JSONObject, JSONValue
from ..steps import step_numbers, step_rows
from ..trace import DEVICE_KERNEL, OP, Columns, Trace
from ..tree import Tree, nearest

DEFAULT_GROUP = "default"
_ON_BACKEND = re.compile(r"(gloo|mpi|ucc):", re.IGNORECASE)
_CALL = re.compile(r"c10d::(?!record|.*wait)", re.IGNORECASE)
# bytes of an element, by the names of torch's ScalarType, which the arguments of collectives use
_ELEMENT_BYTES = {
    "byte": 1, "char": 1, "bool": 1, "short": 2, "half": 2, "bfloat16": 2, "int": 4, "float": 4, "long": 8, "double": 8,
    "uint16": 2, "uint32": 4, "uint64": 8, "complexhalf": 4, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip


@dataclass(frozen=True)
class RankCollectives(Columns):
    """One row per collective, in the order of arrival. Times are nanoseconds of the rank's own clock."""

    groups: tuple[str, ...]  # names of process groups
    members: tuple[str, ...]  # by group: the ranks in it as the file words them, "" if it does not say
    types: tuple[str, ...]
    group: IntArray  # into `groups`
    type: IntArray  # into `types`
    seq: IntArray  # number within the group; -1: the file does not say
    nbytes: IntArray  # the message: the larger of what the rank sends and receives; -1: not known
    sent: IntArray  # bytes that this rank puts in; -1: not known
    received: IntArray
    size: IntArray  # ranks in the group; 0: not known
    peer: IntArray  # of a message between two ranks: the other one; -1: no such message, or not known
    arrival_ns: IntArray  # when the rank was ready: the kernel's start, or the call on the host
    start_ns: IntArray
    end_ns: IntArray
    on_device: IntArray  # 0 or 1
    step: IntArray  # number of the step in which it was called or launched; -1: in none

    def __len__(self) -> int:
        return len(self.arrival_ns)

    @staticmethod
    def none() -> RankCollectives:
        empty = np.empty(0, np.int64)
        return RankCollectives((), (), (), *([empty] * 13))

    def to_json(self) -> tuple[JSONObject, dict[str, IntArray]]:
        """Values and arrays for `packing`."""
        values: JSONObject = {
            "groups": list(self.groups),
            "members": list(self.members),
            "types": list(self.types),
        }
        return values, {key: getattr(self, key) for key in _ARRAYS}

    @staticmethod
    def from_json(values: JSONValue, arrays: dict[str, IntArray]) -> RankCollectives:
        """Back from `to_json`."""

        def texts(key: str) -> tuple[str, ...]:
            entries = values.get(key) if isinstance(values, dict) else None
            return tuple(map(str, entries)) if isinstance(entries, list) else ()

        return RankCollectives(
            texts("groups"), texts("members"), texts("types"), **{key: arrays[key] for key in _ARRAYS}
        )


_ARRAYS = (
    "group", "type", "seq", "nbytes", "sent", "received", "size", "peer", "arrival_ns", "start_ns", "end_ns", "on_device", "step",
)  # fmt: skip


@dataclass(frozen=True)
class _Facts:
    """What the file says of one collective."""

    kind: str
    group: str | None = None
    members: str = ""
    seq: int = -1
    sent: int = -1
    received: int = -1
    size: int = 0
    peer: int = -1


def rank_collectives(trace: Trace, tree: Tree) -> RankCollectives:
    """All collectives of a trace."""
    device_rows, device_facts = _on_device(trace, tree)
    host_rows, host_facts, arrivals = _on_host(trace, bool(len(device_rows)))
    facts = [*device_facts, *host_facts]
    if not facts:
        return RankCollectives.none()
    device = trace.device
    start = np.concatenate([device.start_ns[device_rows], trace.start_ns[host_rows]])
    end = np.concatenate([device.end_ns[device_rows], trace.end_ns[host_rows]])
    arrival = np.concatenate([device.start_ns[device_rows], arrivals])
    streams = _stream_groups(device.stream[device_rows])
    only = _only_group(trace)
    names = [
        each.group if each.group is not None else only if only is not None else stream
        for each, stream in zip(facts, [*streams, *[DEFAULT_GROUP] * len(host_rows)])
    ]
    members = _members(trace)
    keys = [(name, each.members or members.get(name, "")) for name, each in zip(names, facts)]
    groups = sorted(set(keys))
    types = sorted({each.kind for each in facts})
    sizes = _group_sizes(trace)
    order = np.lexsort((start, arrival))

    def column(values: Sequence[int]) -> IntArray:
        return np.array(values, np.int64)[order]

    sent, received = column([each.sent for each in facts]), column([each.received for each in facts])
    return RankCollectives(
        tuple(name for name, _ in groups),
        tuple(ranks for _, ranks in groups),
        tuple(types),
        column([groups.index(key) for key in keys]),
        column([types.index(each.kind) for each in facts]),
        column([each.seq for each in facts]),
        np.maximum(sent, received),
        sent,
        received,
        column([each.size or sizes.get(name, 0) for name, each in zip(names, facts)]),
        column([each.peer for each in facts]),
        arrival[order],
        start[order],
        end[order],
        column([1] * len(device_rows) + [0] * len(host_rows)),
        np.concatenate([_device_step(trace)[device_rows], _steps_at(trace, arrivals)])[order],
    )


def _device_step(trace: Trace) -> IntArray:
    """By row of `trace.device` the number of the step that it was launched in; -1: none, or before the recording."""
    numbers, step = steps_of_device_work(trace)
    cause = np.maximum(trace.device.launch, trace.device.op)
    # ranks differ in how many kernels were under way when the recording began; where no launches are recorded, time must tell
    known = (cause >= 0) | (not (cause >= 0).any())
    return np.where((step >= 0) & known, np.array([*numbers, -1], np.int64)[step], -1)


def _steps_at(trace: Trace, time: IntArray) -> IntArray:
    """The number of the step at each time; -1: none."""
    rows = step_rows(trace)
    if not len(rows):
        return np.full(len(time), -1, np.int64)
    place = np.searchsorted(trace.start_ns[rows], time, side="right") - 1
    inside = (place >= 0) & (time <= trace.end_ns[rows[np.maximum(place, 0)]])
    number = step_numbers(trace.names, trace.name[rows])
    return np.where(inside, number[np.maximum(place, 0)], -1)


# ---------------------------------------------------------------------------------------------------- on a device


def _on_device(trace: Trace, tree: Tree) -> tuple[IntArray, list[_Facts]]:
    """The kernels that are collectives, and what is known of each."""
    device = trace.device
    if not len(device):
        return np.empty(0, np.int64), []
    is_communication = communication.on_device(device.names)
    rows = np.flatnonzero((device.kind == DEVICE_KERNEL) & is_communication[device.name])
    # the op that a kernel is charged to may be the annotation inside record_param_comms, which has the arguments
    op = np.where(device.op[rows] >= 0, device.op[rows], device.launch[rows])
    with_arguments = _nearest_row(op, nearest(tree.parent, _has_arguments(trace)))
    with_inputs = _nearest_row(op, nearest(tree.parent, communication.on_host(trace.names)[trace.name]))
    return rows, [
        _device_facts(trace, int(row), above, annotation)
        for row, above, annotation in zip(rows.tolist(), with_arguments.tolist(), with_inputs.tolist())
    ]


def _nearest_row(rows: IntArray, ancestor: IntArray) -> IntArray:
    return np.where(rows >= 0, ancestor[np.maximum(rows, 0)], -1) if len(ancestor) else np.full(len(rows), -1)


def _has_arguments(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mask of the events whose arguments describe a collective."""
    if trace.extra is None:
        return np.zeros(len(trace), bool)
    names = np.array([name == "record_param_comms" for name in trace.names] or [False])
    return names[trace.name] & (trace.extra >= 0)


def _device_facts(trace: Trace, row: int, above: int, annotation: int) -> _Facts:
    device = trace.device
    number = int(device.extra[row]) if len(device.extra) else -1
    arguments = device.extra_table[number] if number >= 0 else {}
    if "Collective name" not in arguments and above >= 0 and trace.extra is not None:
        arguments = trace.extra_table[int(trace.extra[above])]
    name = device.names[int(device.name[row])]
    if "Collective name" in arguments:
        return _from_arguments(arguments, name)
    if annotation >= 0:
        facts = _from_inputs(trace, annotation, trace.names[int(trace.name[annotation])])
        if facts.kind != communication.UNKNOWN_TYPE:
            return facts
    return _Facts(communication.collective_type(name))


def _from_arguments(arguments: Mapping[str, JSONValue], kernel: str) -> _Facts:
    """From the arguments that torch writes beside a collective."""
    kind = communication.collective_type(str(arguments.get("Collective name", "")))
    if kind == communication.UNKNOWN_TYPE:
        kind = communication.collective_type(kernel)
    element = _element_bytes(str(arguments.get("dtype", "")))
    sent, received = (_whole(arguments.get(f"{way} msg nelems")) for way in ("In", "Out"))
    group = arguments.get("Process Group Name")
    source, target = _whole(arguments.get("Src Rank")), _whole(arguments.get("Dst Rank"))
    return _Facts(
        kind,
        None if group is None else str(group),
        str(arguments.get("Process Group Ranks") or ""),
        _whole(arguments.get("Seq")),
        sent * element if sent >= 0 and element else -1,
        received * element if received >= 0 and element else -1,
        max(_whole(arguments.get("Group size")), 0),
        target if kind == "send" else source if kind == "recv" else -1,
    )


def _element_bytes(dtype: str) -> int:
    name = dtype.lower()
    return _ELEMENT_BYTES.get(name, 1 if name.startswith("float8") else 0)


def _whole(value: JSONValue) -> int:
    """A number of 0 or more, also as text; else -1, also where no memory has so many elements."""
    try:
        number = int(value) if isinstance(value, (int, float, str)) else -1
    except (ValueError, OverflowError):
        return -1
    return number if 0 <= number < _MOST else -1


_MOST = 1 << 56  # elements, or bytes: columns of 64 bits hold their sizes


def _stream_groups(streams: IntArray) -> list[str]:
    """Where files name no process group: one group per stream, numbered in the order of streams, which are alike on all ranks."""
    present, which = np.unique(streams, return_inverse=True)
    if len(present) < 2:
        return [DEFAULT_GROUP] * len(streams)
    return [f"stream {place}" for place in which.reshape(-1).tolist()]


# ---------------------------------------------------------------------------------------------------- on the host


def _on_host(trace: Trace, has_device: bool) -> tuple[IntArray, list[_Facts], IntArray]:
    """The collectives that ran on the host, what is known of each, and when the rank called it."""
    ran = np.array([_ON_BACKEND.match(name) is not None for name in trace.names] or [False])
    called = np.array([_CALL.match(name) is not None for name in trace.names] or [False])
    rows = _by_start(trace, np.flatnonzero(ran[trace.name]))
    calls = _by_start(trace, np.flatnonzero(called[trace.name] & (trace.kind == OP)))
    if not len(rows) and not has_device:
        rows = calls
    facts = [_from_inputs(trace, row, trace.names[int(trace.name[row])]) for row in rows.tolist()]
    return rows, facts, _call_times(trace, rows, facts, calls)


def _by_start(trace: Trace, rows: IntArray) -> IntArray:
    return rows[np.argsort(trace.start_ns[rows], kind="stable")]


def _call_times(trace: Trace, rows: IntArray, facts: list[_Facts], calls: IntArray) -> IntArray:
    """When each collective was called: the call of the same kind and size, in order; its own start where there is none."""
    times = trace.start_ns[rows].copy()
    queues: dict[tuple[str, int], list[int]] = {}
    for call in calls.tolist():
        called = _from_inputs(trace, call, trace.names[int(trace.name[call])])
        queues.setdefault((called.kind, _elements(trace, call)), []).append(call)
    wanted = [(each.kind, _elements(trace, row)) for each, row in zip(facts, rows.tolist())]
    for key in set(wanted):
        places = [place for place, other in enumerate(wanted) if other == key]
        queue = queues.get(key, [])
        if len(queue) == len(places):
            starts = trace.start_ns[np.array(queue, np.int64)]
            times[places] = np.minimum(starts, times[places])
    return times


def _elements(trace: Trace, row: int) -> int:
    """How many elements the tensors of the first argument have; -1: not recorded."""
    inputs = _inputs(trace, row)
    first = inputs.arguments[0] if inputs is not None and inputs.arguments else None
    if isinstance(first, TensorInput):
        return int(np.prod(first.shape, dtype=np.int64))
    if isinstance(first, TensorList):
        return sum(int(np.prod(tensor.shape, dtype=np.int64)) for tensor in first)
    return -1


def _inputs(trace: Trace, row: int) -> Inputs | None:
    number = int(trace.inputs[row])
    return trace.input_table[number] if number >= 0 else None


def _from_inputs(trace: Trace, row: int, name: str) -> _Facts:
    """From the name of an annotation or op, and the tensors that it was given."""
    kind = communication.collective_type(name.partition(":")[2])
    inputs = _inputs(trace, row)
    nbytes, peer = -1, -1
    if inputs is not None and inputs.arguments:
        first = inputs.arguments[0]
        tensors = (
            [first] if isinstance(first, TensorInput) else first if isinstance(first, TensorList) else []
        )
        elements = [ELEMENT_TYPES.get(tensor.type) for tensor in tensors]
        if tensors and all(elements):
            nbytes = sum(
                int(np.prod(tensor.shape, dtype=np.int64)) * element.nbytes
                for tensor, element in zip(tensors, elements)
                if element is not None
            )
            nbytes = nbytes if 0 <= nbytes < _MOST else -1
        if kind in ("send", "recv") and len(inputs.concrete) > 2:
            peer = _whole(inputs.concrete[2])
    return _Facts(kind, sent=nbytes, received=nbytes, peer=peer)


# ---------------------------------------------------------------------------------------------------- process groups


def _configured(trace: Trace) -> list[JSONObject]:
    groups = trace.settings.distributed.get("pg_config")
    return [group for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []


def _only_group(trace: Trace) -> str | None:
    """The name of the process group, where there is only one."""
    groups = _configured(trace)
    return str(groups[0].get("pg_name", "")) if len(groups) == 1 else None


def _members(trace: Trace) -> dict[str, str]:
    """The ranks of each process group, as text."""
    return {
        str(group.get("pg_name", "")): str(ranks)
        for group in _configured(trace)
        if isinstance(ranks := group.get("ranks"), list) and ranks
    }


def _group_sizes(trace: Trace) -> dict[str, int]:
    """The number of ranks in each process group; of groups without a name that of the job."""
    sizes = {
        str(group.get("pg_name", "")): max(_whole(group.get("pg_size")), 0) for group in _configured(trace)
    }
    return {DEFAULT_GROUP: trace.settings.world_size or 0} | sizes
