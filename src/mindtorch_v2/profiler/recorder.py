"""The recorder: ops and annotations as they happen in, a Trace out. Written for its cost while it runs.

Each recorded thread has one plain list that grows by a few integers an event; long lists are sealed into int64 arrays. Names,
shapes and stacks are interned when first met and looked up after the stop. Nothing recorded keeps a tensor alive.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _dispatch
from .._graph import grad_state, storage_of
from .._storage import ObservedStorage, UntypedStorage
from . import trace as columns
from .inputs import as_torch_shows
from .stacks import Stacks, frame_columns, stack_columns
from .trace import Health, Memory, Trace

clock = time.perf_counter_ns
get_ident = threading.get_ident

# integers an event: key, start, end, sequence number, inputs (an index, or -1), and with stacks the call it happened in (or -1)
WIDTH = 5
_RANGES = 1 << 40  # keys from here on are annotations and nodes, below they are ops


@dataclass(frozen=True)
class Config:
    """What to record; decided when recording starts."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = False
    overloads: bool = False  # show which overload of an op was called
    verbose: bool = False  # write each op's stack into trace files


active: Recorder | None = None  # who records now


class Buffer:
    """The events of one thread."""

    __slots__ = ("thread", "width", "native", "rows", "sealed", "extend", "open")

    def __init__(self, thread: int, width: int = WIDTH) -> None:
        self.thread = thread
        self.width = width
        self.native = threading.get_native_id()  # made on its own thread
        self.rows: list[int] = []
        self.sealed: list[np.ndarray] = []
        self.extend = self.rows.extend
        self.open: list[tuple] = []  # ranges that have begun and not ended: the tokens of `_Ranges.enter`

    def seal(self) -> None:
        """Move what was recorded so far into an array."""
        if self.rows:
            self.sealed.append(np.array(self.rows, np.int64).reshape(-1, self.width))
            self.rows.clear()

    def array(self) -> np.ndarray:
        """All events, in the order in which they ended."""
        self.seal()
        return np.concatenate(self.sealed) if self.sealed else np.empty((0, self.width), np.int64)


