"""Record how torch goes through the schedules of schedule_cases.py: `python record_profiler_schedules.py`, with real torch."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import torch
from schedule_cases import make_cases, outcome

FACTS = Path(__file__).with_name("profiler_schedules.json.gz")

if __name__ == "__main__":
    outcomes = [outcome(torch, case) for case in make_cases()]
    with gzip.GzipFile(FACTS, "wb", mtime=0) as file:
        file.write(json.dumps({"torch": torch.__version__, "outcomes": outcomes}).encode())
    print(f"{FACTS.name}: {len(outcomes)} loops")
