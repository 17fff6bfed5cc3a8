"""The end of `run`: a program's recording in; finished once, however the program ends, and only in the process that began it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .signals import EndingSignals, Interrupted, deferred, signal_name


@dataclass
class ProgramEnd:
    """How a program ended: its exit code, the number of the signal that ended it (0: none), and how many steps were counted."""

    exit_code: int = 0
    signal: int = 0
    steps: int = 0  # calls of optimizer.step() that were counted


_Outcome = TypeVar("_Outcome", bound=ProgramEnd)


class RunSession(ABC, Generic[_Outcome]):
    """The recordings of a program that runs. A subclass says how a recording is stopped."""

    def __init__(
        self,
        outcome: _Outcome,
        on_end: Callable[[_Outcome], None] | None,
        on_note: Callable[[str], None] | None,
    ) -> None:
        self.outcome, self.on_end, self.on_note = outcome, on_end, on_note
        self.pid = os.getpid()
        self.finished = False
        self.signals = EndingSignals(self._end_by_signal, lambda number: self.exit_at_once(128 + number))

    @abstractmethod
    def stop(self) -> None:
        """End the recording, if there is one."""

    def exit_at_once(self, code: int) -> None:
        """End the process without what the interpreter does at its end."""
        os._exit(code)

    def finish(self) -> None:
        """End everything, once; a forked process leaves the recording to its parent."""
        if self.finished or os.getpid() != self.pid:
            return
        self.finished = True
        received: list[int] = []
        try:
            with deferred(self._note_deferred) as received:
                try:
                    self.stop()
                finally:
                    if self.on_end is not None:
                        self.on_end(self.outcome)
        except Interrupted as error:
            self.note(f"the trace is not written: {error}")
        if received and not self.outcome.signal:
            self.outcome.exit_code, self.outcome.signal = 128 + received[0], received[0]

    def note(self, sentence: str) -> None:
        """Say something to whoever runs the program."""
        if self.on_note is not None:
            self.on_note(sentence)

    def _note_deferred(self, number: int) -> None:
        self.note(
            f"{signal_name(number)}: the process ends when the trace is written; a second signal ends it at once"
        )

    def _end_by_signal(self, number: int) -> None:
        """Finish before a signal ends the process, where the program does not handle the signal itself."""
        self.outcome.exit_code, self.outcome.signal = 128 + number, number
        self.finish()
