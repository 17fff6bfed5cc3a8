"""Time real torch's answers about a live recording beside the engine's: a number of events in, ratios out.

Runs with an interpreter that has torch, NumPy, orjson and rich (`--python`), one process per measurement, in
turns: processor time from the stopped profile to the table and to the list of events, and by how much the
peak of memory rises.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
MEASURE = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
import torch
from torch.profiler import ProfilerActivity, profile
from mindtorch_prof import accelerate, from_torch
import mindtorch_prof.load.live_torch, mindtorch_prof.live.acceleration

count, settings, side, question = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
torch.set_num_threads(1)
x = torch.randn(4, 4)
def recorded(calls):
    with profile(activities=[ProfilerActivity.CPU], **settings) as prof:
        for _ in range(calls):
            torch.add(x, x)
            torch.relu(x)
    return prof
warm = recorded(10)
per_call = len(warm.profiler.kineto_results.events()) / 10
prof = recorded(int(count / per_call) + 1)
if side == "engine":
    accelerate()
events = len(prof.profiler.kineto_results.events())
def answer():
    if side == "from_torch":
        live = from_torch(prof)
        return live.key_averages().table() if question == "table" else live.events()
    return prof.key_averages().table() if question == "table" else prof.events()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
kept = answer()
spent = time.process_time() - begin
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"events": events, "seconds": spent, "rise_mb": (after - before) / 1024}))
"""
SETTINGS: dict[str, dict[str, bool]] = {
    "default": {},
    "shapes, memory": {"record_shapes": True, "profile_memory": True},
    "shapes, memory, stacks": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}
SIDES = (
    ("torch", "table"),
    ("engine", "table"),
    ("from_torch", "table"),
    ("torch", "events"),
    ("engine", "events"),
)


def measured(
    python: str, count: int, settings: dict[str, bool], side: str, question: str
) -> dict[str, float]:
    done = subprocess.run(
        [python, "-c", MEASURE, str(count), json.dumps(settings), side, question],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many")
    options = parser.parse_args()
    titles = ("torch table", "engine", "from_torch", "torch events", "engine")
    print(
        "events     recorded                  " + "  ".join(f"{title:>14}" for title in titles) + "  memory"
    )
    for name in options.settings:
        for count in options.events:
            best: dict[tuple[str, str], dict[str, float]] = {}
            for _ in range(options.rounds):
                for side, question in SIDES:
                    result = measured(options.python, count, SETTINGS[name], side, question)
                    if (side, question) not in best or result["seconds"] < best[side, question]["seconds"]:
                        best[side, question] = result
            table, ours, live, events, listed = (best[each] for each in SIDES)
            cells = (
                f"{table['seconds']:.2f} s",
                _beside(table, ours),
                _beside(table, live),
                f"{events['seconds']:.2f} s",
                _beside(events, listed),
            )
            memory = f"{table['rise_mb']:,.0f} / {ours['rise_mb']:,.0f} MB"
            row = "  ".join(f"{cell:>14}" for cell in cells)
            print(f"{int(table['events']):<9,}  {name:<24}  {row}  {memory}", flush=True)


def _beside(theirs: dict[str, float], ours: dict[str, float]) -> str:
    return f"{ours['seconds']:.2f} s 1/{theirs['seconds'] / ours['seconds']:.1f}"


if __name__ == "__main__":
    main()
