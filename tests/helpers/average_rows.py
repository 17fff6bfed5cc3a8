"""Averages for tests: what `key_averages` gave in, its rows as plain values out."""

from __future__ import annotations

from typing import Any

from mindtorch_prof.torch_api.enums import DeviceType

FIELDS = (
    "key",
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "input_shapes",
    "stack",
    "scope",
    "is_user_annotation",
    "device_type",
    "use_device",
)


def rows(averages: Any) -> list[list[Any]]:
    """Every field of every row, for comparing two lists of averages."""
    return [[getattr(row, field) for field in FIELDS] for row in averages]


def row(loaded: Any, key: str, device: bool = False, **how: Any) -> Any:
    """The one row of this name, of the CPU or of a device."""
    (match,) = (
        r for r in loaded.key_averages(**how) if r.key == key and (r.device_type != DeviceType.CPU) == device
    )
    return match
