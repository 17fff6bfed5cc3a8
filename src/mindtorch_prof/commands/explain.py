"""Explain a column of a table: its meaning, its unit and its limits.

Without a column, list all of them.

example:
  mindtorch-prof explain self_cpu
  mindtorch-prof explain "CPU total %"
"""

from __future__ import annotations

import argparse

from ..analysis.columns import COLUMNS, ColumnFact, column_key
from ..text_tables import screen_width
from . import _common
from ._common import CommandError


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `explain`."""
    parser.add_argument(
        "column", nargs="*", metavar="COLUMN", help="a key, an alias, or a title of torch's table"
    )
    _common.add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Print the definitions of columns."""
    try:
        keys = [column_key(text) for text in options.column] or list(COLUMNS)
    except KeyError as error:
        raise CommandError(error.args[0]) from error
    facts = [COLUMNS[key] for key in keys]
    if options.format == "table" and options.column:
        print("\n".join(_explanation(fact) for fact in facts), end="")
        return 0
    rows = [
        {
            "key": fact.key,
            "title": fact.title,
            "unit": fact.unit,
            "meaning": fact.meaning,
            "not_in_it": fact.not_in_it,
            "aliases": list(fact.aliases),
        }
        for fact in facts
    ]
    shown = ["key", "title", "unit", "aliases"] if options.format == "table" else None
    titles = {
        "key": "Column",
        "title": "Title",
        "unit": "Unit",
        "meaning": "Meaning",
        "not_in_it": "Notes",
    }
    _common.print_rows(rows, options.format, keys=shown, titles={**titles, "aliases": "Aliases"})
    return 0


def _explanation(fact: ColumnFact) -> str:
    import textwrap

    units = {
        "us": "microseconds",
        "share": "share from 0 to 1 (tables show per cent)",
        "number": "number",
        "text": "text",
    }
    width = screen_width() or 100
    lines = [f"{fact.key} ({fact.title})", f"  unit: {units.get(fact.unit, fact.unit)}"]
    if fact.aliases:
        lines.append(f"  aliases: {', '.join(fact.aliases)}")
    for title, text in (("meaning", fact.meaning), ("notes", fact.not_in_it)):
        if text:
            lines += textwrap.wrap(
                f"{title}: {text}", min(width, 100), initial_indent="  ", subsequent_indent="    "
            )
    return "\n".join(lines) + "\n"
