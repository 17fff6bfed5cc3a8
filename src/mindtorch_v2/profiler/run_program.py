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
from mindtorch_prof.live.run_session import ProgramEnd, RunSession
from mindtorch_prof.live.signals import signal_name

__all__ = ["Outcome", "Program", "ProgramError", "run"]

hide_frames_of(__file__)


@dataclass
class Outcome(ProgramEnd):
    """How a program ended, and the recordings, one per cycle."""

    error: str = ""  # the exception that ended it
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


class _Session(RunSession[Outcome]):
    """The profile around a program."""

    def __init__(
        self,
        prof: Any,
        outcome: Outcome,
        on_end: Callable[[Outcome], None] | None,
        on_note: Callable[[str], None] | None,
    ) -> None:
        super().__init__(outcome, on_end, on_note)
        self.prof = prof
        self.started = False

    def start(self) -> None:
        self.prof.start()
        self.started = True

    def step(self) -> None:
        if self.started and not self.finished and os.getpid() == self.pid:
            self.outcome.steps += 1
            self.prof.step()

    def stop(self) -> None:
        if not self.started:
            return
        if self.outcome.signal:
            self.prof.ended_by = f"signal {signal_name(self.outcome.signal)}"
        elif self.outcome.error:
            self.prof.ended_by = self.outcome.error
        self.prof.stop()


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