class Recorder:
    """A recording in progress."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.trace_id = ""  # what the trace shall be known by; a new one if empty
        self.thread = get_ident()
        self.stacks: Stacks | None = None
        if config.with_stack or config.with_modules:
            self.stacks = Stacks(modules_only=not config.with_stack)
        self.width = WIDTH if self.stacks is None else WIDTH + 1
        self.buffers: dict[int, Buffer] = {self.thread: Buffer(self.thread, self.width)}
        self.ranges: list[tuple] = []  # (name, scope, forward thread), by key - _RANGES
        self.range_keys: dict[tuple, int] = {}
        self.inputs: dict[Any, int] = {}  # what went into an op -> index
        self.memory: list[int] = []  # time, bytes, address, thread
        self.unfinished = 0
        self.running = False
        self.begun_ns = 0
        self.outer: Recorder | None = None  # who recorded when this one began; it waits meanwhile
        self.suspended_ns = 0  # how long this one has waited for others
        self.hooks: tuple = (None, None)
        self.frees = _Frees(self)
        self.flops: dict[int, int] = {}  # index of inputs -> flops

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin: from now on every op of the recorded threads is seen. A recorder that is already at work waits."""
        global active
        now = clock()
        if not self.begun_ns:
            self.origin_ns = time.time_ns() - now
            self.begun_ns = now
        if self.stacks is not None:
            self.stacks.begin(sys._getframe(1), self.thread, now)
        ranges = _Ranges(self) if self.stacks is None else _StackedRanges(self, self.stacks)
        self.hooks = (self._choose(), ranges)
        self.frees.note = self.memory.extend
        if active is not self:
            self.outer = active
            if active is not None:
                active.suspended_ns -= now
        self.running = True
        active = self
        self.resume()

    def pause(self) -> None:
        """See nothing until `resume`."""
        if active is self:
            _dispatch.recorder = _dispatch.ranges = None

    def resume(self) -> None:
        """See ops again."""
        if active is self:
            _dispatch.recorder, _dispatch.ranges = self.hooks

    def stop(self) -> Trace:
        """End, and give what was recorded; what is still open ends now."""
        global active
        self.pause()
        self.ended_ns = clock()
        self.running = False
        if self.stacks is not None:
            self.stacks.finish(sys._getframe(1), self.ended_ns)
        self.frees.note = None
        for buffer in list(self.buffers.values()):
            for _, key, sequence, inputs, start, *call in reversed(buffer.open):
                buffer.extend((key, start, self.ended_ns, sequence, inputs, *call))
                self.unfinished += 1
            buffer.open.clear()
        if active is self:
            active = self.outer
            while active is not None and not active.running:  # it ended while it waited
                active = active.outer
            if active is not None:
                active.suspended_ns += self.ended_ns
                active.resume()
        elif self.suspended_ns < 0:
            self.suspended_ns += self.ended_ns
        self.outer = None
        return self.seal()

    def buffer(self, thread: int) -> Buffer | None:
        """The buffer of a thread; None if that thread is not recorded."""
        found = self.buffers.get(thread)
        if found is None and self.config.all_threads:
            found = self.buffers[thread] = Buffer(thread, self.width)
        return found

    # ------------------------------------------------------------------------------------------------ the hot path

    def _choose(self) -> Any:
        """The function that sees each op, for these settings."""
        config = self.config
        if self.stacks is not None:
            return self._stacked(self.stacks)
        if config.all_threads:
            return self._all_threads()
        detailed = config.record_shapes or config.with_flops
        if config.profile_memory:
            return self._with_memory(detailed)
        return self._with_shapes() if detailed else self._plain()

    def _plain(self) -> Any:
        extend, owner, state = self.buffers[self.thread].extend, self.thread, _own_state()
        ident, now = get_ident, clock

        def record(op: Any, *arguments: Any) -> Any:
            if ident() != owner:
                return op.run(*arguments)
            sequence = state["seq"] if state["enabled"] else -1
            start = now()
            try:
                return op.run(*arguments)
            finally:
                extend((op.uid, start, now(), sequence, -1))

        return record

    def _with_shapes(self) -> Any:
        extend, owner, state = self.buffers[self.thread].extend, self.thread, _own_state()
        ident, now, known, learn = get_ident, clock, self.inputs.get, self._learn

        def record(op: Any, *arguments: Any) -> Any:
            if ident() != owner:
                return op.run(*arguments)
            sequence = state["seq"] if state["enabled"] else -1
            try:
                inputs = known(op.describe(*arguments))
            except (AttributeError, TypeError):  # a meta tensor, or arguments that the op will refuse
                inputs = -1
            else:
                if inputs is None:
                    inputs = learn(op, arguments)
            start = now()
            try:
                return op.run(*arguments)
            finally:
                extend((op.uid, start, now(), sequence, inputs))

        return record

    def _with_memory(self, detailed: bool) -> Any:
        extend, owner, state = self.buffers[self.thread].extend, self.thread, _own_state()
        ident, now, find, born = get_ident, clock, self._inputs_of, self._born
        note, frees, fresh, tensor_class = self.memory.extend, self.frees, object.__new__, _dispatch.Tensor

        def record(op: Any, *arguments: Any) -> Any:
            if ident() != owner:
                return op.run(*arguments)
            sequence = state["seq"] if state["enabled"] else -1
            inputs = find(op, arguments) if detailed else -1
            start = now()
            try:
                result = op.run(*arguments)
                if op.allocates == 1 and result.__class__ is tensor_class and result._storage is None:
                    # the most common case, written out: one new tensor that nobody has looked at yet
                    array = result._array
                    storage = result._storage = fresh(ObservedStorage)
                    storage._root = array
                    size = storage.observed_bytes = array.nbytes
                    if size:
                        storage.on_free = frees
                        note((now(), size, id(storage), owner))
                elif op.allocates:
                    born(op, arguments, result)
                return result
            finally:
                extend((op.uid, start, now(), sequence, inputs))

        return record

    def _all_threads(self) -> Any:
        config, state = self.config, grad_state
        detailed = config.record_shapes or config.with_flops
        ident, now, find, born, buffers = get_ident, clock, self._inputs_of, self._born, self.buffers
        memory = config.profile_memory

        def record(op: Any, *arguments: Any) -> Any:
            thread = ident()
            buffer = buffers.get(thread)
            if buffer is None:
                buffer = buffers[thread] = Buffer(thread)
            sequence = state.seq if state.enabled else -1
            inputs = find(op, arguments) if detailed else -1
            start = now()
            try:
                result = op.run(*arguments)
                if memory and op.allocates:
                    born(op, arguments, result)
                return result
            finally:
                buffer.extend((op.uid, start, now(), sequence, inputs))

        return record

    def _stacked(self, stacks: Stacks) -> Any:
        config, state, owner = self.config, grad_state, self.thread
        detailed = config.record_shapes or config.with_flops
        ident, now, find, born, buffers = get_ident, clock, self._inputs_of, self._born, self.buffers
        memory, every, frame_of, mark, find_call = (
            config.profile_memory,
            config.all_threads,
            sys._getframe,
            stacks.mark,
            stacks.finder(),
        )
        own_extend, width, own_state = buffers[owner].extend, self.width, _own_state()
        note, frees, fresh, tensor_class = self.memory.extend, self.frees, object.__new__, _dispatch.Tensor

        def record(op: Any, *arguments: Any) -> Any:
            call: Any
            if (thread := ident()) == owner:
                extend = own_extend
                sequence = own_state["seq"] if own_state["enabled"] else -1
            elif every:
                buffer = buffers.get(thread)
                if buffer is None:
                    buffer = buffers[thread] = Buffer(thread, width)
                extend = buffer.extend
                sequence = state.seq if state.enabled else -1
            else:
                return op.run(*arguments)
            try:
                call = (frame := frame_of(2)).f_trace
                if call.__class__ is not mark:
                    call = find_call(frame, thread)
                del frame
            except ValueError:  # called by C on a bare thread
                call = -1
            inputs = find(op, arguments) if detailed else -1
            start = now()
            try:
                result = op.run(*arguments)
                if memory:
                    if op.allocates == 1 and result.__class__ is tensor_class and result._storage is None:
                        array = result._array
                        storage = result._storage = fresh(ObservedStorage)
                        storage._root = array
                        size = storage.observed_bytes = array.nbytes
                        if size:
                            storage.on_free = frees
                            note((now(), size, id(storage), thread))
                    elif op.allocates:
                        born(op, arguments, result)
                return result
            finally:
                extend((op.uid, start, now(), sequence, inputs, call))

        return record

    def _inputs_of(self, op: Any, arguments: tuple) -> int:
        """The index of what goes into an op: shapes, strides and types of tensors, values of numbers."""
        try:
            found = self.inputs.get(op.describe(*arguments))
        except (AttributeError, TypeError):  # a meta tensor, or arguments that the op will refuse
            return -1
        return self._learn(op, arguments) if found is None else found

    def _learn(self, op: Any, arguments: tuple) -> int:
        """Give new inputs an index."""
        index = self.inputs[op.describe(*arguments)] = len(self.inputs)
        if self.config.with_flops and op.flops is not None:
            self.flops[index] = _count_flops(op, arguments)
        return index

    def _born(self, op: Any, arguments: tuple, result: Any) -> None:
        """Note the memory of an op's fresh results, and watch for its end."""
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            array = getattr(tensor, "_array", None)
            if array is None or not array.nbytes:
                continue
            if op.allocates == 2 and (tensor._base is not None or any(tensor is a for a in arguments)):
                continue
            storage = storage_of(tensor)
            if storage.__class__ is not UntypedStorage or storage._keeps is not None:
                continue  # observed already, or a part of another one
            storage.__class__ = ObservedStorage
            storage.observed_bytes, storage.on_free = array.nbytes, self.frees
            self.memory.extend((clock(), array.nbytes, id(storage), get_ident()))

    # ------------------------------------------------------------------------------------------------ after the stop

    def seal(self) -> Trace:
        """What was recorded, as a Trace."""
        parts = [(buffer.thread, buffer.array()) for buffer in self.buffers.values()]
        rows = np.concatenate([array for _, array in parts])
        thread = (
            np.concatenate([np.full(len(array), t, np.int64) for t, array in parts])
            if parts
            else np.empty(0, np.int64)
        )
        # within a thread events came in the order of their ends: of two that start together the later one is the outer
        order = np.lexsort((-np.arange(len(rows)), rows[:, 1], thread))
        rows, thread = rows[order], thread[order]
        names, name, kind, scope, forward = self._names(rows[:, 0])
        unsequenced = [
            key
            for key in np.unique(rows[:, 0]).tolist()
            if key < _RANGES and not _dispatch.BY_UID[key].sequenced
        ]
        sequence = np.where(np.isin(rows[:, 0], unsequenced), -1, rows[:, 3])
        inputs = rows[:, 4].astype(np.int32)
        flops = np.zeros(len(rows), np.int64)
        if self.flops:
            by_input = np.zeros(len(self.inputs) + 1, np.int64)
            for index, value in self.flops.items():
                by_input[index] = value
            flops = by_input[inputs]
        stacks: tuple = ()
        stack = np.full(len(rows), -1, np.int32)
        if self.stacks is not None and self.config.with_stack:
            stacks, stack = stack_columns(self.stacks, rows[:, 5])
        made = Trace(
            names=tuple(text for text, _ in names),
            overloads=tuple(overload for _, overload in names),
            name=name,
            start_ns=rows[:, 1],
            end_ns=rows[:, 2],
            thread=thread,
            kind=kind,
            scope=scope,
            sequence=sequence,
            forward_thread=forward,
            inputs=inputs,
            flops=flops,
            stack=stack,
            stacks=stacks,
            input_table=self._input_table(),
            memory=self._memory(),
            health=self._health(),
            origin_ns=self.origin_ns,
            window_ns=(self.begun_ns, self.ended_ns),
            settings={
                "pid": os.getpid(),
                "thread": self.thread,
                "threads": self._threads(),
                "trace_id": self.trace_id or os.urandom(16).hex().upper(),
                **vars(self.config),
            },
        )
        if self.stacks is not None:
            # a range may outlast the call that opened it
            calls = np.where(rows[:, 0] < _RANGES, rows[:, 5], -1)
            made = replace(made, frames=frame_columns(self.stacks, calls, rows[:, 2], made))
        return made

    def _threads(self) -> dict[int, tuple[int, str]]:
        """The system's number and the name of each thread that is or was seen, by identity."""
        found = {t.ident: (t.native_id or 0, t.name) for t in threading.enumerate() if t.ident}
        return {**{b.thread: (b.native, "") for b in self.buffers.values() if b.thread not in found}, **found}

    def _names(self, keys: np.ndarray) -> tuple:
        """The string table, and by event: name id, kind, scope and forward thread."""
        found, place = np.unique(keys, return_inverse=True)
        table: dict[tuple[str, str], int] = {}
        ids, kinds, scopes, forwards = (np.zeros(len(found), np.int64) for _ in range(4))
        for number, key in enumerate(found.tolist()):
            if key < _RANGES:
                op = _dispatch.BY_UID[key]
                shown = op.overload if self.config.overloads else ""
                name, kinds[number] = (op.qualified_name, shown), columns.OP
            else:
                text, scopes[number], forwards[number] = self.ranges[key - _RANGES]
                name = (text, "")
                kinds[number] = (
                    columns.ANNOTATION
                    if scopes[number] == columns.USER_SCOPE
                    else columns.ENGINE
                    if text.startswith("autograd::engine::")
                    else columns.NODE
                    if scopes[number] == columns.BACKWARD_SCOPE
                    else columns.OP
                )
            ids[number] = table.setdefault(name, len(table))
        place = place.reshape(-1)
        return (
            list(table),
            ids[place].astype(np.int32),
            kinds[place].astype(np.int8),
            scopes[place].astype(np.int8),
            forwards[place],
        )

    def _input_table(self) -> tuple:
        from .._codegen import described

        made: list[tuple[Any, tuple]] = []
        for flat in self.inputs:
            if flat[0] < 0:
                made.append((None, flat[1:]))
            else:
                op = _dispatch.BY_UID[flat[0]]
                made.append((op, as_torch_shows(op, described(op, flat))))
        return tuple(made)

    def _health(self) -> Health:
        notes: tuple[str, ...] = ()
        if self.suspended_ns:
            notes = (f"{self.suspended_ns / 1e6:.3f}ms in which another profiler recorded",)
        return Health(unfinished=self.unfinished, notes=notes)

    def _memory(self) -> Memory:
        held = () if self.stacks is None else _held(self.stacks)
        if not self.memory:
            return replace(Memory.none(), held=held)
        rows = np.array(self.memory, np.int64).reshape(-1, 4)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Memory(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], np.cumsum(rows[:, 1]), held)


