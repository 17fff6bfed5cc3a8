"""Record torch's event trees, memory profiles and evaluations of tree_programs.py and tree_cases.py: run with real torch."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import torch
import tree_cases
import tree_programs
from torch.profiler import _memory_profiler, _utils

FACTS = Path(__file__).with_name("event_trees.json.gz")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    facts = {
        "torch": torch.__version__,
        **tree_programs.observe(torch, _memory_profiler),
        **tree_cases.observe(torch, _utils, _memory_profiler, torch.autograd.DeviceType),
    }
    with gzip.GzipFile(FACTS, "wb", mtime=0) as file:
        file.write(json.dumps(facts).encode())
    print(f"{FACTS.name}: {', '.join(f'{len(v)} {k}' for k, v in facts.items() if k != 'torch')}")
