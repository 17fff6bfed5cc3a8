"""Memory timelines: Results in; a file of the bytes allocated over time, by category, out (.html, .json, .raw.json.gz)."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import orjson

from ..analysis.memory_breakdown import memory_changes
from ..torch_api.memory_categories import sizes_over_time
from .files import open_for_export
from .html import memory_page

if TYPE_CHECKING:
    from ..torch_api.results import Results

REQUIRED = "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."


def export_memory_timeline(results: Results, path: str | os.PathLike[str], device: str | None = None) -> None:
    """Write the timeline; the suffix of `path` chooses the form."""
    settings = results.trace.settings
    if not (settings.record_shapes and settings.profile_memory and settings.with_stack):
        raise ValueError(REQUIRED)
    name = os.fspath(path)
    changes = memory_changes(results) if (device or "cpu").split(":")[0] == "cpu" else []
    if name.endswith(".html"):
        content = timeline_page(*sizes_over_time(changes))
    elif name.endswith(".raw.json.gz"):
        content = orjson.dumps(changes)
    else:
        content = orjson.dumps(sizes_over_time(changes))
    with open_for_export(path) as out:
        out.write(content)


def timeline_page(times: list[int], sizes: list[list[int]]) -> bytes:
    """A page that shows the timeline and needs no other file."""
    page = io.BytesIO()
    memory_page(page, times, sizes)
    return page.getvalue()
