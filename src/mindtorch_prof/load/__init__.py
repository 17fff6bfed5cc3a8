"""Opening traces: `load` for files, `from_torch` for live profiles of real torch. A `Loaded` out, which answers what a live profile
answers. Imports no tensor code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import BrokenTraceError, NotATraceError, RefusedTraceError, TraceError

if TYPE_CHECKING:
    from .byte_source import PathOrFile, Progress
    from .open_trace import Loaded

__all__ = ["BrokenTraceError", "NotATraceError", "RefusedTraceError", "TraceError", "from_torch", "load"]

# the classes of torch whose objects are profiles
_TORCH_PROFILES = frozenset({"torch.profiler.profiler._KinetoProfile", "torch.autograd.profiler.profile"})


def load(
    file: PathOrFile,
    *,
    strict: bool = False,
    progress: Progress | bool | None = None,
    python_functions: bool | None = None,
    max_bytes: int = 1 << 40,
    max_ratio: float = 500.0,
    max_event_bytes: int = 64 << 20,
    cache: bool | None = None,
) -> Loaded:
    """Open a trace of torch or this package, an Ascend capture, an nsys export or a Chrome trace: a file, its path, or that of its folder.

    - `strict`: raise BrokenTraceError where something would have to be repaired or left out; otherwise the trace's `health` says what was.
    - `progress`: True or False shows or hides a bar on the error stream, None shows it for large files at a terminal; or a
      function that is called with (bytes read, bytes in all or None).
    - `python_functions`: whether Python calls are rows of events() and key_averages(), as they are in the tables that torch 2.13
      prints; None: as in the tables of the profiler that wrote the file.
    - `max_bytes`, `max_ratio`, `max_event_bytes`: limits, beyond which RefusedTraceError is raised: of the unpacked content, of
      unpacked to packed bytes, and of one event.
    - `cache`: keep the columns of a JSON file of 1 MiB or more in a hidden file beside it, and open that the next time if the JSON has not
      changed; `Loaded.cache` says which was opened. None: as the environment variable MINDTORCH_CACHE says (1: yes), else not.

    A file that is no trace raises NotATraceError. All three errors are TraceErrors, and those ValueErrors.
    """
    from .byte_source import Limits
    from .open_trace import opened

    limits = Limits(max_bytes, max_ratio, max_event_bytes)
    return opened(file, strict, progress, python_functions, limits, cache)


def is_torch_profile(prof: object) -> bool:
    """Whether an object is a profile of real torch, or of a class derived from it."""
    kinds = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(prof).__mro__}
    return not kinds.isdisjoint(_TORCH_PROFILES)


def from_torch(prof: object) -> Loaded:
    """A finished profile of real torch as a recording of this package: tables, analyses, exports and reports, without a file between.

    prof: a `torch.profiler.profile` or `torch.autograd.profiler.profile` that was stopped; inside `on_trace_ready`, the profile
        that the handler is given. Only the last cycle of a schedule is in it, as torch keeps only that.
    Lists and tables equal torch's own. Where its events cannot be read (`trace_only`, or a torch whose private names have moved), the
    trace is saved to a temporary file and loaded; a warning says so.
    """
    from .live_torch import recording_of

    return recording_of(prof)
