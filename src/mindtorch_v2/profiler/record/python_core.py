"""The plain Python core of a recording: op calls, ranges, memory and Python calls in, rows of integers out.

This is the definition of what is recorded. `_core`, written in C, does the same faster; `core.py` chooses. Each recorded thread has rows
of its own, plain lists that grow by a few integers per event. Names, inputs and functions are numbered at their first use by the
`Recorder` and looked up after the stop. No tensor is kept alive.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from mindtorch_prof.sealing.python_calls import CALL_SITE

from ... import _dispatch
from ..._graph import own_grad_state
from . import allocations
from .functions import HIDDEN, MODULE, RECORDER, RETURN
from .program_errors import is_of_a_signal_handler

if TYPE_CHECKING:
    from .recorder import Recorder

clock = time.perf_counter_ns
get_ident = threading.get_ident
observe = allocations.observe

NAME = "python"
# whether calls of threads that run already can be traced
REACHES_RUNNING_THREADS = sys.version_info >= (3, 12)
_PROFILE_FUNCTIONS = 6  # the tool of `sys.monitoring` that calls the functions of `sys.setprofile`
# From Python 3.12 on, setting and removing a profile function changes the code of running functions, which takes 10 us: it stays set in
# ops, and does nothing there.
_KEEPS_HOOK = sys.version_info >= (3, 12)
# whether Python stores the locals of each frame with events in a dict: until the next event, that refers to what is freed meanwhile
_STORES_LOCALS = sys.version_info < (3, 11)
_CHUNK = 1 << 16  # integers that are converted to an array at once
_LONGEST_WAIT_S, _LONGEST_WAIT_IF_FULL_S = 0.1, 10.0  # that a thread gives way at once
_MOST_UNTAKEN = 1 << 23  # integers that may wait to be taken
_DROPPED_FROM = 1 << 12  # integers that were taken: fewer are not worth dropping


class _Thread:
    """What is recorded of one thread."""

    __slots__ = (
        "calls",
        "calls_dropped",
        "calls_taken",
        "grad",
        "hook",
        "ident",
        "is_drop_due",
        "is_dropping",
        "is_untraced",
        "n_open_dropped",
        "native",
        "n_drops",
        "open",
        "other",
        "rows",
        "set_hook",
        "tensors",
        "tensors_dropped",
        "tensors_taken",
        "traces",
        "unset_hook",
    )

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.native = threading.get_native_id() if ident == get_ident() else 0
        self.grad: dict[str, Any]  # the thread's grad state, once it had an event
        self.rows: list[int] = []  # ops and ranges, in the order in which they ended
        self.open: list[_OpenRange] = []  # ranges that have begun and not ended
        self.calls: list[int] = []  # the log of Python calls, see `python_calls`
        self.tensors: list[int] = []  # the tensors that were arguments of ops, in the order of calls
        # Rows refer to places in `calls` and `tensors`, counted from the beginning of the recording. `take` copies what is new; only
        # the thread itself then drops it from the lists, so that it always knows how long they are.
        self.calls_taken = self.tensors_taken = 0  # integers that `take` has copied
        self.calls_dropped = self.tensors_dropped = 0  # of those, integers that are no longer in the lists
        self.n_open_dropped = 0  # calls among them that had not returned
        self.n_drops, self.is_dropping = 0, False
        self.is_drop_due = False  # much has been taken that is still in the lists
        self.traces = False  # whether calls are logged
        self.is_untraced = False  # in an op or a function of the library: what it calls is not logged
        self.hook: Callable[[FrameType, str, Any], None] | None = None  # the profile function of the thread
        self.other: Any = None  # another profile function, which was set before and is called too
        # Set and unset the hook, where it does not stay set. Partial functions: unlike a call of `sys.setprofile`, their calls are no
        # events themselves.
        self.set_hook: Callable[[], object]
        self.unset_hook: Callable[[], object]

    def call_position(self) -> int:
        """How many rows the log of calls has had."""
        while True:
            dropped = self.calls_dropped
            position = (dropped + len(self.calls)) // 2
            if dropped == self.calls_dropped:  # else a finalizer has run an op of this thread between the two
                return position

    def tensor_position(self) -> int:
        """How many tensors there have been."""
        while True:
            dropped = self.tensors_dropped
            position = dropped + len(self.tensors)
            if dropped == self.tensors_dropped:
                return position

    def drop_taken(self) -> None:
        """Free what `take` has copied. Called by the thread itself."""
        if self.is_dropping:
            return
        self.is_dropping, self.is_drop_due = True, False
        n_calls, n_tensors = self.calls_taken - self.calls_dropped, self.tensors_taken - self.tensors_dropped
        words = self.calls[0:n_calls:2]
        self.n_open_dropped += len(words) - 2 * words.count(RETURN)
        del self.calls[:n_calls], self.tensors[:n_tensors]
        self.calls_dropped += n_calls
        self.tensors_dropped += n_tensors
        self.n_drops += 1
        self.is_dropping = False

    def take_positioned(self) -> tuple[list[int], list[int]]:
        """What has come to `calls` and `tensors` since the last time. Called by any thread."""
        while True:
            n_drops = self.n_drops
            calls = self.calls[self.calls_taken - self.calls_dropped :]
            tensors = self.tensors[self.tensors_taken - self.tensors_dropped :]
            if not self.is_dropping and n_drops == self.n_drops:
                break
            time.sleep(0)  # the thread is dropping: let it
        self.calls_taken += len(calls)
        self.tensors_taken += len(tensors)
        if (
            max(self.calls_taken - self.calls_dropped, self.tensors_taken - self.tensors_dropped)
            > _DROPPED_FROM
        ):
            self.is_drop_due = True
        return calls, tensors


_OpenRange = list[Any]  # the thread, then the row. A list: it is compared by identity

_active: Core | None = None  # the core that records now
_probes: list[Callable[..., Any]] = []  # by uid: what is called instead of an op


class _Failure:
    """An error of the recorder, reported as Python reports one that nobody can catch: through `sys.unraisablehook`."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def _reporting(function: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
    """Call a function of the recorder. An error in it is reported, and is none of the program's."""
    try:
        return function(*arguments)
    except Exception as error:
        _report(error)
        return otherwise


