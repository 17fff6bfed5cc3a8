"""Sheets as files: a Sheet in; a CSV or Parquet file out. Values are not formatted: times in microseconds, sizes in bytes."""

from __future__ import annotations

import csv
import io
import os

from ..analysis.sheet import Sheet
from ..files import open_for_export
from ..text_escaping import csv_cell

_CHUNK = 65_536  # rows that are turned into text at a time
_BUFFER = 1 << 20  # characters of rows that are written at once


def export_csv(sheet: Sheet, path: str | os.PathLike[str]) -> None:
    """Write a sheet as CSV; .gz compresses."""
    with open_for_export(path) as out:
        text = io.StringIO()

        def flush() -> None:
            out.write(text.getvalue().encode("utf-8", "backslashreplace"))
            text.seek(0)
            text.truncate()

        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(csv_cell, sheet))
        for first in range(0, sheet.n_rows, _CHUNK):
            part = sheet.take(slice(first, first + _CHUNK)).to_dict()
            for row in zip(*[map(_cell, values) for values in part.values()]):
                writer.writerow(row)
                if text.tell() > _BUFFER:  # rows may have long stacks
                    flush()
        flush()


def export_parquet(sheet: Sheet, path: str | os.PathLike[str]) -> None:
    """Write a sheet as Parquet (needs pyarrow)."""
    table = sheet.to_arrow()
    import pyarrow.parquet

    with open_for_export(path) as out:
        pyarrow.parquet.write_table(table, out, compression="zstd")


def _cell(value: object) -> object:
    if isinstance(value, (list, tuple)):
        value = ";".join(value) if all(isinstance(item, str) for item in value) else str(list(value))
    return csv_cell(value) if isinstance(value, str) else "" if value is None else value
