"""Run random programs for some minutes, then check the invariants and print one line of figures.

    scripts/soak [--minutes 1 | --runs N] [--seed N] [--program NAME ...]

A number of runs instead of a time gives the same programs on every machine, however fast it is.
The programs are those of tests/soak/programs.py. After them nothing may be left: no recording, thread,
file descriptor, process or temporary file, and no memory that grows. Ends with 1 if something is, or if a
program saw something else than the truth; the seed and the number of the run repeat it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "helpers"), str(Path(__file__).parents[1])]

import fuzz_commands
from damaged_traces import KINDS
from process_bounds import raise_on_time_limit
from programs import PROGRAMS

from mindtorch_v2 import _recording_hooks

GROWTH = 16 << 20  # bytes by which the process may grow after the first third of the programs
WARM_RUNS = 1  # of each program: imports, caches and pools of threads are not growth


def resident() -> int:
    """Bytes of this process in memory, without what the allocator holds for later: the library raises the
    limit up to which freed memory is kept, so that it differs by 100 MB from run to run."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def one_run(name: str, seed: str) -> tuple[int, str]:
    """Run a program in a folder of its own: how many recordings it made, and what was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="soak_"))
    try:
        made = PROGRAMS[name](random.Random(seed), folder)
        left = [*folder.rglob("*.tmp")]
        hooks = _recording_hooks.active_hooks()
    except Exception:
        return 0, traceback.format_exc()
    else:
        problems = [f"temporary files: {left}"] if left else []
        problems += [f"still on: {hooks}"] if hooks else []
        return made, "; ".join(problems)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def import_commands() -> None:
    """Run every command once: what they import on first use is not growth."""
    with tempfile.TemporaryDirectory(prefix="soak_") as folder:
        path = KINDS["generated"](random.Random(0), fuzz_commands.TRACES, Path(folder))
        for words in fuzz_commands.COMMANDS.values():
            fuzz_commands.outcome([word.replace("{}", str(path)) for word in words], folder)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--runs", type=int, help="so many programs, however long they take")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--program", nargs="*", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    raise_on_time_limit()
    if "broken_files" in options.program:
        import_commands()
    random_ = random.Random(options.seed)
    problems: list[str] = []
    runs: Counter[str] = Counter()
    made_in_all = 0
    start = time.monotonic()
    first = last = resident()
    files = descriptors()
    alive = threading.active_count()
    after_baseline = (
        0  # programs; at least one per kind, so that a short soak on a slow machine checks growth too
    )

    def share_done() -> float:
        if options.runs is not None:
            return runs.total() / options.runs
        return (time.monotonic() - start) / (60 * options.minutes)

    while (share := share_done()) < 1 or after_baseline < len(options.program):
        warm = all(runs[name] >= WARM_RUNS for name in options.program)
        if not warm or share < 1 / 3:
            first, files, alive = resident(), descriptors(), threading.active_count()
            after_baseline = 0
        after_baseline += 1
        name = random_.choice(options.program) if warm else min(options.program, key=lambda each: runs[each])
        made, problem = one_run(name, f"{options.seed} {runs.total()}")
        if problem:
            problems.append(f"{name}, run {runs.total()} of seed {options.seed}: {problem}")
            print(problems[-1], flush=True)
        runs[name] += 1
        made_in_all += made
    last = resident()
    if last - first > GROWTH:
        problems.append(f"memory grew by {(last - first) >> 20} MB")
    if descriptors() > files:
        problems.append(f"{descriptors() - files} file descriptors are left")
    if threading.active_count() > alive:
        problems.append(f"threads are left: {threading.enumerate()}")
    if children():
        problems.append(f"processes are left: {children()}")
    listed = ", ".join(f"{count:,} {name}" for name, count in sorted(runs.items()))
    print(
        f"soak: seed {options.seed}, {time.monotonic() - start:.0f} s, {runs.total():,} programs ({listed}), "
        f"{after_baseline:,} of them after the baseline, "
        f"{made_in_all:,} recordings, memory {first >> 20} -> {last >> 20} MB, {descriptors()} descriptors, "
        f"{len(problems)} problems"
    )
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