def _report(error: Exception) -> None:
    """Report an error that was caught in the recorder; raise it again if it is the program's."""
    # the next call of the program would raise a RecursionError too
    if isinstance(error, RecursionError) or is_of_a_signal_handler(error):
        raise error
    _Failure(error)


def probe_of(op: Any) -> Callable[..., Any]:
    """What is called instead of an op while something records."""
    run, uid = op.run, op.uid
    describe: Any = None  # attributes of the op, once a recording needed them
    allocates: int | None = None

    def record_op(*arguments: Any) -> Any:
        """Run the op, and write its row into the core that is active."""
        nonlocal describe, allocates
        core = _active
        if core is None:
            return run(*arguments)
        try:
            thread = core.here.thread
        except AttributeError:  # the first event of this thread
            thread = core._new_thread()
        if thread is None:
            return core._run_unrecorded(run, arguments)
        is_traced = thread.traces and not thread.is_untraced
        try:
            if is_traced:
                thread.unset_hook()
                thread.is_untraced = True
            grad = thread.grad
            sequence = grad["seq"] if grad["enabled"] else -1
            details: tuple[int, ...] | None = None
            if not core.has_details:
                details = ()
            elif core.has_tensors:
                try:  # most often inputs are known and tensors have ids; `_details`, for all calls, takes twice as long
                    if describe is None:
                        describe = op.describe_with_ids
                    description, ids = describe(*arguments)
                    inputs, first_id = core.known_inputs[description], core.first_id
                    for tensor_id in ids:
                        if tensor_id < first_id:
                            break
                    else:
                        dropped = thread.tensors_dropped
                        first_tensor = dropped + len(thread.tensors)
                        if dropped != thread.tensors_dropped:  # by an op that a finalizer has run in between
                            first_tensor = thread.tensor_position()
                        thread.tensors += ids
                        details = (inputs, first_tensor)
                        if core.has_calls:
                            details = (inputs, thread.call_position(), first_tensor)
                except (KeyError, AttributeError, TypeError):
                    pass
                except Exception as error:
                    _report(error)
            if details is None:
                details = core._details(thread, op, arguments)
            if thread.is_drop_due:
                thread.drop_taken()
            end = 0
            start = clock()
            try:
                result = run(*arguments)
                if core.has_memory:
                    end = clock()
                    if allocates is None:
                        allocates = op.allocates
                    if allocates:
                        end = core._record_allocations(thread, allocates, arguments, result, end)
                return result
            finally:
                end = end or clock()
                thread.rows += (uid, start, end, sequence) + details
                due = core.turn_due
                if due is not None and end > due:
                    core.wait_for_turn()
        finally:
            if is_traced:
                thread.is_untraced = False
                if thread.traces:
                    thread.set_hook()

    return record_op


