"""Runs snippets under a profiler and gives what it shows, one line per event: path, name, shapes, sequence number.

The rows of `profile_value_rows.txt` also show numbers and lists that ops are called with. The same for torch and for this package. What stands in `profile_bookkeeping.json` (buffers and casts inside kernels, which another
implementation need not have) is left out on both sides, and an op directly inside one of its own name is merged into it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
_RULES = json.loads((FOLDER / "profile_bookkeeping.json").read_text())
_DROPPED = {(parent, name) for rule in _RULES["dropped"] for parent in rule["under"] for name in rule["ops"]}
_SAME = {(rule["under"], name): rule["name"] for rule in _RULES["same"] for name in rule["names"]}


# name of the row file -> name of the file of facts
FILES = {
    "profile_tree": "profile_trees.json.gz",  # ordinary calls
    "profile_value": "profile_values.json.gz",  # the same, with the values that go in
    "layer_tree": "layer_trees.json.gz",  # optimisers on lists, layers, losses, attention
    "algebra_tree": "algebra_trees.json.gz",  # linear algebra, transforms, order, statistics, sparse tensors
}


def rows(name: str) -> list[tuple[str, str]]:
    """(set-up, profiled code) of each line of `<name>_rows.txt`."""
    lines = (FOLDER / f"{name}_rows.txt").read_text().splitlines()
    pairs = [line.split(";;") for line in lines if ";;" in line and not line.startswith("#")]
    return [(setup.strip(), code.strip()) for setup, code in pairs]


def _numbers(shape: tuple, seed: int, low: float, high: float) -> np.ndarray:
    count = int(np.prod(shape)) if shape else 1
    index = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(7919 * (seed + 1))
    mixed = (index * np.uint64(2654435761)) % np.uint64(2**32)
    unit = (mixed ^ (mixed >> np.uint64(15))).astype(np.float64) / 2.0**32
    return (low + (high - low) * unit).reshape(shape)


def names(torch: Any) -> dict[str, Any]:
    def T(*shape: int, rg: bool = False, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Any:
        values = _numbers(shape, seed, low, high).astype(np.float32)
        return torch.tensor(values, dtype=torch.float32, requires_grad=rg)

    def I(*shape: int, high: int = 3, seed: int = 1) -> Any:  # noqa: E743
        return torch.tensor(_numbers(shape, seed, 0.0, float(high)).astype(np.int64))

    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "np": np,
        "T": T,
        "I": I,
        "fill": lambda m: m,
    }


def _fates(events: list) -> dict[int, tuple[str, Any, str]]:
    """By identity: what becomes of an event, the event that stands for it, the name it goes under."""
    found: dict[int, tuple[str, Any, str]] = {}

    def fate(event: Any) -> tuple[str, Any, str]:
        if id(event) not in found:
            found[id(event)] = decide(event)
        return found[id(event)]

    def decide(event: Any) -> tuple[str, Any, str]:
        if event.cpu_parent is None:
            return "keep", event, event.name
        above, owner, owner_name = fate(event.cpu_parent)
        if above in ("drop", "closed"):
            return "drop", owner, event.name
        if event.name == owner_name and event.name.startswith("aten::"):
            return "merge", owner, event.name
        if (owner_name, event.name) in _DROPPED:
            return "drop", owner, event.name
        if (owner_name, event.name) in _SAME:
            return "closed", event, _SAME[owner_name, event.name]
        return "keep", event, event.name

    for event in events:
        fate(event)
    return found


def shown(torch: Any, setup: str, code: str, values: bool) -> list[str]:
    """What a profile of `code` shows, sorted, each line with how often it stands there; `values`: with numbers and lists."""
    compiled = compile(code.replace("\\n", "\n"), "snippet", "exec")
    for warm in (True, False):
        space = names(torch)
        exec(setup, space)
        if warm:
            exec(compiled, space)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        exec(compiled, space)
    events = [event for event in profiler.events() if event.name != "[memory]"]
    fates = _fates(events)
    numbers = [event.sequence_nr for event in events if event.sequence_nr >= 0]
    first = min(numbers, default=0)

    def path(event: Any) -> str:
        names: list[str] = []
        while event.cpu_parent is not None:
            event = fates[id(event.cpu_parent)][1]
            names.append(fates[id(event)][2])
        return " > ".join(reversed(names))

    lines: Counter[str] = Counter()
    for event in events:
        fate, _, name = fates[id(event)]
        if fate == "keep" or (fate == "closed" and not values):
            inputs = "any" if fate == "closed" else _compact(list(event.input_shapes))
            inputs += f" {_compact(event.concrete_inputs)}" if values else ""
            number = event.sequence_nr - first if event.sequence_nr >= 0 else "-"
            lines[f"{path(event)} > {name} {inputs} {number}".removeprefix(" > ")] += 1
    return [f"{count} {line}" for line, count in sorted(lines.items())]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
