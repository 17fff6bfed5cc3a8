"""Record torch's optimisers and schedulers into optim.json.gz: `python record_optim.py`, with real torch."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import optim_runs as runs
import torch

HERE = Path(__file__).parent


def _rounded(value: Any) -> Any:
    """Floats to nine digits: more than float32 holds."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def ops(expression: str, row: dict[str, Any]) -> list[list[str]]:
    """The aten ops a profile shows directly inside each of two steps."""
    ps = runs.parameters(torch, row)
    optimizer = runs.make(torch, expression, ps)
    seen = []
    for step in range(2):
        runs.set_gradients(torch, ps, row, step)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            optimizer.step()
        top = [event for event in profile.events() if event.cpu_parent is None]
        seen.append([child.name for event in top for child in event.cpu_children])
    return seen


def main() -> None:
    """Write the facts."""
    warnings.simplefilter("ignore")
    trajectories = {}
    for expression, row in runs.OPTIMIZERS.items():
        found = runs.trajectory(torch, expression, row)
        if not row.get("frozen"):
            found["continued"] = runs.continued(torch, expression, row, found["path"][-1], found["state"])
        if row.get("ops", True) and "foreach=True" not in expression and "fused=True" not in expression:
            found["ops"] = ops(expression, row)
        trajectories[expression] = _rounded(found)
    facts = {
        "optimizers": trajectories,
        "lbfgs": {e: runs.minimised(torch, e, function) for e, function in runs.LBFGS.items()},
        "schedules": {
            f"{e} | {o}": runs.schedule(torch, e, o)
            for e in runs.SCHEDULERS
            for o in runs.SCHEDULER_OPTIMIZERS
        },
        "epochs": {
            e: runs.schedule(torch, e, runs.SCHEDULER_OPTIMIZERS[0], epochs=True)
            for e in runs.SCHEDULERS
            if "SequentialLR" not in e and "Chained" not in e
        },
        "plateaus": {e: runs.plateau(torch, e) for e in runs.PLATEAUS},
    }
    with gzip.GzipFile(HERE / "optim.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(facts, separators=(",", ":")).encode())
    print({key: len(value) for key, value in facts.items()})


if __name__ == "__main__":
    main()
