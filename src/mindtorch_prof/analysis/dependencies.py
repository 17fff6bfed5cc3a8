"""Dependencies: a recording and a window of time in; a graph of what waited for what out, for longest paths.

Nodes are the starts and ends of host events and of a device's work. Edges are work that takes its time (a host event, a kernel) or waiting (for
the launch call, for the kernel before it on the stream, for an event of another stream, for a synchronisation, for the backward thread). No edge is
longer than the time between its nodes, and into each node leads one that is as long: the longest path to a node is the time since the window's
start. What else a node depends on has the least weight that is known, so that the same graph answers what would happen if an op took no time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import communication
from ..arrays import BoolArray, IntArray, distinct_values, rows_by
from ..trace import (
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SYNC,
    ENGINE,
    NODE,
    OP,
    RUNTIME,
    Columns,
    Trace,
)
from ..tree import thread_slices, total_up
from .longest_path import Graph
from .stream_order import StreamOrder, sync_arguments

if TYPE_CHECKING:
    from ..torch_api.results import Results

KINDS = ("host", "launch", "kernel", "copy", "communication", "sync", "gap")
HOST, LAUNCH, KERNEL, COPY, COMMUNICATION, SYNC, GAP = range(len(KINDS))

_SYNC = re.compile(r"synchronize|queuefinish|events?wait$", re.IGNORECASE)
_DEVICE_WIDE = re.compile(r"(device|context|ctx)synchronize|synchronizedevice", re.IGNORECASE)
_STREAM_WAIT = re.compile(r"streamwaitevent", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"graphlaunch", re.IGNORECASE)
_BLOCKING_COPY = re.compile(r"^(?!.*(async|enqueue)).*memcpy", re.IGNORECASE)

_LATE_NS = 1_000_000
_FEW = 5  # launches: of fewer the usual delay is not known

# which predecessor of a kernel is taken for the cause where several ended at the same time: the last of these
_BY_LAUNCH, _BY_WAIT, _BY_GRAPH, _BY_STREAM = range(4)
_KIND_OF_LABEL = np.array([LAUNCH, SYNC, GAP, GAP], np.int8)


@dataclass(frozen=True)
class Window:
    """The time to be explained, and whose it is."""

    start_ns: int
    end_ns: int  # of the host; the work launched until then may end later
    thread: int  # the thread whose time it is


@dataclass(frozen=True)
class Dependencies(Columns):
    """A graph of a window, and what its edges are. Edges are numbered as in `Graph`."""

    graph: Graph
    time_ns: IntArray  # by node
    weight: IntArray  # by edge, ns
    kind: IntArray  # int8 by edge, into KINDS
    row: IntArray  # int32 by edge: the row of the Trace that it is charged to, the innermost event; -1: none
    device_row: IntArray  # by edge: the row of Device that it is the work or the waiting of; -1: none
    node_row: IntArray  # by node: the row of the Trace whose start or end it is; -1: none
    node_device_row: IntArray  # by node: the same, of Device
    is_end: BoolArray  # by node: whether it is an end
    window: Window
    end_ns: int  # when the last work that was launched in the window ended, and the window itself
    earlier: IntArray  # rows of Device that were launched before the window and ran in it
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> IntArray:
        """By node the length of the longest path to it, by the weights that edges have: the time since the window's start."""
        since: IntArray = self.time_ns - self.window.start_ns
        return since

    @property
    def sink(self) -> int:
        """The node at which everything has ended."""
        return self.graph.n_nodes - 1


def dependencies(results: Results, window: Window) -> Dependencies:
    """The graph of what happened in a window; of a recording without synthetic events."""
    return _Builder(results, window).build()


def threads_of(trace: Trace, thread: int) -> IntArray:
    """The threads that belong together with a thread: all but those of other processes that run ops (merged files hold several ranks)."""
    threads = distinct_values(trace.thread)
    pids = trace.settings.thread_pids
    if not pids:
        return threads
    run_ops = distinct_values(trace.thread[trace.kind == OP]).tolist()
    others = {repr(pids.get(t)) for t in run_ops} - {repr(pids.get(thread))}
    return np.array([t for t in threads.tolist() if repr(pids.get(t)) not in others], np.int64)


