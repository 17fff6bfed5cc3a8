"""Time the critical path of a large trace, and a comparison by tree, beside loading: a file in, ratios out.

Processor time without imports, by turns in one process. Ratios above 1 take longer than loading the file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from loader import write

from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.analysis.diff_tree import diff_tree
from mindtorch_prof.load import load


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The least processor time of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--file", help="a trace; by default one is generated")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or str(Path(folder) / "trace.json")
        if not options.file:
            write(path, options.events)
        loading = seconds(lambda: load(path), options.rounds)
        trace = load(path)
        print(
            f"load: {loading:.2f} s, {len(trace.trace):,} host events, {len(trace.trace.device):,} of devices"
        )
        for name, call in (
            ("critical path of one step", lambda: critical_path(load(path))),
            ("the same without what-ifs", lambda: critical_path(load(path), what_if=0)),
            ("diff by tree with itself", lambda: diff_tree(load(path), trace)),
        ):
            spent = seconds(call, options.rounds) - loading
            print(f"{name}: {spent:.2f} s, {spent / loading:.2f} x loading")


if __name__ == "__main__":
    main()
