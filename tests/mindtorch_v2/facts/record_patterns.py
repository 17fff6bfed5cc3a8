"""Record what torch's patterns match in the programs of pattern_programs.py: run with real torch."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pattern_programs
import torch
import torch.utils.data
from torch.profiler import _pattern_matcher

FACTS = Path(__file__).with_name("patterns.json")

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    facts = {"torch": torch.__version__, **pattern_programs.observe(torch, _pattern_matcher)}
    FACTS.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{FACTS.name}: {len(facts['counts'])} programs, {len(facts['words'])} patterns")
