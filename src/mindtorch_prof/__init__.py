"""The trace engine: opens traces of torch's profiler, live or from files, and answers questions about them.

Needs neither torch nor `mindtorch_v2`. `load` opens a trace, `fleet` compares the ranks of a job; `main` is the command line `mindtorch-prof`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .fleet import fleet
from .load import BrokenTraceError, NotATraceError, RefusedTraceError, TraceError, load
from .version import __version__

__all__ = [
    "BrokenTraceError",
    "NotATraceError",
    "RefusedTraceError",
    "TraceError",
    "__version__",
    "fleet",
    "load",
    "main",
]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `mindtorch-prof`; gives its exit code."""
    from .cli import main  # argparse and the commands: not needed by whoever calls the library

    return main(argv)
