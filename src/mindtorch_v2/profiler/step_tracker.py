"""Counts the steps of a program for all profilers: the name of a requester in, the current step out."""

from __future__ import annotations

import warnings
from collections import defaultdict


class KinetoStepTracker:
    """Counts steps. Several requesters (a profiler, an optimizer) may report the same step; the highest count is the current step."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Set the count of a requester to the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Remove a requester; False if there was none."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester; returns the current step."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        highest = max(cls._step_dict.values())
        if highest > cls._current_step:
            if highest - cls._current_step > 1:
                warnings.warn(
                    f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  {dict(cls._step_dict)}",
                    stacklevel=2,
                )
            cls._current_step = highest
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The highest step that a requester has reported."""
        return cls._current_step
