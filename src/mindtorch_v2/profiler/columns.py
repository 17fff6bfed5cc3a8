"""Columns: one registry of what each column of a profile means. A key in; its title, unit, definition and what is not in it out.

`mindtorch-prof explain`, the tables of the command line and the documentation all read this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .text import format_memory, format_time


@dataclass(frozen=True)
class ColumnFact:
    """What a column says."""

    key: str  # in JSON, CSV, data frames and `--where`
    title: str  # in tables
    unit: str  # us, bytes, count, flops, share (0 to 1), number, text
    meaning: str
    not_in_it: str = ""
    aliases: tuple[str, ...] = ()


COLUMNS: dict[str, ColumnFact] = {}


def register(*facts: ColumnFact) -> None:
    """Add facts about columns."""
    for fact in facts:
        COLUMNS[fact.key] = fact


def formatted(value: Any, unit: str) -> str:
    """A value as tables show it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "us":
        return f"-{format_time(-value)}" if value < 0 else format_time(value)
    if unit == "bytes":
        return format_memory(int(value))
    if unit == "share":
        return f"{value * 100:.2f}%"
    if unit in {"count", "flops"}:
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) if all(isinstance(v, str) for v in value) else str(list(value))
    return str(value)
