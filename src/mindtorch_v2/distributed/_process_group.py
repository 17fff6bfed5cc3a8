"""`ProcessGroup`: the collectives among some of a job's processes, over the connections of a `Transport`.

A collective runs on the calling thread; with `async_op` it runs on a thread of the group, which does one after the other, so
that all processes do them in the order in which they were called.
"""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np

from ..profiler.record_function import (
    _record_function_with_args_enter,
    _record_function_with_args_exit,
    _RecordFunctionFast,
)
from ._reduce_op import ReduceOp, reduction
from ._stores import Store
from ._transport import Key, Transport
from ._work import Work

_SMALL = 1 << 16  # bytes up to which every process sends all its data to every other, instead of along a ring


class ProcessGroup:
    """Processes that communicate. `ranks` are their ranks in the job, in the order of their ranks in this group."""

    def __init__(
        self,
        transport: Transport,
        store: Store,
        ranks: Sequence[int],
        name: str,
        timeout: timedelta,
        backend: str = "gloo",
        description: str = "undefined",
    ) -> None:
        self._transport, self._store, self._ranks = transport, store, list(ranks)
        self._backend, self._timeout = backend, timeout
        self.group_name, self.group_desc = name, description
        self._channel = zlib.crc32(name.encode()) & 0x7FFFFFFF
        self._number = 0
        self._lock = threading.Lock()
        self._worker: ThreadPoolExecutor | None = None
        self._pending: list[Work] = []
        self.bound_device_id = None

    def rank(self) -> int:
        """This process' rank in the group."""
        return self._ranks.index(self._transport.rank)

    def size(self) -> int:
        """How many processes there are."""
        return len(self._ranks)

    def name(self) -> str:
        """The name of the back end."""
        return self._backend

    def get_group_store(self) -> Store:
        """The store by which the group was formed."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long a collective waits for other processes."""
        self._timeout = timeout

    def _get_backend_name(self) -> str:
        return self._backend

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    # ------------------------------------------------------------------------------ running

    def _next_number(self) -> int:
        with self._lock:
            self._number += 1
            return self._number

    def _start(
        self,
        op: str,
        collective: str,
        tensors: list[Any],
        body: Callable[[int], Any],
        async_op: bool,
        result: list[Any] | None = None,
        number: int | None = None,
    ) -> Work:
        """Run a collective, or let the group's thread run it. `op` and `collective` are its rows in a profile."""
        number = self._next_number() if number is None else number
        work = Work(tensors if result is None else result)

        def run() -> Any:
            with _annotated(f"gloo:{collective}", tensors[:1]):
                return body(number)

        with _RecordFunctionFast(f"c10d::{op}", (list(tensors),)):
            if async_op:
                self._in_background(work, run)
            else:
                for earlier in self._pending:
                    earlier._future._ready.wait()
                self._pending.clear()
                work._run(run)
        return work

    def _in_background(self, work: Work, run: Callable[[], Any]) -> None:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, f"process group {self.group_name}")
        self._pending = [earlier for earlier in self._pending if not earlier.is_completed()]
        self._pending.append(work)
        self._worker.submit(work._run, run)

    def _send(self, peer: int, number: int, step: int, array: np.ndarray) -> None:
        payload = np.ascontiguousarray(array)
        self._transport.send(self._ranks[peer], (self._channel, number, step), _bytes_of(payload))

    def _receive(
        self, peer: int, number: int, step: int, like: np.ndarray, timeout: timedelta | None = None
    ) -> np.ndarray:
        key: Key = (self._channel, number, step)
        payload = self._transport.receive(self._ranks[peer], key, timeout or self._timeout)
        if len(payload) != like.nbytes:
            raise RuntimeError(
                f"Rank {peer} sent {len(payload)} bytes where rank {self.rank()} expects {like.nbytes}: the tensors of the ranks differ in "
                "size or dtype"
            )
        return np.frombuffer(payload, like.dtype).reshape(like.shape)

    def shutdown(self) -> None:
        """End the group's thread."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None

    abort = shutdown

    # ------------------------------------------------------------------------------ collectives

    def allreduce(
        self, tensors: Any, op: Any = ReduceOp.SUM, timeout: Any = None, async_op: bool = True
    ) -> Work:
        """Reduce tensors of all processes; each gets the result."""
        tensors = _listed(tensors)
        for tensor in tensors:
            reduction(op, tensor._array.dtype)

        def body(number: int) -> None:
            for index, tensor in enumerate(tensors):
                _write(tensor, self._reduced(tensor._array, op, number, index * 4096))

        return self._start("allreduce_", "all_reduce", tensors, body, async_op)

    def _reduced(self, array: np.ndarray, op: Any, number: int, step: int) -> np.ndarray:
        """The reduction of equally shaped arrays of all processes: the same bits on each."""
        if self.size() == 1:
            return array
        if array.nbytes <= _SMALL:
            return _reduced_parts(self._gathered(array, number, step), op)
        total = self._ring_reduced(array, reduction(op, array.dtype), number, step)
        return _averaged(total, op, self.size())

    def _ring_reduced(self, array: np.ndarray, function: Any, number: int, step: int) -> np.ndarray:
        """Each process reduces one part, which travels around the ring; then the parts travel around once more."""
        n, rank = self.size(), self.rank()
        flat = array.reshape(-1).copy()
        bounds = [len(flat) * part // n for part in range(n + 1)]
        parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
        right, left = (rank + 1) % n, (rank - 1) % n
        for turn in range(n - 1):
            out, into = parts[(rank - turn) % n], parts[(rank - turn - 1) % n]
            self._send(right, number, step + turn, flat[out])
            flat[into] = function(self._receive(left, number, step + turn, flat[into]), flat[into])
        for turn in range(n - 1):
            out, into = parts[(rank + 1 - turn) % n], parts[(rank - turn) % n]
            self._send(right, number, step + n + turn, flat[out])
            flat[into] = self._receive(left, number, step + n + turn, flat[into])
        return flat.reshape(array.shape)

    def _gathered(self, array: np.ndarray, number: int, step: int) -> list[np.ndarray]:
        """The arrays of all processes, by rank."""
        rank = self.rank()
        others = [peer for peer in range(self.size()) if peer != rank]
        for peer in others:
            self._send(peer, number, step, array)
        parts = {peer: self._receive(peer, number, step, array) for peer in others}
        parts[rank] = array
        return [parts[peer] for peer in range(self.size())]

    def broadcast(self, tensors: Any, root: int = 0, timeout: Any = None, async_op: bool = True) -> Work:
        """Give all processes the tensors of one."""
        tensors = _listed(tensors)
        self._check_root("broadcast", root)

        def body(number: int) -> None:
            for index, tensor in enumerate(tensors):
                if self.rank() == root:
                    for peer in range(self.size()):
                        if peer != root:
                            self._send(peer, number, index, tensor._array)
                else:
                    _write(tensor, self._receive(root, number, index, tensor._array))

        return self._start("broadcast_", "broadcast", tensors, body, async_op)

    def reduce(
        self, tensors: Any, root: int = 0, op: Any = ReduceOp.SUM, timeout: Any = None, async_op: bool = True
    ) -> Work:
        """Reduce tensors of all processes; one gets the result."""
        tensors = _listed(tensors)
        self._check_root("reduce", root)
        for tensor in tensors:
            reduction(op, tensor._array.dtype)

        def body(number: int) -> None:
            for index, tensor in enumerate(tensors):
                array = tensor._array
                if self.rank() != root:
                    self._send(root, number, index, array)
                    continue
                others = {p: self._receive(p, number, index, array) for p in range(self.size()) if p != root}
                _write(tensor, _reduced_parts([others.get(p, array) for p in range(self.size())], op))

        return self._start("reduce_", "reduce", tensors, body, async_op)

    def allgather(
        self, output_tensors: Any, input_tensor: Any, timeout: Any = None, async_op: bool = True
    ) -> Work:
        """Give all processes the tensors of all."""
        (outputs,) = output_tensors if _is_nested(output_tensors) else (output_tensors,)
        (tensor,) = _listed(input_tensor)
        self._check_list("allgather", outputs, tensor)

        def body(number: int) -> None:
            for output, part in zip(outputs, self._gathered(tensor._array, number, 0)):
                _write(output, part)

        return self._start("allgather_", "all_gather", [tensor], body, async_op, result=list(outputs))

    def gather(
        self,
        output_tensors: Any,
        input_tensor: Any,
        root: int = 0,
        timeout: Any = None,
        async_op: bool = True,
    ) -> Work:
        """Give one process the tensors of all."""
        (tensor,) = _listed(input_tensor)
        self._check_root("gather", root)
        outputs: list[Any] = []
        if self.rank() == root:
            (outputs,) = output_tensors if _is_nested(output_tensors) else (output_tensors,)
            self._check_list("gather", outputs, tensor)

        def body(number: int) -> None:
            if self.rank() != root:
                self._send(root, number, 0, tensor._array)
                return
            for peer, output in enumerate(outputs):
                part = tensor._array if peer == root else self._receive(peer, number, 0, tensor._array)
                _write(output, part)

        return self._start("gather_", "gather", [tensor], body, async_op, result=list(outputs))

    def scatter(
        self,
        output_tensor: Any,
        input_tensors: Any,
        root: int = 0,
        timeout: Any = None,
        async_op: bool = True,
    ) -> Work:
        """Give each process one of the tensors of one process."""
        (output,) = _listed(output_tensor)
        self._check_root("scatter", root)
        inputs: list[Any] = []
        if self.rank() == root:
            (inputs,) = input_tensors if _is_nested(input_tensors) else (input_tensors,)
            self._check_list("scatter", inputs, output)

        def body(number: int) -> None:
            if self.rank() == root:
                for peer, tensor in enumerate(inputs):
                    if peer == root:
                        _write(output, tensor._array)
                    else:
                        self._send(peer, number, 0, tensor._array)
            else:
                _write(output, self._receive(root, number, 0, output._array))

        return self._start("scatter_", "scatter", [output], body, async_op)

    def reduce_scatter(
        self, output: Any, inputs: Any, op: Any = ReduceOp.SUM, timeout: Any = None, async_op: bool = True
    ) -> Work:
        """Reduce a list of tensors of each process; each gets the result for its own place in the list."""
        (output,) = _listed(output)
        (tensors,) = inputs if _is_nested(inputs) else (inputs,)
        self._check_list("reduce_scatter", tensors, output)
        reduction(op, output._array.dtype)

        def body(number: int) -> None:
            rank, array = self.rank(), output._array
            for peer, tensor in enumerate(tensors):
                if peer != rank:
                    self._send(peer, number, 0, tensor._array)
            others = {p: self._receive(p, number, 0, array) for p in range(self.size()) if p != rank}
            own = tensors[rank]._array
            _write(output, _reduced_parts([others.get(p, own) for p in range(self.size())], op))

        return self._start("reduce_scatter_", "reduce_scatter", [output], body, async_op)

    def alltoall(self, outputs: Any, inputs: Any, timeout: Any = None, async_op: bool = True) -> Work:
        """Give each process one tensor of each."""
        if len(outputs) != self.size() or len(inputs) != self.size():
            raise RuntimeError(
                f"all_to_all: expected {self.size()} tensors in each list, got {len(outputs)} and {len(inputs)}"
            )

        def body(number: int) -> None:
            rank = self.rank()
            for peer, tensor in enumerate(inputs):
                if peer != rank:
                    self._send(peer, number, 0, tensor._array)
            for peer, output in enumerate(outputs):
                part = inputs[rank]._array if peer == rank else self._receive(peer, number, 0, output._array)
                _write(output, part.copy())

        return self._start("alltoall_", "all_to_all", list(inputs), body, async_op, result=list(outputs))

    def barrier(self, timeout: timedelta | None = None, async_op: bool = True) -> Work:
        """Wait until all processes have called it."""
        token = np.zeros(1, np.uint8)

        def body(number: int) -> None:
            limit, rank = timeout or self._timeout, self.rank()
            others = [peer for peer in range(self.size()) if peer != rank]
            for peer in others:
                self._send(peer, number, 0, token)
            for peer in others:
                self._receive(peer, number, 0, token, limit)

        return self._start("barrier", "barrier", [], body, async_op)

    # ------------------------------------------------------------------------------ point to point

    def send(self, tensors: Any, peer: int, tag: int = 0, async_op: bool = True) -> Work:
        """Send a tensor to one process."""
        (tensor,) = _listed(tensors)
        array = tensor._array.copy()

        def body(number: int) -> None:
            self._transport.send(
                self._ranks[peer], self._p2p_key(tag), _bytes_of(np.ascontiguousarray(array))
            )

        return self._start("send", "send", [tensor], body, False, number=0)

    def recv(self, tensors: Any, peer: int | None, tag: int = 0, async_op: bool = True) -> Work:
        """Receive a tensor from one process, or from any (`peer` None)."""
        (tensor,) = _listed(tensors)
        peers = [p for p in range(self.size()) if p != self.rank()] if peer is None else [peer]

        def body(number: int) -> int:
            job_ranks = [self._ranks[p] for p in peers]
            source, payload = self._transport.receive_any(job_ranks, self._p2p_key(tag), self._timeout)
            array = tensor._array
            if len(payload) != array.nbytes:
                raise RuntimeError(
                    f"recv: rank {source} sent {len(payload)} bytes for a tensor of {array.nbytes} bytes"
                )
            _write(tensor, np.frombuffer(payload, array.dtype).reshape(array.shape))
            return source

        name = "recv_any_source" if peer is None else "recv"
        work = Work([tensor])
        with _RecordFunctionFast(f"c10d::{name}_", ([tensor],)):
            if async_op:  # each on a thread of its own: receives may be waited for in any order
                threading.Thread(target=work._run, args=(lambda: body(0),), daemon=True).start()
            else:
                with _annotated(f"gloo:{name}", (tensor,)):
                    work._run(lambda: body(0))
        return work

    def _p2p_key(self, tag: int) -> Key:
        return (self._channel | 0x80000000, tag, 0)

    # ------------------------------------------------------------------------------ checks

    def _check_root(self, name: str, root: int) -> None:
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroupGloo::{name}: invalid root rank: {root}")

    def _check_list(self, name: str, tensors: Any, like: Any) -> None:
        if len(tensors) != self.size():
            raise RuntimeError(
                f"ProcessGroupGloo::{name}: invalid output tensor list at index 0 (expected length {self.size()}, got {len(tensors)})"
            )
        for index, tensor in enumerate(tensors):
            if tensor.shape != like.shape:
                expected, got = (f"({', '.join(map(str, t.shape))})" for t in (like, tensor))
                raise RuntimeError(
                    f"ProcessGroupGloo::{name}: invalid tensor size at index {index} (expected {expected}, got {got})"
                )


@contextmanager
def _annotated(name: str, inputs: Sequence[Any]) -> Iterator[None]:
    """An annotation with inputs."""
    annotation = _record_function_with_args_enter(name, *inputs)
    try:
        yield
    finally:
        _record_function_with_args_exit(annotation)


def _reduced_parts(parts: list[np.ndarray], op: Any) -> np.ndarray:
    """The reduction of the processes' arrays, in the order of their ranks."""
    function, total = reduction(op, parts[0].dtype), parts[0].copy()
    for part in parts[1:]:
        total = np.asarray(function(total, part), total.dtype)
    return _averaged(total, op, len(parts))


def _averaged(total: np.ndarray, op: Any, n: int) -> np.ndarray:
    if op is not ReduceOp.AVG:
        return total
    return np.asarray(total // n if total.dtype.kind in "iub" else total / n, total.dtype)


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8)) if array.nbytes else memoryview(b"")  # type: ignore[arg-type]


def _write(tensor: Any, array: np.ndarray) -> None:
    if tensor._array is not array:
        np.copyto(tensor._array, array)


def _listed(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _is_nested(tensors: Any) -> bool:
    return bool(tensors) and isinstance(tensors[0], (list, tuple))


ProcessGroup.__module__ = "torch.distributed"
