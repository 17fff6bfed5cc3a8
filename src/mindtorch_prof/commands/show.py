"""Print the table of a trace: one row per op, or per group of its calls.

On a terminal, the columns of torch's table that fit; into a pipe or with
--wide, the text of torch's own table. With --where, --stats, --columns, or
grouping by module, step, thread or category, it is a table with these columns
in the same units. Naming a statistic (--sort-by p95) is --stats as well.

example:
  mindtorch-prof show trace.json.gz --sort-by self_cpu --top 20
  mindtorch-prof show trace.json.gz --group-by shape --where 'name ~ "conv" and self_cpu > 10us and count >= 3'
  mindtorch-prof show trace.json.gz --group-by step,category --no-name --format md
  mindtorch-prof show trace.json.gz --stats --format csv
  mindtorch-prof show trace.json.gz --sort-by p95 --legend
  mindtorch-prof show trace.json.gz --as-recorded
"""

from __future__ import annotations

import argparse
import sys
from itertools import takewhile
from typing import TYPE_CHECKING

from ..steps import steps_of
from ..text_escaping import terminal_text
from ..text_tables import screen_width
from . import _common
from ._common import CommandError

if TYPE_CHECKING:
    from ..torch_api.results import Results
    from ..trace import Trace

# what can be missing from a trace, and what records it
_RECORDED_BY = {
    "shape": "record_shapes=True",
    "stack": "with_stack=True",
    "module": "with_stack=True (or with_modules=True in mindtorch_v2)",
    "step": "prof.step()",
}
# what torch's own table can group and sort by
_TORCH_KEYS = {"shape", "stack"}
_TORCH_SORT_COLUMNS = {
    None,
    "self_cpu_time_total",
    "cpu_time_total",
    "cpu_time",
    "self_device_time_total",
    "device_time_total",
    "device_time",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "count",
    "flops",
}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `show`."""
    _common.add_file(parser)
    parser.add_argument(
        "--sort-by",
        metavar="COLUMN",
        help="column to sort by, largest first (self_device_time_total if the trace has device work, else self_cpu_time_total); `none`: in order of time",
    )
    parser.add_argument(
        "--group-by",
        default="",
        metavar="KEYS",
        help="keys to group by besides the name, separated by commas: shape, stack[:frames], module[:levels], step, thread, category",
    )
    parser.add_argument(
        "--no-name", action="store_true", help="group by the keys of --group-by only, not by name"
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help='condition for rows to keep: name ~ "conv" and self_cpu > 10us and count >= 3',
    )
    parser.add_argument(
        "--stats", action="store_true", help="add min, p50, p95, max, std and the duration of the first call"
    )
    parser.add_argument(
        "--columns", metavar="KEYS", help="columns to show, separated by commas; `explain` lists them"
    )
    parser.add_argument(
        "--legend",
        action="store_true",
        help="define the columns below the table, as `explain` does (not in CSV)",
    )
    _common.add_output(parser, top=100)


def run(options: argparse.Namespace) -> int:
    """Print the table."""
    if options.legend and options.format == "csv":
        raise CommandError(
            "--legend has no place in CSV: --format json has it under a key of its own, and `explain --format csv` lists all columns"
        )
    loaded = _common.open_trace(options.file, options)
    print_table(loaded._listed, options)
    return 0


def print_table(results: Results, options: argparse.Namespace) -> None:
    """Print the table of results with the options of `show`, and to standard error what it could not be grouped by."""
    _print_groups(results, options)
    for key in sorted(
        {key.strip().partition(":")[0].removesuffix("s") for key in options.group_by.split(",")}
    ):
        if key in _RECORDED_BY and not _is_recorded(results.trace, key):
            _common.say(
                f"note: the trace has no {key}s to group by; {_RECORDED_BY[key]} records them",
                file=sys.stderr,
            )


def _is_recorded(trace: Trace, key: str) -> bool:
    if key == "step":
        return bool(steps_of(trace)[0])
    if key == "module":
        return bool((trace.frames.module >= 0).any())
    return bool(((trace.inputs if key == "shape" else trace.stack) >= 0).any())


def _print_groups(results: Results, options: argparse.Namespace) -> None:
    keys = [key.strip() for key in options.group_by.split(",") if key.strip()]
    sort_by = sort_column(results, options.sort_by)
    simple = {key.partition(":")[0].removesuffix("s") for key in keys} <= _TORCH_KEYS
    extended = (
        options.where
        or options.stats
        or options.columns
        or options.no_name
        or sort_by not in _TORCH_SORT_COLUMNS
    )
    totals: list[str] = []
    if options.format == "table" and simple and not extended:
        with _common.phase("aggregating"):
            text = torch_table(results, keys, sort_by, options.top, options.legend)
        width = screen_width()
        lines = text.splitlines()
        if width is None or max(map(len, lines), default=0) <= width:
            print(text, end="")
            return
        last_rule = max((i for i, line in enumerate(lines) if line.startswith("---")), default=-1)
        totals = list(takewhile(bool, lines[last_rule + 1 :]))  # an empty line is before the legend
    from ..analysis.columns import column_key
    from ..analysis.conditions import WhereError, where
    from ..analysis.groups import STATS, GroupError, groups

    try:
        columns = [name for name in (options.columns or "").split(",") if name.strip()]
        condition = where(options.where) if options.where else None
        named = {sort_by, *map(column_key, columns), *(condition.columns if condition else ())}
        stats = options.stats or not named.isdisjoint(STATS)
        with _common.phase("aggregating"):
            sheet = groups(results, keys if options.no_name else ["name", *keys], stats=stats)
        if condition:
            sheet = sheet.take(condition.mask(sheet))
        if sort_by:
            sheet = sheet.sort(sort_by)
        if columns:
            sheet = sheet.select(columns)
    except (GroupError, WhereError) as error:
        raise CommandError(str(error)) from error
    except KeyError as error:
        raise CommandError(error.args[0]) from error
    health = results.trace.health.line()
    _common.print_rows(
        sheet.head(options.top).rows(),
        options.format,
        keys=list(sheet),
        about={"file": getattr(options, "file", None), "rows_in_all": sheet.n_rows, "health": health},
        note=totals or (f"Incomplete: {health}" if health else ""),
        least_important=_least_important(list(sheet), sort_by, options),
        legend=options.legend,
        **({"hint": options.hint} if hasattr(options, "hint") else {}),
    )


# what a narrow terminal shows first, after the names and the column that the table is sorted by
_MOST_IMPORTANT = (
    "count",
    "p50",
    "p95",
    "max",
    "min",
    "device_time_total",
    "cpu_time_total",
    "cpu_memory_usage",
)


def _least_important(keys: list[str], sort_by: str | None, options: argparse.Namespace) -> list[str]:
    """The columns in the order in which a terminal that is too narrow leaves them out; those that the user listed go last."""
    if options.columns:
        return []
    share = (sort_by or "").replace("_time_total", "_share")
    grouped = [
        key for key in keys if key in ("input_shapes", "stack", "module", "step", "thread", "category")
    ]
    first = [sort_by, *grouped, share, *_MOST_IMPORTANT]
    return [
        *(key for key in reversed(keys) if key not in first),
        *(key for key in reversed(first) if key in keys),
    ]


def torch_table(
    results: Results, keys: list[str], sort_by: str | None, top: int, legend: bool = False
) -> str:
    """The table as torch prints it; with `legend`, the columns are defined below it."""
    from ..call_paths import STACK_DEPTH

    depth = 0
    for key in keys:
        name, _, number = key.partition(":")
        if name == "stack":
            if number and not number.isdigit():
                raise CommandError(f"cannot group by {key!r}; expected stack:N with N of 1 or more")
            depth = int(number or STACK_DEPTH)
    averages = results.key_averages(any(key.startswith("shape") for key in keys), depth)
    for row in averages:
        row.key, row.overload_name = terminal_text(row.key or ""), terminal_text(row.overload_name or "")
        row.stack = [terminal_text(frame) for frame in row.stack or ()]
    return averages.table(sort_by=sort_by, row_limit=top or -1, legend=legend)


def sort_column(results: Results, wanted: str | None) -> str | None:
    """The column to sort by; None for the order of time."""
    if wanted is None:
        busy = bool(results.trace.device.works.any())
        return "self_device_time_total" if busy else "self_cpu_time_total"
    return named_column(wanted)


def named_column(wanted: str) -> str | None:
    """The key of a column that the user named; None for `none`; a CommandError if there is no such column."""
    from ..analysis.columns import column_key

    if wanted == "none":
        return None
    try:
        return column_key(wanted)
    except KeyError as error:
        raise CommandError(error.args[0]) from error
