"""Kills recording processes at random moments and counts what their spill folders still hold.

    python tests/kill_spilled.py [kills] [seed]

Each process notes when each of its ops ended in shared memory. After kill -9 every op that ended more
than a second before must be in the folder, each once and in order. Prints one line of figures; ends with 1
if anything is missing. Single kills are part of the tests (test_profiler_spill_keeper.py).
"""

from __future__ import annotations

import mmap
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.load.spill import spill_folders
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function

FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
MOST_OPS = 1 << 21  # a process that has made so many waits for its end
GUARANTEED_S = 1.0


def record(folder: str, flags: dict[str, bool], n_threads: int, ends: np.ndarray) -> None:
    """Record until the process is killed. ends: by thread, how many ops have ended, and when each did."""

    def work(thread: int) -> None:
        x, mine = torch.ones(4), ends[thread]
        for number in range(len(mine) - 1):
            if number % 10:
                x + 1
            else:
                with record_function("range"):
                    x + 1
            mine[number + 1] = time.perf_counter_ns()
            mine[0] = number + 1
        time.sleep(1000)

    config = _ExperimentalConfig(profile_all_threads=True)
    with profile(spill_dir=folder, experimental_config=config, **flags):
        for thread in range(1, n_threads):
            threading.Thread(target=work, args=(thread,), daemon=True).start()
        work(0)


def check(folder: str, ends: np.ndarray, killed_ns: int) -> tuple[int, int, float]:
    """Ops that must not be missing and are, ops in all, and the age of the oldest lost one in seconds."""
    counted = [int(mine[0]) for mine in ends]
    folders = spill_folders(folder)
    per_thread: list[int] = []
    if folders:
        try:
            trace = mindtorch_prof.load(folders[0]).as_recorded().trace
            is_add = np.array([name == "aten::add" for name in trace.names] or [False])[trace.name]
            per_thread = [
                int(np.count_nonzero(is_add[trace.thread == each])) for each in np.unique(trace.thread)
            ]
            for thread in np.unique(trace.thread):
                assert (np.diff(trace.start_ns[is_add & (trace.thread == thread)]) > 0).all(), (
                    "an op is there twice"
                )
        except mindtorch_prof.NotATraceError:  # killed before the first chunk was written
            per_thread = []
    # threads are not named in the folder: the largest counts belong together
    missing, oldest_s = 0, 0.0
    for count, mine, found in zip(*_matched(counted, ends, per_thread)):
        assert found <= count + 1, f"{found} ops of {count}"
        guaranteed = int(np.count_nonzero(mine[1 : count + 1] < killed_ns - GUARANTEED_S * 1e9))
        missing += max(guaranteed - found, 0)
        if found < count:
            oldest_s = max(oldest_s, (killed_ns - int(mine[1 + found])) / 1e9)
    return missing, sum(counted), oldest_s


def _matched(counted: list[int], ends: np.ndarray, found: list[int]) -> tuple[Any, Any, Any]:
    order = sorted(range(len(counted)), key=lambda thread: -counted[thread])
    found = sorted(found, reverse=True) + [0] * len(counted)
    return [counted[n] for n in order], [ends[n] for n in order], found[: len(counted)]


def main() -> int:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with profile(record_shapes=True):  # imports and compiles what children need
        torch.ones(4) + 1
    n_missing = n_ops = 0
    oldest_s = 0.0
    parent = tempfile.mkdtemp(prefix="kill_spilled_")
    for number in range(kills):
        folder = os.path.join(parent, str(number))
        flags = {name: rng.random() < 0.3 for name in FLAGS}
        n_threads = rng.choice((1, 1, 4))
        shared = mmap.mmap(-1, n_threads * (MOST_OPS // n_threads) * 8)
        ends = np.frombuffer(shared, np.int64).reshape(n_threads, -1)
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            record(folder, flags, n_threads, ends)
        time.sleep(rng.uniform(0.01, 3.0))
        os.kill(child, signal.SIGKILL)
        killed_ns = time.perf_counter_ns()
        os.waitpid(child, 0)
        missing, counted, lost_s = check(folder, ends, killed_ns)
        n_missing, n_ops, oldest_s = n_missing + missing, n_ops + counted, max(oldest_s, lost_s)
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(parent)
    figures = f"{kills} kills, {n_ops:,} ops: {n_missing} missing that were older than {GUARANTEED_S:g} s"
    print(f"{figures}; the oldest that was lost: {oldest_s:.2f} s")
    return 1 if n_missing else 0


if __name__ == "__main__":
    sys.exit(main())
