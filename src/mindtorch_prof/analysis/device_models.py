"""Device models: a trace in; which devices it worked on, and the versions of their driver and runtime as far as the file says, out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TypedDict

import numpy as np

from ..json_types import JSONValue
from ..trace import Trace


class Devices(TypedDict):
    """What is known of the devices of a trace."""

    models: list[
        str
    ]  # of the devices that the trace has work of, in their order; else of all that the file lists
    driver: str | None  # the driver's version, or the version of CUDA or HIP that it supports
    runtime: str | None


_KEYS = ("nvidia_driver_version", "cuda_driver_version", "hip_driver_version")
_RUNTIMES = ("cuda_runtime_version", "hip_runtime_version")
_GPU_LINE = re.compile(r"GPU (\d+): (.+)")


def device_models(trace: Trace) -> Devices:
    """The devices of a trace: from its deviceProperties; else from what torch's collect_env wrote into its metadata."""
    settings = trace.settings
    known = {
        number: str(each["name"])
        for number, each in enumerate(settings.device_properties)
        if isinstance(each, dict) and each.get("name")
    }
    by_id = {
        each["id"]: str(each["name"])
        for each in settings.device_properties
        if isinstance(each, dict) and each.get("name") and isinstance(each.get("id"), int)
    }
    used = np.unique(trace.device.device[trace.device.works]).tolist()
    models = [by_id[number] for number in used if number in by_id] or list(known.values())
    values = dict(_scalars(dict(settings.metadata)))
    if not models:
        lines = _GPU_LINE.findall(values.get("nvidia_gpu_models", ""))
        models = [model.strip() for _, model in lines]
    return {"models": models, "driver": _version(values, _KEYS), "runtime": _version(values, _RUNTIMES)}


def models_text(devices: Devices) -> str:
    """The devices in a few words: `8 x AMD Instinct MI300X, driver HIP 6.4.43483`; empty if nothing is known."""
    counts = Counter(devices["models"])
    parts = [model if count == 1 else f"{count} x {model}" for model, count in counts.items()]
    if devices["driver"]:
        parts.append(f"driver {devices['driver']}")
    if devices["runtime"] and devices["runtime"] != devices["driver"]:
        parts.append(f"runtime {devices['runtime']}")
    return ", ".join(parts)


def _version(values: dict[str, str], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        text = values.get(key, "")
        if text and text not in ("N/A", "None"):
            return _numbered_version(key, text)
    return None


def _numbered_version(key: str, text: str) -> str:
    """CUDA and HIP write their versions as one number: 12040 is 12.4, 60443483 is 6.4.43483."""
    maker = "CUDA " if key.startswith("cuda") else "HIP " if key.startswith("hip") else ""
    if not text.isdigit():
        return maker + text
    number = int(text)
    if key.startswith("hip"):
        return f"{maker}{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"
    return f"{maker}{number // 1000}.{number % 1000 // 10}"


def _scalars(value: JSONValue, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Keys and texts of the numbers and texts in nested objects; the outermost of a key comes last, so that a dict keeps it."""
    if isinstance(value, dict) and depth < 6:
        for name, inner in value.items():
            yield from _scalars(inner, name, depth + 1)
    elif isinstance(value, (str, int)) and not isinstance(value, bool):
        yield key, str(value)
