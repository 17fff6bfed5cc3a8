"""Profilers that a program starts itself: torch's classes in; a call before each such start out. torch has one profiler at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Watch:
    """Says whether torch's profiler is started from here, or by the program."""

    def __init__(self) -> None:
        self._own_calls = 0

    @property
    def own_call(self) -> bool:
        return self._own_calls > 0

    @contextmanager
    def calling_torch(self) -> Iterator[None]:
        """What is started inside is not the program's."""
        self._own_calls += 1
        try:
            yield
        finally:
            self._own_calls -= 1

    @contextmanager
    def watching(self, torch: Any, before_start: Callable[[], None]) -> Iterator[None]:
        """Call `before_start` before the program starts a profiler."""
        profile = torch.autograd.profiler.profile
        prepare_trace = vars(profile)["_prepare_trace"]

        def _prepare_trace(prof: Any) -> None:
            if not self.own_call:
                before_start()
            prepare_trace(prof)

        profile._prepare_trace = _prepare_trace
        try:
            yield
        finally:
            profile._prepare_trace = prepare_trace
