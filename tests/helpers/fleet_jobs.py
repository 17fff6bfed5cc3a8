"""Jobs of many ranks for tests: a real rank and faults in, a folder of trace files out.

`gloo_rank.json.gz` was recorded with torch 2.13 (DDP on gloo, four ranks, two steps). `nccl_rank.json.gz` is
rank 7 of a DLRM job on eight V100 (facebookresearch/param, MIT). `benchmarks/make_fleet.py` multiplies it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from fact_files import FACTS

GLOO, NCCL = FACTS / "gloo_rank.json.gz", FACTS / "nccl_rank.json.gz"


def _generator() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "make_fleet.py"
    spec = importlib.util.spec_from_file_location("make_fleet", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_fleet"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make_fleet = _generator()


def make_job(folder: Path, base: Path, ranks: int, steps: int, *faults: str, **more: Any) -> dict[str, Any]:
    """Write a job into a folder; gives the truth about it. faults: worded as on make_fleet's command line."""
    parsed = [make_fleet.Fault.parse(fault) for fault in faults]
    truth: dict[str, Any] = make_fleet.make_fleet(
        base, folder, ranks=ranks, steps=steps, faults=parsed, **more
    )
    return truth
