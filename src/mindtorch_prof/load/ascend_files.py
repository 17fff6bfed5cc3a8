"""The files beside a trace_view.json: the folder of an Ascend capture in; kernels, collectives and memory as columns out.

Files that are absent, and columns that a version does not write, are empty.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..arrays import FloatArray, IntArray
from ..json_types import JSONObject, JSONValue
from .ascend import KB, LARGEST_NS, MB, Allocations, first_known, json_object

_NUMBER = re.compile(r"\d+")
_LONGEST_INTEGER = 18  # digits that fit 64 bits
_LONGEST_NUMBER = 10  # digits: a device with more is none


def nanoseconds(values: Sequence[object]) -> IntArray:
    """Times of a file, texts of microseconds with up to three decimals, as whole nanoseconds. Raises ValueError for others."""
    try:
        return np.fromiter([int(v[:-4] + v[-3:]) if v[-4] == "." else _exact(v) for v in values], np.int64)  # type: ignore[index]
    except (TypeError, IndexError, ValueError, OverflowError):
        pass
    try:
        return np.fromiter([_exact(value) for value in values], np.int64)
    except OverflowError as error:
        raise ValueError("a time beyond all clocks") from error


def _exact(value: object) -> int:
    if isinstance(value, str):
        whole, _, rest = value.strip().partition(".")
        sign = -1 if whole.startswith("-") else 1
        return int(whole) * 1000 + sign * int((rest + "000")[:3])
    if isinstance(value, int):
        return value * 1000
    return round(float(value) * 1000)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Details:
    """kernel_details.csv as columns."""

    keys: tuple[str, ...]
    rows: list[list[str]]
    names: list[str]
    start: IntArray

    def collectives(self) -> tuple[IntArray, IntArray]:
        """The rows of collectives, and how long each took in nanoseconds."""
        if "Accelerator Core" not in self.keys or "Duration(us)" not in self.keys:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        core, duration = self.keys.index("Accelerator Core"), self.keys.index("Duration(us)")
        rows = [i for i, row in enumerate(self.rows) if row[core].strip() in _COLLECTIVE_CORES]
        lengths = [max(_time(self.rows[row][duration]), 0) for row in rows]
        return np.array(rows, np.int64), np.array(lengths, np.int64)

    def arguments(self, row: int) -> JSONObject:
        """What is known of a kernel: texts, and numbers where the value is one."""
        values = zip(self.keys, self.rows[row])
        return {
            key: _value(text) for key, text in values if key not in _OWN_COLUMNS and text not in ("N/A", "")
        }


_OWN_COLUMNS = frozenset({"Name", "Start Time(us)", "Duration(us)", "Stream ID", "Task ID", "Model ID"})
_COLLECTIVE_CORES = frozenset({"HCCL", "COMMUNICATION"})  # what the column of cores says of collectives
_DIGITS = re.compile(r"[-+]?\d+(\.\d+)?$")


def _value(text: str) -> JSONValue:
    text = text.strip()
    if not _DIGITS.match(text):
        return text.strip('"')  # shapes are quoted, also where they are one number
    return float(text) if "." in text or len(text) > _LONGEST_INTEGER else int(text)


class Files:
    """The CSV and JSON files of a capture; those that are absent are empty."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.collectives = self._collectives()
        self.kernels = self._kernels()

    def _rows(self, name: str) -> tuple[list[str], list[list[str]]]:
        """The header and the rows of a CSV file."""
        if self._folder is None:
            return [], []
        try:
            with open(self._folder / name, newline="", encoding="utf-8", errors="replace") as file:
                rows = list(csv.reader(file))
        except (OSError, csv.Error):
            return [], []
        width = len(rows[0]) if rows else 0
        return (rows[0], [row for row in rows[1:] if len(row) == width]) if rows else ([], [])

    def _kernels(self) -> Details:
        keys, rows = self._rows("kernel_details.csv")
        try:
            name, start = keys.index("Name"), keys.index("Start Time(us)")
            times = nanoseconds([row[start].strip() for row in rows])
        except ValueError:
            return Details((), [], [], np.empty(0, np.int64))
        return Details(tuple(keys), rows, [row[name] for row in rows], times)

    def _collectives(self) -> dict[str, tuple[str, JSONObject]]:
        """By name of a collective: the name of its group, and its times in communication.json."""
        if self._folder is None:
            return {}
        collectives: dict[str, tuple[str, JSONObject]] = {}
        for step in json_object(self._folder / "communication.json").values():
            for kind in _dicts(step):
                for key, about in _items(kind):
                    name, _, group = key.partition("@")
                    times = about.get("Communication Time Info") if isinstance(about, dict) else None
                    if isinstance(times, dict):
                        chosen = {k: v for k, v in times.items() if "Start" not in k}
                        collectives[name] = group, chosen
        return collectives

    @property
    def device(self) -> int:
        """The number of the device that the memory files name; 0 where they name none."""
        for name in ("memory_record.csv", "npu_module_mem.csv", "operator_memory.csv"):
            keys, rows = self._rows(name)
            for key in ("Device Type", "Device"):
                if key in keys and rows:
                    return _device_number(rows[0][keys.index(key)])
        return 0

    def allocations(self) -> Allocations | None:
        keys, rows = self._rows("operator_memory.csv")
        totals, records = self._rows("memory_record.csv")
        if not keys and not totals:
            return None
        own, record = _CsvColumns(keys, rows), _CsvColumns(totals, records)
        return Allocations(
            name=own.texts("Name"),
            size=np.maximum(own.numbers("Size(KB)", KB), 0),
            start=own.times("Allocation Time(us)"),
            release=first_known(own.times("Active Release Time(us)"), own.times("Release Time(us)")),
            total=own.numbers("Allocation Total Allocated(MB)", MB),
            release_total=own.numbers("Release Total Allocated(MB)", MB),
            device=own.devices("Device Type"),
            component=record.texts("Component"),
            time=record.times("Timestamp(us)"),
            allocated=record.numbers("Total Allocated(MB)", MB),
            reserved=record.numbers("Total Reserved(MB)", MB),
            active=record.numbers("Total Active(MB)", MB),
            record_device=record.devices("Device Type"),
        )


