"""Peaks of devices: the name of a device, a file or `key=value` pairs in; its peak rates out. The data are in peaks.json, with sources."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import orjson

from ...json_types import JSONValue
from .work import MATRIX, VECTOR

# the types that peaks are given for; fp32 and fp64 are those of vector units, _matrix those of matrix units where they differ
TYPES = ("fp64", "fp64_matrix", "fp32", "fp32_matrix", "tf32", "fp16", "bf16", "fp8", "int8")
BANDWIDTH = "memory_tbps"


@dataclass(frozen=True)
class Peaks:
    """The most that a device can do, without sparsity."""

    name: str
    memory_tbps: float  # TB/s
    tflops: Mapping[str, float] = field(default_factory=dict)  # TFLOP/s by type, see TYPES
    source: str = ""

    def compute(self, unit: str, dtype: str, tf32: bool = False) -> float | None:
        """TFLOP/s of a unit for a type (torch's name); None: not known. tf32: whether 32-bit products are done in TF32."""
        for key in _keys(unit, dtype, tf32):
            if key in self.tflops:
                return self.tflops[key]
        return None

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            BANDWIDTH: self.memory_tbps,
            "tflops": dict(self.tflops),
            "source": self.source,
        }


def _keys(unit: str, dtype: str, tf32: bool) -> tuple[str, ...]:
    """The types whose peak an op is measured against, the first that is known."""
    if unit == VECTOR:  # vector units compute 16-bit and whole numbers as 32-bit ones
        return ("fp64",) if dtype in ("float64", "complex128") else ("fp32",)
    if unit != MATRIX:
        return ()
    if dtype == "float32" or dtype == "complex64":
        return ("tf32",) if tf32 else ("fp32_matrix", "fp32")
    if dtype in ("float64", "complex128"):
        return ("fp64_matrix", "fp64")
    if dtype.startswith("float8"):
        return ("fp8",)
    return {"float16": ("fp16",), "bfloat16": ("bf16",), "int8": ("int8",), "uint8": ("int8",)}.get(dtype, ())


@cache
def _devices() -> tuple[dict[str, JSONValue], ...]:
    text = resources.files(__package__).joinpath("peaks.json").read_bytes()
    return tuple(orjson.loads(text)["devices"])


def known_devices() -> tuple[Peaks, ...]:
    """All devices whose peaks are known."""
    return tuple(map(_peaks, _devices()))


def _peaks(entry: Mapping[str, JSONValue]) -> Peaks:
    tflops = entry["tflops"]
    assert isinstance(tflops, dict)
    rates = {key: float(value) for key, value in tflops.items() if isinstance(value, (int, float))}
    bandwidth = entry[BANDWIDTH]
    assert isinstance(bandwidth, (int, float))
    return Peaks(str(entry["name"]), float(bandwidth), rates, str(entry["source"]))


def peaks_of(properties: Mapping[str, JSONValue]) -> Peaks | None:
    """The peaks of a device by its deviceProperties in a trace; None: it is not among the known ones."""
    name, memory = str(properties.get("name") or ""), properties.get("totalGlobalMem")
    gigabytes = memory / 1e9 if isinstance(memory, (int, float)) else None
    for entry in _devices():
        matches = re.search(str(entry["match"]), name) if name else _has_properties(entry, properties)
        if matches and _fits(entry, gigabytes):
            return _peaks(entry)
    return None


def _fits(entry: Mapping[str, JSONValue], gigabytes: float | None) -> bool:
    """Whether the memory is as large as an entry asks for."""
    limits = entry.get("memory_gb")
    if not isinstance(limits, list):
        return True
    low, high = limits
    if not isinstance(low, (int, float)) or not isinstance(high, (int, float)):
        return True
    return gigabytes is None or low <= gigabytes <= high


def _has_properties(entry: Mapping[str, JSONValue], properties: Mapping[str, JSONValue]) -> bool:
    """Whether a device without a name is told by its compute capability, its number of units and its memory. ROCm leaves names out."""
    compute = [properties.get("computeMajor"), properties.get("computeMinor")]
    return (
        "units" in entry
        and entry["units"] == properties.get("numSms")
        and entry.get("compute") == compute
        and "totalGlobalMem" in properties
    )


def read_peaks(text: str) -> Peaks:
    """The peaks that a user gives: the name of a known device (`H100 SXM`), a file (.json or .toml), or pairs (`memory_tbps=3.35,bf16=989`).
    A ValueError says what is wrong."""
    if "=" in text and not os.path.exists(text):
        return _from_pairs(text)
    if os.path.exists(text) or text.lower().endswith((".json", ".toml")):
        return _from_file(text)
    wanted = _words(text)
    matches = [peaks for peaks in known_devices() if wanted <= _words(peaks.name)]
    if not matches:
        names = ", ".join(peaks.name for peaks in known_devices())
        raise ValueError(
            f"{text!r} is neither a file nor a known device; give {BANDWIDTH}=...,bf16=... or one of: {names}"
        )
    return min(matches, key=lambda peaks: len(peaks.name))


def _words(text: str) -> set[str]:
    return set(re.split(r"[\s,_-]+", text.lower())) - {""}


def _from_pairs(text: str) -> Peaks:
    values: dict[str, JSONValue] = {}
    for part in text.split(","):
        key, _, number = part.partition("=")
        try:
            values[key.strip()] = float(number)
        except ValueError:
            raise ValueError(f"--peaks: {part.strip()!r} is not of the form key=number") from None
    return peaks_from(values, "--peaks")


def _from_file(path: str) -> Peaks:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from error
    try:
        if path.lower().endswith(".toml"):
            values = _parsed_toml(path, content)
        else:
            values = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected an object with {BANDWIDTH} and {', '.join(TYPES)}")
    return peaks_from(values, path)


def _parsed_toml(path: str, content: bytes) -> dict[str, JSONValue]:
    try:
        import tomllib
    except ImportError:
        raise ValueError("TOML needs Python 3.11; write the same as JSON") from None
    values: dict[str, JSONValue] = tomllib.loads(content.decode())
    return values


def peaks_from(values: Mapping[str, JSONValue], source: str = "given") -> Peaks:
    """Peaks from keys: memory_tbps, the types of TYPES (or these in `tflops`), and `name` if wanted. A ValueError names a wrong key."""
    nested = values.get("tflops")
    flat = {key: value for key, value in values.items() if key not in ("name", "source", "match", "tflops")}
    if isinstance(nested, Mapping):
        flat |= nested
    for key, value in flat.items():
        if key != BANDWIDTH and key not in TYPES:
            raise ValueError(f"{source}: {key!r} is none of {BANDWIDTH}, {', '.join(TYPES)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise ValueError(f"{source}: {key} must be a number above 0, not {value!r}")
    if BANDWIDTH not in flat:
        raise ValueError(f"{source}: {BANDWIDTH} (TB/s) is missing")
    rates = {key: float(value) for key, value in flat.items() if isinstance(value, (int, float))}
    bandwidth = rates.pop(BANDWIDTH)
    return Peaks(
        str(values.get("name") or "given peaks"), bandwidth, rates, str(values.get("source") or source)
    )
