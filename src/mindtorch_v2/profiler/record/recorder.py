"""The recorder: op calls and annotations as they happen in, rows of integers out, from which `seal` builds a Trace.

Each recorded thread has one buffer, a plain list that grows by a few integers per event. Names, shapes and stacks are interned at
their first use and looked up after the stop, so that recording an event costs as little as possible. No tensor is kept alive.
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
from ... import _recording_hooks as hooks
from ..._graph import Switches, grad_state, storage_of
from ..._overrides import process_state
from ..._storage import ObservedStorage, UntypedStorage
from . import allocations, probes
from .probes import Kind
from .python_calls import MISSED_CALLS, CallTracer, GarbageCollections
from .python_stacks import Stacks
from .tensor_ids import TensorRegister

clock = time.perf_counter_ns
get_ident = threading.get_ident

HOT_CALLS = 1 << 12  # an op that is called this often in one recording is hot
hot_ops: list[Any] = []  # ops that inline their recording code
_FULLY_TRACED_OPS = 1 << 8  # every Python call is traced until this many ops were called
_CHUNK = 1 << 14  # events that are converted to an array at once
RANGES = 1 << 40  # keys from here on are annotations and nodes, below they are ops


@dataclass(frozen=True)
class Config:
    """What to record."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = False
    overloads: bool = False  # show which overload of an op was called
    verbose: bool = False  # write each op's stack into trace files
    # with stacks: record only the calls in which an event was recorded, instead of every Python and C call
    stacks_only: bool = False
    python_gc: bool = False  # with stacks: record the runs of Python's garbage collector
    event_metadata: bool = False  # events show their row as metadata


class Buffer:
    """The events of one thread."""

    __slots__ = ("thread", "width", "native", "rows", "arrays", "extend", "open")

    def __init__(self, thread: int, width: int) -> None:
        self.thread = thread
        self.width = width
        self.native = threading.get_native_id()  # a buffer is created on its own thread
        self.rows: list[int] = []
        self.arrays: list[np.ndarray] = []
        self.extend = self.rows.extend
        self.open: list[_OpenRange] = []  # ranges that have begun and not ended

    def array(self) -> np.ndarray:
        """All events, in the order in which they ended."""
        self._convert()
        return np.concatenate(self.arrays) if self.arrays else np.empty((0, self.width), np.int64)

    def _convert(self) -> None:
        """Move the rows from the list into arrays: in chunks from the end, so that integers are freed while arrays are allocated."""
        rows, chunk, arrays = self.rows, _CHUNK * self.width, []
        while rows:
            cut = (len(rows) - 1) // chunk * chunk
            arrays.append(np.array(rows[cut:], np.int64))
            del rows[cut:]
        self.arrays += [array.reshape(-1, self.width) for array in reversed(arrays)]


