"""Numbers as torch prints them in tables: times, shares, bytes. And counts in sentences."""

from __future__ import annotations


def format_time(time_us: float) -> str:
    """Microseconds as s, ms or us, with three decimals."""
    if time_us >= 1_000_000.0:
        return f"{time_us / 1_000_000.0:.3f}s"
    if time_us >= 1000.0:
        return f"{time_us / 1000.0:.3f}ms"
    return f"{time_us:.3f}us"


_SCALES = {"s": 1_000_000.0, "ms": 1000.0, "us": 1.0}


def format_time_in(time_us: float, unit: str) -> str:
    """Microseconds in a given unit; as `format_time` where the unit is none of s, ms, us, as torch does."""
    scale = _SCALES.get(unit)
    return format_time(time_us) if scale is None else f"{time_us / scale:.3f}{unit}"


def format_share(time_us: float, total_us: float) -> str:
    """A share as a percentage."""
    return "NaN" if total_us == 0 else f"{time_us * 100.0 / total_us:.2f}%"


def format_memory(nbytes: int) -> str:
    """Bytes with a binary unit."""
    size = abs(nbytes)
    if size >= 1 << 30:
        return f"{nbytes * 1.0 / (1 << 30):.2f} GB"
    if size >= 1 << 20:
        return f"{nbytes * 1.0 / (1 << 20):.2f} MB"
    if size >= 1 << 10:
        return f"{nbytes * 1.0 / (1 << 10):.2f} KB"
    return f"{nbytes} B"


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 step, 1,200 steps."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