def _dicts(value: JSONValue) -> Iterator[JSONObject]:
    """A step's kinds of communication: p2p, collective."""
    if isinstance(value, dict):
        yield from (inner for inner in value.values() if isinstance(inner, dict))


def _items(value: JSONObject) -> Iterable[tuple[str, JSONValue]]:
    return value.items()


def _device_number(text: str) -> int:
    match = _NUMBER.search(text)
    return int(match[0]) if match and len(match[0]) < _LONGEST_NUMBER else 0


class _CsvColumns:
    """Columns of a CSV file by their title; a column that is absent is empty in every row."""

    def __init__(self, keys: list[str], rows: list[list[str]]) -> None:
        self._rows = rows
        self._place = {key: place for place, key in enumerate(keys)}

    def texts(self, key: str) -> list[str]:
        place = self._place.get(key)
        return [""] * len(self._rows) if place is None else [row[place].strip() for row in self._rows]

    def numbers(self, key: str, factor: int) -> IntArray:
        """Numbers times a factor, rounded; -1: none."""
        values: FloatArray = np.array([_float(text) for text in self.texts(key)], np.float64)
        known = np.abs(values) < LARGEST_NS / factor  # what is no number is not
        scaled = np.rint(np.where(known, values, 0.0) * factor).astype(np.int64)
        return np.where(known, scaled, -1)

    def times(self, key: str) -> IntArray:
        """Nanoseconds; -1: none."""
        return np.array([_time(text) for text in self.texts(key)], np.int64)

    def devices(self, key: str) -> IntArray:
        return np.array([_device_number(text) for text in self.texts(key)], np.int64)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _time(text: str) -> int:
    try:
        time = _exact(text)
    except ValueError:
        return -1
    return time if 0 <= time < LARGEST_NS else -1
