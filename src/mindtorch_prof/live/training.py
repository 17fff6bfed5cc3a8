"""A profile that callbacks of training frameworks drive: start, step and stop in; traces in a folder out."""

from __future__ import annotations

import sys
from typing import Any

from .handler import TraceHandler
from .window import Window


class TrainingProfile:
    """torch's profile over a training loop: it records some steps, once or again and again."""

    def __init__(
        self,
        folder: str,
        *,
        first_step: int = 10,
        steps: int = 3,
        every: int | None = None,
        report: bool = True,
        keep: int | None = 5,
        background: bool = True,
        **settings: Any,
    ) -> None:
        """first_step: the first step that is recorded, counted from 0; steps: how many; every: record again after so many steps.
        settings: of `torch.profiler.profile`: record_shapes, profile_memory, with_stack ...; report, keep, background: of `trace_handler`.
        """
        if first_step < 0 or steps < 1:
            raise ValueError(f"first_step={first_step}, steps={steps}: expected 0 or more, and 1 or more")
        if every is not None and every <= steps:
            raise ValueError(f"every={every}: expected more than the {steps} steps that are recorded")
        self.window = Window(
            first_step, first_step + steps - 1, every or 0, 0 if every else 1, min(first_step, 1)
        )
        self.handler = TraceHandler(folder, report, keep, background)
        self._settings = settings
        self._prof: Any = None

    def start(self) -> None:
        """Begin to count steps."""
        if self._prof is not None:
            return
        torch: Any = sys.modules.get("torch")
        if torch is None:
            raise RuntimeError("torch is not imported: a profile needs it")
        actions = torch.profiler.ProfilerAction
        self._prof = torch.profiler.profile(
            schedule=lambda step: getattr(actions, self.window.action(step)),
            on_trace_ready=self.handler,
            **self._settings,
        )
        self._prof.start()

    def step(self) -> None:
        """A step of the program has ended."""
        if self._prof is not None:
            self._prof.step()

    def stop(self) -> None:
        """The program's loop has ended; waits until all files are written."""
        prof, self._prof = self._prof, None
        if prof is not None:
            prof.stop()
            self.handler.wait()
