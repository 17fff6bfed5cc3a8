"""The HTML report: Results in, one self-contained page out, that shows where time and memory went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from ...analysis.diff import diff
from ...analysis.recording import Recording, as_results
from ..files import open_for_export
from .calls import CATEGORIES
from .flame import flame_block
from .memory import memory_block, timeline_page_block
from .modules import modules_block
from .operators import add_by_name, operators_block
from .overview import event_steps, overview
from .pack import Block
from .page import write_page
from .timeline import timeline_block

if TYPE_CHECKING:
    from ...torch_api.results import Results


def export_html(
    recording: Recording,
    path: str | os.PathLike[str],
    other: Recording | None = None,
    *,
    labels: Sequence[str] | None = None,
    max_events: int | None = None,
) -> None:
    """Write the report of a recording, or of two that the page compares.

    labels: names of the recordings; max_events: the most events that the timeline shows, of more only the longest are kept (1,000,000).
    """
    both = [as_results(each) for each in (recording, other) if each is not None]
    names = list(labels) if labels is not None else _labels(both)
    first: dict[str, Block] = {}
    later: dict[str, Block] = {}
    for number, (each, label) in enumerate(zip(both, names)):
        summary = Block()
        groups = {"name": add_by_name(summary, each)}
        memory, peaks = memory_block(each)
        summary.values = {
            **overview(each),
            "label": label,
            "groups": groups,
            "categories": CATEGORIES,
            "peaks": peaks,
            "views": "all",
        }
        first[f"summary-{number}"] = summary
        blocks = {
            "operators": operators_block(each, event_steps(each.trace)),
            "flame": flame_block(each),
            "modules": modules_block(each),
            "memory": memory,
            "timeline": timeline_block(each, max_events),
        }
        later.update({f"{name}-{number}": block for name, block in blocks.items() if block is not None})
    if len(both) > 1:
        later["compare-0"] = Block(_verdicts(*both))
    with open_for_export(path) as out:
        write_page(out, first, later)


def memory_page(out: IO[bytes], times: list[int], sizes: list[list[int]]) -> None:
    """Write a page that shows one memory timeline, as `sizes_over_time` gives it."""
    summary = Block({"label": "Memory timeline", "views": "memory"})
    write_page(out, {"summary-0": summary}, {"memory-0": timeline_page_block(times, sizes)})


def _verdicts(a: Results, b: Results) -> dict[str, object]:
    """What `diff` says of each operator: slower, faster, called more often ..., or the same but for noise."""
    found = diff(a, b)
    return {
        "status": {row.key[0]: row.status for row in found.rows},
        "noise": None if found.floor != found.floor else found.floor,
        "repeats": found.repeats,
        "notes": found.notes,
    }


def _labels(both: Sequence[Results]) -> list[str]:
    """File names, told apart where they are the same."""
    sources = [each.trace.settings.source for each in both]
    names = [os.path.basename(str(s)) if s else "Profile" for s in sources]
    if len(names) == 2 and names[0] == names[1]:
        return [f"{names[0]} (A)", f"{names[1]} (B)"]
    return names
