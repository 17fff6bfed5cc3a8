"""Shared by the sub-commands: opening trace files, the options `--format`, `--top`, `--strict` and `--as-recorded`, and printing rows.

A command that prints rows passes a list of dicts with stable keys to `print_rows`. The units and titles of the keys are those of
`analysis.columns`.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from ..text_escaping import csv_cell, json_output, markdown_cell, terminal_text
from ..text_tables import TextColumn, emphasized, layout, screen_width, wrapped

if TYPE_CHECKING:
    from ..analysis.graph_capture import CaptureMatch
    from ..load.open_trace import Loaded
    from ..rewrite.raw_events import Progress
    from ..trace import Trace

FORMATS = ("table", "md", "json", "csv")
_HINT = "--wide shows all columns, --format json has them"


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
    cached: bool = True,
) -> None:
    """Declare a trace file to be read, and `--strict`, `--as-recorded` and, unless `cached` is false, `--cache`."""
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
        if cached:
            parser.add_argument(
                "--cache",
                action="store_true",
                default=None,
                help="keep what was read of a large JSON file in a hidden file beside it, and open that the next time (MINDTORCH_CACHE=1)",
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
    if "table" in formats:
        add_wide(parser)


def add_capture(parser: argparse.ArgumentParser) -> None:
    """Declare `--capture`, which `with_capture` obeys."""
    parser.add_argument(
        "--capture",
        metavar="FILE",
        help="a trace of the capture of the graphs that this trace replays, or of the program without graphs: "
        "the kernels of replays are charged to its ops",
    )


def add_keep_metadata(parser: argparse.ArgumentParser) -> None:
    """Declare `--keep-metadata`, for commands that write files."""
    parser.add_argument(
        "--keep-metadata",
        action="store_true",
        help="keep environment variables, command lines and tokens in the metadata, which are left out otherwise",
    )


def say_left_out(keys: Sequence[str], *, file: TextIO | None = None) -> None:
    """Say which keys of the metadata were left out of a file."""
    if keys:
        shown = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
        say(f"note: left out of the metadata: {shown}; --keep-metadata keeps it", file=file)


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Declare `--wide`, which `cli.main` obeys."""
    parser.add_argument(
        "--wide",
        action="store_true",
        help="all columns and full names, also on a terminal that is too narrow for them",
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


def trace_file(path: str) -> str:
    """The path of one trace: of a folder, the trace in it. A CommandError lists the traces of a folder that has several."""
    from ..load import formats

    try:
        return os.fspath(formats.trace_file(path)) if os.path.isdir(path) else path
    except ValueError as error:
        raise CommandError(_sentence(path, error)) from error


def trace_files(paths: Sequence[str]) -> list[str]:
    """The paths of traces, where those of folders are the traces in them; a CommandError for a path that does not exist."""
    from ..load import formats

    for path in paths:
        if not os.path.exists(path):
            raise CommandError(terminal_text(f"{path}: No such file or directory"))
    try:
        return formats.trace_paths(paths)
    except ValueError as error:
        raise CommandError(terminal_text(" ".join(str(error).split()))) from error


def open_trace(path: str, options: argparse.Namespace) -> Loaded:
    """Load a trace file, or the trace in a folder, as `--strict`, `--as-recorded` and `--cache` say; a CommandError of one sentence if it
    cannot be read."""
    from ..load import load

    path = trace_file(path)
    try:
        loaded = load(path, strict=options.strict, cache=getattr(options, "cache", None))
        if loaded.cache is not None and loaded.cache.note:
            say(f"note: {loaded.cache.note}", file=sys.stderr)
        return loaded.as_recorded() if options.as_recorded else loaded
    except OSError as error:
        raise CommandError(_sentence(path, error.strerror or error)) from error
    except ValueError as error:
        raise CommandError(_sentence(path, error)) from error


def with_capture(loaded: Loaded, options: argparse.Namespace) -> tuple[Trace, CaptureMatch | None]:
    """A trace with the ops of `--capture`, and how these match; without that option the trace itself."""
    if not options.capture:
        return loaded.trace, None
    from ..analysis.graph_capture import apply_match, match_capture

    capture = open_trace(options.capture, options).trace
    match = match_capture(loaded.trace, capture)
    return apply_match(loaded.trace, capture, match), match


def without_environment(loaded: Loaded, options: argparse.Namespace) -> Loaded:
    """A trace without environments and secrets in its metadata, unless `--keep-metadata` was given; says what was left out."""
    if options.keep_metadata:
        return loaded
    from ..rewrite.redact import trace_without_environment

    trace, left_out = trace_without_environment(loaded.trace)
    say_left_out(left_out, file=sys.stderr)
    return loaded.with_trace(trace) if left_out else loaded


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


@contextmanager
def phase(title: str) -> Iterator[None]:
    """A bar on stderr while something runs whose end is not known, such as aggregating or writing; only if it takes a while and stderr is
    a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from threading import Timer

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    bar = Progress(*parts, console=Console(stderr=True), transient=True)
    bar.add_task(title, total=None)
    timer = Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


_PATIENCE = 0.5  # seconds that pass without a bar


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
    note: str | Sequence[str] = "",
    names: Sequence[str] | None = None,
    least_important: Sequence[str] = (),
    hint: str = _HINT,
    legend: bool = False,
) -> None:
    """Print rows in a format.

    keys: the columns and their order (those of the first row); top: number of rows (0: all); about: further keys of the JSON object;
    units, titles: of keys that are not in `analysis.columns`, or instead of those; note: a line or lines below a table.

    On a terminal that is too narrow, columns are left out: first those of `least_important` in this order, then the rightmost ones.
    names: the keys that are never left out and that shrink last (the column that is called name or the like, else the first texts).
    hint: how to get the columns that were left out.
    legend: define the columns that are shown; not in CSV, which has no place for it.
    """
    shown = list(rows[:top] if top else rows)
    wanted = list(keys) if keys is not None else list(rows[0]) if rows else []
    if format == "json":
        legend_object = {"legend": {key: _column_facts(key) for key in wanted}} if legend else {}
        values = [{key: row.get(key) for key in wanted} for row in shown]
        print_json({**(about or {}), **legend_object, "rows": values})
    elif format == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(csv_cell, wanted))
        writer.writerows([[_cell(row.get(key)) for key in wanted] for row in shown])
        sys.stdout.write(out.getvalue())
    else:
        visible = _print_texts(shown, wanted, format, units or {}, titles or {}, names, least_important, hint)
        for number, line in enumerate([note] if isinstance(note, str) else note):
            if line:
                say(line if number else f"\n{line}")
        if legend:
            _print_legend(visible, format)


def _column_facts(key: str) -> dict[str, object]:
    from ..analysis.columns import COLUMNS

    fact = COLUMNS[key]
    return {"title": fact.title, "unit": fact.unit, "meaning": fact.meaning, "not_in_it": fact.not_in_it}


def _print_legend(keys: Sequence[str], format: str) -> None:
    from ..analysis.columns import COLUMNS, legend

    facts = [COLUMNS[key] for key in keys if key in COLUMNS]
    if format == "md":
        lines = [f"- **{markdown_cell(fact.title)}**: {markdown_cell(fact.definition)}" for fact in facts]
    else:
        lines = legend([(fact.key, fact.title) for fact in facts], min(screen_width() or 100, 100))
    print("\n".join(["", *lines]))


def print_json(value: object) -> None:
    """Print a value as JSON; it may contain NumPy numbers and arrays."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    try:
        text = orjson.dumps(value, option=options, default=_default).decode()
    except (TypeError, ValueError):  # a lone surrogate in a name, which the standard library escapes
        import json

        text = json.dumps(value, indent=2, default=_default)
    print(json_output(text))


def _default(value: object) -> object:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)


