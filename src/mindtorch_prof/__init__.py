"""The trace engine: opens traces of torch's profiler, live or from files, and answers questions about them.

Needs neither torch nor `mindtorch_v2`. `load` opens a trace, `from_torch` takes a live profile of real torch; `main` is the command line `mindtorch-prof`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .live import accelerate, trace_handler
from .load import BrokenTraceError, NotATraceError, RefusedTraceError, TraceError, from_torch, load
from .version import __version__

__all__ = [
    "BrokenTraceError",
    "NotATraceError",
    "RefusedTraceError",
    "TraceError",
    "__version__",
    "accelerate",
    "from_torch",
    "load",
    "main",
    "trace_handler",
]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `mindtorch-prof`; gives its exit code."""
    from .cli import main  # argparse and the commands: not needed by whoever calls the library

    return main(argv)
