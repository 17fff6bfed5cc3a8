"""Runs an unmodified program under real torch's profiler: a program and what to record of it in, its exit code and traces out.

Recording is finished however the program ends: at its last line, by an exception, sys.exit, os._exit, SIGINT, SIGTERM or SIGHUP; not by
SIGKILL or a crash. A program that uses torch's profiler itself is left alone: recording ends when its own begins.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..files import open_for_export
from .other_profilers import Watch
from .program import Program, ProgramError, hide_frames_of, join_threads, prepared, reported
from .run_session import ProgramEnd, RunSession
from .signals import flush_streams, signal_number
from .window import Window

hide_frames_of(__file__)

_FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


@dataclass
class Outcome(ProgramEnd):
    """How a program ended, and what was recorded of it."""

    recordings: int = 0
    last: Any = None  # torch's profile of the last recording, for `from_torch`
    notes: list[str] = field(default_factory=list)  # sentences about what is missing


def run(
    program: Program,
    *,
    window: Window | None = None,
    on_ready: Callable[[Any, int], None] | None = None,
    on_end: Callable[[Outcome], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    all_threads: bool = False,
    **settings: bool,
) -> int:
    """Run a program under real torch's profiler; its exit code, 128 + n if signal n ended it.

    window: what is recorded; None: the whole program.
    on_ready: called with torch's profile and the number of the recording (from 1) when a recording is finished.
    on_end: called once, however the program ends.
    on_note: called with a sentence where recording ends early, at that moment.
    settings: as for torch's `profile`: record_shapes, profile_memory, with_stack, with_flops, with_modules.
    """
    if not program.module and not os.path.exists(program.target):
        raise ProgramError(f"{program.target}: no such file; expected a Python program")
    unknown = set(settings) - set(_FLAGS)
    if unknown:
        raise TypeError(f"unknown settings: {', '.join(sorted(unknown))}")
    import importlib

    torch = importlib.import_module("torch")  # the user's own: this package does not need it
    code, namespace = prepared(program)
    session = _Session(torch, window or Window(), on_ready, on_end, on_note)
    session.settings = {**settings, **_all_threads(torch, all_threads)}
    outcome = session.outcome
    with session.installed():
        session.begin()
        try:
            exec(code, namespace)  # noqa: S102
            join_threads()
        except BaseException as error:  # of the program: reported as Python does, before the recording is finished, which prints too
            outcome.exit_code, outcome.signal = reported(error)
        finally:
            session.finish()
    return outcome.exit_code


def _all_threads(torch: Any, wanted: bool) -> dict[str, Any]:
    if not wanted:
        return {}
    try:
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(profile_all_threads=True)}
    except TypeError as error:
        raise ProgramError(f"torch {torch.__version__} cannot record all threads") from error


class _Session(RunSession[Outcome]):
    """The recordings of a program. Torch's profiler belongs to the thread that started it: everything here runs on the main thread."""

    def __init__(
        self,
        torch: Any,
        window: Window,
        on_ready: Callable[[Any, int], None] | None,
        on_end: Callable[[Outcome], None] | None,
        on_note: Callable[[str], None] | None,
    ) -> None:
        super().__init__(Outcome(), on_end, on_note)
        self.torch, self.window, self.on_ready = torch, window, on_ready
        self.settings: dict[str, Any] = {}
        self.prof: Any = None  # torch's profile that is started, if any
        self.left_alone = False
        self._watch = Watch()
        self._timer: threading.Timer | None = None
        self._optimizer: weakref.ref[Any] | None = None

    def exit_at_once(self, code: int) -> None:
        """End the process, past what stands in for os._exit."""
        self._real_exit(code)

    # ------------------------------------------------------------------------------------------------ recordings

    def begin(self) -> None:
        if not self.window.signal:
            self.start()

    def start(self) -> None:
        """Start torch's profiler: for the whole program, or with a schedule that says which steps it records."""
        if self.prof is not None or self.left_alone or self.finished:
            return
        actions = self.torch.profiler.ProfilerAction
        begun_at = self.outcome.steps
        window = Window() if self.window.signal else self.window

        def plan(step: int) -> Any:
            return getattr(actions, window.action(step))

        with self._calling_torch():
            self.prof = self.torch.profiler.profile(
                schedule=plan, on_trace_ready=self._ready, **self.settings
            )
            self.prof.step_num = begun_at if self.window.signal else 0
            self.prof.start()
        if self.window.seconds:
            self._stop_later(self.window.seconds)

    def stop(self) -> None:
        """End the recording, if there is one; `_ready` is called with it."""
        prof, self.prof = self.prof, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if prof is not None:
            with self._calling_torch():
                prof.stop()

    def _ready(self, prof: Any) -> None:
        self.outcome.recordings += 1
        self.outcome.last = prof.profiler
        if self.on_ready is not None:
            self.on_ready(prof, self.outcome.recordings)
        prof.profiler = None  # otherwise the next cycle warns that events are cleared

    def step(self, optimizer: object) -> None:
        """A step of the program's first optimizer has ended."""
        if (
            self.finished
            or os.getpid() != self.pid
            or threading.current_thread() is not threading.main_thread()
        ):
            return
        first = None if self._optimizer is None else self._optimizer()
        if first is None:
            self._optimizer = weakref.ref(optimizer)
        elif first is not optimizer:
            return
        self.outcome.steps += 1
        if self.prof is not None:
            with self._calling_torch():
                self.prof.step()

    @contextmanager
    def _calling_torch(self) -> Iterator[None]:
        with self._watch.calling_torch(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a recording without warm-up, which the user asked for
            yield

    def note(self, sentence: str) -> None:
        """Say something to whoever runs the program, and keep it."""
        self.outcome.notes.append(sentence)
        super().note(sentence)

    # ------------------------------------------------------------------------------------------------ what is put in place

    @contextmanager
    def installed(self) -> Iterator[None]:
        """With the hooks that count steps, notice the program's own profiler, and see the end of the program."""
        optimizer = self.torch.optim.Optimizer
        replaced = [
            (optimizer, "profile_hook_step", staticmethod(self._counting(optimizer.profile_hook_step))),
            (os, "_exit", self._exit),
        ]
        originals = [(owner, name, vars(owner)[name]) for owner, name, _ in replaced]
        for owner, name, function in replaced:
            setattr(owner, name, function)
        self._real_exit: Callable[[int], Any] = {name: function for _, name, function in originals}["_exit"]
        self._catch_signals()
        try:
            with self._watch.watching(self.torch, self._leave_alone):
                yield
        finally:
            for owner, name, function in originals:
                setattr(owner, name, function)

    def _counting(self, profile_hook_step: Callable[..., Any]) -> Callable[..., Any]:
        """Steps end after the annotation of optimizer.step(), not inside it."""

        def counting(func: Any) -> Any:
            inner = profile_hook_step(func)

            def step(*args: Any, **kwargs: Any) -> Any:
                result = inner(*args, **kwargs)
                if args:
                    self.step(args[0])
                return result

            for name in ("__module__", "__name__", "__qualname__", "__doc__", "__wrapped__"):
                setattr(step, name, getattr(inner, name, None))
            return step

        return counting

    def _leave_alone(self) -> None:
        """The program starts a profiler of its own: this one stops."""
        if self.left_alone or self.finished or os.getpid() != self.pid:
            return
        self.left_alone = True
        if threading.current_thread() is threading.main_thread():
            self.stop()
            self.note(
                "the program profiles itself: it is left alone from here on, and its own profile is not touched"
            )

    def _exit(self, status: int) -> Any:
        """os._exit: ends the process at once, without what the interpreter does at its end."""
        if os.getpid() == self.pid and not self.finished:
            self.outcome.exit_code = status
            if threading.current_thread() is threading.main_thread():
                self.finish()
            else:
                self.note("the program ended by os._exit on another thread: its last recording is lost")
            flush_streams()
        return self._real_exit(status)

    # ------------------------------------------------------------------------------------------------ signals

    def _catch_signals(self) -> None:
        self.signals.catch()
        if self.window.signal and threading.current_thread() is threading.main_thread():
            signal.signal(signal_number(self.window.signal), self._toggle)

    def _toggle(self, number: int, frame: FrameType | None) -> None:
        """Start recording, or end it."""
        if os.getpid() != self.pid or self.finished:
            return
        if self.prof is None:
            self.start()
        else:
            self.stop()

    def _stop_later(self, seconds: float) -> None:
        """Stop after a time. A thread cannot do it: it sends the main thread a signal that programs do not use."""
        number = getattr(signal, "SIGRTMIN", None)
        if number is None:
            raise ProgramError(
                "--seconds needs real-time signals, which this system does not have; use --steps"
            )
        number += 3
        signal.signal(number, lambda *_: self.stop() if os.getpid() == self.pid else None)
        main = threading.main_thread().ident
        self._timer = threading.Timer(seconds, lambda: signal.pthread_kill(main or 0, number))
        self._timer.daemon = True
        self._timer.start()


def export_trace(prof: Any, path: str) -> None:
    """Write torch's trace of a finished profile; `.gz` compresses. Readers see no file, or the complete one."""
    final = os.path.realpath(path)
    temporary = f"{final}.{os.getpid()}.tmp.json"
    try:
        prof.export_chrome_trace(temporary)
        if path.endswith(".gz"):
            with open(temporary, "rb") as source, open_for_export(final) as out:
                shutil.copyfileobj(source, out, 1 << 20)
        else:
            os.replace(temporary, final)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
