"""Tracebacks: captured cheaply, formatted on demand; shortened file names."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._C._profiler import CapturedTraceback as _Captured
from .._C._profiler import gather_traceback, symbolize_tracebacks

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
    "shorten_filename",
]


@contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Context manager for errors in generated source; nothing is compiled here, so it has no effect."""
    yield


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A file's name relative to `base`, or to this package."""
    base = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) if base is None else base
    try:
        return fn[len(os.path.commonpath([fn, base])) + 1 :]
    except ValueError:
        return fn


def format_frame(frame: traceback.FrameSummary, *, base: str | None = None, line: bool = False) -> str:
    """A frame in one line."""
    source = f"{frame.line}  # " if line else ""
    return f"{source}{shorten_filename(frame.filename, base=base)}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """The innermost frame of a traceback in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """A stack trace; formatted only on demand."""

    __slots__ = ("tb", "skip")

    def __init__(self, tb: _Captured | None, skip: int = 0) -> None:
        self.tb = tb
        self.skip = skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The current stack, without the `skip` innermost frames."""
        if (script or cpp) and skip:
            raise AssertionError("skip with script/cpp NYI")
        return CapturedTraceback(
            gather_traceback(python=True, script=script, cpp=cpp), 0 if script or cpp else skip + 1
        )

    def cleanup(self) -> None:
        """Release the captured frames."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The frames, outermost first."""
        if self.tb is None:
            return traceback.StackSummary()
        return _summary(symbolize_tracebacks([self.tb])[0], self.skip)

    def format(self) -> list[str]:
        """The frames as Python prints them."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: list[CapturedTraceback]) -> list[list[str]]:
        """Format several tracebacks."""
        return [tb.format() for tb in tbs]

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return (None, {"tb": None, "skip": self.skip})


def _summary(frames: list[dict[str, Any]], skip: int) -> traceback.StackSummary:
    made = traceback.StackSummary()
    for frame in reversed(frames[skip:]):
        made.append(traceback.FrameSummary(frame["filename"], frame["line"], frame["name"]))
    return made


def _extract_symbolized_tb(tb: list[dict[str, Any]], skip: int) -> traceback.StackSummary:
    """Frames of `symbolize_tracebacks` as Python's own summary."""
    return _summary(tb, skip)