def _cell(value: object) -> object:
    """A value for a CSV file: lists as text, texts escaped."""
    if isinstance(value, (list, tuple)):
        value = ";".join(map(str, value)) if all(isinstance(v, str) for v in value) else str(list(value))
    return csv_cell(value) if isinstance(value, str) else "" if value is None else value


def _print_texts(
    rows: Sequence[Mapping[str, object]],
    keys: list[str],
    format: str,
    units: Mapping[str, str],
    titles: Mapping[str, str],
    names: Sequence[str] | None,
    least_important: Sequence[str],
    hint: str,
) -> list[str]:
    """Print a table; gives the keys of the columns that are shown."""
    from ..analysis.columns import COLUMNS, formatted

    unit = {key: units.get(key) or (COLUMNS[key].unit if key in COLUMNS else "") for key in keys}
    head = [titles.get(key) or (COLUMNS[key].title if key in COLUMNS else key) for key in keys]
    numbers = {
        key: _is_number_column(unit[key], [row.get(key) for row in rows], key in (names or ()))
        for key in keys
    }
    cells = [[formatted(row.get(key), unit[key]) for key in keys] for row in rows]
    if format == "md":
        print_markdown(head, cells, [numbers[key] for key in keys])
        return keys
    cells = [[terminal_text(cell) for cell in row] for row in cells]
    head = [terminal_text(title) for title in head]
    name_keys = names if names is not None else _name_keys(keys, numbers)
    order = [*least_important, *(key for key in _LEAST_IMPORTANT if key not in least_important)]
    columns = [
        TextColumn(
            title,
            [row[i] for row in cells],
            "number" if numbers[key] else "name" if key in name_keys else "text",
            order.index(key) - len(order) if key in order else 0,
        )
        for i, (key, title) in enumerate(zip(keys, head))
    ]
    left_out = print_columns(columns, hint)
    return [key for key, title in zip(keys, head) if title not in left_out]


