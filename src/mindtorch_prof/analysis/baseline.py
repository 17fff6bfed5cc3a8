"""Baselines, which `check` compares with: recordings in, counters and repeated times per row out; writing them to a JSON file, and reading it.

The file has a version, sorted keys and one row per line, so that a text diff of two baselines is readable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..files import open_for_export
from .noise import quantiles
from .recording import Recording, as_results
from .repeats import COUNTERS, TIMES, Key, Measured, measure

FORMAT = "mindtorch-prof baseline"
VERSION = 1  # 1: rows by key with counters, shapes and times per steps, runs and calls
_SAMPLES = 25  # repeats of each time that the file holds: enough for a rank test

Range = tuple[float, float]  # lowest and highest among the recordings
# "steps", "calls", "runs" -> microseconds of each; a run's time is the median of its steps, or the total without steps
Times = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class BaseRow:
    """One row: counters per step or run, calls by input shapes, and times."""

    counters: dict[str, Range]
    shapes: dict[str, Range] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """The figures of one version of a program."""

    by: tuple[str, ...]
    per: str  # "step" or "run": counters and times are per step or per run
    runs: int  # recordings
    steps: int  # in all recordings together; 0 if `per` is "run"
    has: frozenset[str]  # which of "shapes", "memory", "flops", "device" all recordings have
    rows: dict[Key, BaseRow]
    total: BaseRow  # sums over all rows: counters, peak_memory, times
    source: str = ""


def make_baseline(
    recordings: Sequence[Recording], by: Sequence[str] = ("op",), *, use_steps: bool = True, source: str = ""
) -> Baseline:
    """Measure one or several recordings of the same program: profiles, Results or Traces."""
    if not recordings:
        raise ValueError("no recordings; expected one or more")
    results = [as_results(recording) for recording in recordings]
    sides = [measure(r, by, use_steps=use_steps) for r in results]
    per_step = all(side.steps for side in sides)
    if not per_step and any(side.steps for side in sides):
        sides = [measure(r, by, use_steps=False) for r in results]
    has = frozenset.intersection(*[side.has for side in sides])
    shapes = [measure(r, ("op", "shape"), use_steps=per_step) for r in results] if "shapes" in has else []
    metrics = TIMES if "device" in has else TIMES[:2]
    keys = sorted({key for side in sides for key in side.keys})
    samples = {metric: [side.samples(metric) for side in sides] for metric in metrics}
    by_op = _shapes_by_op(shapes) if tuple(by) == ("op",) else {}
    rows = {key: _row(key, sides, samples, by_op.get(key[0], {})) for key in keys}
    return Baseline(
        tuple(by),
        "step" if per_step else "run",
        len(sides),
        sum(len(side.steps) for side in sides),
        has & {"shapes", "memory", "flops", "device"},
        rows,
        _total(sides, metrics),
        source,
    )


def _range(values: Sequence[float]) -> Range:
    return min(values), max(values)


def _per_run(total: int, runs: int) -> float:
    """A counter per step (or run); an integer if it divides evenly."""
    return total // runs if total % runs == 0 else round(total / runs, 6)


def _row(
    key: Key, sides: list[Measured], samples: dict[str, list[list[FloatArray]]], shapes: dict[str, Range]
) -> BaseRow:
    places = [side.place.get(key) for side in sides]
    counters = {
        name: _range(
            [0 if i is None else _per_run(int(s.totals[name][i]), s.runs) for s, i in zip(sides, places)]
        )
        for name in COUNTERS
    }
    times: dict[str, Times] = {}
    for metric, lists in samples.items():
        samples_of_row = [values[i] for values, i in zip(lists, places) if i is not None]
        if sides[0].steps:
            medians = [float(np.median(values)) for values in samples_of_row]
            times[metric] = {
                "steps": _stored(np.concatenate(samples_of_row)),
                "runs": _stored(np.array(medians)),
            }
        else:
            sums = [0.0 if i is None else float(s.totals[metric][i]) / 1000 for s, i in zip(sides, places)]
            times[metric] = {
                "calls": _stored(np.concatenate(samples_of_row)),
                "runs": _stored(np.array(sums)),
            }
    return BaseRow(counters, shapes, times)


def _stored(values: FloatArray) -> tuple[float, ...]:
    """Repeats as the file holds them: few, and with four digits."""
    return tuple(float(f"{value:.4g}") for value in quantiles(values, _SAMPLES).tolist())


def _total(sides: list[Measured], metrics: Sequence[str]) -> BaseRow:
    counters = {
        name: _range([_per_run(int(side.totals[name].sum()), side.runs) for side in sides])
        for name in COUNTERS
    }
    counters["ops"] = _range([len(side.keys) for side in sides])
    peaks = [side.peak_memory for side in sides if side.peak_memory is not None]
    if len(peaks) == len(sides):
        counters["peak_memory"] = _range(peaks)
    times: dict[str, Times] = {}
    for metric in metrics:
        if not metric.startswith("self_"):
            continue  # rows contain each other: only self times add up
        if sides[0].steps:
            sums = [side.columns[metric].sum(axis=0) / 1000.0 for side in sides]
            medians = [float(np.median(values)) for values in sums]
            times[metric] = {"steps": _stored(np.concatenate(sums)), "runs": _stored(np.array(medians))}
        else:
            times[metric] = {
                "runs": _stored(np.array([side.totals[metric].sum() / 1000.0 for side in sides]))
            }
    return BaseRow(counters, {}, times)


def _shapes_by_op(sides: list[Measured]) -> dict[str, dict[str, Range]]:
    """For each op, the number of calls by input shapes."""
    calls: dict[str, dict[str, Range]] = {}
    for op, shape in sorted({key for side in sides for key in side.keys}):
        counts = []
        for side in sides:
            place = side.place.get((op, shape))
            counts.append(0 if place is None else _per_run(int(side.totals["count"][place]), side.runs))
        calls.setdefault(op, {})[shape] = _range(counts)
    return calls


# ---------------------------------------------------------------------------------------------------- files


def write_baseline(baseline: Baseline, path: str | os.PathLike[str]) -> None:
    """Write a baseline file."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "by": list(baseline.by),
        "per": baseline.per,
        "runs": baseline.runs,
        "steps": baseline.steps,
        "has": sorted(baseline.has),
        "total": _plain_row(baseline.total),
    }
    rows = ["    " + _json([*key, _plain_row(row)]) for key, row in sorted(baseline.rows.items())]
    texts = {key: _json(value) for key, value in head.items()}
    texts["rows"] = "[\n" + ",\n".join(rows) + "\n  ]"
    text = "{\n" + ",\n".join(f"  {json.dumps(key)}: {texts[key]}" for key in sorted(texts)) + "\n}\n"
    with open_for_export(path) as out:
        out.write(text.encode())


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _plain_range(value: Range) -> float | list[float]:
    return value[0] if value[0] == value[1] else list(value)


