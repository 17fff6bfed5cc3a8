"""What tracing calls costs at least in plain Python: nanoseconds of processor time, best of many runs.

    MINDTORCH_CORE=python python benchmarks/profile_function.py
    python-with-torch benchmarks/profile_function.py --package torch

First a call of an empty function, without and with a function set by `sys.setprofile`: one that does
nothing, and one that logs a number and the time. Then a call in a recording with stacks, and `x + x` in
recordings; with the plain core also with stacks and a profile function that does nothing: no way to log calls
can cost less.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

clock = time.process_time_ns
log: list[int] = []


def do_nothing(frame: Any, event: str, argument: Any) -> None:
    """A profile function."""


def log_event(frame: Any, event: str, argument: Any) -> None:
    """A profile function."""
    log.extend((1, time.perf_counter_ns()))


def empty() -> None:
    """What is called."""


def calls(count: int) -> None:
    """Call it."""
    for _ in itertools.repeat(None, count):
        empty()


def cost(loop: Callable[[int], None], count: int = 2000, runs: int = 8) -> float:
    """The least time of a turn of a loop."""
    least = float("inf")
    for _ in range(runs):
        start = clock()
        loop(count)
        least = min(least, (clock() - start) / count)
    return least


def cost_of_call(profile_function: Any) -> float:
    """A call under a profile function."""
    least = float("inf")
    for _ in range(20):
        log.clear()
        sys.setprofile(profile_function)
        try:
            least = min(least, cost(calls))
        finally:
            sys.setprofile(None)
    return least


def additions(package: str) -> Callable[[int], None]:
    """A loop of `x + x`."""
    x = importlib.import_module(package).ones((4, 4))

    def add(count: int) -> None:
        for _ in itertools.repeat(None, count):
            x + x

    return add


def added_by_recording(package: str, loop: Callable[[int], None], **options: Any) -> float:
    """What a recording adds to a turn of a loop."""
    profiler = importlib.import_module(package + ".profiler")
    plain = recorded = float("inf")
    for _ in range(12):
        gc.collect()
        plain = min(plain, cost(loop))
        recording = profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options)
        recording.start()
        recorded = min(recorded, cost(loop))
        recording.stop()
    return recorded - plain


def main() -> None:
    """Print a line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", default="mindtorch_v2")
    package = parser.parse_args().package
    plain = cost_of_call(None)
    rows = {"a call adds, under a profile function that does nothing": cost_of_call(do_nothing) - plain}
    rows["a call adds, under one that logs a number and the time"] = cost_of_call(log_event) - plain
    add = additions(package)
    rows["a traced call adds, with_stack"] = added_by_recording(package, calls, with_stack=True)
    rows["x + x, default"] = added_by_recording(package, add)
    rows["x + x, with_stack"] = added_by_recording(package, add, with_stack=True)
    if package == "mindtorch_v2":
        core = importlib.import_module("mindtorch_v2.profiler.record.core").core
        if core.NAME == "python":
            core.Core._hook = lambda *_: do_nothing
            rows["x + x, with_stack, nothing logged"] = added_by_recording(package, add, with_stack=True)
    for name, ns in rows.items():
        print(f"{name:56}{ns:8.0f} ns")


if __name__ == "__main__":
    main()
