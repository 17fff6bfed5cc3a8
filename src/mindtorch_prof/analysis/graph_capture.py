"""Graph capture: the traces of a graph's replays and of its capture in; the replays' trace with the captured ops out.

A replay of a CUDA or HIP graph shows kernels, and one call that launched them all: no ops. The trace of the capture has the ops, and the
calls that launched the kernels. Both have the kernels in one order. A replay is matched with a captured graph by the names of its kernels;
of graphs that look the same, the one that was captured after the graph matched last. Where names disagree, nothing is attributed.

A trace without a capture (the program without graphs) serves as well: there the kernels of a replay are looked for one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, IntArray
from ..trace import DEVICE_COPY, DEVICE_SET, FUNCTION_SCOPE, NODE, OP, RUNTIME, Trace
from ..tree import nearest, tree

_REPLAY = re.compile(r"(cuda|hip|cu|musa)?GraphLaunch|aclmdlRIExecute", re.IGNORECASE)
_BEGIN = re.compile(r"(cuda|hip|cu|musa)StreamBeginCapture|aclmdlRICaptureBegin", re.IGNORECASE)
_END = re.compile(r"(cuda|hip|cu|musa)StreamEndCapture|aclmdlRICaptureEnd", re.IGNORECASE)
_KERNEL_LAUNCH = re.compile(
    r"(?!.*graph)(?!.*hostfunc).*launch.*kernel|cuLaunchKernel|rtKernelLaunch", re.IGNORECASE
)
_COPY_LAUNCH = re.compile(r"(?!.*peer.*access).*memcpy.*async", re.IGNORECASE)
_FILL_LAUNCH = re.compile(r".*memset.*async", re.IGNORECASE)
# kernels by which ROCm copies and fills memory inside graphs
_COPY_KERNEL = re.compile(r"__amd_rocclr_copyBuffer")
_FILL_KERNEL = re.compile(r"__amd_rocclr_fillBuffer")

_UNNAMED, _COPY, _FILL = -1, -2, -3  # codes of work beside those of names
_SIMILAR = 0.5  # the least share of equal names for which a replay and a graph are compared kernel by kernel


@dataclass(frozen=True)
class CaptureMatch:
    """How the kernels of replays match those of captured graphs."""

    replays: int  # calls that launched a graph
    graphs: int  # that were captured
    kernels: int  # pieces of work of all replays
    matched: int  # of them, attributed to an op
    unnamed: int  # of the matched: by their order alone, as the capture does not name its kernels
    refused: int  # names disagree
    without_op: int  # they match, and no op launched them in the capture either
    disagreements: tuple[
        tuple[str, str], ...
    ]  # examples: the kernel's name in the replay, and in the capture ("": there is none)
    device_row: IntArray  # rows of the replays' Device that are attributed
    capture_op: IntArray  # and the rows of their ops in the capture's Trace

    def sentence(self) -> str:
        """What was matched, in one sentence for people."""
        if not self.replays:
            return "no graph launches in this trace: nothing to attribute"
        parts = [
            f"{self.matched:,} of {self.kernels:,} kernels of {self.replays:,} graph replays are attributed to ops of the capture"
        ]
        if self.unnamed:
            parts.append(f"{self.unnamed:,} of them by order alone, as the capture does not name kernels")
        if self.without_op:
            parts.append(f"{self.without_op:,} have no op in the capture either")
        if self.refused:
            name, expected = self.disagreements[0]
            parts.append(
                f"{self.refused:,} are not attributed, as names disagree (the first: {name} in the replay, "
                f"{expected or 'nothing'} in the capture)"
            )
        return "; ".join(parts)


def launches_graphs(trace: Trace) -> bool:
    """Whether a trace has calls that launch graphs."""
    named = np.array([_REPLAY.match(name) is not None for name in trace.names] or [False], bool)
    return bool(named.any() and (named[trace.name] & (trace.kind == RUNTIME)).any())


def with_captured_ops(execution: Trace, capture: Trace) -> Trace:
    """The trace of replays, with the kernels of graphs charged to the ops of the capture. These are synthetic events inside the calls that
    launched the graphs: they did not run on the host."""
    return apply_match(execution, capture, match_capture(execution, capture))


# ---------------------------------------------------------------------------------------------------- matching


class _Graph(NamedTuple):
    """The launches of a captured graph, in order."""

    codes: IntArray  # of kernels' names
    ops: IntArray  # rows of the capture's Trace; -1: none


def match_capture(execution: Trace, capture: Trace) -> CaptureMatch:
    """Match the kernels of graph replays with those of captured graphs."""
    names: dict[str, int] = {}
    graphs, is_eager = _captured_graphs(capture, names)
    replays = _replays(execution, names)
    matcher = _Eager(graphs) if is_eager else _Captured(graphs)
    text_of = {code: name for name, code in names.items()} | {
        _COPY: "a copy",
        _FILL: "a memory fill",
        _UNNAMED: "",
    }
    rows: list[IntArray] = []
    ops: list[IntArray] = []
    disagreements: list[tuple[str, str]] = []
    refused = unnamed = without_op = 0
    for device_rows, codes in replays:
        found = matcher.match(codes)
        is_matched = found.place >= 0
        op = (
            np.where(is_matched, found.graph.ops[np.maximum(found.place, 0)], -1)
            if len(found.graph.ops)
            else found.place
        )
        known = op >= 0
        rows.append(device_rows[known])
        ops.append(op[known])
        refused += int((~is_matched).sum())
        without_op += int((is_matched & ~known).sum())
        if len(found.graph.codes):
            unnamed += int((known & (found.graph.codes[np.maximum(found.place, 0)] == _UNNAMED)).sum())
        if not is_matched.all() and len(disagreements) < 5:
            first = int(np.flatnonzero(~is_matched)[0])
            expected = int(found.graph.codes[first]) if first < len(found.graph.codes) else _UNNAMED
            disagreements.append((text_of[int(codes[first])], text_of[expected]))
    return CaptureMatch(
        replays=len(replays),
        graphs=0 if is_eager else len(graphs),
        kernels=sum(len(codes) for _, codes in replays),
        matched=sum(map(len, rows)),
        unnamed=unnamed,
        refused=refused,
        without_op=without_op,
        disagreements=tuple(disagreements),
        device_row=np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64),
        capture_op=np.concatenate([*ops, np.empty(0, np.int64)]).astype(np.int64),
    )


def _code(name: str, names: dict[str, int]) -> int:
    if _COPY_KERNEL.match(name):
        return _COPY
    if _FILL_KERNEL.match(name):
        return _FILL
    return names.setdefault(name, len(names))


def _replays(trace: Trace, names: dict[str, int]) -> list[tuple[IntArray, IntArray]]:
    """For each graph launch in the order of time: rows of its work in the order of their start, and their codes."""
    device = trace.device
    if not len(device) or not len(trace):
        return []
    is_replay = np.array([_REPLAY.match(text) is not None for text in trace.names], bool)[trace.name]
    rows = np.flatnonzero(device.works & (device.launch >= 0))
    rows = rows[is_replay[device.launch[rows]]]
    if not len(rows):
        return []
    by_name = np.array([_code(text, names) for text in device.names], np.int64)
    codes = np.select(
        [device.kind[rows] == DEVICE_COPY, device.kind[rows] == DEVICE_SET],
        [_COPY, _FILL],
        by_name[device.name[rows]],
    )
    launch = device.launch[rows]
    order = np.lexsort((device.start_ns[rows], launch, trace.start_ns[launch]))
    rows, codes, launch = rows[order], codes[order], launch[order]
    cuts = np.flatnonzero(np.diff(launch)) + 1
    return list(zip(np.split(rows, cuts), np.split(codes, cuts)))


def _captured_graphs(trace: Trace, names: dict[str, int]) -> tuple[list[_Graph], bool]:
    """The graphs that a trace captures, in order; or, if it captures none, the work that its ops launched, as one. And which of both."""
    text = trace.names
    begins, ends = (_calls(trace, pattern) for pattern in (_BEGIN, _END))
    if not len(begins) or not len(ends):
        return [_eager_work(trace, names)], True
    kernel_launch, copy_launch, fill_launch = (
        np.array([pattern.match(each) is not None for each in text], bool)
        for pattern in (_KERNEL_LAUNCH, _COPY_LAUNCH, _FILL_LAUNCH)
    )
    is_launch = (kernel_launch | copy_launch | fill_launch)[trace.name] & (trace.kind == RUNTIME)
    # what a capture launched did not run: a launch with work on the device was not captured
    ran = np.zeros(len(trace), bool)
    ran[trace.device.launch[trace.device.launch >= 0]] = True
    rows = np.flatnonzero(is_launch & ~ran)
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    times = trace.start_ns[rows]
    codes = np.full(len(rows), _UNNAMED, np.int64)
    codes[copy_launch[trace.name[rows]]] = _COPY
    codes[fill_launch[trace.name[rows]]] = _FILL
    if trace.extra is not None:
        extra, place = np.unique(trace.extra[rows], return_inverse=True)
        kernels = [trace.extra_table[i].get("kernel") if i >= 0 else None for i in extra.tolist()]
        by_extra = np.array([_code(k, names) if isinstance(k, str) else _UNNAMED for k in kernels], np.int64)
        named = by_extra[place.reshape(-1)] if len(rows) else codes
        codes = np.where((codes == _UNNAMED) & (named != _UNNAMED), named, codes)
    ops = _ops_of_calls(trace, rows)
    graphs = []
    for begin, end in _pairs(trace.end_ns[begins], trace.start_ns[ends]):
        first, last = np.searchsorted(times, [begin, end])
        graphs.append(_Graph(codes[first:last], ops[first:last]))
    return graphs, False


def _calls(trace: Trace, pattern: re.Pattern[str]) -> IntArray:
    by_name = np.array([pattern.match(text) is not None for text in trace.names] or [False], bool)
    rows = (
        np.flatnonzero(by_name[trace.name] & (trace.kind == RUNTIME)) if len(trace) else np.zeros(0, np.int64)
    )
    return rows[np.argsort(trace.start_ns[rows], kind="stable")]


def _pairs(begins: IntArray, ends: IntArray) -> list[tuple[int, int]]:
    """Begins with the first end after each that comes before the next begin."""
    place = np.searchsorted(ends, begins)
    until = np.append(begins[1:], np.iinfo(np.int64).max)
    return [
        (begin, int(ends[at]))
        for begin, at, limit in zip(begins.tolist(), place.tolist(), until.tolist())
        if at < len(ends) and ends[at] <= limit
    ]


def _is_op(trace: Trace) -> BoolArray:
    return np.isin(trace.kind, (OP, NODE)) & trace.is_recorded


def _ops_of_calls(trace: Trace, calls: IntArray) -> IntArray:
    """The ops that made runtime calls: by the number that the file gives them, else the innermost op around; -1: none."""
    is_op = _is_op(trace)
    around = nearest(tree(trace).parent, is_op)[calls] if len(trace) else calls
    if trace.external is None:
        return around
    ops = np.flatnonzero(is_op & (trace.external > 0))
    ops = ops[np.argsort(trace.external[ops], kind="stable")]
    numbers = trace.external[ops]
    place = np.searchsorted(numbers, trace.external[calls])
    at = np.minimum(place, max(len(ops) - 1, 0))
    known = (trace.external[calls] > 0) & (place < len(ops))
    if len(ops):
        known &= numbers[at] == trace.external[calls]
        return np.where(known, ops[at], around)
    return around


def _eager_work(trace: Trace, names: dict[str, int]) -> _Graph:
    device = trace.device
    rows = np.flatnonzero(device.works & (device.op >= 0))
    by_name = np.array([_code(text, names) for text in device.names] or [0], np.int64)
    if not len(rows):
        return _Graph(rows, rows)
    is_op = _is_op(trace)
    codes = np.select(
        [device.kind[rows] == DEVICE_COPY, device.kind[rows] == DEVICE_SET],
        [_COPY, _FILL],
        by_name[device.name[rows]],
    )
    launched = np.where(device.launch[rows] >= 0, trace.start_ns[device.launch[rows]], device.start_ns[rows])
    order = np.lexsort((device.start_ns[rows], launched))
    op = device.op[rows]
    return _Graph(codes[order], np.where(is_op[op], op, -1)[order])


class _Match(NamedTuple):
    graph: _Graph
    place: IntArray  # by kernel of a replay: its place in the graph; -1: names disagree


class _Captured:
    """Finds the captured graph of a replay."""

    def __init__(self, graphs: Sequence[_Graph]) -> None:
        self._graphs = graphs
        self._next = 0  # the graph that follows the one matched last
        self._known: dict[tuple[bytes, int], _Match | None] = {}

    def match(self, codes: IntArray) -> _Match:
        """The kernels of the first graph, from the expected one on, that they match wholly; else of the most similar one."""
        count = len(self._graphs)
        order = [(self._next + i) % count for i in range(count)]
        for number in order:
            match = self._whole(codes, number)
            if match is not None:
                self._next = (number + 1) % count
                return match
        best, similarity = order[0], 0.0
        for number in order:
            share = _equal_share(codes, self._graphs[number].codes)
            if share > similarity:
                best, similarity = number, share
        if similarity < _SIMILAR:
            return _Match(self._graphs[order[0]], np.full(len(codes), -1, np.int64))
        self._next = (best + 1) % count
        return _Match(self._graphs[best], _aligned(codes, self._graphs[best].codes))

    def _whole(self, codes: IntArray, number: int) -> _Match | None:
        key = codes.tobytes(), number
        if key not in self._known:
            self._known[key] = self._compared(codes, self._graphs[number])
        return self._known[key]

    @staticmethod
    def _compared(codes: IntArray, graph: _Graph) -> _Match | None:
        if len(codes) != len(graph.codes):
            return None
        place = np.arange(len(codes))
        if ((codes == graph.codes) | ((graph.codes == _UNNAMED) & (codes >= 0))).all():
            return _Match(graph, place)
        # branches of a graph run at the same time: the n-th kernel of a name is the n-th launch of that name
        own, captured = np.argsort(codes, kind="stable"), np.argsort(graph.codes, kind="stable")
        if (codes[own] == graph.codes[captured]).all():
            place[own] = captured
            return _Match(graph, place)
        return None


class _Eager:
    """Finds the kernels of a replay one after the other in the work of a program without graphs."""

    def __init__(self, graphs: Sequence[_Graph]) -> None:
        self._work = graphs[0]
        self._from = 0

    def match(self, codes: IntArray) -> _Match:
        """The first occurrence from the one matched last on."""
        work = self._work.codes
        nothing = np.full(len(codes), -1, np.int64)
        if len(codes) > len(work):
            return _Match(self._work, nothing)
        starts = np.flatnonzero(work[: len(work) - len(codes) + 1] == codes[0])
        starts = np.concatenate([starts[starts >= self._from], starts[starts < self._from]])
        for start in starts.tolist():
            if (work[start : start + len(codes)] == codes).all():
                self._from = start + len(codes)
                return _Match(self._work, np.arange(start, start + len(codes)))
        return _Match(self._work, nothing)


def _equal_share(first: IntArray, second: IntArray) -> float:
    """How many codes two sequences have in common, as a share of the longer one."""
    codes, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    place = place.reshape(-1)
    counts = (np.bincount(part, minlength=len(codes)) for part in (place[: len(first)], place[len(first) :]))
    return float(np.minimum(*counts).sum() / max(len(first), len(second), 1))


def _aligned(codes: IntArray, captured: IntArray) -> IntArray:
    """By code, its place among the captured ones where both sequences agree; -1 where they do not."""
    place = np.full(len(codes), -1, np.int64)
    matcher = SequenceMatcher(None, codes.tolist(), captured.tolist(), autojunk=False)
    for block in matcher.get_matching_blocks():
        place[block.a : block.a + block.size] = np.arange(block.b, block.b + block.size)
    return place


# ---------------------------------------------------------------------------------------------------- the ops of the capture as rows


def apply_match(execution: Trace, capture: Trace, match: CaptureMatch) -> Trace:
    """The trace of replays with the ops of a match: synthetic events inside graph launches."""
    if not len(match.device_row):
        return execution
    launch = execution.device.launch[match.device_row]
    op_parent = _op_parents(capture)
    # the ops of each launch, and the ops around those
    pairs = np.stack([launch, match.capture_op], 1)
    inside = np.unique(pairs, axis=0)
    wanted = [inside]
    while len(inside):
        above = op_parent[inside[:, 1]]
        inside = np.unique(np.stack([inside[:, 0], above], 1)[above >= 0], axis=0)
        wanted.append(inside)
    rows = np.unique(
        np.concatenate(wanted), axis=0
    )  # by (launch, row of the capture): parents before their children
    owner, source = rows.T
    added = np.bincount(owner, minlength=len(execution))
    first = np.cumsum(added + 1) - added - 1  # where each event of the replays goes
    place = first[owner] + 1 + np.arange(len(owner)) - np.searchsorted(owner, owner)
    width = len(capture)
    index = np.searchsorted(owner * width + source, launch * width + match.capture_op)
    device = execution.device.moved(first)
    device_op = np.array(device.op)
    device_op[match.device_row] = place[index]
    merged = _merged_rows(execution, capture, first, place, owner, source, _depths(op_parent)[source] + 1)
    return replace(merged, device=replace(device, op=device_op))


def _op_parents(trace: Trace) -> IntArray:
    """By row, the op around it."""
    parent = tree(trace).parent
    around = nearest(parent, _is_op(trace))
    return np.where(parent >= 0, around[np.maximum(parent, 0)], -1)


def _depths(op_parent: IntArray) -> IntArray:
    depth, ancestor = np.zeros(len(op_parent), np.int64), op_parent.copy()
    while len(rows := np.flatnonzero(ancestor >= 0)):
        depth[rows] += 1
        ancestor[rows] = op_parent[ancestor[rows]]
    return depth


def _merged_rows(
    execution: Trace,
    capture: Trace,
    first: IntArray,
    place: IntArray,
    owner: IntArray,
    source: IntArray,
    level: IntArray,
) -> Trace:
    """The events of the replays at `first`, and those of the capture (`source`) as synthetic events of `owner` at `place`."""
    count = len(execution) + len(place)
    names = {key: number for number, key in enumerate(zip(execution.names, execution.overloads))}
    used_names, name_place = np.unique(capture.name[source], return_inverse=True)
    new_names = [
        names.setdefault((capture.names[i], capture.overloads[i]), len(names)) for i in used_names.tolist()
    ]
    used_inputs, input_place = np.unique(capture.inputs[source], return_inverse=True)
    table = [*execution.input_table, *(capture.input_table[i] for i in used_inputs.tolist() if i >= 0)]
    offset = len(execution.input_table) - int((used_inputs < 0).sum())
    inputs = np.where(used_inputs < 0, -1, np.arange(len(used_inputs)) + offset)[input_place.reshape(-1)]

    def column(recorded: IntArray, synthetic: IntArray | int) -> IntArray:
        values = np.empty(count, recorded.dtype)
        values[first] = recorded
        values[place] = synthetic
        return values

    marks = np.zeros(len(execution), np.int8) if execution.synthetic is None else execution.synthetic
    ids = execution.tensor_ids
    return replace(
        execution,
        names=tuple(text for text, _ in names),
        overloads=tuple(overload for _, overload in names),
        name=column(execution.name, np.array(new_names, np.int64)[name_place.reshape(-1)]),
        start_ns=column(execution.start_ns, execution.start_ns[owner]),
        end_ns=column(execution.end_ns, execution.start_ns[owner]),
        thread=column(execution.thread, execution.thread[owner]),
        kind=column(execution.kind, capture.kind[source]),
        scope=column(execution.scope, FUNCTION_SCOPE),
        sequence=column(execution.sequence, -1),
        forward_thread=column(execution.forward_thread, 0),
        inputs=column(execution.inputs, inputs),
        flops=column(execution.flops, capture.flops[source]),
        stack=column(execution.stack, execution.stack[owner]),
        input_table=tuple(table),
        tensor_ids=replace(ids, first=column(ids.first, -1)) if len(ids.first) else ids,
        external=None if execution.external is None else column(execution.external, 0),
        extra=None if execution.extra is None else column(execution.extra, -1),
        execution_node=None if execution.execution_node is None else column(execution.execution_node, 0),
        synthetic=column(marks, np.minimum(level, 127)),
    )
