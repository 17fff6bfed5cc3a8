"""The recorder: ops and annotations as they happen in, rows of integers out, of which `seal` makes a Trace. Written for its cost while it runs.

Each recorded thread has one plain list that grows by a few integers an event; long lists are sealed into int64 arrays. Names,
shapes and stacks are interned when first met and looked up after the stop. Nothing recorded keeps a tensor alive.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from ... import _dispatch
from ... import _hooks as hooks
from ..._graph import grad_state, storage_of
from ..._storage import ObservedStorage, UntypedStorage
from . import allocations, probes
from .probes import Kind
from .python_calls import BEHIND, Calls, Collections
from .python_stacks import Stacks
from .tensor_ids import Register

clock = time.perf_counter_ns
get_ident = threading.get_ident

OFTEN = 1 << 12  # calls in one recording
often_called: list[
    Any
] = []  # ops that inline their recording code: they were called more than OFTEN times in a recording
_ALL_CALLS = 1 << 8  # ops until which every Python call is traced
_PIECE = 1 << 14  # events that are sealed at once
RANGES = 1 << 40  # keys from here on are annotations and nodes, below they are ops


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
    event_metadata: bool = False  # events show their row as metadata


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
        self.added_metadata: dict[str, Any] = {}  # what the program adds to the trace file
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
        self.unfinished = 0
        self.strangers: dict[
            int, str
        ] = {}  # names of threads that are not recorded and were the first to call some op
        self.running = False
        self.begun_ns = 0
        self.suspended_ns = 0  # how long this one has waited for others
        self.hooks: tuple = (None, None, None)
        self.flops: dict[int, int] = {}  # index of inputs -> flops

    # ------------------------------------------------------------------------------------------------ life

    def start(self) -> None:
        """Begin: from now on every op of the recorded threads is seen. A recorder that is already at work waits."""
        now = clock()
        if not self.begun_ns:
            self.origin_ns = time.time_ns() - now
            self.begun_ns = now
        caller = sys._getframe(1)
        try:
            self._switch_on(caller, now)
        except BaseException:
            self.pause()
            if self.stacks is not None:
                self.stacks.finish(caller, now)
            self._switch_off(now)
            raise

    def _switch_on(self, caller: FrameType, now: int) -> None:
        if self.register is not None:
            self.register.open(now)
        if self.stacks is not None:
            self.stacks.begin(caller, self.thread, now)
        ranges = _Ranges(self) if self.stacks is None else _StackedRanges(self, self.stacks)
        self.hooks = (self._choose(), ranges, self._probe)
        outer = hooks.active_recording()
        hooks.begin_recording(self)
        if outer is not None and outer is not self:
            outer.suspended_ns -= now
            outer._trace_calls(False)
        self.running = True
        if self.config.profile_memory:
            hooks.add_free_listener(self.memory.extend, afterwards=allocations.forget_freed)
        if self.collections is not None:
            self.collections.begin()
        self.resume()

    def _switch_off(self, now: int) -> None:
        """Leave the hooks to the recording that waits for this one to end, if any."""
        if self.collections is not None:
            self.collections.finish()
        self.running = False
        hooks.remove_free_listener(self.memory.extend)
        if self.register is not None:
            self.register.close()
        was_active = hooks.active_recording() is self
        hooks.end_recording(self)
        outer = hooks.active_recording()
        if was_active and outer is not None:
            outer.suspended_ns += now
            outer.resume()
        elif self.suspended_ns < 0:
            self.suspended_ns += now

    def pause(self) -> None:
        """See nothing until `resume`."""
        if hooks.active_recording() is self:
            self._trace_calls(False)
            hooks.remove_profiler()

    def resume(self) -> None:
        """See ops and calls again."""
        if hooks.active_recording() is self:
            self._let_ops_see()
            hooks.set_profiler(*self.hooks)
            self._trace_calls(True)

    def _let_ops_see(self) -> None:
        """Ops that are called often note their calls themselves, unless somebody has to look after the hook that sees every call."""
        seers = self.hooks[0]
        if seers.__class__ is list and not self.kind.door:
            probes.see_directly(often_called, self.kind, seers, self.shared)

    def _trace_calls(self, wanted: bool) -> None:
        if self.calls is None or self.calls.running == wanted:
            return
        if wanted and get_ident() == self.thread:
            self.calls.begin(clock() if self.calls.began_ns else self.begun_ns)
        elif not wanted:
            self.calls.finish()

    def stop(self) -> None:
        """End; what is still open ends now. `seal` makes a Trace of what was recorded."""
        self.pause()
        self.ended_ns = clock()
        if self.stacks is not None:
            self.stacks.finish(sys._getframe(1), self.ended_ns)
        for buffer in list(self.buffers.values()):
            for _, key, start, sequence, rest in reversed(buffer.open):
                buffer.extend((key, start, self.ended_ns, sequence, *rest))
                self.unfinished += 1
            buffer.open.clear()
        self._switch_off(self.ended_ns)

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
            key = owner.range_keys[described] = RANGES + len(owner.ranges)
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


def _own_state() -> dict[str, Any]:
    """This thread's grad state as a plain dict: reading it costs half of what reading a thread-local does."""
    grad_state.seq, grad_state.enabled = grad_state.seq, grad_state.enabled
    return grad_state.__dict__


def _count_flops(op: Any, arguments: tuple) -> int:
    try:
        return int(op.flops(*arguments))
    except Exception:  # a formula that does not fit these arguments must not stop the user's program
        return 0
