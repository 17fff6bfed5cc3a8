"""Runs snippets under a profiler and gives what it shows with values: path, name, shapes, numbers and lists, sequence number.

The same for torch and for this package; see `profile_snippets`, whose rules on bookkeeping inside kernels hold here too.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import profile_snippets

FOLDER = Path(__file__).parent


def rows() -> list[tuple[str, str]]:
    """(set-up, profiled code) of each line."""
    lines = (FOLDER / "profile_value_rows.txt").read_text().splitlines()
    pairs = [line.split(";;") for line in lines if ";;" in line and not line.startswith("#")]
    return [(setup.strip(), code.strip()) for setup, code in pairs]


def shown(torch: Any, setup: str, code: str) -> list[str]:
    """What a profile of `code` shows, sorted, each line with how often it stands there."""
    compiled = compile(code.replace("\\n", "\n"), "snippet", "exec")
    for warm in (True, False):
        space = profile_snippets._names(torch)
        exec(setup, space)
        if warm:
            exec(compiled, space)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
        exec(compiled, space)
    events = [event for event in profiler.events() if event.name != "[memory]"]
    fates = profile_snippets._fates(events)
    first = min((event.sequence_nr for event in events if event.sequence_nr >= 0), default=0)
    lines: Counter[str] = Counter()
    for event in events:
        fate, _, name = fates[id(event)]
        if fate != "keep":
            continue
        path, above = [name], event
        while above.cpu_parent is not None:
            above = fates[id(above.cpu_parent)][1]
            path.append(fates[id(above)][2])
        shapes = json.dumps(list(event.input_shapes), separators=(",", ":"))
        values = json.dumps(event.concrete_inputs, separators=(",", ":"))
        number = event.sequence_nr - first if event.sequence_nr >= 0 else "-"
        lines[f"{' > '.join(reversed(path))} {shapes} {values} {number}"] += 1
    return [f"{count} {line}" for line, count in sorted(lines.items())]
