"""Overhead: a recording in; how much longer the program took because it was recorded out.

The recorder measures what an event costs it (`Settings.event_cost_ns`); files of other programs do not say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..trace import ANNOTATION, ENGINE, NODE, OP
from .recording import Recording, as_results

# by the clock recording adds between so many times the estimate: programs and figures are in benchmarks/README.md
_LEAST, _MOST = 0.65, 2.0


class Overhead(NamedTuple):
    """What recording added to the program."""

    per_event_ns: float  # on average
    n_events: int  # that were recorded; synthetic events and Python calls are none
    total_ns: float
    share: float  # of the time that the program would have taken without it

    def text(self) -> str:
        """For people: 3.1 % (2.0 to 6.2 %; 0.42 us x 71,200 events)."""
        least, most = (_rounded(self.share * 100 * factor) for factor in (_LEAST, _MOST))
        events = f"{self.per_event_ns / 1000:.2f} us x {self.n_events:,} events"
        return f"{_rounded(self.share * 100)} % ({least} to {most} %; {events})"

    def sentence(self) -> str:
        """For people: recording added about 3.1 % (2.0 to 6.2 %; 0.42 us x 71,200 events)."""
        return f"recording added about {self.text()}"


def _rounded(percent: float) -> str:
    return f"{percent:.1f}" if percent < 10 else f"{percent:.0f}"


def overhead(source: Recording) -> Overhead | None:
    """What recording added to the program; None: not known."""
    trace = as_results(source).trace
    cost = trace.settings.event_cost_ns
    if cost is None:
        return None
    n_events = int(np.count_nonzero(trace.is_recorded & np.isin(trace.kind, (OP, NODE, ENGINE, ANNOTATION))))
    total = cost * n_events
    recorded = trace.window_ns[1] - trace.window_ns[0]
    without = max(recorded - total, recorded / 20, 1)  # an estimate may be more than the whole
    return Overhead(cost, n_events, total, total / without)
