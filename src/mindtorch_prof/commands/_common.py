"""Shared by the sub-commands: opening trace files, the options `--format`, `--top`, `--strict` and `--as-recorded`, and printing rows.

A command that prints rows passes a list of dicts with stable keys to `print_rows`. The units and titles of the keys are those of
`analysis.columns`.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..load.open_trace import Loaded
    from ..rewrite.raw_events import Progress

FORMATS = ("table", "md", "json", "csv")


class CommandError(Exception):
    """An error that the user can correct: printed without a traceback, with its exit code."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


# ---------------------------------------------------------------------------------------------------- options


def add_file(
    parser: argparse.ArgumentParser,
    name: str = "file",
    *,
    nargs: str | None = None,
    metavar: str | None = None,
    help: str = "a trace: a file of torch's profiler or this one (.json, .json.gz), an Ascend capture (*_ascend_pt, trace_view.json, .db), "
    "an nsys export (.sqlite), or a folder with one of them",
) -> None:
    """Declare a trace file to be read, and `--strict` and `--as-recorded`."""
    parser.add_argument(name, nargs=nargs, metavar=metavar or name.upper(), help=help)
    if not any("--strict" in action.option_strings for action in parser._actions):
        parser.add_argument(
            "--strict", action="store_true", help="refuse a damaged file instead of repairing it"
        )
        parser.add_argument(
            "--as-recorded",
            action="store_true",
            help="leave out synthetic events: ops that torch shows inside others and that mindtorch_v2 ran as part of one kernel",
        )


def add_output(
    parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS, top: int | None = None
) -> None:
    """Declare `--format`, and `--top` if a default for it is given."""
    parser.add_argument(
        "--format",
        choices=formats,
        default=formats[0],
        help=f"output format ({formats[0]}); json and csv have plain numbers: microseconds and bytes",
    )
    if top is not None:
        parser.add_argument(
            "--top",
            type=count,
            default=top,
            metavar="N",
            help=f"number of rows to show ({top or 'all'}); 0 shows all",
        )


def count(text: str) -> int:
    """A number of rows from the command line: 0 or more."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows; expected 0 (all) or more")
    return number


# ---------------------------------------------------------------------------------------------------- files


def open_trace(path: str, options: argparse.Namespace) -> Loaded:
    """Load a trace file as `--strict` and `--as-recorded` say; a CommandError of one sentence if it cannot be read."""
    from ..load import load

    try:
        loaded = load(path, strict=options.strict)
        return loaded.as_recorded() if options.as_recorded else loaded
    except OSError as error:
        raise CommandError(_sentence(path, error.strerror or error)) from error
    except ValueError as error:
        raise CommandError(_sentence(path, error)) from error


def paths_of_traces(paths: list[str]) -> list[str]:
    """The paths that a command for several traces was given, with the traces in a folder in its place."""
    from ..load.formats import trace_paths

    try:
        return trace_paths(paths)
    except ValueError as error:
        raise CommandError(" ".join(str(error).split())) from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn an OSError while writing `path` into a CommandError of one sentence."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}") from error


def _sentence(path: str, problem: object) -> str:
    text = " ".join(str(problem).split())
    return text if path in text else f"{path}: {text}"


@contextmanager
def progress(title: str) -> Iterator[Progress | None]:
    """A progress bar on stderr: yields a function (done, total) that moves it; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def advance(done: int, total: int | None = None) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


# ---------------------------------------------------------------------------------------------------- printing


def print_rows(
    rows: Sequence[Mapping[str, object]],
    format: str,
    *,
    keys: Sequence[str] | None = None,
    top: int = 0,
    about: Mapping[str, object] | None = None,
    units: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
    note: str = "",
) -> None:
    """Print rows in a format.

    keys: the columns and their order (those of the first row); top: number of rows (0: all); about: further keys of the JSON object;
    units, titles: of keys that are not in `analysis.columns`, or instead of those; note: a line below a table.
    """
    shown = list(rows[:top] if top else rows)
    wanted = list(keys) if keys is not None else list(rows[0]) if rows else []
    if format == "json":
        print_json({**(about or {}), "rows": [{key: row.get(key) for key in wanted} for row in shown]})
    elif format == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(wanted)
        writer.writerows([[_cell(row.get(key)) for key in wanted] for row in shown])
        sys.stdout.write(out.getvalue())
    else:
        _print_texts(shown, wanted, format, units or {}, titles or {})
        if note:
            print(f"\n{plain(note)}")


def print_json(value: object) -> None:
    """Print a value as JSON; it may contain NumPy numbers and arrays."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    try:
        text = orjson.dumps(value, option=options, default=_default).decode()
    except (TypeError, ValueError):  # a lone surrogate in a name, which the standard library escapes
        import json

        text = json.dumps(value, indent=2, default=_default)
    print(text)


def _default(value: object) -> object:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)


def _cell(value: object) -> object:
    """A value for a CSV file: lists as text; a quote before text that a spreadsheet would take for a formula."""
    if isinstance(value, (list, tuple)):
        value = ";".join(map(str, value)) if all(isinstance(v, str) for v in value) else str(list(value))
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode()
        if value[:1] in {"=", "+", "@"}:
            return "'" + value
    return "" if value is None else value


def _print_texts(
    rows: Sequence[Mapping[str, object]],
    keys: list[str],
    format: str,
    units: Mapping[str, str],
    titles: Mapping[str, str],
) -> None:
    from ..analysis.columns import COLUMNS, formatted

    unit = {key: units.get(key) or (COLUMNS[key].unit if key in COLUMNS else "") for key in keys}
    head = [titles.get(key) or (COLUMNS[key].title if key in COLUMNS else key) for key in keys]
    right = [
        unit[key] != "text" and any(isinstance(row.get(key), (int, float)) for row in rows) for key in keys
    ]
    cells = [[plain(formatted(row.get(key), unit[key])) for key in keys] for row in rows]
    if format == "md":
        print_markdown(head, cells, right)
    elif sys.stdout.isatty():
        _print_rich(head, cells, right)
    else:
        print_aligned(head, cells, right)


def print_markdown(head: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    """Print a table in GitHub's Markdown."""
    print("| " + " | ".join(map(_markdown, head)) + " |")
    print("|" + "|".join(" ---: " if r else " --- " for r in right) + "|")
    for row in cells:
        print("| " + " | ".join(map(_markdown, row)) + " |")


def _markdown(text: str) -> str:
    inner = text.lstrip(" ")
    indent = "\u00a0" * (len(text) - len(inner))  # of trees: Markdown would drop plain spaces
    return indent + inner.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def print_aligned(head: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    """Print a table as plain text: columns are as wide as their widest cell, two spaces apart."""
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(head)]
    for row in [head, ["-" * width for width in widths], *cells]:
        line = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right)]
        print("  ".join(line).rstrip())


def _print_rich(head: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for title, r in zip(head, right):
        table.add_column(Text(title), justify="right" if r else "left", no_wrap=bool(r), overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)


_CONTROLS = {i: f"\\x{i:02x}" for i in [*range(32), *range(127, 160)]}
_LINES = {i: text for i, text in _CONTROLS.items() if i != ord("\n")}


def plain(text: str, *, lines: bool = False) -> str:
    """Text with control characters escaped, so that names in a trace cannot control the terminal; `lines` keeps line ends."""
    return text.translate(_LINES if lines else _CONTROLS).encode("utf-8", "backslashreplace").decode()
