"""The overview: Results in; wall time, steps, shares of time by category, and how the trace was recorded out, as plain data."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import numpy as np

from ...analysis import intervals
from ...analysis.overhead import overhead
from ...arrays import IntArray
from ...steps import step_rows
from ...trace import DEVICE_COPY, DEVICE_KERNEL, DEVICE_SET, RUNTIME, Trace
from ...version import __version__
from . import calls

if TYPE_CHECKING:
    from ...torch_api.results import Results

_SETTINGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


def overview(results: Results) -> dict[str, object]:
    """The data of the report's first view."""
    trace = results.trace
    begin, end = window(trace)
    return {
        "wall_ns": end - begin,
        "begin_ns": begin,
        "steps": _steps(trace, begin),
        "shares": _shares(trace, begin, end),
        "health": trace.health.line(),
        "complete": bool(trace.health),
        "facts": _facts(results),
        "device": str(trace.settings.device or ""),
        "synthetic": trace.n_synthetic,
        "has": {
            "memory": len(trace.memory) > 0,
            "modules": bool((trace.frames.module >= 0).any()),
            "device": len(trace.device) > 0,
            "flops": bool(trace.flops.any()),
        },
        "version": __version__,
    }


def window(trace: Trace) -> tuple[int, int]:
    """The start and end of the recording, extended to its first and last event."""
    begin, end = trace.window_ns
    parts = [part for part in (trace, trace.frames, trace.device) if len(part)]
    first = min((int(part.start_ns.min()) for part in parts), default=begin)
    last = max((int(part.end_ns.max()) for part in parts), default=end)
    if end <= begin:
        return first, last
    return min(begin, first), max(end, last)


def event_steps(trace: Trace) -> tuple[IntArray, list[str]] | None:
    """For each event the index of the step in which it started (-1: none), and the names of the steps; None without steps."""
    rows = step_rows(trace)
    if not len(rows):
        return None
    number = np.searchsorted(trace.start_ns[rows], trace.start_ns, side="right") - 1
    inside = (number >= 0) & (trace.start_ns < trace.end_ns[rows[np.maximum(number, 0)]])
    return np.where(inside, number, -1), [trace.names[i] for i in trace.name[rows].tolist()]


def _steps(trace: Trace, begin: int) -> list[tuple[str, int, int]]:
    rows = step_rows(trace)
    return [
        (trace.names[name], start - begin, end - start)
        for name, start, end in zip(
            trace.name[rows].tolist(), trace.start_ns[rows].tolist(), trace.end_ns[rows].tolist()
        )
    ]


# ---------------------------------------------------------------------------------------------------- shares


def _shares(trace: Trace, begin: int, end: int) -> list[dict[str, object]]:
    """How the wall time of the CPU and of each device divides. Time that several categories cover belongs to the first of them."""
    category = calls.event_categories(trace)
    categories = [
        ("Optimizer", category == calls.OPTIMIZER),
        ("Data loading", category == calls.DATA),
        ("Autograd", category == calls.AUTOGRAD),
        ("Operators", category == calls.OP),
        ("Runtime calls", trace.kind == RUNTIME),
        ("Python", category == calls.USER),
    ]
    parts: list[tuple[str, int]] = []
    covered: IntArray = np.empty((0, 2), np.int64)
    before = 0
    for name, mask in categories:
        spans = [covered, np.stack([trace.start_ns[mask], trace.end_ns[mask]], axis=1)]
        if name == "Python":
            spans.append(np.stack([trace.frames.start_ns, trace.frames.end_ns], axis=1))
        covered = union(np.concatenate(spans))
        length = int((covered[:, 1] - covered[:, 0]).sum())
        parts.append((name, length - before))
        before = length
    parts.append(("Idle", max(end - begin - before, 0)))
    return [{"label": "CPU", "parts": parts}, *_device_shares(trace, end - begin)]


def _device_shares(trace: Trace, wall: int) -> list[dict[str, object]]:
    device = trace.device
    kind = str(trace.settings.device or "device").upper()
    shares: list[dict[str, object]] = []
    for number in np.unique(device.device).tolist():
        on_device = device.device == number
        parts: list[tuple[str, int]] = []
        covered: IntArray = np.empty((0, 2), np.int64)
        before = 0
        for name, kinds in (("Kernels", (DEVICE_KERNEL,)), ("Copies", (DEVICE_COPY, DEVICE_SET))):
            mask = on_device & np.isin(device.kind, kinds)
            covered = union(
                np.concatenate([covered, np.stack([device.start_ns[mask], device.end_ns[mask]], axis=1)])
            )
            length = int((covered[:, 1] - covered[:, 0]).sum())
            parts.append((name, length - before))
            before = length
        if before:
            label = "GPU" if kind in {"CUDA", "HIP"} else kind
            shares.append({"label": f"{label} {number}", "parts": [*parts, ("Idle", max(wall - before, 0))]})
    return shares


def union(spans: IntArray) -> IntArray:
    """The union of spans, one row (start, end) each."""
    return np.stack(intervals.union(spans[:, 0], spans[:, 1]), axis=1)


# ---------------------------------------------------------------------------------------------------- facts


def _facts(results: Results) -> list[list[str]]:
    """How the trace was recorded, as pairs of label and value."""
    trace = results.trace
    settings = trace.settings
    on = [name for name in _SETTINGS if getattr(settings, name)]
    facts = [
        ["Source", os.path.basename(settings.source) if settings.source else "live recording"],
        ["Recorded with", ", ".join(on) or "times only"],
        ["Events", f"{int((results.shown & trace.is_recorded).sum()):,}"],
    ]
    if trace.n_synthetic:
        facts.append(["Synthetic events", f"{trace.n_synthetic:,}"])
    if len(trace.frames):
        facts.append(["Python calls", f"{len(trace.frames):,}"])
    if len(trace.device):
        facts.append(["Device events", f"{len(trace.device):,}"])
    if len(trace.memory):
        facts.append(["Memory events", f"{len(trace.memory):,}"])
    facts.append(["Threads", f"{len(np.unique(trace.thread)):,}"])
    added = overhead(results)
    if added is not None:
        facts.append(["Recording added", f"about {added.text()}"])
    if trace.origin_ns > 0:
        started = dt.datetime.fromtimestamp((trace.origin_ns + window(trace)[0]) / 1e9, tz=dt.timezone.utc)
        if started.year > 1980:
            facts.append(["Started", started.strftime("%Y-%m-%d %H:%M:%S UTC")])
    for key, label in (
        ("host_name", "Host"),
        ("rank", "Rank"),
        ("world_size", "World size"),
        ("trace_id", "Trace id"),
    ):
        value = getattr(settings, key)
        if value not in {None, ""}:
            facts.append([label, str(value)])
    devices = [d for d in settings.device_properties or () if isinstance(d, dict) and d.get("name")]
    named = {f"Device {d.get('id', '')}".strip(): str(d["name"]) for d in devices}
    return facts + [[label, name] for label, name in named.items()]
