"""What of a program is recorded: options of `run` in; for each step of the program, whether it is recorded, out.

Steps are counted from 0, as `ProfilerStep#N` counts them; a step ends with `step()` of the first optimizer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# what torch's profiler does in a step: the names of torch.profiler.ProfilerAction
NONE, WARMUP, RECORD, RECORD_AND_SAVE = "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"
_RANGE = re.compile(r"(\d+)(?:-(\d*))?$")


@dataclass(frozen=True)
class Window:
    """The steps that are recorded, or for how long."""

    first: int = 0
    last: int | None = None  # None: to the end of the program
    every: int = 0  # the window repeats after so many steps; 0: it does not
    repeat: int = 0  # how often; 0: to the end of the program
    warmup: int = 1  # steps before the first one in which the profiler runs and nothing is kept
    seconds: float = 0.0  # of recording, after which it ends; 0: no limit
    signal: str = (
        ""  # the signal that starts and stops recording, such as "USR2"; "": it starts with the program
    )

    @property
    def several(self) -> bool:
        """Whether there may be several recordings."""
        return bool(self.signal) or (self.every > 0 and self.repeat != 1)

    def action(self, step: int) -> str:
        """What the profiler does in a step."""
        if self.last is None:
            return RECORD if step >= self.first else WARMUP if step >= self.first - self.warmup else NONE
        cycle, place = 0, step
        if self.every and step > self.last:
            # the warm-up of a cycle belongs to the steps before its first one
            cycle, place = divmod(step - self.first + self.warmup, self.every)
            place += self.first - self.warmup
        if self.repeat and cycle >= self.repeat:
            return NONE
        if place < self.first - self.warmup or place > self.last:
            return NONE
        if place < self.first:
            return WARMUP
        return RECORD_AND_SAVE if place == self.last else RECORD


def step_range(text: str) -> tuple[int, int | None]:
    """The steps that a text names: `5-10` both included, `5-` to the end, `5` the first five. Raises ValueError."""
    match = _RANGE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no range of steps; expected 5-10, 5- or 5")
    first, last = int(match[1]), match[2]
    if last is None:
        if not first:
            raise ValueError(f"{text!r} is no number of steps; expected 1 or more")
        return 0, first - 1
    if not last:
        return first, None
    if int(last) < first:
        raise ValueError(f"{text!r} ends before it begins")
    return first, int(last)