class _Frees:
    """Called when a watched allocation ends; forgets its recorder at the stop, so that later frees cost nothing."""

    __slots__ = ("note",)

    def __init__(self, recorder: Recorder) -> None:
        self.note: Any = recorder.memory.extend

    def __call__(self, storage: ObservedStorage) -> None:
        note = self.note
        if note is not None:
            note((clock(), -storage.observed_bytes, id(storage), get_ident()))


class _Ranges:
    """What is no op: annotations, the engine's nodes. `enter` gives a token for `exit`."""

    __slots__ = ("owner", "detailed")

    def __init__(self, owner: Recorder) -> None:
        self.owner = owner
        self.detailed = owner.config.record_shapes or owner.config.with_flops

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> Any:
        owner, thread = self.owner, get_ident()
        buffer = owner.buffers.get(thread)
        if buffer is None and (buffer := owner.buffer(thread)) is None:
            return None
        described = (name, scope, forward_thread)
        key = owner.range_keys.get(described)
        if key is None:
            key = owner.range_keys[described] = _RANGES + len(owner.ranges)
            owner.ranges.append(described)
        inputs = -1
        if self.detailed:
            inputs = owner._inputs_of(_RangeInputs, arguments)
        token = (buffer, key, sequence, inputs, clock())
        buffer.open.append(token)
        return token

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, sequence, inputs, start = token
        if _closed(buffer.open, token):
            buffer.extend((key, start, end, sequence, inputs))


