"""From the clock of events to the time of day: a clock in, what to add to its times out."""

from __future__ import annotations

import time
from collections.abc import Callable

_LOOKS = 4


def unix_origin_ns(clock: Callable[[], int] = time.perf_counter_ns) -> int:
    """What to add to a time of this clock, in nanoseconds, for nanoseconds since the epoch.

    Between looks at two clocks another program may have the processor, for as long as it likes: of several pairs, the one that was
    looked at in the shortest time counts.
    """
    looks = []
    for _ in range(_LOOKS):
        before_ns = clock()
        unix_ns = time.time_ns()
        after_ns = clock()
        looks.append((after_ns - before_ns, unix_ns - (before_ns + after_ns) // 2))
    return min(looks)[1]


__all__ = ["unix_origin_ns"]