class Recorder:
    """A recording in progress."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.trace_id = ""  # the id that the trace will have; a random one if empty
        self.added_metadata: dict[str, Any] = {}  # added by the program, for the trace file
        self.thread = get_ident()
        self.stacks: Stacks | None = None
        if config.with_stack or config.with_modules:
            self.stacks = Stacks(modules_only=not config.with_stack)
        self.calls: CallTracer | None = None
        self.collections: GarbageCollections | None = None
        if self.stacks is not None and config.with_stack:
            if not config.stacks_only and _may_trace():
                limit = 0 if config.with_modules else _FULLY_TRACED_OPS
                self.calls = CallTracer(self.stacks, all_threads=config.all_threads, limit=limit)
                self.calls.on_handover = self._calls_handed_over
            self.collections = GarbageCollections() if config.python_gc else None
        self.kind = Kind(
            config.record_shapes or config.with_flops,
            config.profile_memory,
            self.stacks is not None,
            tensor_ids=config.record_shapes and config.profile_memory,
            restores_hook=self.calls is not None,
        )
        self.register: TensorRegister | None = None
        if self.kind.tensor_ids or config.with_stack:
            self.register = TensorRegister()
            if self.stacks is not None:
                self.stacks.on_new_module = self.register.module
        self.columns = probes.columns(self.kind)
        self.width = len(self.columns)
        self.buffers: dict[int, Buffer] = {self.thread: Buffer(self.thread, self.width)}
        self.ranges: list[tuple] = []  # (name, scope, forward thread), by key - RANGES
        self.range_keys: dict[tuple, int] = {}
        self.inputs: dict[Any, int] = {}  # description of an op's arguments -> index
        self.memory: list[int] = []  # time, bytes or FREED, allocation id, thread
        self.unfinished = 0
        # names of threads that called ops and are not recorded
        self.foreign_threads: dict[int, str] = {}
        self.running = False
        self.begun_ns = 0
        self.suspended_ns = 0  # how long inner recordings have suspended this one
        self.hooks: tuple = (None, None, None)  # the arguments of `_hooks.set_profiler`
        self.flops: dict[int, int] = {}  # index of inputs -> flops
        self.probes_after_handover: list[
            Any
        ] = []  # where calls are traced: those that need not restore the hook
        self.own_cost: Any = None  # an `own_cost.OwnCost`; None: not known
        self.setup_ns = 0  # spent on what is done once per op or once per input

    # ------------------------------------------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Record every op of the recorded threads from now on. The recording that is active now is suspended until this one stops."""
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
        ranges = _Ranges(self) if self.stacks is None else _RangesWithStacks(self, self.stacks)
        self.hooks = (self._probes_or_hook(), ranges, self._create_probe)
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
        """Remove all hooks, and resume the recording that this one suspended, if any."""
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
        """Record nothing until `resume`."""
        if hooks.active_recording() is self:
            self._trace_calls(False)
            hooks.remove_profiler()

    def resume(self) -> None:
        """Record ops and calls again."""
        if hooks.active_recording() is self:
            self._inline_recording()
            hooks.set_profiler(*self.hooks)
            self._trace_calls(True)

    def _inline_recording(self) -> None:
        """Hot ops inline their recording code, unless it would have to restore the hook of the call tracer."""
        probe_list = self.hooks[0]
        if probe_list.__class__ is list and not self.kind.restores_hook:
            probes.inline_recording(hot_ops, self.kind, probe_list, self.shared)

    def _trace_calls(self, wanted: bool) -> None:
        if self.calls is None or self.calls.running == wanted:
            return
        if wanted and get_ident() == self.thread:
            self.calls.begin(clock() if self.calls.began_ns else self.begun_ns)
        elif not wanted:
            self.calls.finish()

    def stop(self) -> None:
        """Stop recording; open ranges end now. `seal` then builds the Trace."""
        self.pause()
        self.ended_ns = clock()
        if self.stacks is not None:
            self.stacks.finish(sys._getframe(1), self.ended_ns)
        for buffer in list(self.buffers.values()):
            for _, key, start, sequence, rest, *_ in reversed(buffer.open):
                buffer.extend((key, start, self.ended_ns, sequence, *rest))
                self.unfinished += 1
            buffer.open.clear()
        self._switch_off(self.ended_ns)

    def buffer(self, thread: int) -> Buffer | None:
        """The buffer of a thread; None if that thread is not recorded."""
        buffer = self.buffers.get(thread)
        if buffer is None and self.config.all_threads:
            buffer = self.buffers[thread] = Buffer(thread, self.width)
        return buffer

    # ------------------------------------------------------------------------------------------------ the hot path

    def _probes_or_hook(self) -> Any:
        """The value of `_dispatch.recorder`: a list of probes, each created at the op's first call; with all threads, one hook."""
        config = self.config
        if config.all_threads:
            return _dispatch.Hook(self._all_threads(self.stacks))
        self.shared = {
            "get_ident": get_ident,
            "owner": self.thread,
            "note_foreign_thread": self._note_foreign_thread,
            "grad_state": _own_grad_state(),
            "now": clock,
            "extend": self.buffers[self.thread].extend,
            "input_index": self.inputs.get,
            "intern_inputs": self._intern_inputs,
            "record_allocations": self._record_allocations,
            "new": object.__new__,
            "getframe": sys._getframe,
            "mark": None if self.stacks is None else self.stacks.mark,
            "find_call": None if self.stacks is None else self.stacks.finder(),
            "node_call": None if self.stacks is None else self.stacks.node_call,
            "ObservedStorage": ObservedStorage,
            **(self.register or _NoRegister).probe_variables(),
            **(self.calls or _NoCallTracer).probe_variables(self.thread),
        }
        self.shared_values = probes.shared_values(self.shared)
        if self.kind.restores_hook:
            self.probes_after_handover = self._probes(self.kind._replace(restores_hook=False))
        return self._probes(self.kind)

    def _probes(self, kind: Kind) -> list[Any]:
        """A list of probes. An op that was called before gets its own now, so that no event contains the time of making it."""
        probe_list = _dispatch.FIRST_CALLS.copy()
        for op in _dispatch.BUILT:
            probe_list[op.uid] = probes.probe(op, kind, self.shared_values)
        return probe_list

    def _create_probe(self, op: Any) -> Any:
        """An op's probe; called at the first call of an op that was not called before the recording."""
        began = time.perf_counter_ns()
        probe = probes.probe(op, self.kind, self.shared_values)
        probe_list = self.hooks[0]
        if probe_list.__class__ is list:
            probe_list[op.uid] = probe
        self.setup_ns += time.perf_counter_ns() - began
        return probe

    def _note_foreign_thread(self) -> None:
        """Note the name of this thread, which calls ops and is not recorded."""
        if get_ident() not in self.foreign_threads:
            self.foreign_threads[get_ident()] = threading.current_thread().name

    def _all_threads(self, stacks: Stacks | None) -> Any:
        """One function that records all ops, each into the buffer of its thread."""
        state, kind, width = grad_state, self.kind, self.width
        ident, now, inputs_of, buffers = get_ident, clock, self._inputs_of, self.buffers
        record_allocations = self._record_allocations
        getframe, register = sys._getframe, self.register if self.kind.tensor_ids else None
        traced_threads: dict[int, Any] = {} if self.calls is None else self.calls.threads
        mark, find_call = (None, None) if stacks is None else (stacks.mark, stacks.finder())

        def record(op: Any, *arguments: Any) -> Any:
            thread = ident()
            traced = traced_threads.get(thread)
            frames = 0
            if traced is not None and traced.suspended[0]:
                frames, traced.suspended[0] = traced.suspended[0], 0
            buffer = buffers.get(thread)
            if buffer is None:
                buffer = buffers[thread] = Buffer(thread, width)
            sequence = state.seq if state.enabled else -1
            rest: tuple[Any, ...] = (inputs_of(op, arguments),) if kind.inputs else ()
            if find_call is not None:
                call: Any = -1
                try:
                    call = getframe(2).f_trace
                    if call.__class__ is not mark:
                        call = find_call(getframe(2), thread)
                except ValueError:  # called from C, with no Python frame above
                    pass
                rest += (call,)
            if register is not None:
                rest += (-1 if rest[0] < 0 else register.log_op(op, arguments),)
            if kind.memory:
                rest += (0,)
            start = now()
            try:
                result = op.run(*arguments)
                if kind.memory and op.allocates:
                    record_allocations(op, arguments, result)
                return result
            finally:
                buffer.extend((op.uid, start, now(), sequence, *rest))
                if frames:
                    traced.log.extend(MISSED_CALLS[frames])  # type: ignore[union-attr]
                    sys.setprofile(traced.hook)  # type: ignore[union-attr]

        return record

    def _calls_handed_over(self) -> None:
        """The call tracer has taken its hook off for good: use probes that do not restore it."""
        self.kind = self.kind._replace(restores_hook=False)
        probe_list = self.hooks[0]
        if probe_list.__class__ is list:
            probe_list[:] = (
                self.probes_after_handover + _dispatch.FIRST_CALLS[len(self.probes_after_handover) :]
            )
        self._inline_recording()

    def _inputs_of(self, op: Any, arguments: tuple) -> int:
        """The index of an op's inputs: shapes, strides and types of tensors, values of numbers."""
        try:
            index = self.inputs.get(op.describe(*arguments))
        except (AttributeError, TypeError):  # a meta tensor, or arguments that the op will refuse
            return -1
        return self._intern_inputs(op, arguments) if index is None else index

    def _intern_inputs(self, op: Any, arguments: tuple) -> int:
        """Give inputs an index at their first use."""
        began = time.perf_counter_ns()
        index = self.inputs[op.describe(*arguments)] = len(self.inputs)
        if self.config.with_flops and op.flops is not None:
            self.flops[index] = _count_flops(op, arguments)
        self.setup_ns += time.perf_counter_ns() - began
        return index

    def _record_allocations(self, op: Any, arguments: tuple, result: Any) -> None:
        """Record the memory that an op allocated for its results, and observe when it is freed."""
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            array = getattr(tensor, "_array", None)
            if array is None or not array.nbytes:
                continue
            if op.allocates == 2 and (tensor._base is not None or any(tensor is a for a in arguments)):
                continue
            storage = storage_of(tensor)
            if storage.__class__ is not UntypedStorage or storage._keeps is not None:
                continue  # observed already, or an alias of another one
            storage.__class__ = ObservedStorage
            now = clock() if self.register is None else self.register.allocation(tensor, storage)
            storage._allocation_id = now
            self.memory.extend((now, storage._root.nbytes, now, get_ident()))


