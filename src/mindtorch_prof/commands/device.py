"""Show what each device did with its time, and why it was idle.

Computation, exposed communication, exposed copies and idle time add up to the
device's span, per device and step. Idle time is charged to its causes. Kernels
are listed by type and by op, copies by direction. With --capture, the kernels
of graph replays are charged to the ops that a trace of the capture has.

example:
  mindtorch-prof device trace.json.gz
  mindtorch-prof device trace.json.gz --format json
  mindtorch-prof device replay.json.gz --capture capture.json.gz
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..text_escaping import terminal_text
from . import _common

if TYPE_CHECKING:
    from ..analysis.device_breakdown import DeviceBreakdown
    from ..analysis.device_kernels import DeviceKernels
    from ..analysis.idle_causes import DeviceIdle
    from ..trace import Trace


_TITLES = {
    "part": "Part",
    "time_us": "Time",
    "share": "Share",
    "step": "Step",
    "span_us": "Span",
    "computation_us": "Compute",
    "exposed_communication_us": "Exp. comm",
    "exposed_copy_us": "Exp. copies",
    "idle_us": "Idle",
    "gap_before_us": "Gap before",
    "overlap": "Overlap",
    "stream": "Stream",
    "events": "Events",
    "busy_us": "Busy",
    "busy_share": "Busy share",
    "longest_idle_us": "Longest idle",
    "mean_queue_length": "Mean queue",
    "queue_empty_share": "Queue empty",
    "cause": "Cause",
    "gaps": "Gaps",
    "source": "Source",
    "type": "Type",
    "op": "Op",
    "count": "Count",
    "mean_us": "Mean",
    "direction": "Direction",
    "bytes": "Bytes",
    "gb_per_s": "GB/s",
    "name": "Name",
    "of": "Of",
    "run_us": "Run time",
    "launch_us": "Launch time",
}
_UNITS = {
    **{key: "us" for key in _TITLES if key.endswith("_us")},
    **dict.fromkeys(("share", "overlap", "busy_share", "queue_empty_share"), "share"),
    **dict.fromkeys(("events", "gaps", "count", "of"), "count"),
    "bytes": "bytes",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `device`."""
    _common.add_file(parser)
    _common.add_capture(parser)
    _common.add_output(parser, top=10)


def run(options: argparse.Namespace) -> int:
    """Print the breakdown."""
    from ..analysis.device_answer import device_rows
    from ..analysis.device_breakdown import device_breakdown
    from ..analysis.device_kernels import device_kernels
    from ..analysis.idle_causes import idle_causes

    trace, match = _common.with_capture(_common.open_trace(options.file, options), options)
    devices = device_breakdown(trace)
    if options.format == "csv":
        _print_csv(devices)
        return 0
    if options.format == "json":
        about: dict[str, object] = {"file": options.file}
        if match is not None:
            about["capture"] = {
                "file": options.capture,
                **{
                    key: getattr(match, key)
                    for key in ("replays", "graphs", "kernels", "matched", "unnamed", "refused", "without_op")
                },
            }
        about["devices"] = device_rows(trace, options.top)
        _common.print_json(about)
        return 0
    parts = list(zip(devices, device_kernels(trace), idle_causes(trace)))
    if not parts:
        print("No work of a device in this trace.")
    for number, each in enumerate(parts):
        if number:
            print()
        _print_device(trace, *each, options)
    if match is not None:
        print(f"\n{terminal_text(match.sentence())}")
    return 0


def _print_csv(devices: Sequence[DeviceBreakdown]) -> None:
    """One row per device, step and stream."""
    rows: list[dict[str, object]] = []
    for times in devices:
        rows.append({"device": times.device, **times.to_dict()})
        rows += [{"device": times.device, **step.to_dict()} for step in times.steps]
        rows += [{"device": times.device, **stream.to_dict()} for stream in times.streams]
    keys = ["device", "step", "stream", "events", "span_us", "computation_us", "exposed_communication_us"]
    keys += ["exposed_copy_us", "idle_us", "busy_us", "communication_us", "copy_us", "overlap"]
    rows = [{key: value for key, value in row.items() if not isinstance(value, list)} for row in rows]
    _common.print_rows(rows, "csv", keys=keys)


