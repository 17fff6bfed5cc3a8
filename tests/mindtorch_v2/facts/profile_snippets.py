"""Runs snippets under a profiler and gives the events it shows, with all that is compared; and what of them is compared, as lines.

The facts hold all events that torch shows. What is bookkeeping of one kernel (allocating, clearing or viewing an output, casting a
scalar, picking a back end) is left out of both sides when they are compared: another implementation has no honest reason to record it.
`profile_bookkeeping.json` says which events these are, by name and by the op directly around them; `profile_kernels.txt` lists further
ops that are one kernel with bookkeeping inside. An op directly inside one of its own name is merged into it.
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
_KERNELS = {
    line for line in (FOLDER / "profile_kernels.txt").read_text().splitlines() if line and line[0] != "#"
}
_DROPPED |= {(parent, name) for parent in _KERNELS for name in _RULES["bookkeeping"]}
_SAME = {(rule["under"], name): rule["name"] for rule in _RULES["same"] for name in rule["names"]}


# name of the row file -> name of the file of facts
FILES = {
    "profile_tree": "profile_trees.json.gz",  # ordinary calls
    "profile_value": "profile_values.json.gz",  # the same, with the values that go in
    "layer_tree": "layer_trees.json.gz",  # optimisers on lists, layers, losses, attention
    "algebra_tree": "algebra_trees.json.gz",  # linear algebra, transforms, order, statistics, sparse tensors
}
# the same, for rows of which all events are compared
FILES_IN_FULL = {"bookkeeping_tree": "bookkeeping_trees.json.gz"}


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


# An event as facts hold it: [row of its parent or -1, name, input shapes, concrete inputs, sequence number].
Event = list[Any]


def profiled(torch: Any, setup: str, code: str) -> list[Event]:
    """The events that a profile of `code` shows, parents first."""
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
    row = {id(event): number for number, event in enumerate(events)}
    return [
        [
            -1 if event.cpu_parent is None else row[id(event.cpu_parent)],
            event.name,
            list(event.input_shapes),
            [str(value) if isinstance(value, complex) else value for value in event.concrete_inputs],
            event.sequence_nr,
        ]
        for event in events
    ]


def compared(events: list[Event], values: bool) -> list[str]:
    """What of events is compared: a line for each, sorted, with how often it stands there; `values`: with numbers and lists."""
    fates = _fates(events)
    numbers = [number for *_, number in events if number >= 0]
    first = min(numbers, default=0)

    def path(row: int) -> str:
        names: list[str] = []
        while events[row][0] >= 0:
            row = fates[events[row][0]][1]
            names.append(fates[row][2])
        return " > ".join(reversed(names))

    lines: Counter[str] = Counter()
    for row, (parent, _, shapes, concrete, sequence) in enumerate(events):
        fate, _, name = fates[row]
        if fate == "keep" or (fate == "closed" and not values):
            inputs = "any" if fate == "closed" else _compact(_known_shapes(name, shapes))
            around = fates[fates[parent][1]][2] if parent >= 0 else ""
            inputs += f" {_compact(_known_values(around, name, concrete))}" if values else ""
            number = sequence - first if sequence >= 0 else "-"
            lines[f"{path(row)} > {name} {inputs} {number}".removeprefix(" > ")] += 1
    return [f"{count} {line}" for line, count in sorted(lines.items())]


def in_full(events: list[Event]) -> list[str]:
    """All events as lines, with their ancestors and input shapes, and how often each stands there: nothing is left out or merged."""

    def path(row: int) -> str:
        parent, name, shapes, *_ = events[row]
        return ("" if parent < 0 else path(parent) + " > ") + f"{name} {_compact(shapes)}"

    return [f"{count} {line}" for line, count in sorted(Counter(map(path, range(len(events)))).items())]


def _known_shapes(name: str, shapes: list) -> list:
    """Input shapes, without that of the workspace of an LSTM layer: what it holds is the back end's own."""
    return shapes[:-1] if name == "aten::mkldnn_rnn_layer_backward" else shapes


def _known_values(around: str, name: str, concrete: Any) -> Any:
    """Concrete inputs, without what a description of a tensor does not hold: the storage offset, and the number that a 0-dim one holds."""
    if (around, name) == ("aten::_index_put_impl_", "aten::masked_fill_"):
        return concrete[:2]
    return concrete[:3] if name == "aten::as_strided" else concrete


def _fates(events: list[Event]) -> list[tuple[str, int, str]]:
    """By row: what becomes of an event, the event that stands for it, the name it goes under."""
    fates: dict[int, tuple[str, int, str]] = {}

    def fate(row: int) -> tuple[str, int, str]:
        if row not in fates:
            fates[row] = decide(row)
        return fates[row]

    def decide(row: int) -> tuple[str, int, str]:
        parent, name = events[row][:2]
        if parent < 0:
            return "keep", row, name
        above, owner, owner_name = fate(parent)
        if above in ("drop", "closed"):
            return "drop", owner, name
        if name == owner_name and name.startswith("aten::"):
            return "merge", owner, name
        if (owner_name, name) in _DROPPED:
            return "drop", owner, name
        if (owner_name, name) in _SAME:
            return "closed", row, _SAME[owner_name, name]
        return "keep", row, name

    return [fate(row) for row in range(len(events))]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
