"""The overview: Results in; figures, findings, steps, shares of time by category, and how the trace was recorded out, as plain data."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from ...analysis import intervals
from ...analysis.advice import advise
from ...analysis.doctor import doctor
from ...analysis.figures import DeviceFigures, Figures, figures
from ...analysis.overhead import overhead
from ...analysis.summary import looks_wrong
from ...arrays import IntArray
from ...steps import step_rows
from ...trace import RUNTIME, Trace
from ...version import __version__
from . import calls

if TYPE_CHECKING:
    from ...torch_api.results import Results

_SETTINGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")


def overview(results: Results) -> dict[str, object]:
    """The data of the report's first view."""
    trace = results.trace
    begin, _ = window(trace)
    known = figures(results)
    health = [finding for finding in doctor(results) if finding.severity != "info"]
    return {
        "span_ns": round(known.span_us * 1000),
        "begin_ns": begin,
        "figures": asdict(known),
        "findings": [advice.to_dict() for advice in advise(results)],
        "looks_wrong": looks_wrong(results),
        "steps": _steps(trace, begin),
        "shares": _shares(trace, known),
        "health": [{"severity": finding.severity, "message": finding.message} for finding in health],
        "complete": not health,
        "facts": _facts(results, known),
        "device": str(trace.settings.device or ""),
        "synthetic": trace.n_synthetic,
        "has": {
            "memory": len(trace.memory) > 0,
            "modules": bool((trace.frames.module >= 0).any()),
            "device": known.device_events > 0,
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


def _shares(trace: Trace, known: Figures) -> list[dict[str, object]]:
    """How the span of the CPU and of each device divides. Time that several categories cover belongs to the first of them."""
    category = calls.event_categories(trace)
    categories = [
        ("Communication", category == calls.COMMUNICATION),
        ("Optimizer", category == calls.OPTIMIZER),
        ("Data loading", category == calls.DATA),
        ("Autograd", category == calls.AUTOGRAD),
        ("Operators", category == calls.OP),
        ("Runtime calls", trace.kind == RUNTIME),
        ("Python", category == calls.USER),
    ]
    begin = known.start_ns
    end = begin + round(known.span_us * 1000)
    parts: list[tuple[str, int]] = []
    covered: IntArray = np.empty((0, 2), np.int64)
    before = 0
    for name, mask in categories:
        spans = [covered, np.stack([trace.start_ns[mask], trace.end_ns[mask]], axis=1)]
        if name == "Python":  # frames may be longer than the span: from the start to the end of the recording
            spans.append(np.clip(np.stack([trace.frames.start_ns, trace.frames.end_ns], axis=1), begin, end))
        covered = union(np.concatenate(spans))
        length = int((covered[:, 1] - covered[:, 0]).sum())
        parts.append((name, length - before))
        before = length
    parts.append(("Idle", max(end - begin - before, 0)))
    return [{"label": "CPU", "parts": parts}, *map(_device_share, known.devices)]


def _device_share(device: DeviceFigures) -> dict[str, object]:
    """How the span of a device divides, as `device` says."""
    parts = (
        ("Computation", device.computation_us),
        ("Exposed communication", device.exposed_communication_us),
        ("Exposed copies", device.exposed_copy_us),
        ("Idle", device.idle_us),
    )
    return {"label": device.label, "parts": [(name, round(us * 1000)) for name, us in parts]}


def union(spans: IntArray) -> IntArray:
    """The union of spans, one row (start, end) each."""
    return np.stack(intervals.union(spans[:, 0], spans[:, 1]), axis=1)


# ---------------------------------------------------------------------------------------------------- facts


def _facts(results: Results, known: Figures) -> list[list[str]]:
    """How the trace was recorded, as pairs of label and value."""
    trace = results.trace
    settings = trace.settings
    on = [name for name in _SETTINGS if getattr(settings, name)]
    facts = [
        ["Source", settings.source_name or "live recording"],
        ["Recorded with", ", ".join(on) or "times only"],
        ["Events", f"{known.events:,}"],
    ]
    counts = (
        ("Synthetic events", trace.n_synthetic),
        ("Device events", known.device_events),
        ("Python calls", known.python_calls),
        ("Memory events", known.memory_events),
    )
    facts += [[label, f"{number:,}"] for label, number in counts if number]
    facts.append(["Threads", f"{known.threads:,}"])
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
