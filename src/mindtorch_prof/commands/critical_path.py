"""Find the critical path of a step: the work and waiting that decided how long it took.

The path leads from the start of the step to the end of the last work that it
launched, over host ops, launches, kernels, copies, communication and
synchronisation; its times by kind add up to the length of the step. Each op
on it is shown with the time that the step would take if the op took no time.
Without --step the step of median length is analysed, of a trace without steps
the whole. -o writes the trace with the path marked, for Perfetto.

example:
  mindtorch-prof critical-path trace.json.gz --step 3
  mindtorch-prof critical-path trace.json.gz --what-if aten::addmm
  mindtorch-prof critical-path trace.json.gz -o path.json.gz
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..kernel_names import short_names
from ..number_formats import format_time
from ..text_escaping import terminal_text
from ._common import CommandError, add_file, add_output, open_trace, print_json, print_rows, say, writing
from ._options import path_to_write

if TYPE_CHECKING:
    from ..analysis.critical_path import CriticalPath

_TITLES = {
    "name": "Op on the path",
    "path_us": "On path",
    "share": "Share",
    "count": "Events",
    "host_part_us": "Host",
    "device_part_us": "Device",
    "wait_part_us": "Waiting",
    "without_us": "Path without it",
    "saves_us": "Saves",
    "busy_us": "Busy",
    "slack_us": "Slack",
    "kind": "Kind",
}
_UNITS = {key: "us" for key in _TITLES if key.endswith("_us")} | {"share": "share", "count": "count"}
_NAME_WIDTH = 60  # of names inside sentences
_WORDS = {
    "host": "ops and other host code",
    "launch": "from a launch call to the start of its work",
    "kernel": "kernels",
    "copy": "copies and memsets",
    "communication": "collectives",
    "sync": "after a wait for the device or a stream",
    "gap": "between two kernels that are both launched",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `critical-path`."""
    add_file(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--step", type=int, metavar="N", help="the step to analyse (the one of median length)")
    which.add_argument(
        "--annotation", metavar="TEXT", help="analyse the time of an annotation whose name contains TEXT"
    )
    parser.add_argument(
        "--instance", type=int, default=0, metavar="I", help="which of these annotations, from 0 (0)"
    )
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="OP",
        help="also show how long the step would take if this op, annotation or kernel took no time; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=path_to_write,
        metavar="FILE",
        help="write the trace with the path marked (.json or .json.gz)",
    )
    parser.add_argument(
        "--segments", action="store_true", help="list the stretches of the path in order, not the ops"
    )
    add_output(parser, ("table", "md", "json", "csv"), top=20)


def run(options: argparse.Namespace) -> int:
    """Print the path."""
    from ..analysis.critical_path import critical_path, op_as_dict

    loaded = open_trace(options.file, options)
    try:
        path = critical_path(
            loaded, step=options.step, annotation=options.annotation, instance=options.instance
        )
    except ValueError as error:
        raise CommandError(f"{options.file}: {error}") from error
    what_if = [_what_if(path, name, options.file) for name in options.what_if]
    if options.output:
        from ..rewrite.critical_overlay import write_overlay

        try:
            with writing(options.output):
                write_overlay(options.file, loaded, path, options.output)
        except ValueError as error:
            raise CommandError(terminal_text(str(error))) from error
    top = options.top or None
    if options.segments:
        rows = [vars(segment) for segment in path.segments[:top]]
        total = len(path.segments)
    else:
        rows = [op_as_dict(op, path) for op in path.ops[:top]]
        total = len(path.ops)
    if options.format == "json":
        print_json(_document(path, rows, what_if, options))
    elif options.format == "csv":
        print_rows(rows, "csv")
    else:
        _print_text(path, rows, total, what_if, options)
    return 0


def _what_if(path: CriticalPath, name: str, file: str) -> dict[str, object]:
    try:
        without = path.without(name)
    except KeyError:
        raise CommandError(
            f"{file}: nothing in {path.window} has the name {name!r}; expected the exact name of an op, an annotation or a kernel"
        ) from None
    return {"name": name, "without_us": without, "saves_us": path.length_us - without}


def _document(
    path: CriticalPath,
    rows: list[dict[str, object]],
    what_if: list[dict[str, object]],
    options: argparse.Namespace,
) -> dict[str, object]:
    from ..analysis.critical_path import as_dict

    document = {"file": options.file, **as_dict(path, ())}
    document["rows"] = rows
    document["what_if"] = what_if
    if options.output:
        document["overlay"] = options.output
    return document


def _print_text(
    path: CriticalPath,
    rows: list[dict[str, object]],
    total: int,
    what_if: list[dict[str, object]],
    options: argparse.Namespace,
) -> None:
    say(f"critical path of {path.window}: {format_time(path.length_us)}")
    if path.length_us > path.host_us:
        say(
            f"the host is done after {format_time(path.host_us)}; what it launched, {format_time(path.length_us - path.host_us)} later"
        )
    if path.earlier_us:
        say(f"of this, {format_time(path.earlier_us)} in work that was launched before")
    print()
    for kind, us in sorted(path.by_kind.items(), key=lambda entry: -entry[1]):
        if us:
            share = us / path.length_us
            say(f"{kind:<14}{format_time(us):>12}{share:>8.1%}  {_WORDS[kind]}")
    print()
    if options.segments:
        keys = ["start_us", "duration_us", "kind", "name", "event"]
        titles = {
            "start_us": "Start",
            "duration_us": "Duration",
            "kind": "Kind",
            "name": "Op",
            "event": "Event",
        }
        units = {"start_us": "us", "duration_us": "us"}
        print_rows(rows, options.format, keys=keys, units=units, titles=titles)
    else:
        keys = ["path_us", "share", "count", "without_us", "saves_us", "name"]
        print_rows(rows, options.format, keys=keys, units=_UNITS, titles=_TITLES)
    if len(rows) < total:
        say(f"\n{total - len(rows):,} more rows; --top 0 shows all")
    beside = path.off_path[:3]
    if beside and not options.segments:
        say("\nbeside the path, least slack first:")
        for op, name in zip(beside, short_names([op.name for op in beside], _NAME_WIDTH)):
            say(f"  {name}: {format_time(op.busy_us)} of work, may take {format_time(op.slack_us)} longer")
    for entry in what_if:
        without, saves = float(str(entry["without_us"])), float(str(entry["saves_us"]))
        share = saves / path.length_us if path.length_us else 0.0
        print()
        say(
            f"if {entry['name']} took no time: {format_time(without)} (saves {format_time(saves)}, {share:.1%})"
        )
    if options.output:
        say(f"\nwritten: {options.output}")
    if path.notes:
        print()
    for note in path.notes:
        say(f"note: {note}")
