"""The recorder: ops and annotations as they happen in, a Trace out. Written for its cost while it runs.

Each recorded thread has one plain list that grows by a few integers an event; long lists are sealed into int64 arrays. Names,
shapes and stacks are interned when first met and looked up after the stop. Nothing recorded keeps a tensor alive.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mindtorch_prof import trace as columns
from mindtorch_prof.inputs import as_torch_shows
from mindtorch_prof.trace import Health, Memory, Trace

from ... import _dispatch, _storage
from ... import _slots as slots
from ..._graph import grad_state, storage_of
from ..._storage import ObservedStorage, UntypedStorage
from . import allocations as memory_rows
from . import probes
from .probes import Kind
from .python_calls import BEHIND, Calls, Collections
from .python_stacks import Stacks, call_rows, frames_of, stack_columns
from .tensor_ids import Register

clock = time.perf_counter_ns
get_ident = threading.get_ident

_OFTEN = 1 << 12  # calls in one recording
_often: list[Any] = []  # ops that were called so often, and see their calls themselves
_ALL_CALLS = 1 << 8  # ops until which every Python call is traced
_PIECE = 1 << 14  # events that are sealed at once
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
    stacks_only: bool = (
        False  # with stacks: only the calls in which something was recorded, not every Python and C call
    )
    python_gc: bool = False  # with stacks: the runs of Python's garbage collector


active: Recorder | None = None  # who records now


class Buffer:
    """The events of one thread."""

    __slots__ = ("thread", "width", "native", "rows", "sealed", "extend", "open")

    def __init__(self, thread: int, width: int) -> None:
        self.thread = thread
        self.width = width
        self.native = threading.get_native_id()  # made on its own thread
        self.rows: list[int] = []
        self.sealed: list[np.ndarray] = []
        self.extend = self.rows.extend
        self.open: list[_Open] = []  # ranges that have begun and not ended

    def seal(self) -> None:
        """Move what was recorded so far into arrays: from the end, piece by piece, so that numbers are let go of as others are
        made."""
        rows, piece, parts = self.rows, _PIECE * self.width, []
        while rows:
            cut = (len(rows) - 1) // piece * piece
            parts.append(np.array(rows[cut:], np.int64))
            del rows[cut:]
        self.sealed += [part.reshape(-1, self.width) for part in reversed(parts)]

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
        self.calls: Calls | None = None
        self.collections: Collections | None = None
        if self.stacks is not None and config.with_stack:
            if not config.stacks_only and _may_trace():
                limit = 0 if config.with_modules else _ALL_CALLS
                self.calls = Calls(self.stacks, all_threads=config.all_threads, limit=limit)
                self.calls.on_handing = self._calls_handed_over
            self.collections = Collections() if config.python_gc else None
        self.kind = Kind(
            config.record_shapes or config.with_flops,
            config.profile_memory,
            self.stacks is not None,
            identities=config.record_shapes and config.profile_memory,
            door=self.calls is not None,
        )
        self.register: Register | None = None  # of the tensors, modules and optimizers that are met
        if self.kind.identities or config.with_stack:
            self.register = Register()
            if self.stacks is not None:
                self.stacks.met_module = self.register.module
        self.columns = probes.columns(self.kind)
        self.width = len(self.columns)
        self.buffers: dict[int, Buffer] = {self.thread: Buffer(self.thread, self.width)}
        self.ranges: list[tuple] = []  # (name, scope, forward thread), by key - _RANGES
        self.range_keys: dict[tuple, int] = {}
        self.inputs: dict[Any, int] = {}  # what went into an op -> index
        self.memory: list[int] = []  # time, bytes, birth, thread
        self.allocated_before = 0  # bytes that earlier recordings saw taken
        self.unfinished = 0
        self.strangers: dict[
            int, str
        ] = {}  # names of threads that are not recorded and were the first to call some op
        self.running = False
        self.begun_ns = 0
        self.outer: Recorder | None = None  # who recorded when this one began; it waits meanwhile
        self.suspended_ns = 0  # how long this one has waited for others
        self.hooks: tuple = (None, None, None)
        self.flops: dict[int, int] = {}  # index of inputs -> flops

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin: from now on every op of the recorded threads is seen. A recorder that is already at work waits."""
        global active
        now = clock()
        if not self.begun_ns:
            self.origin_ns = time.time_ns() - now
            self.begun_ns = now
        if self.register is not None:
            self.register.open(now)
        if self.stacks is not None:
            self.stacks.begin(sys._getframe(1), self.thread, now)
        ranges = _Ranges(self) if self.stacks is None else _StackedRanges(self, self.stacks)
        self.hooks = (self._choose(), ranges, self._probe)
        if active is not self:
            self.outer = active
            if active is not None:
                active.suspended_ns -= now
                active._trace_calls(False)
        self.running = True
        active = self
        _hear_frees()
        if self.collections is not None:
            self.collections.begin()
        self.resume()

    def pause(self) -> None:
        """See nothing until `resume`."""
        if active is self:
            self._trace_calls(False)
            slots.profile(None, None)
            _dispatch.probe = None

    def resume(self) -> None:
        """See ops and calls again."""
        if active is self:
            _dispatch.probe = self.hooks[2]
            self._let_ops_see()
            slots.profile(*self.hooks[:2])
            self._trace_calls(True)

    def _let_ops_see(self) -> None:
        """Ops that are called often note their calls themselves, unless somebody has to look after the hook that sees every call."""
        seers = self.hooks[0]
        if seers.__class__ is list and not self.kind.door:
            probes.see_directly(_often, self.kind, seers, self.shared)

    def _trace_calls(self, wanted: bool) -> None:
        if self.calls is None or self.calls.running == wanted:
            return
        if wanted and get_ident() == self.thread:
            self.calls.begin(clock() if self.calls.began_ns else self.begun_ns)
        elif not wanted:
            self.calls.finish()

    def stop(self) -> Trace:
        """End, and give what was recorded; what is still open ends now."""
        global active
        self._trace_calls(False)
        self.pause()
        self.ended_ns = clock()
        if self.collections is not None:
            self.collections.finish()
        self.running = False
        if self.stacks is not None:
            self.stacks.finish(sys._getframe(1), self.ended_ns)
        for buffer in list(self.buffers.values()):
            for _, key, start, sequence, rest in reversed(buffer.open):
                buffer.extend((key, start, self.ended_ns, sequence, *rest))
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
        _hear_frees()
        self.outer = None
        if self.register is not None:
            self.register.close()
        return self.seal()

    def buffer(self, thread: int) -> Buffer | None:
        """The buffer of a thread; None if that thread is not recorded."""
        found = self.buffers.get(thread)
        if found is None and self.config.all_threads:
            found = self.buffers[thread] = Buffer(thread, self.width)
        return found

    # ------------------------------------------------------------------------------------------------ the hot path

    def _choose(self) -> Any:
        """What sees each op, for these settings: a function for each op, made when it is first called, or one for all."""
        config = self.config
        if config.all_threads:
            return _dispatch.Hook(self._all_threads(self.stacks))
        self.shared = {
            "ident": get_ident,
            "owner": self.thread,
            "state": _own_state(),
            "now": clock,
            "extend": self.buffers[self.thread].extend,
            "known": self.inputs.get,
            "learn": self._learn,
            "born": self._born,
            "fresh": object.__new__,
            "frame_of": sys._getframe,
            "mark": None if self.stacks is None else self.stacks.mark,
            "find_call": None if self.stacks is None else self.stacks.finder(),
            "Observed": ObservedStorage,
            **(self.register or _Nobody).tools(),
            **(self.calls or _NoCalls).tools(self.thread),
        }
        return _dispatch.FIRST_CALLS.copy()

    def _probe(self, op: Any) -> Any:
        """The function that sees an op from now on."""
        if get_ident() != self.thread:
            self.strangers[get_ident()] = threading.current_thread().name
        made = probes.probe(op, self.kind, self.shared)
        seers = self.hooks[0]
        if seers.__class__ is list:
            seers[op.uid] = made
        return made

    def _all_threads(self, stacks: Stacks | None) -> Any:
        """One function for all ops: each thread has its buffer."""
        state, kind, width = grad_state, self.kind, self.width
        ident, now, find, born, buffers = get_ident, clock, self._inputs_of, self._born, self.buffers
        frame_of, register = sys._getframe, self.register if self.kind.identities else None
        hooked: dict[int, Any] = {} if self.calls is None else self.calls.threads
        mark, find_call = (None, None) if stacks is None else (stacks.mark, stacks.finder())

        def record(op: Any, *arguments: Any) -> Any:
            thread = ident()
            traced = hooked.get(thread)
            outer = 0
            if traced is not None and traced.door[0]:
                outer, traced.door[0] = traced.door[0], 0
            buffer = buffers.get(thread)
            if buffer is None:
                buffer = buffers[thread] = Buffer(thread, width)
            sequence = state.seq if state.enabled else -1
            rest: tuple[Any, ...] = (find(op, arguments),) if kind.inputs else ()
            if find_call is not None:
                call: Any = -1
                try:
                    call = frame_of(2).f_trace
                    if call.__class__ is not mark:
                        call = find_call(frame_of(2), thread)
                except ValueError:  # called by C on a bare thread
                    pass
                rest += (call,)
            if register is not None:
                rest += (-1 if rest[0] < 0 else register.meet(op, arguments),)
            if kind.memory:
                rest += (0,)
            start = now()
            try:
                result = op.run(*arguments)
                if kind.memory and op.allocates:
                    born(op, arguments, result)
                return result
            finally:
                buffer.extend((op.uid, start, now(), sequence, *rest))
                if outer:
                    traced.log.extend(BEHIND[outer])  # type: ignore[union-attr]
                    sys.setprofile(traced.hook)  # type: ignore[union-attr]

        return record

    def _calls_handed_over(self) -> None:
        """Ops need not look after the hook any more that sees every call: make their probes anew."""
        self.kind = self.kind._replace(door=False)
        seers = self.hooks[0]
        if seers.__class__ is list:
            seers[:] = _dispatch.FIRST_CALLS
        self._let_ops_see()

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
            now = clock() if self.register is None else self.register.birth(tensor, storage)
            storage._birth = now
            self.memory.extend((now, array.nbytes, now, get_ident()))

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
        column = {name: rows[:, place] for place, name in enumerate(self.columns)}
        names, name, kind, scope, forward, sequenced = self._names(rows[:, 0])
        sequence = np.where(sequenced, rows[:, 3], -1)
        none = np.full(len(rows), -1, np.int32)
        inputs = column["inputs"].astype(np.int32) if "inputs" in column else none
        flops = np.zeros(len(rows), np.int64)
        if self.flops:
            by_input = np.zeros(len(self.inputs) + 1, np.int64)
            for index, value in self.flops.items():
                by_input[index] = value
            flops = by_input[inputs]
        stacks: tuple = ()
        stack = none
        if self.stacks is not None and self.config.with_stack:
            stacks, stack = stack_columns(self.stacks, column["call"])
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
            memory=(memory := self._memory(column, thread))[0],
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
            calls = call_rows(self.stacks, np.where(rows[:, 0] < _RANGES, column["call"], -1), rows[:, 2])
            if self.calls is None:
                frames = frames_of(self.stacks.texts(), calls, made)
            else:
                frames = self.calls.frames(made, calls)
            made = replace(
                made, frames=frames if self.collections is None else self.collections.among(frames)
            )
        if self.register is not None:
            first = column.get("met", np.empty(0, np.int64))
            made = replace(made, identities=self.register.columns(first, *memory, made.frames))
        return made

    def _threads(self) -> dict[int, tuple[int, str]]:
        """The system's number and the name of each thread that is or was seen, by identity."""
        found = {t.ident: (t.native_id or 0, t.name) for t in threading.enumerate() if t.ident}
        return {**{b.thread: (b.native, "") for b in self.buffers.values() if b.thread not in found}, **found}

    def _names(self, keys: np.ndarray) -> tuple:
        """The string table, and by event: name id, kind, scope, forward thread and whether a sequence number is shown with it."""
        # keys as small numbers, ops first: they are counted instead of sorted
        ops = len(_dispatch.BY_UID)
        place = np.where(keys < _RANGES, keys, keys - (_RANGES - ops))
        counts = np.bincount(place, minlength=ops)
        _note_often(counts[:ops])
        table: dict[tuple[str, str], int] = {}
        ids, kinds, scopes, forwards = (np.zeros(len(counts), np.int64) for _ in range(4))
        sequenced = np.ones(len(counts), bool)
        for number in np.flatnonzero(counts).tolist():
            if number < ops:
                op = _dispatch.BY_UID[number]
                shown = op.overload if self.config.overloads else ""
                name, kinds[number] = (op.qualified_name, shown), columns.OP
                sequenced[number] = op.sequenced
            else:
                text, scopes[number], forwards[number] = self.ranges[number - ops]
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
        return (
            list(table),
            ids[place].astype(np.int32),
            kinds[place].astype(np.int8),
            scopes[place].astype(np.int8),
            forwards[place],
            sequenced[place],
        )

    def _input_table(self) -> tuple:
        from ..._codegen import described

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

    def _memory(self, column: dict[str, np.ndarray], thread: np.ndarray) -> tuple[Memory, np.ndarray]:
        """Memory, and the number of each row's: when the op that made it began, or when it was noted."""
        held = () if self.stacks is None else _held(self.stacks)
        rows = np.array(self.memory, np.int64).reshape(-1, 4)
        rows = np.concatenate([rows, rows[:, :1]], axis=1)
        if "bytes" in column:  # what an op's one new tensor took stands in the op's own row
            own = np.flatnonzero(column["bytes"])
            taken = [
                column["end"][own],
                column["bytes"][own],
                column["start"][own],
                thread[own],
                column["start"][own],
            ]
            rows = np.concatenate([rows, np.stack(taken, axis=1)])
        if not len(rows):
            return replace(Memory.none(), held=held), rows[:, 4]
        rows, self.allocated_before = memory_rows.with_freed_bytes(rows)
        return Memory(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], np.cumsum(rows[:, 1]), held), rows[:, 4]


