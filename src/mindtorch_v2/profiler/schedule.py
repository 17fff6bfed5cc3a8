"""Schedules: the number of a step in, what the profiler does in that step out."""

from __future__ import annotations

from enum import Enum
from typing import Any


class ProfilerAction(Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class _Schedule:
    """A schedule: called with the number of a step; `explain` prints its actions."""

    def __init__(
        self, wait: int, warmup: int, active: int, repeat: int, skip_first: int, skip_first_wait: int
    ) -> None:
        self.wait, self.warmup, self.active, self.repeat = wait, warmup, active, repeat
        self.skip_first, self.skip_first_wait = skip_first, skip_first_wait

    def __call__(self, step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < self.skip_first:
            return ProfilerAction.NONE
        step -= self.skip_first
        if self.skip_first_wait != 0:
            step += self.wait
        length = self.wait + self.warmup + self.active
        if self.repeat > 0 and step / length >= self.repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    def explain(self, n_steps: int) -> None:
        """Print the actions of the first steps, one line per run of steps with the same action."""
        lines, first = [], 0
        for step in range(1, n_steps + 1):
            if step == n_steps or self(step) is not self(first):
                span = f"step {first}" if step - first == 1 else f"steps {first}-{step - 1}"
                lines.append(f"{span}: {self(first).name}")
                first = step
        print("\n".join(lines))  # noqa: T201  (printing is its purpose)


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Record every step."""
    return ProfilerAction.RECORD


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Any:
    """A schedule: skip the first steps, then cycles of waiting, warming up and recording, `repeat` times (0: for ever)."""
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
            f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        import warnings

        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    return _Schedule(wait, warmup, active, repeat, skip_first, skip_first_wait)
