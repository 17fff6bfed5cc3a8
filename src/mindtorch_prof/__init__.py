"""The trace engine: opens traces of torch's profiler, live or from files, and answers questions about them.

Needs neither torch nor `mindtorch_v2`. `load` opens a trace, `from_torch` takes a live profile of real torch, `recording` one of either library;
what they give has the analyses as methods: `summary()`, `doctor()`, `advise()`, `device()`, `diff(other)`, `check(baseline)`, `report(path)`,
`query(sql)`. `accelerate` lets torch's own profiler objects answer from the engine, `trace_handler` is a callback for them. `fleet` compares the
ranks of a job; `slice_trace` and `merge_traces` work on files. `main` is the command line `mindtorch-prof`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .fleet import fleet
from .live import accelerate, trace_handler
from .load import BrokenTraceError, NotATraceError, RefusedTraceError, TraceError, from_torch, load
from .version import __version__

if TYPE_CHECKING:
    from .analysis.query import QueryError
    from .analysis.recording import Recording
    from .load.open_trace import Loaded
    from .rewrite.merge import merge_traces
    from .rewrite.slice import Selection, slice_trace

__all__ = [
    "BrokenTraceError",
    "NotATraceError",
    "QueryError",
    "RefusedTraceError",
    "Selection",
    "TraceError",
    "__version__",
    "accelerate",
    "fleet",
    "from_torch",
    "load",
    "main",
    "merge_traces",
    "recording",
    "slice_trace",
    "trace_handler",
]

# imported when they are first used: whoever only opens a trace does not wait for them
_LATER = {
    "QueryError": "analysis.query",
    "Selection": "rewrite.slice",
    "merge_traces": "rewrite.merge",
    "slice_trace": "rewrite.slice",
}


def recording(profile: Recording) -> Loaded:
    """The same object as `load` returns, for a profile that was recorded in this process and has stopped: all analyses are its methods.

    A profile of real torch is read by `from_torch`.
    """
    from .analysis.recording import as_results
    from .load import is_torch_profile
    from .load.open_trace import Loaded

    if is_torch_profile(profile):
        return from_torch(profile)

    trace = as_results(profile).trace
    return Loaded(trace, python_functions=trace.settings.with_stack and len(trace.frames) > 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `mindtorch-prof`; gives its exit code."""
    from .cli import main  # argparse and the commands: not needed by whoever calls the library

    return main(argv)


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