def _plain_row(row: BaseRow) -> dict[str, object]:
    document: dict[str, object] = {name: _plain_range(value) for name, value in row.counters.items()}
    if row.shapes:
        document["shapes"] = {shape: _plain_range(value) for shape, value in row.shapes.items()}
    for metric, times in row.times.items():
        document[f"{metric}_us"] = {unit: list(values) for unit, values in times.items()}
    return document


def is_baseline(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a baseline: keys are sorted, so `format` is near the start."""
    try:
        with open(path, "rb") as file:
            return f'"format": "{FORMAT}"'.encode() in file.read(4096)
    except OSError:
        return False


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline file."""
    name = os.fspath(path)
    with open(path, encoding="utf-8") as file:
        try:
            data = json.load(file)
        except ValueError as error:
            raise ValueError(
                f"{name}: not valid JSON ({error}); expected a baseline written by `check --write-baseline`"
            ) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"{name}: not a baseline; expected a file written by `check --write-baseline`")
    if data.get("version") != VERSION:
        raise ValueError(
            f"{name}: a baseline of version {data.get('version')!r}; expected version {VERSION}: write it again"
        )
    try:
        rows = {tuple(map(str, entry[:-1])): _parsed_row(entry[-1]) for entry in data["rows"]}
        return Baseline(
            tuple(data["by"]),
            str(data["per"]),
            int(data["runs"]),
            int(data["steps"]),
            frozenset(data["has"]),
            rows,
            _parsed_row(data["total"]),
            name,
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(f"{name}: a damaged baseline ({error!r}); write it again") from error


def _parsed_range(value: Any) -> Range:
    if isinstance(value, list):
        return value[0] + 0, value[1] + 0
    return value + 0, value + 0


def _parsed_row(data: dict[str, Any]) -> BaseRow:
    counters, times = {}, {}
    for name, value in data.items():
        if name.endswith("_us"):
            times[name[:-3]] = {unit: tuple(map(float, values)) for unit, values in value.items()}
        elif name != "shapes":
            counters[name] = _parsed_range(value)
    shapes = {shape: _parsed_range(value) for shape, value in data.get("shapes", {}).items()}
    return BaseRow(counters, shapes, times)