# A range that has begun: its buffer, key, start, sequence number, and the rest of its row. A list, because it is cheap to create and
# is compared by identity.
_OpenRange = list[Any]


class _Ranges:
    """Records ranges: annotations and the engine's nodes. `enter` returns a token for `exit`."""

    __slots__ = ("recorder", "thread", "own_buffer", "key_of", "with_inputs", "no_bytes", "register")

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.thread, self.own_buffer = recorder.thread, recorder.buffers[recorder.thread]
        self.key_of = recorder.range_keys.get
        self.with_inputs = recorder.kind.inputs
        self.no_bytes = (0,) if recorder.kind.memory else ()  # a range itself allocates nothing
        self.register = recorder.register if recorder.kind.tensor_ids else None

    def enter(
        self,
        name: str,
        scope: int,
        sequence: int,
        forward_thread: int,
        arguments: tuple,
        calls_no_user: bool = False,
    ) -> Any:
        thread = get_ident()
        buffer = self.own_buffer if thread == self.thread else self.recorder.buffer(thread)
        if buffer is None:
            return None
        return self.begin(buffer, (name, scope, forward_thread), sequence, arguments, ())

    def begin(
        self, buffer: Buffer, described: tuple, sequence: int, arguments: tuple, call: tuple
    ) -> _OpenRange:
        key = self.key_of(described)
        if key is None:
            recorder = self.recorder
            key = recorder.range_keys[described] = RANGES + len(recorder.ranges)
            recorder.ranges.append(described)
        if self.with_inputs:
            inputs = self.recorder._inputs_of(_RangeInputs, arguments)
            if self.register is not None:
                call += (self.register.log_range(arguments) if arguments and inputs >= 0 else -1,)
            rest = (inputs, *call, *self.no_bytes)
        else:
            rest = call + self.no_bytes
        token = [buffer, key, clock(), sequence, rest]
        buffer.open.append(token)
        return token

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, start, sequence, rest = token
        if _close(buffer.open, token):
            buffer.extend((key, start, end, sequence, *rest))

    def stepped(self, optimizer: Any) -> None:
        """Called after each optimizer step. Optimizers are recorded together with stacks, see `_RangesWithStacks`."""