def _print_device(
    trace: Trace,
    times: DeviceBreakdown,
    kernels: DeviceKernels,
    idle: DeviceIdle,
    options: argparse.Namespace,
) -> None:
    top = options.top

    def table(title: str, rows: Sequence[Mapping[str, object]], keys: Sequence[str]) -> None:
        if rows:
            print(f"\n### {title}\n" if options.format == "md" else f"\n{title}")
            names = ("source",) if "source" in keys else None  # a kernel, or the name of an event
            _common.print_rows(rows, options.format, keys=keys, units=_UNITS, titles=_TITLES, names=names)

    head = f"Device {times.device}{_model(trace, times.device)}: {times.busy_share:.1%} busy"
    print(f"## {head}\n" if options.format == "md" else head)
    _common.print_rows(
        _parts(times), options.format, keys=("part", "time_us", "share"), units=_UNITS, titles=_TITLES
    )
    for note in _notes(times):
        _common.say(f"\n{note}" if options.format == "md" else note)
    step_keys = [
        "step",
        "span_us",
        "computation_us",
        "exposed_communication_us",
        "exposed_copy_us",
        "idle_us",
    ]
    steps = [step.to_dict() for step in times.steps]
    table("Steps", steps[: top or None], [*step_keys, "overlap", "gap_before_us"])
    if top and len(steps) > top:
        print(f"{len(steps) - top:,} more steps: --top 0 shows all")
    queues = {queue.stream: queue.to_dict() for queue in idle.queues}
    streams = [
        {**stream.to_dict(), "busy_share": stream.busy_share, **queues.get(stream.stream, {})}
        for stream in times.streams
    ]
    stream_keys = ["stream", "events", "busy_us", "busy_share", "longest_idle_us", "mean_queue_length"]
    table("Streams", streams, [*stream_keys, "queue_empty_share"])
    causes = idle.to_dict(trace.device.names, trace.device.name, trace.window_ns[0], top)
    table("Idle time by cause", _nonzero(causes["causes"]), ("cause", "time_us", "share", "gaps"))
    sources = [
        {**source.to_dict(), "source": _source(source.source, source.call)}
        for source in idle.sources[: top or None]
    ]
    table("What the idle time comes from", sources, ("cause", "source", "time_us", "gaps"))
    work_keys = ("count", "time_us", "share", "mean_us")
    table("Kernels by type", [row.to_dict("type") for row in kernels.by_type], ("type", *work_keys))
    by_op = [row.to_dict("op") for row in kernels.by_op[: top or None]]
    table("Kernels by op", by_op, ("op", *work_keys))
    by_name = [row.to_dict("name") for row in kernels.by_name[: top or None]]
    table("Kernels", by_name, ("name", *work_keys))
    copies = [row.to_dict() for row in kernels.copies]
    table("Copies and memory fills", copies, ("direction", "count", "bytes", "time_us", "gb_per_s"))
    short = [row.to_dict() for row in idle.short_kernels[: top or None]]
    table(
        "Short kernels: run time below launch time",
        short,
        ("name", "count", "of", "run_us", "launch_us"),
    )


def _model(trace: Trace, number: int) -> str:
    """The device's name in the file, in brackets."""
    for each in trace.settings.device_properties:
        if isinstance(each, dict) and each.get("id") == number and each.get("name"):
            return f" ({terminal_text(str(each['name']))})"
    return ""


def _parts(times: DeviceBreakdown) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {"part": part, "time_us": time, "share": time / times.span_us if times.span_us else 0.0}
        for part, time in (
            ("computation", times.computation_us),
            ("exposed communication", times.exposed_communication_us),
            ("exposed copies", times.exposed_copy_us),
            ("idle", times.idle_us),
            ("span", times.span_us),
        )
    ]
    return rows


def _notes(times: DeviceBreakdown) -> list[str]:
    from ..analysis.columns import formatted

    notes = []
    if times.communication_ns:
        notes.append(
            f"communication: {formatted(times.communication_us, 'us')}, {times.overlap:.1%} of it overlaps with computation"
        )
    if times.without_op_ns:
        notes.append(
            f"{times.without_op_share:.1%} of the device work belongs to no op ({formatted(times.without_op_ns / 1000, 'us')})"
        )
    else:
        notes.append("all device work belongs to ops")
    if times.launched_before_events:
        notes.append(
            f"left out of these times: {times.launched_before_events:,} kernels and copies that were launched before the "
            f"recording (busy for {formatted(times.launched_before_ns / 1000, 'us')})"
        )
    if times.outer_copies_ns:
        notes.append(
            "left out of these times: copies before the first and after the last computation or communication "
            f"({formatted(times.outer_copies_ns / 1000, 'us')}), as torch_npu does"
        )
    if times.outside_steps_ns and times.steps:
        notes.append(f"work launched outside of steps: {formatted(times.outside_steps_ns / 1000, 'us')}")
    return notes


def _nonzero(rows: object) -> list[Mapping[str, object]]:
    return [row for row in rows if row["time_us"]] if isinstance(rows, list) else []


def _source(source: str, call: str) -> str:
    where = source or "no op or Python call"
    return f"{call} in {where}" if call else where
