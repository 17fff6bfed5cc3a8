"""Time the analyses of a large device trace beside loading: a file in, ratios out.

Processor time without imports, by turns in one process. Ratios above 1 take longer than loading the file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from loader import write

from mindtorch_prof.analysis.advice import advise, review
from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.analysis.device_answer import device_rows
from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.diff_tree import diff_tree
from mindtorch_prof.analysis.idle_causes import idle_causes
from mindtorch_prof.analysis.roofline import roofline
from mindtorch_prof.load import load
from mindtorch_prof.load.open_trace import Loaded

ANALYSES: dict[str, Callable[[Loaded], object]] = {
    "device, breakdown alone": lambda loaded: device_breakdown(loaded.trace),
    "device, all of it": lambda loaded: device_rows(loaded.trace),
    "idle causes": lambda loaded: [idle.sources for idle in idle_causes(loaded)],
    "critical path": lambda loaded: critical_path(loaded).ops,
    "roofline": roofline,
    "diff by tree with itself": lambda loaded: diff_tree(loaded, loaded),
    "advise": advise,
    "advise with its notes": review,
}


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--file", help="a trace; by default one is generated")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=0, help="marks of steps in the generated trace")
    parser.add_argument(
        "--host-bound", action="store_true", help="generate a device that waits for its launches"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="analyses whose name contains this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or str(Path(folder) / "trace.json")
        if not options.file:
            write(path, options.events, options.steps, options.host_bound)
        chosen = {name: call for name, call in ANALYSES.items() if options.only in name}
        loading = float("inf")
        best = dict.fromkeys(chosen, float("inf"))
        for _ in range(options.rounds):
            for name, call in chosen.items():
                loading = min(loading, seconds(lambda: load(path)))
                loaded = load(path)  # each analysis of its own: none finds the results of another
                best[name] = min(best[name], seconds(lambda: call(loaded)))  # noqa: B023
        trace = loaded.trace
        print(
            f"load: {loading:.2f} s, {len(trace):,} host events, {len(trace.frames):,} Python calls, "
            f"{len(trace.device):,} of devices"
        )
        for name, spent in best.items():
            print(f"{name}: {spent:.2f} s, {spent / loading:.2f} x loading")


if __name__ == "__main__":
    main()
