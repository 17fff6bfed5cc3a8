"""Runs a program under the profiler: a program and its arguments in, its exit code out.

The program runs as under `python`, except that `import torch` imports this package. The recording is finished when the program ends: at
its last line or by an exception, sys.exit, SIGINT, SIGTERM or SIGHUP, but not by os._exit or SIGKILL, unless it is spilled.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mindtorch_prof.live.program import (
    Program,
    ProgramError,
    ending,
    hide_frames_of,
    join_threads,
    prepared,
    reported,
)
from mindtorch_prof.live.signals import EndingSignals, Interrupted, deferred, signal_name

__all__ = ["Outcome", "Program", "ProgramError", "run"]

hide_frames_of(__file__)


@dataclass
class Outcome:
    """How a program ended: its exit code, the number of the signal that ended it (0: none), and the recordings, one per cycle."""

    exit_code: int = 0
    signal: int = 0
    error: str = ""  # the exception that ended it
    steps: int = 0  # calls of optimizer.step() that were counted
    recordings: list[Any] = field(default_factory=list)


def run(
    program: Program,
    *,
    schedule: tuple[int, ...] | None = None,
    on_ready: Callable[[Any, int], None] | None = None,
    on_end: Callable[[Outcome], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    all_threads: bool = False,
    **settings: Any,
) -> int:
    """Run a program under the profiler; its exit code, 128 + n if signal n ended it.

    schedule: (wait, warmup, active[, repeat]) in steps; each `step()` of the first optimizer that makes one ends a step.
    on_ready: called with the profile and the number of the cycle (from 1) when a recording is finished.
    on_end: called once, however the program ends.
    on_note: called with a sentence where something goes on that takes time, or is missing.
    settings: as for `profile`: record_shapes, profile_memory, with_stack, with_flops, with_modules, spill_dir, max_events, max_memory.
    """
    if not program.module and not os.path.exists(program.target):
        raise ProgramError(f"{program.target}: no such file; expected a Python program")
    from mindtorch_v2 import as_torch
    from mindtorch_v2.profiler import _ExperimentalConfig, profile
    from mindtorch_v2.profiler import schedule as steps_schedule

    as_torch()
    code, namespace = prepared(program)
    # processes spawned by multiprocessing inherit sys.path, but not the import finder that as_torch() installs
    sys.path.insert(1, os.path.join(os.path.dirname(__file__), "_spawned"))
    outcome = Outcome()

    def ready(prof: Any) -> None:
        outcome.recordings.append(prof.profiler._results)
        if on_ready is not None:
            on_ready(prof, len(outcome.recordings))
        prof.profiler = None  # already collected: otherwise the next cycle warns that events are cleared

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a schedule without warm-up, which the user asked for
        plan = None if schedule is None else steps_schedule(**dict(zip(_SCHEDULE, schedule)))
    prof = profile(
        schedule=plan,
        on_trace_ready=ready,
        experimental_config=_ExperimentalConfig(profile_all_threads=True) if all_threads else None,
        **settings,
    )
    session = _Session(prof, outcome, on_end, on_note)
    if schedule is not None:
        _count_steps(session)
    session.signals.catch()
    session.start()
    try:
        exec(code, namespace)  # noqa: S102
        join_threads()
    except BaseException as error:
        # report the program's error before the recording is finished, which prints too
        outcome.exit_code, outcome.signal = reported(error)
        outcome.error = ending(error)
    finally:
        session.finish()
    return outcome.exit_code


_SCHEDULE = ("wait", "warmup", "active", "repeat")


class _Session:
    """The profile around a program. It is finished once, and only in the process that started it."""

    def __init__(
        self,
        prof: Any,
        outcome: Outcome,
        on_end: Callable[[Outcome], None] | None,
        on_note: Callable[[str], None] | None,
    ) -> None:
        self.prof, self.outcome, self.on_end, self.on_note = prof, outcome, on_end, on_note
        self.signals = EndingSignals(self.end_by_signal, lambda number: os._exit(128 + number))
        self.pid = os.getpid()
        self.open = False

    def start(self) -> None:
        self.prof.start()
        self.open = True

    def step(self) -> None:
        if self.open and os.getpid() == self.pid:
            self.outcome.steps += 1
            self.prof.step()

    def finish(self) -> None:
        if not self.open or os.getpid() != self.pid:  # a forked child leaves the recording to its parent
            return
        self.open = False
        if self.outcome.signal:
            self.prof.ended_by = f"signal {signal_name(self.outcome.signal)}"
        elif self.outcome.error:
            self.prof.ended_by = self.outcome.error
        try:
            with deferred(self._note_deferred) as received:
                self.prof.stop()
                if self.on_end is not None:
                    self.on_end(self.outcome)
        except Interrupted as error:
            self._note(f"the trace is not written: {error}")
        if received and not self.outcome.signal:
            self.outcome.exit_code, self.outcome.signal = 128 + received[0], received[0]

    def _note_deferred(self, number: int) -> None:
        self._note(
            f"{signal_name(number)}: the process ends when the trace is written; a second signal ends it at once"
        )

    def _note(self, sentence: str) -> None:
        if self.on_note is not None:
            self.on_note(sentence)

    def end_by_signal(self, number: int) -> None:
        """Finish the recording before a signal ends the process, where the program does not handle the signal itself."""
        self.outcome.exit_code, self.outcome.signal = 128 + number, number
        self.finish()


def _count_steps(session: _Session) -> None:
    """End a step of the profile after each step of the program's first optimizer, outside the annotation of that step."""
    from mindtorch_v2.optim import Optimizer

    profile_hook_step = Optimizer.profile_hook_step
    first_optimizer: list[Any] = []  # at most one weak reference

    def counting(func: Any) -> Any:
        inner = profile_hook_step(func)

        def step(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            if not first_optimizer or first_optimizer[0]() is None:
                first_optimizer[:] = [weakref.ref(args[0])]
            if first_optimizer[0]() is args[0]:
                session.step()
            return result

        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__wrapped__"):
            setattr(step, name, getattr(inner, name, None))
        return step

    Optimizer.profile_hook_step = staticmethod(counting)  # type: ignore[method-assign]
