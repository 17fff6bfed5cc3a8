"""The recorder: what is recorded and when. The core (see `core.py`) writes the rows; here names, inputs and tensors get their numbers at
their first use. From a stopped Recorder `seal` builds a Trace.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from mindtorch_prof.sealing.logs import OF_ALL, Logs
from mindtorch_prof.sealing.raw import RANGES

from ... import _dispatch
from ... import _recording_hooks as hooks
from ..._dtype import Default
from ..._tensor_slots import recorded_operators
from ..._threads import get_num_threads
from . import core
from .caller_inputs import LiveInputs
from .functions import Functions, append_numbered
from .garbage_collections import GarbageCollections
from .tensor_ids import TensorRegister
from .unix_time import unix_origin_ns

clock = time.perf_counter_ns
get_ident = threading.get_ident


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
    python_gc: bool = False  # with stacks: record the runs of Python's garbage collector
    event_metadata: bool = False  # events show their row as metadata


class Wanted(NamedTuple):
    """What the core writes into a row besides the op, its times and its sequence number."""

    all_threads: bool
    inputs: bool  # an index of the descriptions of arguments, or -1
    calls: bool  # how many rows the thread's log of Python calls has; those are logged too
    tensors: bool  # where the ids of its tensors begin in the log of tensors, or -1
    memory: bool  # no column: allocations and frees have rows of their own

    @property
    def columns(self) -> tuple[str, ...]:
        """The integers of one row, in order. `key`: the op's uid, or that of a range."""
        names = ("inputs", "calls", "tensors")
        return ("key", "start", "end", "sequence", *[name for name in names if getattr(self, name)])


