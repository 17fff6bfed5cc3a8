"""Redaction: a trace file in, the same file without environments, tokens, user and host names out; or a Trace without environments."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..files import GZIP_LEVEL, open_for_export
from ..json_types import JSONValue
from ..load.byte_source import Limits, Source
from ..sensitive_data import redacted, without_environment
from ..trace import Trace


@dataclass(frozen=True)
class Redacted:
    """What was replaced in a file."""

    path: str  # of the file that was written
    counts: Mapping[
        str, int
    ]  # by kind (environment, command line, secret, user name, host name): texts replaced

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def redact_file(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Redacted:
    """Write a trace file without sensitive data: to `out`, else in place, by renaming a finished file. Holds the file in memory.

    Every byte outside of the replaced texts stays as it is. A file that begins like a gzip file is read as one; a name that ends in .gz is
    compressed.
    """
    source = os.fspath(path)
    target = os.fspath(out) if out is not None else source
    with Source(source, Limits()) as file:
        data = b"".join(file.chunks())
        packed = file.packed
        if file.notes:
            raise ValueError(f"{source}: damaged ({file.notes[0]}); expected a whole file")
    if data.lstrip()[:1] not in (b"{", b"[", b""):
        raise ValueError(f"{source}: not JSON; expected a trace as JSON, which other formats are made from")
    # bytes that are no UTF-8 go through unchanged
    text, counts = redacted(data.decode("utf-8", "surrogateescape"))
    clean = text.encode("utf-8", "surrogateescape")
    if packed and not target.endswith(".gz") and out is None:
        clean = gzip.compress(clean, GZIP_LEVEL, mtime=0)  # a gzip file under another name stays one
    if clean != data or out is not None:
        with open_for_export(target) as written:
            written.write(clean)
    return Redacted(target, dict(counts))


def trace_without_environment(trace: Trace) -> tuple[Trace, list[str]]:
    """A trace whose metadata and arguments hold no environments, command lines and secrets; and the keys that were dropped."""
    settings = trace.settings
    metadata, dropped = without_environment(settings.metadata)
    added, more = without_environment(settings.added_metadata)
    extra, of_events = _without_in_table(trace.extra_table)
    device_extra, of_device = _without_in_table(trace.device.extra_table)
    dropped += [*more, *of_events, *of_device]
    if not dropped:
        return trace, []
    return (
        replace(
            trace,
            settings=replace(settings, metadata=metadata, added_metadata=added),
            extra_table=extra,
            device=replace(trace.device, extra_table=device_extra),
        ),
        list(dict.fromkeys(dropped)),
    )


def _without_in_table(
    table: object,
) -> tuple[tuple[Mapping[str, JSONValue], ...], list[str]]:
    """Arguments of events without what `without_environment` drops."""
    kept: list[Mapping[str, JSONValue]] = []
    dropped: list[str] = []
    for arguments in table:  # type: ignore[attr-defined]
        inner, names = without_environment(arguments)
        kept.append(inner if names else arguments)
        dropped += [f"args.{name}" for name in names]
    return tuple(kept), dropped
