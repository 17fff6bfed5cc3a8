"""Steps of a program, counted for everybody who profiles it: a requester's name in, the current step out."""

from __future__ import annotations

import warnings
from collections import defaultdict


class KinetoStepTracker:
    """Counts steps; several requesters (a profiler, an optimizer) may report the same step, the furthest one counts."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let a requester begin at the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; whether there was one."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """A requester has made a step; gives the current one."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        furthest = max(cls._step_dict.values())
        if furthest > cls._current_step:
            if furthest - cls._current_step > 1:
                warnings.warn(
                    f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  {dict(cls._step_dict)}",
                    stacklevel=2,
                )
            cls._current_step = furthest
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The furthest step that anybody has reported."""
        return cls._current_step