# Keys of names: the last to shrink on a narrow screen. Of other tables the first column of texts.
_NAMES = ("tree", "name", "op", "kernel", "key", "label", "file", "module", "message")
# Columns that a narrow screen does without first, whichever the table; commands may name others before them.
_LEAST_IMPORTANT = (
    "synthetic_count", "node_id", "std", "first", "min", "max", "self_cpu_memory_usage", "self_device_memory_usage", "cpu_share",
    "device_time", "cpu_time", "flops", "aliases",
)  # fmt: skip
_NUMBER_TEXT = re.compile(r"[-+±]?[\d.,]+(e[-+]?\d+)?\s?(%|[num]?s|[KMGTP]?i?B|[KMGTP]?FLOPs?|x)?|new|")


def _is_number_column(unit: str, values: Sequence[object], is_name: bool) -> bool:
    """Whether a column holds numbers, or texts of numbers, which are never cut."""
    if is_name:
        return False
    if unit != "text" and any(isinstance(value, (int, float)) for value in values):
        return True
    texts = [value for value in values if value is not None]
    return any(texts) and all(isinstance(text, str) and _NUMBER_TEXT.fullmatch(text) for text in texts)


def _name_keys(keys: Sequence[str], numbers: Mapping[str, bool]) -> list[str]:
    known = [key for key in _NAMES if key in keys and not numbers[key]]
    return (known or [key for key in keys if not numbers[key]])[:1]


def print_columns(columns: Sequence[TextColumn], hint: str = _HINT) -> list[str]:
    """Print a table that fits the terminal, and below it which columns were left out and how to get them (`hint`); into a pipe, and with
    --wide, all of it. Gives the titles of those that were left out."""
    table = layout(columns, screen_width())
    for line in table.head:
        print(emphasized(line))
    for line in table.rows:
        print(line)
    if table.left_out:
        say(f"not shown: {', '.join(table.left_out)}; {hint}")
    return table.left_out


def say(text: str, *, file: TextIO | None = None) -> None:
    """Print a sentence, after blank lines if it begins with line ends: names in it are escaped, and it is broken between words where it is
    wider than the terminal."""
    sentence = text.lstrip("\n")
    before = "\n" * (len(text) - len(sentence))
    print(before + wrapped(terminal_text(sentence), screen_width()), file=file)


def say_written(path: str) -> None:
    """Print the size of a file that was written, on standard error; nothing where that was standard output."""
    from ..files import is_standard_output

    if not is_standard_output(path):
        say(f"{path}: {os.path.getsize(path):,} bytes", file=sys.stderr)


def print_markdown(head: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    """Print a table in GitHub's Markdown."""
    print("| " + " | ".join(map(markdown_cell, head)) + " |")
    print("|" + "|".join(" ---: " if r else " --- " for r in right) + "|")
    for row in cells:
        print("| " + " | ".join(map(markdown_cell, row)) + " |")