class _RangesWithStacks(_Ranges):
    """Records ranges with the Python calls in which they begin and end, and optimizers. A token also holds the call, whether it is that
    of an engine's event, and the value of `node_call` before it, None: it was not changed."""

    __slots__ = ("stacks", "node_call")

    def __init__(self, recorder: Recorder, stacks: Stacks) -> None:
        super().__init__(recorder)
        self.stacks, self.node_call = stacks, stacks.node_call

    def enter(
        self,
        name: str,
        scope: int,
        sequence: int,
        forward_thread: int,
        arguments: tuple,
        calls_no_user: bool = False,
    ) -> Any:
        buffer = self.recorder.buffer(thread := get_ident())
        if buffer is None:
            return None
        described = (name, scope, forward_thread)
        outer = buffer.open[-1] if buffer.open else None
        if (
            calls_no_user
            and outer is not None
            and outer[6]
            and thread == self.thread
            and not (process_state.functions_guarded or process_state.ops_guarded or Switches.packed)
        ):
            # inside an event of the engine, in functions of the library alone: the call is that of the engine's event
            token = self.begin(buffer, described, sequence, arguments, (outer[5],))
            token += (outer[5], False, self.node_call[0])
            self.node_call[0] = outer[5]
            return token
        call = self.stacks.touch(sys._getframe(1), thread, clock())
        token = self.begin(buffer, described, sequence, arguments, (call,))
        token += (call, scope == 0 and name.startswith("autograd::engine::"), None)
        if thread == self.thread and self.node_call[0] >= 0:
            token[7], self.node_call[0] = self.node_call[0], -1
        return token

    def exit(self, token: Any) -> None:
        if token is None:
            return
        end = clock()
        buffer, key, start, sequence, rest, call, _, node_call = token
        inside_node = self.node_call[0] == call and node_call is not None
        if node_call is not None:
            self.node_call[0] = node_call
        if _close(buffer.open, token):
            buffer.extend((key, start, end, sequence, *rest))
            if not inside_node:
                # the call that opened the range may have returned long ago: the call that closes it lasts at least until now
                self.stacks.touch(sys._getframe(1), get_ident(), clock())

    def stepped(self, optimizer: Any) -> None:
        register = self.recorder.register
        if register is not None and self.recorder.buffer(thread := get_ident()) is not None:
            now = clock()
            self.stacks.touch(sys._getframe(1), thread, now)
            register.optimizer(optimizer, now, thread)