class Core:
    """The rows of one recording."""

    def __init__(self, recording: Recorder) -> None:
        self.recording = recording
        self.wanted = recording.wanted
        self.recorder = _probes  # the value of `_dispatch.recorder`
        _, self.has_inputs, self.has_calls, self.has_tensors, self.has_memory = self.wanted
        self.has_details = self.has_inputs or self.has_calls
        self.known_inputs = recording.inputs
        self.register: Any = recording.register
        self.first_id = 0  # of the register, which has it once it is open
        self.recorded: dict[int, _Thread] = {}  # by identity: the threads whose ops are recorded
        self.traced: dict[int, _Thread] = {}  # the threads whose calls are traced
        self.memory: list[int] = []  # time, bytes (negative: freed), allocation id, thread
        self.log_free = self.memory.extend
        self.taken_over: list[int] = []  # identity of a thread, native id before and now, time
        self.here = threading.local()  # `thread`: what is recorded of this thread, once it had an event
        self.is_tracing = False
        self.reaches_others = False  # whether the calls of other threads, which ran already, are traced
        self.turn_due: int | None = (
            None  # ns: who records something that ended later gives way; None: nobody does
        )
        self.turn_is_over = threading.Event()
        self.turn_is_late = False  # threads have given way in this turn, in vain
        self.turn_of = (0, 0)  # the thread that takes rows, and its process
        self.n_waits = self.waited_ns = 0  # how often threads have given way, and for how long in all
        self.beginning = 0  # the thread that sets profile functions now: what it calls for that is not logged
        self.recorded[get_ident()] = _Thread(get_ident())

    def activate(self) -> None:
        """Record from now on: `_dispatch.recorder` and `ranges` are this core's."""
        global _active
        if self.register is not None:
            self.first_id = self.register.first_id
        _active = self

    def deactivate(self) -> None:
        """Record no more."""
        global _active
        if _active is self:
            _active = None

    # ------------------------------------------------------------------------------------------------ ops and ranges

    def enter(self, name: str, scope: int, sequence: int, forward_thread: int, arguments: tuple) -> Any:
        """Begin a range: an annotation or a node. Returns a token for `exit`; None if this thread is not recorded."""
        try:
            thread = self.here.thread
        except AttributeError:
            thread = self._new_thread()
        if thread is None:
            return None
        key = self.recording.range_key(name, scope, forward_thread)
        details = self._details(thread, None, arguments)
        if thread.is_drop_due:
            thread.drop_taken()
        token = [thread, key, clock(), 0, sequence, *details]
        thread.open.append(token)
        return token

    def exit(self, token: Any) -> None:
        """End a range. After the stop, which has ended it already, this does nothing."""
        if token is not None:
            token[3] = clock()
            thread = token[0]
            try:
                thread.open.remove(token)  # at once: a stop on another thread may end the ranges meanwhile
            except ValueError:
                return
            thread.rows.extend(token[1:])
            due = self.turn_due
            if due is not None and token[3] > due:
                self.call_untraced(self.wait_for_turn)

    def stepped(self, optimizer: Any) -> None:
        """Called after each optimizer step."""
        self.recording.optimizer_stepped(optimizer)

    def _run_unrecorded(self, run: Callable[..., Any], arguments: tuple) -> Any:
        """Run an op on a thread that is not recorded."""
        _reporting(self.recording.note_foreign_thread)
        result = self.call_untraced(run, *arguments)
        due = self.turn_due
        if due is not None and clock() > due:
            self.call_untraced(self.wait_for_turn)
        return result

    def _details(self, thread: _Thread, op: Any, arguments: tuple) -> tuple[int, ...]:
        """The rest of a row: the columns that only some recordings have. op: None for a range."""
        if not self.has_inputs:
            return (thread.call_position(),) if self.has_calls else ()
        inputs = _reporting(self.recording.inputs_of, op, arguments, otherwise=-1)
        first_tensor = -1
        if self.has_tensors and inputs >= 0:
            try:
                ids = self.register.ids_of_arguments(op, arguments)
                first_tensor = thread.tensor_position()
                thread.tensors += ids
            except Exception as error:
                _report(error)
        if not self.has_calls:
            return (inputs, first_tensor) if self.has_tensors else (inputs,)
        calls = thread.call_position()
        return (inputs, calls, first_tensor) if self.has_tensors else (inputs, calls)

    def _record_allocations(
        self, thread: _Thread, allocates: int, arguments: tuple, result: Any, now: int
    ) -> int:
        """Record the memory that an op, which ended now, allocated for its results. allocates: the op's. Returns the end of the op:
        what it allocates is inside it."""
        try:
            if allocates == 1 and result.__class__ is _dispatch.Tensor and result._storage is None:
                # most often; without `record_allocation`, a call that takes a tenth of all this
                if result._array_missing:
                    return now
                nbytes = observe(result._array, now)
                if not nbytes:
                    return now
                self.memory += (now, nbytes, now, thread.ident)
                if self.register is not None:
                    self.register.allocated(result, now)
                return now + 1
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                array = getattr(tensor, "_array", None)
                if array is None or (tensor.__class__ is not _dispatch.Tensor and tensor._is_sparse_layout):
                    continue
                if allocates == 2 and (tensor._base is not None or any(tensor is a for a in arguments)):
                    continue
                storage = tensor._storage
                if storage is None:
                    self.record_allocation(array, tensor)
                elif storage._keeps is None:  # not an alias of another one
                    self.record_allocation(storage._root, tensor)
        except Exception as error:
            _report(error)
        return clock()

    def record_allocation(self, array: np.ndarray, tensor: Any = None) -> None:
        """Record new memory, unless it is known. tensor: the one that it was allocated for."""
        now = clock()
        nbytes = observe(array, now)
        if nbytes:
            self.memory += (now, nbytes, now, get_ident())
            if tensor is not None and self.register is not None:
                self.register.allocated(tensor, now)

    def _new_thread(self) -> _Thread | None:
        """At the first event of this thread: what is recorded of it; None if nothing is to be."""
        ident = get_ident()
        thread = self.recorded.get(ident)
        if thread is None and self.wanted.all_threads:
            thread = self.recorded[ident] = self.traced.get(ident) or _Thread(ident)
        if thread is not None:
            thread.grad = own_grad_state()
            self._note_takeover(thread)
        self.here.thread = thread
        return thread

    def _note_takeover(self, thread: _Thread) -> None:
        """Note whether this thread has got the identity of one that had ended, whose record this is."""
        native = threading.get_native_id()
        if thread.native not in (0, native):
            self.taken_over.extend((thread.ident, thread.native, native, clock()))
        thread.native = native

    # ------------------------------------------------------------------------------------------------ Python calls

    def begin_calls(self) -> None:
        """Trace the calls of this thread from now on, and from Python 3.12 on those of all threads that run."""
        self.is_tracing = True
        thread, other = self._traced_thread(get_ident()), sys.getprofile()
        other = None if other is thread.hook else other
        if other is not None and not callable(other):
            warnings.warn(
                f"another profiler is set in this thread (sys.setprofile: {type(other).__name__}): Python calls are not recorded",
                stacklevel=2,
            )
            return
        self.beginning = get_ident()
        self.reaches_others = not _others_have_profile_functions()
        if self.reaches_others:
            self._set_on_all_threads(self.first_event)
        self.beginning = 0
        self.recording.enter_stack(sys._getframe(), get_ident())
        self._set_hook(other)

    def end_calls(self) -> None:
        """Trace no more."""
        thread = self.traced.get(get_ident())
        if thread is not None and thread.traces:
            sys.setprofile(thread.other)
        self.is_tracing = False
        if self.reaches_others:
            self._set_on_all_threads(None)
        for thread in list(self.traced.values()):
            thread.traces = False

    @staticmethod
    def _set_on_all_threads(function: Any) -> None:
        """Set the profile function of all other threads that run."""
        if sys.version_info >= (3, 12):
            own, of_new_threads = sys.getprofile(), threading.getprofile()
            threading.setprofile_all_threads(function)
            threading.setprofile(of_new_threads)  # type: ignore[arg-type]
            sys.setprofile(own)

    def close_calls(self, now: int) -> None:
        """Calls that have not returned end now."""
        for thread in list(self.traced.values()):
            words = thread.calls[0::2]
            n_open = thread.n_open_dropped + len(words) - 2 * words.count(RETURN)
            thread.calls.extend((RETURN, now) * max(n_open, 0))

    def log_call(self, ident: int, number: int, call_site: int, now: int) -> None:
        """Log a call that began before this thread, or another, was traced."""
        if number != RECORDER:
            self._traced_thread(ident).calls.extend((number | (call_site + 1) << CALL_SITE, now))

    def _traced_thread(self, ident: int) -> _Thread:
        thread = self.traced.get(ident)
        if thread is None:
            thread = self.traced[ident] = self.recorded.get(ident) or _Thread(ident)
        return thread

    def first_event(self, frame: FrameType, event: str, argument: Any) -> None:
        """The profile function of a thread until its first event, which gives the thread its own."""
        if not self.is_tracing:
            sys.setprofile(None)
        if not self.is_tracing or get_ident() == self.beginning:
            return
        self.recording.thread_begins_calls(frame.f_back if event == "call" else frame)
        hook = self._set_hook(None)
        # the end of a C function whose call was before is not logged, as the call is not
        if event not in ("c_return", "c_exception"):
            hook(frame, event, argument)

    def _set_hook(self, other: Any) -> Callable[[FrameType, str, Any], None]:
        """Let the interpreter call a function at each call and return on this thread. other: the one before, called too."""
        thread = self._traced_thread(get_ident())
        self._note_takeover(thread)
        if thread.hook is None or thread.other is not other:
            thread.hook, thread.other = self._hook(thread, other), other
            thread.set_hook = partial(id if _KEEPS_HOOK else sys.setprofile, thread.hook)
            thread.unset_hook = partial(id if _KEEPS_HOOK else sys.setprofile, other)
        thread.traces = True
        sys.setprofile(thread.hook)
        return thread.hook

    def _hook(self, thread: _Thread, other: Any) -> Callable[[FrameType, str, Any], None]:
        """A function that logs the calls and returns of a thread."""
        log, functions = thread.calls.extend, self.recording.functions
        assert functions is not None
        number_of_code, number_of_c_function = functions.number_of_code, functions.number_of_c_function
        known_code, known_c_function = functions.numbers.get, functions.c_functions.get

        def hook(frame: FrameType, event: str, argument: Any) -> None:
            if thread.is_untraced:
                return
            number = known_code(id(frame.f_code))
            if number == RECORDER:
                return
            if not thread.traces:
                sys.setprofile(thread.other)
                return
            if number is None:
                number = _reporting(number_of_code, frame.f_code, otherwise=HIDDEN)
            if number == RECORDER:
                pass
            elif event == "call":
                if number == MODULE:
                    number = _reporting(functions.number_of_frame, frame, otherwise=HIDDEN)
                caller = frame.f_back
                is_unknown = caller is None or known_code(id(caller.f_code)) == RECORDER
                log((number | (0 if is_unknown else caller.f_lasti + 1) << CALL_SITE, clock()))  # type: ignore[union-attr]
            elif event == "c_call":
                number = known_c_function(argument)
                if number is None:
                    number = _reporting(number_of_c_function, argument, otherwise=HIDDEN)
                log((number | (frame.f_lasti + 1) << CALL_SITE, clock()))
            else:
                end = clock()
                log((RETURN, end))
                due = self.turn_due
                if due is not None and end > due:
                    self.wait_for_turn()
                if thread.is_drop_due:
                    thread.drop_taken()

        def also_other(frame: FrameType, event: str, argument: Any) -> None:
            if other is not None:
                other(frame, event, argument)
            if _STORES_LOCALS and event == "call" and frame.f_back is not None:
                _ = frame.f_back.f_locals  # updates the dict: memory is freed before the call, not after it
            hook(frame, event, argument)

        return hook if other is None and not _STORES_LOCALS else also_other

    def call_untraced(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the library. The calls that it makes are not logged, except through `call_traced`."""
        thread = self.traced.get(get_ident())
        if thread is None or not thread.traces or thread.is_untraced:
            return function(*arguments)
        thread.unset_hook()
        thread.is_untraced = True
        try:
            return function(*arguments)
        finally:
            thread.is_untraced = False
            if thread.traces:
                thread.set_hook()

    def call_traced(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the user from inside an op, or inside `call_untraced`."""
        thread = self.traced.get(get_ident())
        if thread is None or not thread.traces or not thread.is_untraced:
            return function(*arguments)
        thread.calls.extend((HIDDEN, clock()))  # between the user's function and the one that called the op
        thread.is_untraced = False
        thread.set_hook()
        try:
            return function(*arguments)
        finally:
            thread.unset_hook()
            thread.is_untraced = True
            thread.calls.extend((RETURN, clock()))

    # ------------------------------------------------------------------------------------------------ memory

    def listen_to_memory(self, wanted: bool) -> None:
        """Record frees, or no more."""
        allocations.unlisten(self.log_free)
        if wanted:
            allocations.listen(self.log_free)

    # ------------------------------------------------------------------------------------------------ giving way

    def set_turn(self, due: int | None) -> None:
        """Threads that record something later than this give way to this thread, until it calls this again; None: they never do.

        The thread that takes rows needs the interpreter's lock, which threads that record have most of the time: where there are many,
        it can take seconds until it gets it.
        """
        over, self.turn_is_over = self.turn_is_over, threading.Event()
        self.turn_of, self.turn_is_late = (get_ident(), os.getpid()), False
        self.turn_due = due
        over.set()

    def wait_for_turn(self) -> None:
        """Give way until the turn is over, but not for long, and once in a turn. Where very much waits to be taken, the disk is too slow
        for what is recorded: then for longer, so that memory does not run out."""
        ident, process = self.turn_of
        if process != os.getpid():
            self.turn_due = None  # the thread that takes rows is not in this process, which was forked
        elif ident == get_ident():
            return
        elif self._is_full():
            self._wait_at_most(_LONGEST_WAIT_IF_FULL_S)
        elif not self.turn_is_late:
            self._wait_at_most(_LONGEST_WAIT_S)
        else:
            self.turn_due = clock() + int(_LONGEST_WAIT_S * 1e9)  # it is not us that it waits for

    def _is_full(self) -> bool:
        size = len(self.memory)
        for thread in {**self.recorded, **self.traced}.values():
            size += len(thread.rows)
            size += len(thread.calls) - (thread.calls_taken - thread.calls_dropped)
            size += len(thread.tensors) - (thread.tensors_taken - thread.tensors_dropped)
        return size > _MOST_UNTAKEN

    def _wait_at_most(self, seconds: float) -> None:
        over, began = self.turn_is_over, clock()
        over.wait(seconds)
        now = clock()
        self.n_waits += 1
        self.waited_ns += now - began
        if over is self.turn_is_over:
            self.turn_is_late = True
            self.turn_due = now + int(_LONGEST_WAIT_S * 1e9)

    def waits(self) -> tuple[int, int]:
        """How often threads have given way, and for how many nanoseconds in all."""
        return self.n_waits, self.waited_ns

    # ------------------------------------------------------------------------------------------------ the end

    def end_ranges(self, now: int) -> int:
        """End the ranges that are open; how many there were."""
        count = 0
        for thread in list(self.recorded.values()):
            for token in reversed(thread.open):
                token[3] = now
                thread.rows.extend(token[1:])
                count += 1
            thread.open.clear()
        return count

    def open_ranges(self, now: int) -> dict[int, np.ndarray]:
        """By thread: the rows of the ranges that are open, as if they ended now."""
        rows = {
            thread.ident: [
                value for token in reversed(thread.open.copy()) for value in (*token[1:3], now, *token[4:])
            ]
            for thread in list(self.recorded.values())
        }
        return {ident: np.array(values, np.int64) for ident, values in rows.items() if values}

    def take(self) -> tuple[dict[tuple[str, int], list[np.ndarray]], dict[int, int]]:
        """Hand over what was recorded since the last time, while threads go on: blocks of integers by log and thread (see
        `mindtorch_prof.sealing.logs`); and the native ids of threads. Rows come before what they refer to."""
        allocations.tell_frees()
        blocks: dict[tuple[str, int], list[np.ndarray]] = {}
        natives = {thread.ident: thread.native for thread in list(self.recorded.values())}
        for thread in list(self.recorded.values()):
            blocks["rows", thread.ident] = [_taken(thread.rows)]
        threads = {
            id(thread): thread for table in (self.recorded, self.traced) for thread in list(table.values())
        }
        for thread in threads.values():
            calls, tensors = thread.take_positioned()
            blocks["calls", thread.ident] = [_as_array(calls)]
            blocks["tensors", thread.ident] = [_as_array(tensors)]
        blocks["memory", 0] = [_taken(self.memory)]
        blocks["takeovers", 0] = [_taken(self.taken_over)]
        return {key: parts for key, parts in blocks.items() if parts[0].size}, natives

    def sample_all_costs(self) -> None:
        """From now on measure all events instead of some, for `cost_samples`."""

    def cost_samples(self) -> dict[str, np.ndarray]:
        """By kind of event: nanoseconds that the recorder took, at some events. This core does not measure them: reading the clock
        twice more would take a good part of what it measures."""
        return {}

    def n_rows(self) -> int:
        """How many rows the thread that began the recording has."""
        return len(self.recorded[self.recording.thread].rows) // len(self.wanted.columns)

    def n_calls(self) -> int:
        """How many Python calls of the thread that began the recording have returned."""
        thread = self.traced.get(self.recording.thread)
        return 0 if thread is None else thread.calls[0::2].count(RETURN)


def _others_have_profile_functions() -> bool:
    """Whether a profile function is set in another thread, which must not be replaced."""
    if sys.version_info < (3, 12):
        return False
    # Threads cannot be asked for their profile functions. They share the events of one tool, which are on while any thread has one.
    own = sys.getprofile()
    sys.setprofile(None)
    try:
        return any(
            tools >> _PROFILE_FUNCTIONS & 1
            for tools in getattr(sys.monitoring, "_all_events", dict)().values()
        )
    finally:
        sys.setprofile(own)


def _as_array(integers: list[int]) -> np.ndarray:
    """A list as an array, converted in chunks: a copy of the whole list as Python objects would not fit beside it."""
    array = np.empty(len(integers), np.int64)
    for first in range(0, len(array), _CHUNK):
        last = min(first + _CHUNK, len(array))
        array[first:last] = integers[first:last]
    return array


def _taken(integers: list[int]) -> np.ndarray:
    """The integers of a list that other threads append to, removed from it."""
    array = _as_array(integers)
    del integers[: len(array)]
    return array


def load_library() -> None:
    """Make the probes, before the first recording."""
    global _probes
    if not _probes:
        _probes = _dispatch.install_probes(probe_of)


allocation_id, alive = allocations.allocation_id, allocations.alive
