"""What is kept of a recording, as the user asked for it: the arguments of `profile` in, a keeper for its recorder out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .keeper import Keeper, warn_in_background
from .recorder import Recorder
from .ring_keeper import RingKeeper
from .spill_keeper import SpillKeeper


@dataclass(frozen=True)
class Keep:
    """What the user asked for."""

    spill_dir: str | None = None
    max_events: int | None = None
    max_memory: int | None = None  # bytes

    @staticmethod
    def checked(spill_dir: Any, max_events: Any, max_memory: Any) -> Keep:
        """From the arguments of `profile`. Raises TypeError, ValueError or OSError."""
        for name, value in (("max_events", max_events), ("max_memory", max_memory)):
            if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        if spill_dir is None:
            return Keep(None, max_events, max_memory)
        if max_events is not None or max_memory is not None:
            raise ValueError(
                "spill_dir keeps everything, max_events and max_memory only the newest; expected one or the other"
            )
        folder = os.path.abspath(os.fsdecode(spill_dir))
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{folder}: cannot be written to; expected a folder for spill_dir")
        return Keep(folder)

    def keeper(self, recorder: Recorder) -> Keeper | None:
        """Who keeps this recording; None: all of it stays in memory."""
        if self.spill_dir is not None:
            try:
                return SpillKeeper(recorder, self.spill_dir)
            except OSError as error:  # of a later cycle: a full disk does not end the program
                warn_in_background(
                    f"{self.spill_dir}: cannot be written to ({error.strerror or error}); this recording is kept in memory"
                )
                return None
        if self.max_events is not None or self.max_memory is not None:
            return RingKeeper(recorder, self.max_events, self.max_memory)
        return None
