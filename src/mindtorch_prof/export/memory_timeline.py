"""Memory timelines: Results in; a file of the bytes allocated over time, by category, out (.html, .json, .raw.json.gz)."""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING

import orjson

from ..analysis.memory_breakdown import memory_changes
from ..files import open_for_export
from ..torch_api.memory_categories import sizes_over_time
from .html import memory_page

if TYPE_CHECKING:
    from ..torch_api.results import Results

# torch's, in its order
_DEVICE_TYPES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia privateuseone"
).split()
REQUIRED = "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling."


def export_memory_timeline(results: Results, path: str | os.PathLike[str], device: str | None = None) -> None:
    """Write the timeline; the suffix of `path` chooses the form."""
    settings = results.trace.settings
    if not (settings.record_shapes and settings.profile_memory and settings.with_stack):
        raise ValueError(REQUIRED)
    name = os.fspath(path)
    changes = memory_changes(results) if _device_type(device) == "cpu" else []
    if name.endswith(".html"):
        content = timeline_page(*sizes_over_time(changes))
    elif name.endswith(".raw.json.gz"):
        content = orjson.dumps(changes)
    else:
        content = orjson.dumps(sizes_over_time(changes))
    with open_for_export(path) as out:
        out.write(content)


def _device_type(device: str | None) -> str:
    """The type of a device such as `cuda:0`; None: the CPU. Raises torch's error for another word."""
    if device is None:
        return "cpu"
    if not isinstance(device, str):
        raise RuntimeError(f"device must be a text such as 'cpu' or 'cuda:0', got {device!r}")
    if not device:
        raise RuntimeError("Device string must not be empty")
    match = re.fullmatch(r"(\w+)(:\d+)?", device)
    if match is None or match[1] not in _DEVICE_TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {device}"
        )
    return match[1]


def timeline_page(times: list[int], sizes: list[list[int]]) -> bytes:
    """A page that shows the timeline and needs no other file."""
    page = io.BytesIO()
    memory_page(page, times, sizes)
    return page.getvalue()
