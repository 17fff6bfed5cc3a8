"""Summaries: a recording in; where the time went, per step and per category, and what looks wrong out, as plain data.

`summary_text` turns the data into one page of text.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ..number_formats import counted, format_memory
from ..steps import processes_of
from ..text_escaping import terminal_text
from ..text_tables import TextColumn, layout
from ..trace import NODE, OP, PYTHON
from .columns import formatted
from .device_models import Devices, device_models, models_text
from .doctor import doctor
from .figures import CPU, Figures, MemoryFigures, figures, memory_totals, span
from .groups import groups
from .intervals import union, union_lengths
from .overhead import overhead
from .recording import Recording, recorded_results
from .sheet import Sheet
from .steps_table import steps_table, working

if TYPE_CHECKING:
    from ..torch_api.results import Results

FORMAT_VERSION = 1
PAGE = 120  # columns of a page that is not shown on a terminal
_COPIES = ("copy",)
_WAITS = (
    "Synchronize",
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "cudaMemcpy ",
    "hipMemcpy ",
)
_LOADER = ("DataLoader", "_BaseDataLoaderIter", "enumerate(DataLoader)")


class Recorded(TypedDict):
    """What the recording holds."""

    events: int
    synthetic_events: int  # that the summary leaves out
    device_events: int
    threads: int
    steps: int
    device: str | None
    device_models: list[str]
    driver: str | None  # of the device; None: the file does not say
    device_runtime: str | None
    rank: int | None
    world_size: int | None
    has: list[str]
    has_not: list[str]


class _DeviceTimes(TypedDict, total=False):
    device_count: int
    device_events_launched_before: int  # before the recording: busy time and span leave them out
    device_span_us: float  # from the first to the last event of the device, of all devices together
    device_busy_us: float
    device_busy_share: float  # of that span
    device_work_us: float
    device_without_op_us: float  # of the device work
    device_without_op_share: float


class Times(_DeviceTimes):
    """Times of the whole recording; those of the device only if there is one."""

    span_us: float
    cpu_busy_us: float
    cpu_busy_share: float
    self_cpu_us: float


class _DeviceSteps(TypedDict, total=False):
    device_busy_share: float
    device_events: float


class Steps(_DeviceSteps):
    """The steps of the recording; shares and numbers of events are medians."""

    count: int
    first_us: float
    p50_us: float
    min_us: float
    max_us: float
    slowest: int
    busy_share: float
    events: float


class DeviceMemory(TypedDict):
    """The memory of one device, or of the CPU."""

    label: str
    peak_bytes: int
    peak_at_us: float
    end_bytes: int
    allocations: int
    allocated_bytes: int


class PeakMemory(DeviceMemory):
    """The memory of the device with the highest peak, and of each."""

    devices: list[DeviceMemory]


class AddedByRecording(TypedDict):
    """How much longer the program took because it was recorded, see `Overhead`."""

    per_event_ns: float
    events: int
    total_ns: float
    share: float
    sentence: str


Row = dict[str, object]  # of a Sheet: the column's key and the value


class Summary(TypedDict):
    """A summary. Programs read it as JSON: its keys do not change."""

    format_version: int
    file: str
    recorded: Recorded
    times: Times
    overhead: AddedByRecording | None  # None: not known
    steps: Steps | None
    categories: list[Row]
    ops: list[Row]
    ops_by_device_time: list[
        Row
    ]  # by the device time of the work that they launched themselves; empty without a device
    kernels: list[Row]
    modules: list[Row]
    memory: PeakMemory | None
    looks_wrong: list[str]
    health: list[Row]


def summary(source: Recording, *, top: int = 10) -> Summary:
    """Summarise a recording, without its synthetic events. Times are in microseconds, shares from 0 to 1."""
    known = figures(source)
    results = recorded_results(source)
    trace = results.trace
    by_name = groups(results)
    steps = steps_table(results)
    times = _times(known)
    has_device = "self_device_time_total" in by_name
    order = "self_device_time_total" if has_device else "self_cpu_time_total"
    categories = groups(results, ("category",)).sort(order)
    modules = groups(results, ("module",))
    findings = doctor(results)
    return {
        "format_version": FORMAT_VERSION,
        "file": trace.settings.source,
        "recorded": _recorded(results, known),
        "times": times,
        "overhead": _overhead(results),
        "steps": _steps(steps),
        "categories": _rows(categories, "category", top, has_device),
        "ops": _rows(_ops(by_name), "name", top, False, "self_cpu_time_total"),
        "ops_by_device_time": _rows(_device_ops(results, by_name), "name", top, True) if has_device else [],
        "kernels": _rows(_kernels(results, by_name), "name", top, True) if has_device else [],
        "modules": _rows(modules.sort(order), "module", min(top, 5), has_device)
        if modules.n_rows > 1
        else [],
        "memory": _memory(known),
        "looks_wrong": _problems(results, by_name, categories, steps, times),
        "health": [finding.to_dict() for finding in findings if finding.severity != "info"],
    }


def looks_wrong(source: Recording) -> list[str]:
    """What looks wrong in a recording: one sentence with its evidence per problem, the same as in its summary."""
    results = recorded_results(source)
    return _problems(
        results,
        groups(results),
        groups(results, ("category",)),
        steps_table(results),
        _times(figures(results)),
    )


def _recorded(results: Results, known: Figures) -> Recorded:
    trace = results.trace
    settings = trace.settings
    devices = device_models(trace)
    recorded = {
        "shapes": bool((trace.inputs >= 0).any()),
        "stacks": bool((trace.stack >= 0).any()),
        "modules": bool((trace.frames.module >= 0).any()),
        "memory": len(trace.memory) > 0,
        "flops": bool((trace.flops > 0).any()),
        "device": len(trace.device) > 0,
    }
    return {
        "events": known.events,
        "synthetic_events": known.synthetic_events,
        "device_events": known.device_events,
        "threads": known.threads,
        "steps": known.steps,
        "device": settings.device,
        "device_models": devices["models"],
        "driver": devices["driver"],
        "device_runtime": devices["runtime"],
        "rank": settings.rank,
        "world_size": settings.world_size,
        "has": [name for name, present in recorded.items() if present],
        "has_not": [name for name, present in recorded.items() if not present],
    }


def _times(known: Figures) -> Times:
    times: Times = {
        "span_us": known.span_us,
        "cpu_busy_us": known.cpu_busy_us,
        "cpu_busy_share": known.cpu_busy_share,
        "self_cpu_us": known.self_cpu_us,
    }
    if known.devices:
        times["device_count"] = known.device_count
        times["device_events_launched_before"] = known.device_events_launched_before
        times["device_span_us"] = known.device_span_us
        times["device_busy_us"] = known.device_busy_us
        times["device_busy_share"] = known.device_busy_share
        times["device_work_us"] = known.device_work_us
        times["device_without_op_us"] = known.device_without_op_us
        times["device_without_op_share"] = known.device_without_op_share
    return times


def _overhead(results: Results) -> AddedByRecording | None:
    added = overhead(results)
    if added is None:
        return None
    return {
        "per_event_ns": added.per_event_ns,
        "events": added.n_events,
        "total_ns": added.total_ns,
        "share": added.share,
        "sentence": added.sentence(),
    }


def _steps(steps: Sheet) -> Steps | None:
    if not steps.n_rows:
        return None
    times = steps["duration_us"]
    slowest = int(np.argmax(times))
    figures: Steps = {
        "count": steps.n_rows,
        "first_us": float(times[0]),
        "p50_us": float(np.percentile(times, 50)),
        "min_us": float(times.min()),
        "max_us": float(times.max()),
        "slowest": int(steps["step"][slowest]),
        "busy_share": float(np.median(steps["busy_share"])),
        "events": float(np.median(steps["events"])),
    }
    if "device_busy_share" in steps:
        figures["device_busy_share"] = float(np.median(steps["device_busy_share"]))
        figures["device_events"] = float(np.median(steps["device_events"]))
    return figures


def _ops(by_name: Sheet) -> Sheet:
    return by_name.take(by_name["self_cpu_time_total"] > 0).sort("self_cpu_time_total")


def _kernels(results: Results, by_name: Sheet) -> Sheet:
    names = set(results.trace.device.names)
    on_device = np.array([name in names for name in by_name["name"].tolist()], bool)
    return by_name.take(on_device & (by_name["cpu_time_total"] == 0)).sort("self_device_time_total")


def _device_ops(results: Results, by_name: Sheet) -> Sheet:
    """The rows of ops that launched device work: neither kernels nor annotations, which repeat the time of the ops in them."""
    trace = results.trace
    ops = {trace.names[i] for i in np.unique(trace.name[(trace.kind == OP) | (trace.kind == NODE)]).tolist()}
    is_op = np.array([name in ops for name in by_name["name"].tolist()], bool)
    return by_name.take(is_op & (by_name["self_device_time_total"] > 0)).sort("self_device_time_total")


def _rows(sheet: Sheet, key: str, top: int, device: bool, also: str | None = None) -> list[Row]:
    wanted = [key, "count", "self_cpu_time_total", "self_cpu_share"]
    if also:
        wanted.append("cpu_time")
    if device:
        wanted += ["self_device_time_total", "self_device_share"]
    return sheet.select(wanted).head(top).rows()


def _memory(known: Figures) -> PeakMemory | None:
    highest = known.peak
    if highest is None:
        return None
    return {**_device_memory(highest), "devices": [_device_memory(memory) for memory in known.memory]}


def _device_memory(memory: MemoryFigures) -> DeviceMemory:
    return {
        "label": memory.label,
        "peak_bytes": memory.peak_bytes,
        "peak_at_us": memory.peak_at_us,
        "end_bytes": memory.end_bytes,
        "allocations": memory.allocations,
        "allocated_bytes": memory.allocated_bytes,
    }


# ---------------------------------------------------------------------------------------------------- what looks wrong


def _problems(results: Results, by_name: Sheet, categories: Sheet, steps: Sheet, times: Times) -> list[str]:
    """One sentence with its evidence per problem; the same recording always gives the same sentences."""
    problems = _uneven_steps(steps)
    self_cpu_us = times["self_cpu_us"]
    if times["cpu_busy_share"] < 0.5 and (unused := _unused_share(results)) > 0.5:
        what = (
            "no op runs on the CPU" if "device_busy_share" not in times else "neither an op nor a kernel runs"
        )
        problems.append(
            f"{what} for {_percent(unused)} of the time: Python code between ops, waiting, or data loading"
        )
    if "device_busy_share" in times and times["device_busy_share"] < 0.5:
        devices, their = ("the device is", "its") if times["device_count"] == 1 else ("devices are", "their")
        problems.append(
            f"{devices} idle for {_percent(1 - times['device_busy_share'])} of the time between {their} first and {their} last event"
        )
    problems += _tiny_ops(by_name, self_cpu_us)
    whole = "self_device_share" if "self_device_share" in categories else "self_cpu_share"
    for category, share in zip(categories["category"].tolist(), categories[whole].tolist()):
        if category in _COPIES and share >= 0.15:
            problems.append(
                f"copies and casts take {_percent(share)} of the {'device' if 'device' in whole else 'CPU'} time"
            )
    problems += _large_shares(results)
    problems += _memory_growth(results, steps)
    return problems


def _unused_share(results: Results) -> float:
    """The share of the span in which neither an op nor work of a device runs."""
    trace = results.trace
    start, end = span(trace)
    ops, works = working(results), trace.device.works
    begun, ended = union(
        np.concatenate((trace.start_ns[ops], trace.device.start_ns[works])),
        np.concatenate((trace.end_ns[ops], trace.device.end_ns[works])),
    )
    return 1 - int((ended - begun).sum()) / (end - start) if end > start else 0.0


def _uneven_steps(steps: Sheet) -> list[str]:
    if steps.n_rows < 3:
        return []
    times, numbers = steps["duration_us"], steps["step"]
    typical = float(np.median(times[1:]))
    problems = []
    if times[0] > 2 * typical:
        problems.append(
            f"step {numbers[0]} takes {times[0] / typical:.1f} × the median of the others ({times[0] / 1000:.3f} ms): warm-up; exclude it from measurements"
        )
    slow = np.flatnonzero(times[1:] > 2 * typical) + 1
    if len(slow):
        worst = slow[np.argmax(times[slow])]
        problems.append(
            f"{len(slow)} of {steps.n_rows} steps take more than twice the median; the slowest is step {numbers[worst]} "
            f"({times[worst] / 1000:.3f} ms, median {typical / 1000:.3f} ms)"
        )
    return problems


def _tiny_ops(by_name: Sheet, self_cpu_us: float) -> list[str]:
    """Many short ops, whose calls cost more than their work."""
    ops = by_name.take(np.array([str(name).startswith("aten::") for name in by_name["name"].tolist()], bool))
    short = ops.take((ops["cpu_time"] < 10) & (ops["count"] > 0))
    calls, all_calls = int(short["count"].sum()), int(ops["count"].sum())
    spent = float(short["self_cpu_time_total"].sum())
    if all_calls >= 100 and calls > 0.5 * all_calls and self_cpu_us and spent > 0.3 * self_cpu_us:
        return [
            f"{calls:,} of {all_calls:,} op calls take less than 10 us on average and {spent / self_cpu_us:.0%} of the CPU time in total: fuse or batch them"
        ]
    return []


def _large_shares(results: Results) -> list[str]:
    """Waiting, loading and updating, as shares of the span."""
    trace = results.trace
    names = np.array(trace.names, object)

    def share_of(wanted: Callable[[str], bool]) -> tuple[float, str]:
        """The share of the span in which an event of these names runs, in the mean of the processes; and the name with the most self time."""
        by_name = np.array([wanted(name) for name in trace.names] or [False], bool)
        rows = np.flatnonzero(by_name[trace.name] & (trace.kind != PYTHON))
        if not len(rows):
            return 0.0, ""
        self_ns = np.bincount(trace.name[rows], weights=results.shown_self_ns[rows])
        spent = union_lengths(process[rows], trace.start_ns[rows], trace.end_ns[rows], n_processes)
        return float(spent.sum()) / n_processes / (end - start), str(names[np.argmax(self_ns)])

    start, end = span(trace)
    if end <= start or not len(trace):
        return []
    process = processes_of(trace)
    n_processes = int(process.max()) + 1
    of_processes = f" (in the mean of {n_processes} processes)" if n_processes > 1 else ""
    problems = []
    waited, longest = share_of(lambda name: any(part in name for part in _WAITS))
    if waited > 0.05:
        problems.append(
            f"the CPU waits for the device or reads values back for {_percent(waited)} of the time{of_processes}, mostly in {longest}"
        )
    loading, _ = share_of(lambda name: name.startswith(_LOADER))
    if loading > 0.1:
        problems.append(f"loading data takes {_percent(loading)} of the time{of_processes}")
    updating, _ = share_of(lambda name: name.startswith("Optimizer.step"))
    if updating > 0.4:
        problems.append(f"the optimizer takes {_percent(updating)} of the time{of_processes}")
    return problems


def _percent(share: float) -> str:
    """A share in whole per cent; with a decimal where it would seem to be all or nothing."""
    return f"{share:.1%}" if round(share * 100) in (0, 100) and 0 < share < 1 else f"{share:.0%}"


def _memory_growth(results: Results, steps: Sheet) -> list[str]:
    if not len(results.trace.memory) or steps.n_rows < 3:
        return []
    ends = (steps["start_us"] + steps["duration_us"]) * 1000 + results.trace.window_ns[0]
    sentences = []
    for device, label, times, total in memory_totals(results.trace):
        last = np.searchsorted(times, ends, side="right") - 1
        at_end = total[np.maximum(last, 0)][1:]
        growth = np.diff(at_end)
        if len(growth) and (growth > 0).all():
            whose = "memory" if device == CPU else f"memory of {label}"
            per_step = format_memory(int(growth.mean()))
            sentences.append(f"{whose} grows in every step, by {per_step} per step: possibly a leak")
    return sentences


# ---------------------------------------------------------------------------------------------------- text


def summary_text(data: Summary, *, markdown: bool = False, width: int | None = PAGE) -> str:
    """A summary as at most 60 lines of text. width: of the terminal that its tables have to fit; None: full names."""
    head = "## " if markdown else ""
    bullet = "- " if markdown else "  "
    recorded, times, steps = data["recorded"], data["times"], data["steps"]
    lines = [("# " if markdown else "") + f"Summary of {data['file'] or 'a recording'}"]
    where = f", {recorded['device_events']:,} on {recorded['device']}" if recorded["device_events"] else ""
    ranks = f" of {recorded['world_size']}" if recorded["world_size"] is not None else ""
    rank = f"; rank {recorded['rank']}{ranks}" if recorded["rank"] is not None else ""
    lines.append(
        f"{counted(recorded['events'], 'event')}{_left_out(recorded['synthetic_events'])} on {counted(recorded['threads'], 'thread')}{where}; {counted(recorded['steps'], 'step')}{rank}; "
        f"has {', '.join(recorded['has']) or 'times only'}"
    )
    devices: Devices = {
        "models": recorded["device_models"],
        "driver": recorded["driver"],
        "runtime": recorded["device_runtime"],
    }
    if recorded["device_events"] and models_text(devices):
        lines.append(f"device: {models_text(devices)}")
    lines += ["", head + "Time"]
    lines.append(
        f"{bullet}span {_us(times['span_us'])}; CPU busy (running ops) {times['cpu_busy_share']:.1%}"
        + _device_busy(times)
    )
    if data["overhead"]:
        lines.append(f"{bullet}{data['overhead']['sentence']}")
    if steps:
        device = f", device busy {steps['device_busy_share']:.1%}" if "device_busy_share" in steps else ""
        in_step = f"{counted(round(steps['events']), 'event')}, CPU busy {steps['busy_share']:.1%}{device}"
        if steps["count"] == 1:
            lines.append(f"{bullet}step {steps['slowest']}: {_us(steps['first_us'])}; {in_step}")
        else:
            lines.append(
                f"{bullet}{steps['count']:,} steps: median {_us(steps['p50_us'])}, {_us(steps['min_us'])} to {_us(steps['max_us'])} "
                f"(step {steps['slowest']}), first {_us(steps['first_us'])}"
            )
            lines.append(f"{bullet}per step (median): {in_step}")
    if data["memory"]:
        memory = data["memory"]
        lines += [
            f"{bullet}{part['label']} memory: peak {formatted(part['peak_bytes'], 'bytes')} at {_us(part['peak_at_us'])}, "
            f"{formatted(part['end_bytes'], 'bytes')} still allocated at the end"
            for part in memory["devices"]
            if part["peak_bytes"]
        ]
    most = 5 if data["ops_by_device_time"] else 10
    for title, key, rows in (
        ("Categories", "category", data["categories"][:7]),
        ("Ops by device time", "name", data["ops_by_device_time"][:7]),
        ("Kernels", "name", data["kernels"][:7]),
        ("Ops by self CPU time", "name", data["ops"][:most]),
        ("Modules", "module", data["modules"][:5]),
    ):
        if rows and markdown:
            lines += ["", head + title, *_markdown_table(rows, key)]
        elif rows:
            lines += ["", *_table(rows, key, title, width)]
    lines += ["", head + "What looks wrong"]
    wrong = data["looks_wrong"][:7]
    lines += [f"{bullet}{text}" for text in wrong] or [f"{bullet}nothing found"]
    health = "; ".join(f"{finding['message']}" for finding in data["health"][:4]) or "complete"
    lines += ["", f"Health: {health}"]
    return "\n".join(map(terminal_text, lines)) + "\n"


def _device_busy(times: Times) -> str:
    if "device_busy_share" not in times:
        return ""
    devices, before = times["device_count"], times["device_events_launched_before"]
    whose = (
        "device busy {} of its {}"
        if devices == 1
        else f"{devices:,} devices busy {{}} of their {{}} together"
    )
    text = "; " + whose.format(f"{times['device_busy_share']:.1%}", _us(times["device_span_us"]))
    return f"{text}, without the {counted(before, 'event')} launched before the recording" if before else text


def _left_out(synthetic: int) -> str:
    return f" (and {synthetic:,} synthetic, which are not counted)" if synthetic else ""


def _us(value: object) -> str:
    return formatted(value, "us")


_TITLES = {"self_cpu_time_total": ("self CPU", "%"), "self_device_time_total": ("device", "% of device")}


def _used(rows: list[Row]) -> dict[str, tuple[str, str]]:
    return {name: titles for name, titles in _TITLES.items() if any(row.get(name) for row in rows)}


def _markdown_table(rows: list[Row], key: str) -> list[str]:
    used = _used(rows)
    head = [key, "calls", *(text for title in used.values() for text in title)]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(map(_markdown, _cells(row, key, used))) + " |" for row in rows]


def _table(rows: list[Row], key: str, title: str, width: int | None) -> list[str]:
    """A table with its title above the names."""
    used = _used(rows)
    cells = list(zip(*(_cells(row, key, used) for row in rows)))
    importance = {"calls": -1, "self CPU": -2, "%": -3} if "self_device_time_total" in used else {}
    columns = [TextColumn(title, [f"  {name}" for name in cells[0]], "name")]
    heads = ["calls", *(text for titles in used.values() for text in titles)]
    columns += [
        TextColumn(text, values, "number", importance.get(text, 0)) for text, values in zip(heads, cells[1:])
    ]
    page = layout(columns, width)
    return [*page.head[:-1], *page.rows]


def _markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _cells(row: Row, key: str, used: Container[str]) -> list[str]:
    cells = [str(row[key]) or "(none)", f"{row['count']:,}"]
    if "self_cpu_time_total" in used:
        cells += [_us(row["self_cpu_time_total"]), f"{row['self_cpu_share']:.1%}"]
    if "self_device_time_total" in used:
        cells += [_us(row["self_device_time_total"]), f"{row['self_device_share']:.1%}"]
    return cells
