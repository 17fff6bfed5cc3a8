"""Exports: a recording in, a file out. One module per format; `EXPORTERS` lists the formats of `convert`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..native_file import SUFFIX

if TYPE_CHECKING:
    from ..analysis.recording import Recording


class ExportOptions(NamedTuple):
    """Options of exports; a format ignores those that do not apply to it."""

    table: str = "events"  # which table to write, for formats that hold one table
    name: str = ""  # of the recording, for formats that show a name
    min_us: float = 0.0  # of spans: shorter events are left out
    max_spans: int = 1_000  # 0: all events
    parent: str | None = None  # the span that the recording belongs to, as a traceparent


class Exporter(NamedTuple):
    """A format that recordings can be written in."""

    suffix: str  # of its files
    write: Callable[
        [Recording, str, ExportOptions], None
    ]  # the str is the path of the file; of spans also an address


def is_address(target: str) -> bool:
    """Whether a target is the address of a collector of spans rather than a file."""
    return target.startswith(("http://", "https://"))


# Modules are imported when they are used: reading a trace needs none of them.


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


def _native(source: Recording, path: str, options: ExportOptions) -> None:
    from ..analysis.recording import as_results

    save = (
        getattr(source, "save", None) or as_results(source).trace.save
    )  # a loaded file knows how it is listed
    save(path)


def _otlp(source: Recording, path: str, options: ExportOptions) -> None:
    from .otlp import export_otlp

    export_otlp(source, path, min_us=options.min_us, max_spans=options.max_spans, parent=options.parent)


EXPORTERS = {
    "chrome": Exporter(".pt.trace.json.gz", _chrome),
    "csv": Exporter(".csv", _csv),
    "native": Exporter(SUFFIX, _native),
    "otlp": Exporter(".otlp.jsonl", _otlp),
    "parquet": Exporter(".parquet", _parquet),
    "speedscope": Exporter(".speedscope.json", _speedscope),
}