class _Builder:
    def __init__(self, results: Results, window: Window) -> None:
        self.results, self.trace, self.window = results, results.trace, window
        self.notes: list[str] = []
        self.sources: list[IntArray] = []
        self.targets: list[IntArray] = []
        self.weights: list[IntArray] = []
        self.kinds: list[IntArray] = []
        self.rows: list[IntArray] = []
        self.device_rows: list[IntArray] = []

    def build(self) -> Dependencies:
        self._place_host()
        self._choose_device_rows()
        self._place_nodes()
        self._add_kernel_starts()
        self._add_synchronisations()
        self._add_backward_threads()
        self._add_helper_threads()
        self._add_begin_and_end()
        source, target = (np.concatenate(parts) for parts in (self.sources, self.targets))
        return Dependencies(
            Graph(self.begins, self.rank, source, target),
            self.time,
            _extended(self.chain_weight, self.weights),
            _extended(self.chain_kind, self.kinds),
            _extended(self.chain_row, self.rows),
            _extended(self.chain_device_row, self.device_rows),
            self.node_row,
            self.node_device_row,
            self.is_end,
            self.window,
            self.end_ns,
            self.work[self.is_earlier],
            tuple(self.notes),
        )

    # ------------------------------------------------------------------------------------------------ nodes

    def _place_host(self) -> None:
        """Starts and ends of host events in the order in which they happened on their thread (a walk round the tree)."""
        trace, window = self.trace, self.window
        nesting = self.results.nesting
        threads = threads_of(trace, window.thread)
        inside = (trace.start_ns <= window.end_ns) & (trace.end_ns >= window.start_ns)
        inside &= np.isin(trace.thread, threads)
        rows = np.flatnonzero(inside)
        place = np.full(len(trace) + 1, -1, np.int64)  # the last one for row -1
        place[rows] = np.arange(len(rows))
        parent = place[nesting.parent[rows]]
        depth = nesting.depth[rows]
        size = total_up(np.ones(len(rows), np.int64), parent, depth)
        opens, closes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        parts = thread_slices(trace.thread[rows])
        for first, last in parts:
            # before an event starts, all events above it in the preorder have started and all but its ancestors have ended
            opens[first:last] = 2 * first + 2 * np.arange(last - first) - depth[first:last]
        closes = opens + 2 * size - 1
        count = 2 * len(rows)
        node_row, is_end = np.full(count, -1, np.int32), np.zeros(count, bool)
        node_row[opens], node_row[closes] = rows, rows
        is_end[closes] = True
        time = np.empty(count, np.int64)
        time[opens], time[closes] = trace.start_ns[rows], trace.end_ns[rows]
        time = np.clip(time, window.start_ns, window.end_ns)
        begins = np.zeros(count, bool)
        # after the start of an event it is the innermost one, after its end the one around it
        owner = np.full(count + 1, -1, np.int32)
        owner[opens + 1], owner[closes + 1] = rows, nesting.parent[rows]
        owner = owner[:count]
        for first, last in parts:
            part = slice(2 * first, 2 * last)
            begins[2 * first] = True
            # events that overlap without lying inside each other: what is cut short is the earlier one
            time[part] = np.minimum.accumulate(time[part][::-1])[::-1]
        owner[begins] = -1
        self.host_time, self.host_row, self.host_is_end = time, node_row, is_end
        self.host_begins, self.host_owner, self.parts = begins, owner, parts
        self.open_of, self.close_of = np.full(len(trace), -1, np.int64), np.full(len(trace), -1, np.int64)
        self.open_of[rows], self.close_of[rows] = opens + 1, closes + 1  # node 0 is the window's start
        self.part_of_thread = {
            int(trace.thread[rows[first]]): (2 * first + 1, 2 * last + 1) for first, last in parts
        }

    def _choose_device_rows(self) -> None:
        """The work that was launched in the window, and what was launched before and still ran in it."""
        trace, device, window = self.trace, self.trace.device, self.window
        launch_row = np.where(device.launch >= 0, device.launch, device.op)
        linked = launch_row >= 0
        works = device.works.copy()
        launched = _launch_times(trace, launch_row, works)
        if linked.any():
            threads = threads_of(trace, window.thread)
            works &= ~linked | np.isin(trace.thread[np.maximum(launch_row, 0)], threads)
        inside = works & (launched >= window.start_ns) & (launched <= window.end_ns)
        end = max(window.end_ns, int(device.end_ns[inside].max(initial=window.end_ns)))
        earlier = (
            works & (launched < window.start_ns) & (device.end_ns > window.start_ns) & (device.start_ns < end)
        )
        work = np.flatnonzero(inside | earlier)
        self.end_ns = end
        start = np.maximum(device.start_ns, window.start_ns)
        ends = np.maximum(np.minimum(device.end_ns, end), start)
        work = work[np.lexsort((work, ends[work], start[work]))]
        self.work, self.is_earlier = work, earlier[work]
        self.precedes = np.zeros(len(work), bool)  # other work waits for it
        self.work_start, self.work_end = start[work], ends[work]
        self.launched, self.launch_row = launched[work], launch_row[work]

    def _place_nodes(self) -> None:
        """One list of nodes: the window's start, the threads, the device's work one by one, the end of everything."""
        trace, device = self.trace, self.trace.device
        n_host, n_work = len(self.host_time), len(self.work)
        count = n_host + 2 * n_work + 2
        self.start_of = 1 + n_host + 2 * np.arange(n_work)
        self.time = np.concatenate(
            [
                [self.window.start_ns],
                self.host_time,
                np.column_stack([self.work_start, self.work_end]).reshape(-1),
                [self.end_ns],
            ]
        ).astype(np.int64)
        self.begins = np.zeros(count, bool)
        self.begins[[0, -1]] = True
        self.begins[1 : 1 + n_host] = self.host_begins
        self.begins[self.start_of] = True
        self.node_row, self.node_device_row = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        self.node_row[1 : 1 + n_host] = self.host_row
        self.node_device_row[self.start_of] = self.node_device_row[self.start_of + 1] = self.work
        self.is_end = np.zeros(count, bool)
        self.is_end[1 : 1 + n_host] = self.host_is_end
        self.is_end[self.start_of + 1] = True

        # at one time the device comes first: what has ended lets the host go on; a launch is earlier than its kernel
        level = np.ones(count, np.int8)
        level[1 + n_host : -1] = 0
        level[0], level[-1] = -1, 2
        since = self.time - self.window.start_ns
        self.rank = since * 4 + level

        self.chain_weight = np.zeros(count, np.int64)
        np.subtract(since[1:], since[:-1], out=self.chain_weight[1:])
        self.chain_weight[self.begins] = 0
        self.chain_row, self.chain_device_row = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        self.chain_row[1 : 1 + n_host] = self.host_owner
        self.chain_row[self.start_of + 1] = device.op[self.work]
        self.chain_device_row[self.start_of + 1] = self.work
        self.chain_kind = np.full(count, HOST, np.int8)
        is_sync = np.array([_SYNC.search(name) is not None for name in trace.names] or [False], bool)
        is_message = communication.on_host(trace.names) if trace.names else np.zeros(1, bool)
        if n_host:
            of_event = np.where(is_message, COMMUNICATION, HOST).astype(np.int8)[trace.name]
            of_event[is_sync[trace.name] & (trace.kind == RUNTIME)] = SYNC
            self.chain_kind[1 : 1 + n_host] = np.append(of_event, HOST)[self.host_owner]
        self.work_kind = np.where(device.kind[self.work] == DEVICE_KERNEL, KERNEL, COPY)
        if len(device.names):
            between_ranks = communication.on_device(device.names)[device.name[self.work]]
            self.work_kind = np.where(between_ranks, COMMUNICATION, self.work_kind)
        self.chain_kind[self.start_of + 1] = self.work_kind
        self.is_sync_name = is_sync

    def _add(
        self,
        source: IntArray,
        target: IntArray,
        weight: IntArray,
        kind: IntArray | int,
        row: IntArray,
        device_row: IntArray,
    ) -> None:
        self.sources.append(source)
        self.targets.append(target)
        self.weights.append(weight)
        self.kinds.append(np.broadcast_to(np.asarray(kind, np.int8), source.shape))
        self.rows.append(row)
        self.device_rows.append(device_row)

    def _is_before(self, node: IntArray, other: IntArray) -> BoolArray:
        """Whether an edge may lead from a node to another one; of nodes of one rank, from the first to the later."""
        rank, other_rank = self.rank[node], self.rank[other]
        is_before: BoolArray = (rank < other_rank) | ((rank == other_rank) & (node < other))
        return is_before

    def _last_before(self, thread: int, times: IntArray) -> IntArray:
        """The last node of a thread strictly before each time; 0, the window's start, if there is none."""
        low, high = self.part_of_thread.get(thread, (0, 0))
        place = np.searchsorted(self.time[low:high], times, side="left") - 1
        return np.where(place >= 0, low + place, 0)

    # ------------------------------------------------------------------------------------------------ what kernels wait for

    def _add_kernel_starts(self) -> None:
        """For each kernel: its launch, the work before it on the stream, other streams, the kernels of the same graph."""
        if not len(self.work):
            return
        device = self.trace.device
        self.streams = StreamOrder(
            device.device[self.work],
            device.stream[self.work],
            self.work_start,
            self.work_end,
            self.launched,
            device.correlation[self.work],
        )
        launch_node, is_early = self._launch_nodes()
        which, source, how = [], [], []

        def candidates(kernels: IntArray, nodes: IntArray, label: int) -> None:
            keep = (nodes >= 0) & (kernels >= 0)
            which.append(kernels[keep])
            source.append(nodes[keep])
            how.append(np.full(int(keep.sum()), label, np.int8))

        every = np.arange(len(self.work))
        candidates(every, launch_node, _BY_LAUNCH)
        before = self.streams.before()
        candidates(every, np.where(before >= 0, self.start_of[before] + 1, -1), _BY_STREAM)
        siblings = self._graph_siblings()
        candidates(every, np.where(siblings >= 0, self.start_of[siblings] + 1, -1), _BY_GRAPH)
        waiting, awaited, are_inferred = self._stream_waits()
        candidates(waiting, self.start_of[awaited] + 1, _BY_WAIT)

        kernel, node, label = np.concatenate(which), np.concatenate(source), np.concatenate(how)
        target = self.start_of[kernel]
        forward = self._is_before(node, target)
        if not forward.all():
            kernel, node, label, target = kernel[forward], node[forward], label[forward], target[forward]
        # the cause is what ended last
        node_time = self.time[node]
        delay = self.time[target] - node_time
        is_cause = _latest_of_each(kernel, node_time - self.window.start_ns, label)
        launches = (label == _BY_LAUNCH) & is_cause & ~is_early[kernel]
        launches &= (
            before[kernel] >= 0
        )  # the first work on a stream may wait for what the trace does not hold
        usual = int(np.median(delay[launches])) if int(launches.sum()) >= _FEW else 0
        if are_inferred:
            # a wait that is not written down counts only where the launch does not explain the delay
            is_launch = label == _BY_LAUNCH
            since = node_time - self.window.start_ns + np.where(is_launch, np.minimum(usual, delay), 0)
            is_cause = _latest_of_each(kernel, since, label)
            self._note_inferred(is_cause & (label == _BY_WAIT))
        since_cause = np.zeros(len(self.work), np.int64)
        since_cause[kernel[is_cause]] = delay[is_cause]
        least = np.minimum(
            usual, delay - since_cause[kernel]
        )  # launched that long before the cause, or longer
        weight = np.where(is_cause, delay, np.where(label == _BY_LAUNCH, np.maximum(least, 0), 0))
        kind = _KIND_OF_LABEL[label]
        self.precedes[(node[label != _BY_LAUNCH] - len(self.host_time) - 1) // 2] = True
        if (weight[~is_cause] == delay[~is_cause]).any():
            # of two that explain a start, a path takes the later edge
            last = np.concatenate([np.flatnonzero(~is_cause), np.flatnonzero(is_cause)])
            kernel, node, target, weight, kind = (
                column[last] for column in (kernel, node, target, weight, kind)
            )
        self._add(node, target, weight, kind, device.op[self.work[kernel]], self.work[kernel])

        # what is left waits for nothing that is known: for the host
        lone = np.ones(len(self.work), bool)
        lone[kernel] = False
        alone = np.flatnonzero(lone)
        node = self._last_before(self.window.thread, self.work_start[alone])
        target = self.start_of[alone]
        self._add(
            node,
            target,
            self.time[target] - self.time[node],
            LAUNCH,
            device.op[self.work[alone]],
            self.work[alone],
        )
        unlinked = int(((self.launch_row < 0) & ~self.is_earlier).sum())
        if unlinked:
            self.notes.append(
                f"{unlinked:,} of {len(self.work):,} kernels and copies have no launch call in the trace: "
                "they were launched before the next work of their stream, and wait for the work before them"
            )
        self._note_first_delays(launch_node, before, usual)
        if is_early.any():
            self.notes.append(
                f"{int(is_early.sum()):,} kernels and copies start before their launch call, by the trace's clocks: "
                "they wait for what their thread did before"
            )

    def _note_first_delays(self, launch_node: IntArray, before: IntArray, usual: int) -> None:
        """Says where the first work of a stream began so late that the stream must have been busy with work from before the recording."""
        first = np.flatnonzero((before < 0) & (launch_node >= 0) & ~self.is_earlier)
        delay = self.work_start[first] - self.time[launch_node[first]]
        late = (delay > _LATE_NS) & (delay > 100 * usual)
        for kernel, waited in zip(first[late].tolist(), delay[late].tolist()):
            stream = int(self.trace.device.stream[self.work[kernel]])
            self.notes.append(
                f"the first work on stream {stream} began {waited / 1e6:,.1f} ms after its launch: the stream was probably busy with "
                "work that the trace does not hold; that time counts as launch"
            )

    def _launch_nodes(self) -> tuple[IntArray, BoolArray]:
        """By kernel the node that launched it, -1: not in the window; and which kernels started before that."""
        node = np.full(len(self.work), -1, np.int64)
        # work without a launch call was launched before the next work of its stream that has one
        following = self.streams.next_of(self.launch_row >= 0)
        row = np.where(following >= 0, self.launch_row[following], -1)
        known = np.flatnonzero((row >= 0) & ~self.is_earlier)
        node[known] = self.open_of[row[known]]
        known = known[node[known] >= 0]
        early = np.zeros(len(self.work), bool)
        early[known] = self.time[node[known]] >= self.work_start[known]
        thread = self.trace.thread[row] if len(self.trace) else row
        early_rows = np.flatnonzero(early)
        for identity, own in rows_by(thread[early_rows]):
            here = early_rows[own]
            node[here] = self._last_before(identity, self.work_start[here])
        return node, early & (self.launch_row >= 0)

    def _graph_siblings(self) -> IntArray:
        """By kernel of a graph launch the kernel of the same launch that ended last before it started; -1: none."""
        sibling = np.full(len(self.work), -1, np.int64)
        launch = self.trace.device.launch[self.work]
        linked = np.flatnonzero(launch >= 0)
        several = np.flatnonzero(np.bincount(launch[linked]) > 1)
        if not len(several):
            return sibling
        rows = linked[np.isin(launch[linked], several)]
        number = np.searchsorted(several, launch[rows])
        ends = np.lexsort((rows, self.work_end[rows], number))
        span = int(self.end_ns - self.window.start_ns) + 2
        keys = number[ends] * span + self.work_end[rows][ends] - self.window.start_ns
        wanted = number * span + self.work_start[rows] - self.window.start_ns
        place = np.searchsorted(keys, wanted, side="right") - 1
        found = np.where(place >= 0, ends[np.maximum(place, 0)], 0)
        same = (place >= 0) & (number[found] == number) & (rows[found] < rows)
        sibling[rows] = np.where(same, rows[found], -1)
        is_graph = np.array([_GRAPH_LAUNCH.search(name) is not None for name in self.trace.names], bool)
        graphs = several[is_graph[self.trace.name[several]]]
        if len(graphs):
            kernels = int(np.isin(launch, graphs).sum())
            self.notes.append(
                f"{kernels:,} kernels belong to {len(graphs):,} graph launches: the trace does not say which waits for which inside a "
                "graph; each waits for the one that ended last before it"
            )
        return sibling

    def _stream_waits(self) -> tuple[IntArray, IntArray, bool]:
        """Pairs of a kernel and a kernel of another stream that it waited for through an event, and whether they are only inferred."""
        known = self._recorded_waits()
        if known is not None:
            return *known, False
        return *self._inferred_waits(), True

    def _note_inferred(self, waits: BoolArray) -> None:
        if waits.any():
            count = int(waits.sum())
            inferred = (
                "1 wait of a stream for another was"
                if count == 1
                else f"{count:,} waits of a stream for another were"
            )
            self.notes.append(
                f"the trace has no rows of synchronisation (cuda_sync): {inferred} inferred from calls and times"
            )

    def _recorded_waits(self) -> tuple[IntArray, IntArray] | None:
        """As the file's rows of synchronisation say; None: it has no such rows."""
        device = self.trace.device
        rows = np.flatnonzero(device.kind == DEVICE_SYNC)
        sync = sync_arguments(device, rows)
        rows, waits = rows[sync.is_stream_wait], np.flatnonzero(sync.is_stream_wait)
        if not len(waits):
            return None
        named = sync.wait_on_stream[waits] >= 0
        by_name, by_time = waits[named], rows[~named]
        # files that do not say which call recorded the event: it was called before the one that waits
        until = np.where(sync.record[by_name] >= 0, sync.record[by_name], sync.correlation[by_name])
        awaited = self.streams.last_with(
            sync.device[by_name], sync.wait_on_stream[by_name], correlation=until
        )
        waiting = self.streams.next_after(
            sync.device[by_name], sync.stream[by_name], sync.correlation[by_name]
        )
        # rows that are the waiting itself (Ascend) end with the work that was waited for
        timed = self.streams.around_wait(
            device.device[by_time], device.stream[by_time], device.start_ns[by_time], device.end_ns[by_time]
        )
        waiting, awaited = np.concatenate([waiting, timed[0]]), np.concatenate([awaited, timed[1]])
        keep = (awaited >= 0) & (waiting >= 0)
        return waiting[keep], awaited[keep]

    def _inferred_waits(self) -> tuple[IntArray, IntArray]:
        """From calls and times alone: what a thread launches after a cudaStreamWaitEvent waited for the work of another stream that
        was launched before that call and ended last before it started."""
        trace = self.trace
        is_wait = np.array([_STREAM_WAIT.search(name) is not None for name in trace.names] or [False], bool)
        linked = self.launch_row >= 0
        nothing = np.empty(0, np.int64)
        if not linked.any() or not is_wait.any():
            return nothing, nothing
        since, until = int(self.launched[linked].min()), int(self.launched[linked].max())
        calls = np.flatnonzero(is_wait[trace.name] & (trace.start_ns >= since) & (trace.start_ns <= until))
        thread = np.where(linked, trace.thread[self.launch_row], -1)
        waiting = self.streams.next_on_thread(thread, trace.thread[calls], trace.start_ns[calls])
        calls, waiting = calls[waiting >= 0], waiting[waiting >= 0]
        awaited = self.streams.latest_of_others(waiting, trace.start_ns[calls])
        return waiting[awaited >= 0], awaited[awaited >= 0]

    # ------------------------------------------------------------------------------------------------ what the host waits for

    def _add_synchronisations(self) -> None:
        """From the end of work on a device to the end of the call that waited for it."""
        if not len(self.work):
            return
        trace = self.trace
        calls = self.host_row[~self.host_is_end]
        calls = calls[(trace.kind[calls] == RUNTIME) & self.is_sync_name[trace.name[calls]]]
        call, kernel, sure = self._awaited(calls)
        copies = self._blocking_copies()
        call = np.concatenate([call, copies[0]])
        kernel = np.concatenate([kernel, copies[1]])
        sure = np.concatenate([sure, np.zeros(len(copies[0]), bool)])
        until = self.time[self.close_of[call]]
        # a call that waits for the device cannot return before that is done: where the clocks say so, the work ends with the call
        late = sure & (self.work_end[kernel] > until) & (self.work_start[kernel] < until)
        ended = np.where(late, until, self.work_end[kernel])
        node = np.where(late, self.start_of[kernel], self.start_of[kernel] + 1)
        keep = np.flatnonzero(self._is_before(node, self.close_of[call]) & (ended <= until))
        chosen = keep[np.lexsort((kernel[keep], ended[keep], self.close_of[call[keep]]))]
        call, kernel, late, ended, node = (
            call[chosen],
            kernel[chosen],
            late[chosen],
            ended[chosen],
            node[chosen],
        )
        target = self.close_of[call]
        waited = _last_of_each(target, np.arange(len(target))) & (ended > self.time[self.open_of[call]])
        weight = np.where(waited, self.time[target] - self.time[node], 0)
        kind = np.where(late, self.work_kind[kernel], SYNC)
        self._add(node, target, weight, kind, call, np.where(late, self.work[kernel], -1))
        self.chain_weight[target[waited]] = 0

    def _awaited(self, calls: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Pairs of a synchronising call and the work that it waited for, and whether it surely had to end before the call did."""
        trace, device = self.trace, self.trace.device
        device_wide = np.array(
            [_DEVICE_WIDE.search(name) is not None for name in trace.names] or [False], bool
        )
        pairs: list[tuple[IntArray, IntArray, BoolArray]] = []
        rows = np.flatnonzero((device.kind == DEVICE_SYNC) & (device.launch >= 0))
        if len(rows):
            sync = sync_arguments(device, rows)
            of_call = device.launch[rows]
            inside = np.flatnonzero(np.isin(of_call, calls) & ~sync.is_stream_wait)
            calls = np.setdiff1d(calls, of_call[inside])
            whole = inside[sync.is_context[inside]]
            for device_number, stream in self.streams.streams:
                kernel = self.streams.last_with(
                    np.full(len(whole), device_number),
                    np.full(len(whole), stream),
                    correlation=sync.correlation[whole],
                )
                pairs.append((of_call[whole], kernel, np.ones(len(whole), bool)))
            one = inside[~sync.is_context[inside]]
            has_record = sync.record[one] >= 0
            kernel = self.streams.last_with(
                sync.device[one],
                np.where(has_record, sync.wait_on_stream[one], sync.stream[one]),
                correlation=np.where(has_record, sync.record[one], sync.correlation[one]),
            )
            pairs.append((of_call[one], kernel, np.ones(len(one), bool)))
        if len(calls):
            begun, until = self.time[self.open_of[calls]], self.time[self.close_of[calls]]
            everything = device_wide[trace.name[calls]]
            best = np.full(len(calls), -1, np.int64)
            for device_number, stream in self.streams.streams:
                kernel = self.streams.last_with(
                    np.full(len(calls), device_number), np.full(len(calls), stream), launched=begun
                )
                pairs.append((calls[everything], kernel[everything], np.ones(int(everything.sum()), bool)))
                # which stream the call is about is not known: the one whose work ended last while it waited
                ended = np.where(kernel >= 0, self.work_end[np.maximum(kernel, 0)], -1)
                better = (ended > begun) & (ended <= until)
                better &= (best < 0) | (ended > self.work_end[np.maximum(best, 0)])
                best = np.where(better, kernel, best)
            pairs.append((calls[~everything], best[~everything], np.zeros(int((~everything).sum()), bool)))
        if not pairs:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool)
        call, kernel, sure = (np.concatenate(columns) for columns in zip(*pairs))
        keep = kernel >= 0
        return call[keep], kernel[keep], sure[keep]

    def _blocking_copies(self) -> tuple[IntArray, IntArray]:
        """Pairs of a call and the copy that it started and waited for: calls that are not asynchronous, and pageable memory."""
        trace, device = self.trace, self.trace.device
        launch = device.launch[self.work]
        copies = np.flatnonzero((device.kind[self.work] == DEVICE_COPY) & (launch >= 0) & ~self.is_earlier)
        copies = copies[self.open_of[launch[copies]] >= 0]
        pageable = np.array(["pageable" in name.lower() for name in device.names], bool)
        blocking = np.array([_BLOCKING_COPY.search(name) is not None for name in trace.names], bool)
        keep = pageable[device.name[self.work[copies]]] | blocking[trace.name[launch[copies]]]
        copies = copies[keep]
        return launch[copies], copies

    # ------------------------------------------------------------------------------------------------ threads

    def _add_backward_threads(self) -> None:
        """A backward pass on another thread: the thread that called backward() waits for its end."""
        trace = self.trace
        rows = self.host_row[~self.host_is_end]
        backward = rows[(trace.forward_thread[rows] != 0) | np.isin(trace.kind[rows], (NODE, ENGINE))]
        end, waiting = [], []
        for thread, of_thread in rows_by(trace.thread[backward]):
            own = backward[of_thread]
            forward = trace.forward_thread[own]
            threads, counts = np.unique(forward[forward != 0], return_counts=True)
            caller = int(threads[np.argmax(counts)]) if len(threads) else self.window.thread
            if caller not in self.part_of_thread:  # of merged files it may be another rank's
                caller = self.window.thread
            if caller == thread or caller not in self.part_of_thread:
                continue
            low, high = self.part_of_thread[caller]
            times = self.time[low:high]
            first, last = self.open_of[own], self.close_of[own]
            gap = np.searchsorted(times, self.time[first], side="left")
            # between two nodes of the calling thread, and at neither of them
            inside = (
                (gap > 0)
                & (gap < len(times))
                & (np.searchsorted(times, self.time[last], side="right") == gap)
            )
            gaps = distinct_values(gap[inside])
            if not len(gaps):
                continue
            place = np.searchsorted(gaps, gap[inside])
            last_of_pass = np.full(len(gaps), -1)
            np.maximum.at(last_of_pass, place, last[inside])
            end.append(last_of_pass)
            waiting.append(low + gaps)
        if not end:
            return
        last, after = np.concatenate(end), np.concatenate(waiting)
        order = np.lexsort((self.time[last], after))
        last, after, row = last[order], after[order], self.chain_row[after][order]
        is_last = np.append(after[1:] != after[:-1], True)
        weight = np.where(is_last, self.time[after] - self.time[last], 0)
        self._add(last, after, weight, HOST, row, np.full(len(last), -1, np.int64))
        self.chain_weight[after] = 0

    def _add_helper_threads(self) -> None:
        """Where another thread starts an outermost event: it follows its own thread's last event, or what the window's thread did last,
        whichever is later."""
        low, high = self.part_of_thread.get(self.window.thread, (0, 0))
        n_host = len(self.host_time)
        starts = 1 + np.flatnonzero((self.host_owner < 0) & ~self.host_is_end)
        starts = starts[(starts < low) | (starts >= high)]
        main = self._last_before(self.window.thread, self.time[starts])
        own = np.where(self.begins[starts], -1, self.time[np.minimum(starts - 1, n_host)])
        handed = self.time[main] > own
        starts, main = starts[handed], main[handed]
        nothing = np.full(len(starts), -1, np.int64)
        self._add(main, starts, self.time[starts] - self.time[main], HOST, nothing, nothing)
        self.chain_weight[starts] = 0

    def _add_begin_and_end(self) -> None:
        """From the window's start to the first node of its thread, and from the last nodes to the end of everything."""
        own = self.part_of_thread.get(self.window.thread)
        if own is not None:
            first, nothing = np.array(own[:1], np.int64), np.full(1, -1, np.int64)
            self._add(0 * first, first, self.time[first] - self.window.start_ns, HOST, nothing, nothing)
        last = np.array([high - 1 for _, high in self.part_of_thread.values()], np.int64)
        # of work that others wait for, these end later
        final = np.flatnonzero(~self.precedes)
        last = np.concatenate([[0], last, self.start_of[final] + 1]).astype(np.int64)
        main = np.zeros(len(last), bool)
        main[0] = own is None
        if own is not None:
            main |= last == own[1] - 1
        main[len(last) - len(final) :] = True
        # the work of the device, else the window's own thread, is what the end waits for
        cause = int(np.lexsort((np.arange(len(last)), np.where(main, self.time[last], -1)))[-1])
        weight = np.zeros(len(last), np.int64)
        weight[cause] = self.end_ns - self.time[last[cause]]
        nothing = np.full(len(last), -1, np.int64)
        order = np.argsort(np.arange(len(last)) == cause, kind="stable")
        self._add(last[order], np.full(len(last), len(self.time) - 1), weight[order], HOST, nothing, nothing)


def _launch_times(trace: Trace, launch_row: IntArray, works: BoolArray) -> IntArray:
    """By row of Device when it was launched. Work without a launch call was launched after the work before it on its stream; the first work
    on a stream, before the recording. On a stream where nothing has a launch call, when it started."""
    device = trace.device
    linked = works & (launch_row >= 0)
    if not linked.any():
        return device.start_ns
    launched = np.where(linked, trace.start_ns[np.maximum(launch_row, 0)], device.start_ns)
    rows = np.flatnonzero(works)
    # rows are in the order of (device, stream, start)
    begins = np.append(True, (np.diff(device.device[rows]) != 0) | (np.diff(device.stream[rows]) != 0))
    stream = np.cumsum(begins) - 1
    place = np.arange(len(rows))
    before = np.maximum.accumulate(np.where(linked[rows], place, -1))
    has_any = np.zeros(int(stream[-1]) + 1, bool)
    has_any[stream[linked[rows]]] = True
    is_first = before < np.flatnonzero(begins)[stream]
    estimate = np.where(is_first, np.iinfo(np.int64).min // 2, launched[rows[np.maximum(before, 0)]])
    launched[rows] = np.where(linked[rows] | ~has_any[stream], launched[rows], estimate)
    return launched


def _latest_of_each(key: IntArray, since: IntArray, label: IntArray) -> BoolArray:
    """Mask of one row per key: that of the latest time; of equal times, of the highest label, and then the last. Labels are below 4."""
    value = since * 4 + label
    latest = np.full(int(key.max(initial=-1)) + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, key, value)
    rows = np.flatnonzero(value == latest[key])
    chosen = np.full(len(latest), -1, np.int64)
    chosen[key[rows]] = rows
    is_latest = np.zeros(len(key), bool)
    is_latest[chosen[chosen >= 0]] = True
    return is_latest


def _last_of_each(key: IntArray, order: IntArray) -> BoolArray:
    """Mask of the rows that come last among those of their key. order: of the rows, by key first."""
    is_last = np.zeros(len(key), bool)
    in_order = key[order]
    if len(key):
        is_last[order[np.append(in_order[1:] != in_order[:-1], True)]] = True
    return is_last


def _extended(column: IntArray, parts: list[IntArray]) -> IntArray:
    """A column of the edges of chains with those between chains appended: in place, so that the longer part is not copied."""
    count = len(column)
    column.resize(count + sum(map(len, parts)), refcheck=False)
    np.concatenate([column[:0], *parts], out=column[count:], casting="same_kind")
    return column
