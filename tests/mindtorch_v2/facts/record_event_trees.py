"""Record torch's event trees, memory profiles and evaluations of tree_programs.py and tree_cases.py: run with real torch."""

from __future__ import annotations

import gzip
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import tree_cases
import tree_programs
from torch.profiler import _memory_profiler, _utils

FACTS = Path(__file__).with_name("event_trees.json.gz")


def usual(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What most of several runs show of each program: torch does not see the end of memory from before the recording, and may take
    what gets its address next for the same. Of wide programs, in which that happens more often, what all runs show."""
    made: dict[str, Any] = {}
    for part, programs in runs[0].items():
        made[part] = {}
        for name in programs:
            texts = Counter(json.dumps(run[part][name]) for run in runs)
            if part == "wide" and len(texts) > 1:
                continue
            made[part][name] = json.loads(texts.most_common(1)[0][0])
    return made


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    facts = {
        "torch": torch.__version__,
        **usual([tree_programs.observe(torch, _memory_profiler) for _ in range(5)]),
        **tree_cases.observe(torch, _utils, _memory_profiler, torch.autograd.DeviceType),
    }
    with gzip.GzipFile(FACTS, "wb", mtime=0) as file:
        file.write(json.dumps(facts).encode())
    print(f"{FACTS.name}: {', '.join(f'{len(v)} {k}' for k, v in facts.items() if k != 'torch')}")
