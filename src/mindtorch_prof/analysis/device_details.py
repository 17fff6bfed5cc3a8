"""Device details: the device events of a trace in; grid, block, registers, shared memory, occupancy, bytes and bandwidth of each out.

These are arguments of events in the file; what a file does not say is None. The bandwidth is computed from the bytes and the duration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ..arrays import Array
from ..json_types import JSONValue
from ..trace import Device
from .sheet import ColumnValues

_Arguments = Mapping[str, JSONValue]


def device_details(device: Device) -> dict[str, ColumnValues]:
    """One column per detail, a value or None per event."""
    copied = _column(device, lambda arguments: _number(arguments.get("bytes")))
    duration_ns = (device.end_ns - device.start_ns).astype(np.float64)
    nbytes = np.array([np.nan if value is None else value for value in copied.tolist()], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        bandwidth = np.where(duration_ns > 0, nbytes / duration_ns, np.nan)  # bytes per nanosecond are GB/s
    return {
        "grid": _column(device, lambda arguments: _dimensions(arguments.get("grid"))),
        "block": _column(device, lambda arguments: _dimensions(arguments.get("block"))),
        "threads": _column(device, _threads),
        "registers": _column(device, lambda arguments: _number(arguments.get("registers per thread"))),
        "shared_memory": _column(device, lambda arguments: _number(arguments.get("shared memory"))),
        "occupancy": _column(device, _occupancy),
        "copied_bytes": copied,
        "bandwidth": bandwidth,
    }


def _column(device: Device, value: Callable[[_Arguments], object]) -> Array:
    """A value per event, computed once per different arguments."""
    table = np.empty(len(device.extra_table) + 1, object)
    for number, arguments in enumerate(device.extra_table):
        table[number] = value(arguments)
    table[-1] = None
    return table[device.extra]


def _number(value: JSONValue) -> float | int | None:
    if isinstance(value, str):  # files of AMD and of old versions write numbers as texts
        try:
            value = float(value)
        except ValueError:
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _sizes(value: JSONValue) -> list[int] | None:
    """Three sizes: of a list, or of a text such as `[4, 1, 1]`."""
    parts = value.strip("[]() ").split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts:
        return None
    numbers = [_number(part.strip() if isinstance(part, str) else part) for part in parts]
    return None if any(number is None for number in numbers) else [int(number or 0) for number in numbers]


def _dimensions(value: JSONValue) -> str | None:
    sizes = _sizes(value)
    return None if sizes is None else "x".join(map(str, sizes))


def _threads(arguments: _Arguments) -> int | None:
    grid, block = _sizes(arguments.get("grid")), _sizes(arguments.get("block"))
    return None if grid is None or block is None else math.prod(grid) * math.prod(block)


def _occupancy(arguments: _Arguments) -> float | None:
    value = _number(arguments.get("est. achieved occupancy %"))
    return None if value is None else value / 100
