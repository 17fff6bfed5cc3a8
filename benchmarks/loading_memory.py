"""Measure what opening a trace takes beside what is kept of it: traces of many shapes in, ratios out.

Each file is opened in a process of its own. The peak is the growth of resident memory while the file is
opened; what is kept is the sum of all arrays and objects that the Trace holds. Of some files a Trace keeps
next to nothing, such as names of processes that have no events: a ratio of the two says nothing then, and
only the ratio of the peak to the size of the file (unpacked) is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

from loader import content_size
from trace_shapes import LITTLE_KEPT, SHAPES, write

MEASURE = """
import json, re, sys, time
import numpy as np
import mindtorch_prof.load.open_trace
from mindtorch_prof import load

def status(field):
    return int(re.search(field + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

def kept(root):
    seen, todo, total = set(), [root], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            if one.base is None:
                total += one.nbytes
            else:
                todo.append(one.base)
            continue
        total += sys.getsizeof(one)
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, (tuple, list, set, frozenset)):
            todo += one
        elif not isinstance(one, (str, bytes, int, float, bool, type(None))):
            slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
            todo += [getattr(one, name) for name in slots if hasattr(one, name)]
            todo += [getattr(one, "__dict__", None)]
    return total

load(sys.argv[1])
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
begin = time.process_time()
trace = load(sys.argv[2]).trace
seconds = time.process_time() - begin
peak = status("VmHWM") - before
tables = (trace, trace.frames, trace.device, trace.memory, trace.counters)
rows = sum(map(len, tables))
print(json.dumps({"rows": rows, "peak": peak, "kept": kept(trace), "seconds": seconds}))
"""


def measured(path: str, small: str, core: str) -> dict[str, float]:
    """What opening a file took in a process of its own."""
    environment = {**os.environ, "MINDTORCH_CORE": core}
    command = [sys.executable, "-c", MEASURE, small, path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


def main() -> None:
    """Print a line for each shape and core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="how many events a file has (1,000,000)"
    )
    parser.add_argument("--only", default="", help="shapes whose names hold this text")
    parser.add_argument("--core", action="append", choices=["c", "python"], help="the reader (both)")
    parser.add_argument("--packed", action="store_true", help="files packed by gzip")
    options = parser.parse_args()
    titles = f"{'rows':>9} {'seconds':>7} {'peak':>8} {'kept':>8} {'/ kept':>6} {'/ file':>6}"
    print(f"{'':35} {'core':6} {titles}")
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.json")
        write(small, SHAPES["ordinary training job"](100))
        path = os.path.join(folder, "t.json.gz" if options.packed else "t.json")
        for name, events in SHAPES.items():
            if options.only not in name:
                continue
            write(path, events(options.events))
            size = content_size(path)
            for core in options.core or ["c", "python"]:
                one = measured(path, small, core)
                mb = f"{one['peak'] / 1e6:5.0f} MB {one['kept'] / 1e6:5.0f} MB"
                ratio = "-" if name in LITTLE_KEPT else f"{one['peak'] / one['kept']:.2f}"
                numbers = f"{one['rows']:9,} {one['seconds']:7.1f} {mb} {ratio:>6} {one['peak'] / size:6.2f}"
                print(f"{name:35} {core:6} {numbers}", flush=True)


if __name__ == "__main__":
    main()
