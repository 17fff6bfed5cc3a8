"""Measurements: statistics and a summary of the times of a statement."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import mindtorch_v2 as torch

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9  # seconds: the limit of clock resolution
_IQR_WARN_THRESHOLD = 0.1  # of the median
_IQR_GROSS_THRESHOLD = 0.25
_SLIGHT, _GROSS = "could indicate system fluctuation", "suggests significant environmental influence"
_Z_VALUE = 1.645  # two-sided 90 %


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The statement that was measured, and its labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement if there is none, with the sub-label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup with a heading; empty for the default one."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup on separate lines."""
        sections = [self.title, self.description or "", self.setup_str()]
        return "\n".join(section + ("\n" if "\n" in section else "") for section in sections if section)


_TASK_FIELDS = frozenset(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one statement: `raw_times` are seconds of `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _TASK_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of a single run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the times; -1 if there are none."""
        return float(np.median(self.times)) if self.raw_times else -1.0

    @property
    def mean(self) -> float:
        """The mean of the times; -1 if there are none."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    def _quartiles(self) -> tuple[float, float]:
        if not self.raw_times:
            return -1.0, -1.0
        low, high = np.quantile(self.times, (0.25, 0.75))
        return float(low), float(high)

    @property
    def iqr(self) -> float:
        """The distance between the first and the third quartile."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """The number of reliable digits of the median, estimated from the interquartile range."""
        n = len(self.raw_times)
        middle = sorted(self.times)[n // 4 : n - n // 4]
        interval = max(_Z_VALUE * float(np.std(middle)) / math.sqrt(len(middle)), _MIN_CONFIDENCE_INTERVAL)
        figures = math.floor(math.log10(self.median / interval)) if self.median > 0 else 1
        return max(1, min(_MAX_SIGNIFICANT_FIGURES, figures))

    @property
    def has_warnings(self) -> bool:
        """Whether the spread of the times is too large to trust them."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _IQR_WARN_THRESHOLD) -> bool:
        """Whether the spread is at most `threshold` of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The environment of the measurement."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The row name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        task, n = self.task_spec, len(self.raw_times)
        unit, scale = select_unit(self.median)
        lines = [object.__repr__(self), task.summarize()]
        if n == 1:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        else:
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if n >= 4:
            low, high = self._quartiles()
            spread = f"({low / scale:.2f} to {high / scale:.2f})"
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} {spread}")
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement' if n > 1 else ''}, {task.num_threads} "
            f"thread{'s' if task.num_threads > 1 else ''}"
        )
        if self.has_warnings:
            ratio = self.iqr / self.median
            lines += [
                f"  WARNING: Interquartile range is {ratio * 100:.1f}% of the median measurement.",
                f"           This {_GROSS if ratio > _IQR_GROSS_THRESHOLD else _SLIGHT}.",
            ]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement per task, merged from all measurements of it."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            grouped.setdefault(measurement.task_spec, []).append(measurement)
        return [_merged(spec, group) for spec, group in grouped.items()]


def _merged(spec: TaskSpec, group: list[Measurement]) -> Measurement:
    return Measurement(1, [t for measurement in group for t in measurement.times], spec, None)


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time in seconds: its name and its length in seconds."""
    if not math.isfinite(t) or t <= 0:
        return "s", 1
    return {-3: ("ns", 1e-9), -2: ("us", 1e-6), -1: ("ms", 1e-3)}.get(
        math.floor(math.log10(t)) // 3, ("s", 1)
    )


def unit_to_english(u: str) -> str:
    """A unit's name in full."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` significant figures."""
    if n <= 0 or x == 0:
        return 0.0
    factor = 10.0 ** (n - math.ceil(math.log10(abs(x))))
    # in single precision, as torch's tensors are
    return float(np.round(np.float32(x) * np.float32(factor)) * np.float32(1 / factor))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in order of first appearance."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Context manager: use `n` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
