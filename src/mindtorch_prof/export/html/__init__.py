"""The HTML report: one or two recordings in, one self-contained page out that shows where time and memory went."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from ...analysis.diff import FASTER, SLOWER, Diff, diff
from ...analysis.diff_tree import as_dict, diff_tree
from ...analysis.recording import Recording, as_results, recorded_results
from ...files import open_for_export
from .calls import CATEGORIES
from .device import device_block
from .flame import flame_block
from .memory import memory_block, timeline_page_block
from .modules import modules_block
from .operators import add_by_name, operators_block, short_kernel_names
from .overview import event_steps, overview
from .pack import Block
from .page import write_page
from .roofline import roofline_block
from .timeline import timeline_block

if TYPE_CHECKING:
    from ...torch_api.results import Results

MOST_PLACES = 100  # of the comparison by tree


def export_html(
    recording: Recording,
    path: str | os.PathLike[str],
    other: Recording | None = None,
    *,
    labels: Sequence[str] | None = None,
    max_events: int | None = None,
) -> None:
    """Write the report of a recording, or of two that the page compares.

    labels: names of the recordings; max_events: of more events than these, the timeline shows only the longest (1,000,000).
    """
    recordings = [as_results(each) for each in (recording, other) if each is not None]
    names = list(labels) if labels is not None else _labels(recordings)
    short = short_kernel_names([name for results in recordings for name in results.trace.device.names])
    first: dict[str, Block] = {}
    later: dict[str, Block] = {}
    for number, (results, label) in enumerate(zip(recordings, names)):
        blocks = _blocks(results, label, short)
        blocks["modules"], blocks["timeline"] = modules_block(results), timeline_block(results, max_events)
        blocks["device"] = device_block(results)
        summary = blocks.pop("summary")
        assert summary is not None
        first[f"summary-{number}"] = summary
        later |= {f"{name}-{number}": block for name, block in blocks.items() if block is not None}
        if results.trace.n_synthetic:
            recorded = _blocks(recorded_results(results), label, short)
            later |= {
                f"{name}-{number}-recorded": block for name, block in recorded.items() if block is not None
            }
    if len(recordings) > 1:
        later["compare-0"] = Block(_verdicts(*recordings))
        if any(results.trace.n_synthetic for results in recordings):
            later["compare-0-recorded"] = Block(_verdicts(*map(recorded_results, recordings)))
    with open_for_export(path) as out:
        write_page(out, first, later)


def _blocks(results: Results, label: str, short: dict[str, str]) -> dict[str, Block | None]:
    """The blocks that count events. short: short forms of the names of kernels. A page of a recording with synthetic events holds them twice: with these events, and as `-recorded`
    without, for its switch. The timeline leaves them out in the page."""
    summary = Block()
    groups = {"name": add_by_name(summary, results)}
    memory, peaks = memory_block(results)
    roofline = roofline_block(results)
    summary.values = {
        **overview(results),
        "label": label,
        "groups": groups,
        "categories": CATEGORIES,
        "peaks": peaks,
        "short_names": short,
        "views": "all",
        "roofline": roofline is not None,
    }
    return {
        "summary": summary,
        "operators": operators_block(results, event_steps(results.trace)),
        "flame": flame_block(results),
        "memory": memory,
        "roofline": roofline,
    }


def memory_page(out: IO[bytes], times: list[int], sizes: list[list[int]]) -> None:
    """Write a page that shows one memory timeline, as `sizes_over_time` gives it."""
    summary = Block({"label": "Memory timeline", "views": "memory"})
    write_page(out, {"summary-0": summary}, {"memory-0": timeline_page_block(times, sizes)})


def _verdicts(a: Results, b: Results) -> dict[str, object]:
    """The status of each operator according to `diff`: slower, faster, called more often ..., or the same apart from noise."""
    comparison = diff(a, b)
    return {
        "status": {row.key[0]: row.status for row in comparison.rows},
        "by": {row.key[0]: row.by for row in comparison.rows if row.by},
        "step": _step_verdict(comparison),
        "noise": None if math.isnan(comparison.floor) else comparison.floor,
        "repeats": comparison.repeats,
        "notes": comparison.notes,
        "tree": _tree(a, b),
    }


def _tree(a: Results, b: Results) -> dict[str, object]:
    """Where the trees of ops part according to `diff_tree`: the places that change most, and all that differ."""
    comparison = diff_tree(a, b)
    places = [
        p for i, p in enumerate(comparison.places) if i < MOST_PLACES or (p.differs and i < 10 * MOST_PLACES)
    ]
    rest = comparison.change_left(places)
    return {
        "places": [as_dict(place) for place in places],
        "per": comparison.per,
        "by": "device" if comparison.by_device else "host",
        "left_out": len(comparison.places) - len(places),
        "left_us": rest,
        "notes": list(comparison.notes),
    }


def _step_verdict(comparison: Diff) -> str:
    """Whether steps got slower or faster by more than noise; empty: neither, or there are no steps."""
    change = comparison.total.get("step")
    if change is None or change.test is None or not change.test.significant():
        return ""
    return SLOWER if change.typical > 0 else FASTER


def _labels(recordings: Sequence[Results]) -> list[str]:
    """File names, with (A) and (B) if they are equal."""
    names = [results.trace.settings.source_name or "Profile" for results in recordings]
    if len(names) == 2 and names[0] == names[1]:
        return [f"{names[0]} (A)", f"{names[1]} (B)"]
    return names
