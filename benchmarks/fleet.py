"""Time `mindtorch_prof.fleet` on jobs of more and more ranks: generated files in; seconds and memory out.

    python benchmarks/fleet.py rank0.json.gz                       # 50, 100 and 200 ranks of 20,000 events
    python benchmarks/fleet.py rank0.json.gz --ranks 1000 --hta PYTHON       # an interpreter that has HTA

Each run is a process of its own. Processor time counts the workers'; the peak of memory is the largest of
them. With --hta, HolisticTraceAnalysis loads the first 8 ranks and computes its temporal breakdown of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from make_fleet import Fault, make_fleet, read_step

OURS = """
import json, resource, sys, time
import mindtorch_prof
begin = time.perf_counter()
report = mindtorch_prof.fleet(sys.argv[1], workers=int(sys.argv[2]), cache=sys.argv[3] or None)
wall = time.perf_counter() - begin
own, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({
    "wall": wall,
    "seconds": sum(u.ru_utime + u.ru_stime for u in (own, theirs)),
    "own_kb": own.ru_maxrss,
    "worker_kb": theirs.ru_maxrss,
    "straggler": report.verdict.straggler,
    "phase": report.verdict.phase,
    "sketch": len(report.sketch.to_bytes()),
}))
"""
HTA = """
import json, logging, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
files = {rank: path for rank, path in enumerate(sys.argv[1:])}
analysis = TraceAnalysis(trace_files=files, trace_dir="")
analysis.get_temporal_breakdown(visualize=False)
use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"seconds": sum(u.ru_utime + u.ru_stime for u in use), "own_kb": use[0].ru_maxrss}))
"""


def run(python: str, code: str, *words: str) -> dict[str, float]:
    """What a program prints last, as JSON."""
    done = subprocess.run([python, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def link_first(job: Path, folder: Path, ranks: int) -> None:
    """A folder with links to the files of the first ranks of a job."""
    folder.mkdir(exist_ok=True)
    for rank in range(ranks):
        link = folder / f"rank{rank}.json.gz"
        if not link.exists():
            link.symlink_to(job / link.name)


def main() -> None:
    """Print one line per job."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="a trace file of one rank with steps and collectives")
    parser.add_argument("--ranks", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--events", type=int, default=20_000, help="of each rank, about")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hta", metavar="PYTHON")
    options = parser.parse_args()
    steps = max(1, round(options.events / len(read_step(options.base).events)))
    with tempfile.TemporaryDirectory() as name:
        folder, job = Path(name), Path(name) / "job"
        most, fewest = max(options.ranks), min(options.ranks)
        fault = Fault("host", min(most // 3, fewest - 1), 3000.0, "forward")
        truth = make_fleet(options.base, job, ranks=most, steps=steps, faults=[fault], clock_us=5000.0)
        for ranks in options.ranks:
            # the first ranks of the one job: the same files, more and more of them
            chosen = folder / f"first-{ranks}"
            link_first(job, chosen, ranks)
            words = (str(chosen / "*.gz"), str(options.workers), str(folder / f"cache-{ranks}"))
            first, again = run(sys.executable, OURS, *words), run(sys.executable, OURS, *words)
            parts = [
                f"{ranks:,} ranks x {truth['events_per_rank']:,} events:",
                f"{first['seconds']:.1f} s of processor time,",
                f"{1e3 * first['seconds'] / ranks:.1f} ms per rank,",
                f"{first['wall']:.1f} s;",
                f"peak {first['worker_kb'] / 1024:.0f} MB per worker, {first['own_kb'] / 1024:.0f} MB here;",
                f"sketches {first['sketch'] / ranks / 1024:.1f} KB per rank;",
                f"again with cache: {again['seconds']:.1f} s;",
                f"found {first['straggler']} {first['phase']} (planted {fault.target} {fault.phase})",
            ]
            print(*parts, flush=True)
        if options.hta:
            subset = folder / "first-8"
            link_first(job, subset, 8)
            theirs = run(options.hta, HTA, *(str(subset / f"rank{rank}.json.gz") for rank in range(8)))
            ours = run(sys.executable, OURS, str(subset / "*.gz"), str(options.workers), "")
            print(
                f"8 ranks: HTA {theirs['seconds']:.1f} s, {theirs['own_kb'] / 1024:.0f} MB;"
                f" here {ours['seconds']:.1f} s, 1/{theirs['seconds'] / ours['seconds']:.1f};"
                f" {ours['worker_kb'] / 1024:.0f} MB per worker"
            )


if __name__ == "__main__":
    main()