class _StackedRanges(_Ranges):
    """The same, with the calls in which ranges begin and end."""

    __slots__ = ("stacks",)

    def __init__(self, owner: Recorder, stacks: Stacks) -> None:
        super().__init__(owner)
        self.stacks = stacks

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> Any:
        if self.owner.buffer(thread := get_ident()) is None:
            return None
        call = self.stacks.touch(sys._getframe(1), thread, clock())
        token = super().enter(name, scope, sequence, forward_thread, arguments)
        token[0].open[-1] = token = (*token, call)
        return token

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, sequence, inputs, start, call = token
        if not _closed(buffer.open, token):
            return
        # the call that opened it may have returned long ago: what ends with the range is the call that closes it
        buffer.extend((key, start, end, sequence, inputs, call))
        self.stacks.touch(sys._getframe(1), get_ident(), clock())


def _closed(open_: list[tuple], token: tuple) -> bool:
    """Take a range off those that are open; False if the recording ended first, and the range with it."""
    if open_ and open_[-1] is token:
        open_.pop()
        return True
    for place, other in enumerate(open_):  # spans of asynchronous code end in any order
        if other is token:
            del open_[place]
            return True
    return False


class _RangeInputs:
    """Stands for the op in the inputs of a range."""

    uid = -1
    flops = None

    @staticmethod
    def describe(*arguments: Any) -> tuple:
        return (-1, *[_dispatch._numbers_of(value) for value in arguments])


def _held(stacks: Stacks) -> tuple[tuple[int, int, bool], ...]:
    """The memory of parameters and their gradients, of all modules that were called."""
    found: dict[int, tuple[int, int, bool]] = {}
    for module in stacks.met_modules():
        for parameter in module.parameters():
            for tensor, is_gradient in ((parameter, False), (parameter._grad, True)):
                if tensor is not None and getattr(tensor, "_array", None) is not None:
                    address = id(storage_of(tensor))
                    found.setdefault(address, (address, tensor._array.nbytes, is_gradient))
    return tuple(found.values())


def _own_state() -> dict[str, Any]:
    """This thread's grad state as a plain dict: reading it costs half of what reading a thread-local does."""
    grad_state.seq, grad_state.enabled = grad_state.seq, grad_state.enabled
    return grad_state.__dict__


def _count_flops(op: Any, arguments: tuple) -> int:
    try:
        return int(op.flops(*arguments))
    except Exception:  # a formula that does not fit these arguments must not stop the user's program
        return 0


def _after_fork() -> None:
    """A child process starts with nothing recording."""
    global active
    if active is not None:
        active.running = False
    active = _dispatch.recorder = _dispatch.ranges = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
