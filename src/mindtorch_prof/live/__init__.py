"""Beside running programs under real torch: acceleration of its profiler, handlers, and the runner of unmodified programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .acceleration import Acceleration

__all__ = ["accelerate"]


def accelerate() -> Acceleration:
    """Let the engine answer for real torch's profiler objects: as a context manager, or for good (`undo()` ends it).

    `events()`, `key_averages()`, `table()`, `total_average()` and `export_stacks()` give the same objects and texts as before, in a
    fraction of the time. Raises AccelerationError where torch is not imported, or is of a version that was not checked.
    """
    from .acceleration import switched_on

    return switched_on()