def _may_trace() -> bool:
    """Whether the interpreter's profile hook is free, or another recording's."""
    hook = sys.getprofile()
    if hook is None or getattr(hook, "__module__", "").startswith(__package__):
        return True
    warnings.warn(
        "another profile function is set in this thread (sys.setprofile): of the Python calls only those are shown in which something "
        "was recorded",
        stacklevel=3,
    )
    return False


def _close(open_ranges: list[_OpenRange], token: _OpenRange) -> bool:
    """Remove a range from the open ones; False if the recording, and with it the range, has ended already."""
    if open_ranges and open_ranges[-1] is token:
        open_ranges.pop()
        return True
    for index, other in enumerate(open_ranges):  # ranges of asynchronous code end in any order
        if other is token:
            del open_ranges[index]
            return True
    return False


class _RangeInputs:
    """Takes the place of the op where the inputs of a range are interned."""

    uid = -1
    flops = None

    @staticmethod
    def describe(*arguments: Any) -> tuple:
        return (-1, *[_dispatch._numbers_of(value) for value in arguments])


class _NoRegister:
    """Takes the place of the tensor register in a recording without one."""

    @staticmethod
    def probe_variables() -> dict[str, Any]:
        return dict.fromkeys(("first_id", "tensor_log", "log_tensors", "assign_id", "ids_in_list"))


class _NoCallTracer:
    """Takes the place of the call tracer in a recording without one."""

    @staticmethod
    def probe_variables(thread: int) -> dict[str, Any]:
        return dict.fromkeys(
            ("suspended", "setprofile", "hook", "log_calls", "missed_calls", "run_suspended")
        )


def _own_grad_state() -> dict[str, Any]:
    """This thread's grad state as a plain dict: reading it takes half as long as reading the thread-local."""
    grad_state.seq, grad_state.enabled = grad_state.seq, grad_state.enabled
    return grad_state.__dict__


def _count_flops(op: Any, arguments: tuple) -> int:
    try:
        return int(op.flops(*arguments))
    except Exception:  # a formula that does not fit these arguments must not stop the user's program
        return 0