# A range that has begun: its buffer, key, start, sequence number, and the rest of its row. A list, since that is cheap and has an
# identity of its own.
_Open = list[Any]


class _Ranges:
    """What is no op: annotations, the engine's nodes. `enter` gives a token for `exit`."""

    __slots__ = ("owner", "thread", "own", "key_of", "detailed", "empty", "register")

    def __init__(self, owner: Recorder) -> None:
        self.owner = owner
        self.thread, self.own = owner.thread, owner.buffers[owner.thread]
        self.key_of = owner.range_keys.get
        self.detailed = owner.kind.inputs
        self.empty = (0,) if owner.kind.memory else ()  # a range takes no memory itself
        self.register = owner.register if owner.kind.identities else None

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> Any:
        thread = get_ident()
        buffer = self.own if thread == self.thread else self.owner.buffer(thread)
        if buffer is None:
            return None
        return self.begin(buffer, (name, scope, forward_thread), sequence, arguments, ())

    def begin(self, buffer: Buffer, described: tuple, sequence: int, arguments: tuple, call: tuple) -> _Open:
        key = self.key_of(described)
        if key is None:
            owner = self.owner
            key = owner.range_keys[described] = _RANGES + len(owner.ranges)
            owner.ranges.append(described)
        if self.detailed:
            inputs = self.owner._inputs_of(_RangeInputs, arguments)
            if self.register is not None:
                call += (self.register.meet_any(arguments) if arguments and inputs >= 0 else -1,)
            rest = (inputs, *call, *self.empty)
        else:
            rest = call + self.empty
        token = [buffer, key, clock(), sequence, rest]
        buffer.open.append(token)
        return token

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, start, sequence, rest = token
        if _closed(buffer.open, token):
            buffer.extend((key, start, end, sequence, *rest))

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made a step: noted where calls are."""


class _StackedRanges(_Ranges):
    """The same, with the calls in which ranges begin and end."""

    __slots__ = ("stacks",)

    def __init__(self, owner: Recorder, stacks: Stacks) -> None:
        super().__init__(owner)
        self.stacks = stacks

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> Any:
        buffer = self.owner.buffer(thread := get_ident())
        if buffer is None:
            return None
        call = self.stacks.touch(sys._getframe(1), thread, clock())
        return self.begin(buffer, (name, scope, forward_thread), sequence, arguments, (call,))

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, start, sequence, rest = token
        if _closed(buffer.open, token):
            # the call that opened it may have returned long ago: what ends with the range is the call that closes it
            buffer.extend((key, start, end, sequence, *rest))
            self.stacks.touch(sys._getframe(1), get_ident(), clock())

    def stepped(self, optimizer: Any) -> None:
        register = self.owner.register
        if register is not None and self.owner.buffer(thread := get_ident()) is not None:
            now = clock()
            self.stacks.touch(sys._getframe(1), thread, now)
            register.optimizer(optimizer, now, thread)


def _may_trace() -> bool:
    """Whether the interpreter's profile hook is free, or a recording's."""
    found = sys.getprofile()
    if found is None or getattr(found, "__module__", "").startswith(__package__):
        return True
    warnings.warn(
        "another profile function is set in this thread (sys.setprofile): of the Python calls only those are shown in which something "
        "was recorded",
        stacklevel=3,
    )
    return False


def _closed(open_: list[_Open], token: _Open) -> bool:
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


class _Nobody:
    """Stands for the register of a recording that has none."""

    @staticmethod
    def tools() -> dict[str, Any]:
        return dict.fromkeys(("base", "met", "meet", "see", "listed"))


class _NoCalls:
    """Stands for the calls of a recording that traces none."""

    @staticmethod
    def tools(thread: int) -> dict[str, Any]:
        return dict.fromkeys(("door", "arm", "hook", "log", "behind", "stranger"))


def _held(stacks: Stacks) -> tuple[tuple[int, int, bool], ...]:
    """The memory of parameters and their gradients, of all modules that were called."""
    found: dict[int, tuple[int, int, bool]] = {}
    for module in stacks.met_modules():
        for parameter in module.parameters():
            for tensor, is_gradient in ((parameter, False), (parameter._grad, True)):
                if tensor is not None and getattr(tensor, "_array", None) is not None:
                    storage = storage_of(tensor)
                    address = storage._birth or id(storage)
                    found.setdefault(address, (address, tensor._array.nbytes, is_gradient))
    return tuple(found.values())


def _note_often(counts: np.ndarray) -> None:
    """Know the ops that were called often, but for those with a `run` of their own. counts: by uid."""
    for uid in np.flatnonzero(counts >= _OFTEN).tolist():
        op = _dispatch.BY_UID[uid]
        if op not in _often and op.run.__code__.co_filename.startswith("<op "):
            _often.append(op)


def _hear_frees() -> None:
    """Let every recording that is under way hear of memory that ends, also one that waits for another."""
    ears, recorder = [], active
    while recorder is not None:
        if recorder.running and recorder.config.profile_memory:
            ears.append(recorder.memory.extend)
        recorder = recorder.outer
    if len(ears) < 2:
        _storage.on_free = ears[0] if ears else memory_rows.gone
        return

    def tell(row: tuple[int, int, int, int]) -> None:
        for hear in ears:
            hear(row)

    _storage.on_free = tell


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
    _storage.on_free = None
    if active is not None:
        active.running = False
    active = _dispatch.recorder = _dispatch.ranges = _dispatch.probe = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