class OwnThread(threading.Thread):
    """A thread of the profiler; no recording lists it."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(target=function, name="mindtorch profiler", daemon=True)


class Recorder:
    """A recording in progress."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.trace_id = ""  # the id that the trace will have; a random one if empty
        self.added_metadata: dict[str, Any] = {}  # added by the program, for the trace file
        self.thread = get_ident()
        self.wanted = Wanted(
            all_threads=config.all_threads,
            inputs=config.record_shapes or config.with_flops,
            calls=config.with_stack or config.with_modules,
            tensors=config.record_shapes,
            memory=config.profile_memory,
        )
        self.functions = Functions(modules_only=not config.with_stack) if self.wanted.calls else None
        self.collections = GarbageCollections() if config.python_gc and config.with_stack else None
        self.register: TensorRegister | None = None
        if self.wanted.tensors or config.with_stack:
            self.register = TensorRegister()
            if self.functions is not None:
                self.functions.on_new_module = self.register.module
        self.ranges: list[tuple[str, int, int]] = []  # (name, scope, forward thread), by key - RANGES
        self.range_keys: dict[tuple[str, int, int], int] = {}
        self.inputs: dict[Any, int] = {}  # description of an op's arguments -> index
        self.descriptions: list[tuple] = []  # by index; two threads may have added the same
        self.flops: dict[int, int] = {}  # index of inputs -> flops
        self.live_inputs = LiveInputs()  # the descriptions as they are shown, filled when they are needed
        self.logs = Logs()  # what the core has handed over
        self.dropped = 0  # events that were not kept
        self.drop_reason = ""  # why, where nobody asked for it
        self.keeper: Any = None  # a `keeper.Keeper`; None: all rows stay in the core until the stop
        self.own_thread = -1  # a thread that belongs to the recording, of which nothing is recorded
        core.core.load_library()
        self.core: Any = core.Core(self)
        self.unfinished = 0
        # names of threads that called ops and are not recorded
        self.foreign_threads: dict[int, str] = {}
        self.running = False
        self.traces_calls = False
        self.traced_from_ns = 0
        self.silent_threads: set[int] = set()  # that have neither called nor returned since tracing began
        self.begun_ns = 0
        self.suspended_ns = 0  # how long inner recordings have suspended this one
        self.num_threads = 0  # of a kernel
        self.default_dtype = ""
        self.allocated_before = 0  # bytes that earlier recordings saw allocated and that are alive
        self.own_cost: Any = None  # an `own_cost.OwnCost`; None: not known
        self.final_cost: Any = None  # what `cost_in_program` gives after `release`
        self.final_waits = (0, 0)  # what `waits` gives then
        self.operators_before = 0  # recorded calls of operators in this process before the start
        self.setup_ns = 0  # spent on what is done once per input

    # ------------------------------------------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Record every op of the recorded threads from now on. The recording that is active now is suspended until this one stops."""
        now = clock()
        if not self.begun_ns:
            self.origin_ns = unix_origin_ns(clock)
            self.begun_ns = now
            self.operators_before = recorded_operators()
            self.num_threads, self.default_dtype = get_num_threads(), Default.dtype._name
            if self.wanted.memory:
                self.allocated_before = int(core.alive()[:, 2].sum())
        try:
            if self.keeper is not None:
                self.keeper.begin()
            self._switch_on(now)
        except BaseException:
            self.pause()
            self._switch_off(now)
            if self.keeper is not None:
                self.keeper.let_go()
            raise

    def _switch_on(self, now: int) -> None:
        if self.register is not None:
            self.register.open(now)
        outer = hooks.active_recording()
        hooks.begin_recording(self)
        if outer is not None and outer is not self:
            outer.suspended_ns -= now
            outer.pause_beneath()
        self.running = True
        if self.wanted.memory:
            hooks.begin_memory(self.core)
        if self.collections is not None:
            self.collections.begin()
        self.resume()

    def _switch_off(self, now: int) -> None:
        """Remove all hooks, and resume the recording that this one suspended, if any."""
        try:
            if self.keeper is not None:
                self.keeper.end()
        finally:  # Ctrl-C ends the wait for a slow disk
            self._remove_hooks(now)

    def _remove_hooks(self, now: int) -> None:
        if self.collections is not None:
            self.collections.finish()
        self.running = False
        hooks.end_memory(self.core)
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
            self.pause_beneath()
            hooks.remove_profiler()

    def pause_beneath(self) -> None:
        """Record nothing: another recording takes over the dispatcher."""
        self._trace_calls(False)
        self.core.deactivate()

    def resume(self) -> None:
        """Record ops and calls again."""
        if hooks.active_recording() is self:
            self.core.activate()
            hooks.set_profiler(self.core.recorder, self.core)
            self._trace_calls(True)

    def stop(self) -> None:
        """Stop recording; open ranges end now. `seal` then builds the Trace."""
        self.pause()
        self.ended_ns = clock()
        self.unfinished += self.core.end_ranges(self.ended_ns)
        self._switch_off(self.ended_ns)

    def cost_in_program(self) -> Any:
        """`own_cost` from what the core has measured until now."""
        if self.own_cost is None or self.core is None:
            return self.final_cost
        n_operators = recorded_operators() - self.operators_before
        share = min(n_operators / max(self.core.n_rows(), 1), 1.0)
        return self.own_cost.in_program(self.core.cost_samples(), share)

    def hand_over(self) -> Logs:
        """What was recorded since the last time. Threads may go on recording."""
        blocks, natives = self.core.take()
        blocks.pop(("calls", self.own_thread), None)
        logs = Logs(blocks.items(), natives)
        lists = {}
        if self.register is not None:
            lists["storages"], lists["steps"] = self.register.take_storages(), _taken(self.register.steps)
            lists["earlier_ids"] = self.register.take_earlier_ids()
        if self.collections is not None:
            lists["collections"] = _taken(self.collections.rows)
        for kind, integers in lists.items():
            if integers:
                logs.blocks[kind, OF_ALL] = [np.array(integers, np.int64)]
        return logs

    def release(self) -> None:
        """Free the rows, after the last `seal`: core and recorder refer to each other, and the garbage collector may come late."""
        self.final_cost, self.final_waits = self.cost_in_program(), self.waits()
        self.core = None

    def waits(self) -> tuple[int, int]:
        """How often threads that record have waited until their rows were taken, and for how many nanoseconds in all."""
        return self.final_waits if self.core is None else self.core.waits()

    # ------------------------------------------------------------------------------------------------ Python calls

    def _trace_calls(self, wanted: bool) -> None:
        if not self.wanted.calls or self.traces_calls == wanted:
            return
        if wanted and get_ident() == self.thread:
            self.traces_calls = True
            self.traced_from_ns = clock() if self.traced_from_ns else self.begun_ns
            if core.core.REACHES_RUNNING_THREADS:
                self.silent_threads = set(sys._current_frames()) - {get_ident(), self.own_thread}
            hooks.begin_calls(self.core, of_new_threads=self.config.all_threads)
        elif not wanted:
            self.traces_calls = False
            hooks.end_calls(self.core)
            frames = sys._current_frames()
            frames.pop(
                get_ident(), None
            )  # a frame that refers to itself would keep all callers' variables alive
            for thread in self.silent_threads & set(frames):  # these were in one call all the time
                self.enter_stack(frames[thread], thread)
            self.core.close_calls(clock())

    def enter_stack(self, frame: FrameType | None, thread: int) -> None:
        """Log the functions that a thread is in as called when tracing began."""
        assert self.functions is not None
        core = self.core
        if core is None:  # another thread has stopped and released this recording meanwhile
            return
        stack = []
        while frame is not None:
            stack.append(frame)
            frame = frame.f_back
        for called in reversed(stack):
            call_site = -1 if called.f_back is None else called.f_back.f_lasti
            number = self.functions.number_of_running(called)
            core.log_call(thread, number, call_site, self.traced_from_ns)

    def thread_begins_calls(self, frame: FrameType | None) -> None:
        """The first event of a thread that ran already when tracing began, or began later. frame: which it is in."""
        if get_ident() in self.silent_threads:
            self.silent_threads.discard(get_ident())
            self.enter_stack(frame, get_ident())

    # ------------------------------------------------------------------------------------------------ numbers at first use

    def note_foreign_thread(self) -> None:
        """Note the name of this thread, which calls ops and is not recorded."""
        if get_ident() not in self.foreign_threads:
            self.foreign_threads[get_ident()] = threading.current_thread().name

    def range_key(self, name: str, scope: int, forward_thread: int) -> int:
        """The key of a range."""
        described = (name, scope, forward_thread)
        key = self.range_keys.get(described)
        if key is None:
            key = self.range_keys[described] = RANGES + append_numbered(self.ranges, described)
        return key

    def inputs_of(self, op: Any, arguments: tuple) -> int:
        """The index of an op's inputs: shapes, strides and types of tensors, values of numbers. -1: they cannot be described. op: None
        for a range."""
        try:
            if op is None:
                description: tuple = (-1, *[_dispatch._numbers_of(value) for value in arguments])
            else:
                description = op.describe(*arguments)
            index = self.inputs.get(description)
        except (AttributeError, TypeError):  # a meta tensor, or arguments that the op will refuse
            return -1
        if index is None:
            began = clock()
            index = self.inputs[description] = append_numbered(self.descriptions, description)
            if self.config.with_flops and op is not None and op.flops is not None:
                self.flops[index] = _count_flops(op, arguments)
            self.setup_ns += clock() - began
        return index

    def tensor_allocated(self, tensor: Any, allocation_id: int) -> None:
        """An op has allocated memory for a new tensor."""
        if self.register is not None:
            self.register.allocated(tensor, allocation_id)

    def optimizer_stepped(self, optimizer: Any) -> None:
        """An optimizer has made a step."""
        if (
            self.register is not None
            and self.functions is not None
            and (get_ident() == self.thread or self.config.all_threads)
        ):
            self.register.optimizer(optimizer, clock(), get_ident())


def _taken(integers: list[int]) -> list[int]:
    """The integers of a list that other threads append to, removed from it."""
    taken = integers.copy()
    del integers[: len(taken)]
    return taken


def _count_flops(op: Any, arguments: tuple) -> int:
    try:
        return int(op.flops(*arguments))
    except Exception:  # a formula that does not fit these arguments must not stop the user's program
        return 0
