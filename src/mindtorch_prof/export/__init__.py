"""Exports: one module per format, listed in `EXPORTERS`: a recording (live or loaded) in, a file out. None of them knows the recorder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..analysis.recording import Recording


class ExportOptions(NamedTuple):
    """What a format can be asked for; each takes what it knows."""

    table: str = "events"  # which table, of formats that hold one
    name: str = ""  # of the recording, for formats that show one


class Exporter(NamedTuple):
    """A format that recordings can be written in."""

    suffix: str  # of its files
    write: Callable[[Recording, str, ExportOptions], None]  # a recording, the path of the file, options


# Each imports its module when it is called: reading a trace needs none of them.


def _chrome(source: Recording, path: str, options: ExportOptions) -> None:
    from ..analysis.recording import as_results
    from .chrome import export_chrome_trace

    export_chrome_trace(as_results(source).trace, path)


def _csv(source: Recording, path: str, options: ExportOptions) -> None:
    from ..analysis.tables import TABLES
    from .sheet_files import export_csv

    export_csv(TABLES[options.table](source), path)


def _parquet(source: Recording, path: str, options: ExportOptions) -> None:
    from ..analysis.tables import TABLES
    from .sheet_files import export_parquet

    export_parquet(TABLES[options.table](source), path)


def _speedscope(source: Recording, path: str, options: ExportOptions) -> None:
    from .speedscope import export_speedscope

    export_speedscope(source, path, name=options.name)


EXPORTERS = {
    "chrome": Exporter(".pt.trace.json.gz", _chrome),
    "csv": Exporter(".csv", _csv),
    "parquet": Exporter(".parquet", _parquet),
    "speedscope": Exporter(".speedscope.json", _speedscope),
}
