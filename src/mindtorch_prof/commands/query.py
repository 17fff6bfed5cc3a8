"""Query a trace with SQL.

The tables are events, averages, steps, memory, device and figures; --tables
lists their columns. Needs DuckDB: `pip install mindtorch_v2[sql]`.

example:
  mindtorch-prof query trace.json.gz "select name, sum(self_us) as us from events group by name order by us desc limit 5"
  mindtorch-prof query trace.json.gz --tables
  mindtorch-prof query trace.json.gz "select count(*) from events" --as-recorded
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from . import _common
from ._common import CommandError
from ._options import number

_LONGEST_S = 600.0  # seconds that a statement may take

if TYPE_CHECKING:
    from ..load.open_trace import Loaded


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `query`."""
    _common.add_file(parser)
    parser.add_argument(
        "sql", nargs="?", metavar="SQL", help="the SQL statement; - reads it from standard input"
    )
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns")
    parser.add_argument(
        "--allow-files",
        action="store_true",
        help="let the statement read and write files and load extensions; without it, it can only read the tables",
    )
    parser.add_argument(
        "--seconds",
        type=number,
        default=_LONGEST_S,
        metavar="S",
        help=f"interrupt a statement that takes longer ({_LONGEST_S:g})",
    )
    _common.add_output(parser, top=0)


def run(options: argparse.Namespace) -> int:
    """Print the result."""
    if not options.sql and not options.tables:
        raise CommandError('no query; expected an SQL statement such as "select * from steps", or --tables')
    loaded = _common.open_trace(options.file, options)
    if options.tables:
        _print_tables(loaded, options)
        return 0
    from ..analysis.query import MOST_MEMORY, MissingPackageError, QueryError, QueryMemoryError, answer

    sql = sys.stdin.read() if options.sql == "-" else options.sql
    try:
        with _common.phase("querying"):
            result = answer(
                loaded,
                sql,
                top=options.top,
                allow_files=options.allow_files,
                seconds=options.seconds,
                memory=options.max_memory or MOST_MEMORY,
            )
    except (MissingPackageError, QueryError) as error:
        raise CommandError(str(error), 3 if isinstance(error, QueryMemoryError) else 2) from error
    _common.print_rows(
        result.sheet.rows(),
        options.format,
        keys=list(result.sheet),
        about={"file": os.fspath(options.file), "rows_in_all": result.n_rows},
        titles={key: key for key in result.sheet},
        units=dict.fromkeys(result.sheet, "number"),
    )
    return 0


def _print_tables(loaded: Loaded, options: argparse.Namespace) -> None:
    from ..analysis.columns import COLUMNS
    from ..analysis.tables import TABLES

    rows = []
    for name, make in TABLES.items():
        sheet = make(loaded)
        rows += [
            {
                "table": name,
                "rows": sheet.n_rows,
                "column": key,
                "unit": COLUMNS[key].unit if key in COLUMNS else "",
            }
            for key in sheet
        ]
    titles = {"table": "Table", "rows": "Rows", "column": "Column", "unit": "Unit"}
    _common.print_rows(rows, options.format, titles=titles, top=options.top)
