"""Instruction counts by function: sums, differences and tables of (count, name) pairs."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..common import TaskSpec

_SHOWN_AT_EACH_END = 9
_NOISY = "dictobject.c:lookdict_unicode"
_LIBRARY = re.compile(r"\s\[.+\]$")
_PLACES = tuple((re.compile("^.+" + place), place) for place in ("build/aten/", "Python/", "Objects/"))


class FunctionCount(NamedTuple):
    """The number of instructions of a function."""

    count: int  # type: ignore[assignment]  # a name of tuples too
    function: str


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Ordered counts of many functions."""

    _data: tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True
    _linewidth: int | None = None

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Any:
        found = self._data[item]
        return dataclasses.replace(self, _data=found) if isinstance(item, slice) else found

    def __repr__(self) -> str:
        widest = max([len(str(count)) + (count < 0) for count, _ in self._data], default=0)
        line = self._linewidth or torch._tensor_str.PRINT_OPTS.linewidth
        name_width = max(line - widest - 4, 40)
        rows = [f"  {count:>{widest}}  {_shortened(name, name_width)}" for count, name in self._data]
        if self.truncate_rows and len(rows) > 2 * _SHOWN_AT_EACH_END:
            rows[_SHOWN_AT_EACH_END:-_SHOWN_AT_EACH_END] = ["...".rjust(widest + 2)]
        lines = [object.__repr__(self), *rows]
        if not self.inclusive:
            lines += ["", f"Total: {self.sum()}"]
        return "\n".join(lines)

    def __add__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: count)

    def __sub__(self, other: FunctionCounts) -> FunctionCounts:
        return self._merge(other, lambda count: -count)

    def _merge(self, second: FunctionCounts, merge_fn: Callable[[int], int]) -> FunctionCounts:
        if self.inclusive != second.inclusive:
            raise AssertionError("Cannot merge inclusive and exclusive counts.")
        counts: defaultdict[str, int] = defaultdict(int)
        for count, function in self:
            counts[function] += count
        for count, function in second:
            counts[function] += merge_fn(count)
        return self._from_dict(counts, self.inclusive)

    @staticmethod
    def _from_dict(counts: dict[str, int], inclusive: bool) -> FunctionCounts:
        found = (FunctionCount(count, function) for function, count in counts.items() if count)
        return FunctionCounts(tuple(sorted(found, reverse=True)), inclusive)

    def transform(self, map_fn: Callable[[str], str]) -> FunctionCounts:
        """Rename functions; counts of equal names are added."""
        counts: defaultdict[str, int] = defaultdict(int)
        for count, function in self._data:
            counts[map_fn(function)] += count
        return self._from_dict(counts, self.inclusive)

    def filter(self, filter_fn: Callable[[str], bool]) -> FunctionCounts:
        """Only the functions for which `filter_fn` returns True."""
        return FunctionCounts(tuple(i for i in self if filter_fn(i.function)), self.inclusive)

    def sum(self) -> int:
        """The sum of all counts."""
        return sum(count for count, _ in self._data)

    def denoise(self) -> FunctionCounts:
        """Without lookups in Python's dictionaries, whose number varies between runs."""
        return self.filter(lambda function: _NOISY not in function)


def _shortened(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    left = (room - 5) // 2
    return f"{name[:left]} ... {name[-(room - 5 - left) :]}"


@dataclasses.dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """Callgrind's counts of a statement, and of an empty statement as baseline."""

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: str | None

    def __repr__(self) -> str:
        base, threads = self.baseline_exclusive_stats, self.task_spec.num_threads
        lines = [
            object.__repr__(self),
            self.task_spec.summarize(),
            f"{'All':>30}{'':>10}Noisy symbols removed",
            f"    Instructions: {self.counts():>12}{'':>15}{self.counts(denoise=True):>12}",
            f"    Baseline:     {base.sum():>12}{'':>15}{base.denoise().sum():>12}",
            f"{self.number_per_run} runs per measurement, {threads} thread{'s' if threads > 1 else ''}",
        ]
        if not self.built_with_debug_symbols:
            lines += [
                "Warning: PyTorch was not built with debug symbols.",
                "         Source information may be limited. Rebuild with",
                "         REL_WITH_DEB_INFO=1 for more detailed results.",
            ]
        return "\n".join(lines)

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """The counts of the statement; `inclusive`: each function with its callees."""
        return self.stmt_inclusive_stats if inclusive else self.stmt_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """The total count of the statement."""
        stats = self.stmt_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other: CallgrindStats, inclusive: bool = False) -> FunctionCounts:
        """The difference of each function's count to `other`."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> CallgrindStats:
        """The same counts with names that do not depend on where the libraries were built and installed."""

        def plain(stats: FunctionCounts) -> FunctionCounts:
            return stats.transform(_standard_name)

        return dataclasses.replace(
            self,
            baseline_inclusive_stats=plain(self.baseline_inclusive_stats),
            baseline_exclusive_stats=plain(self.baseline_exclusive_stats),
            stmt_inclusive_stats=plain(self.stmt_inclusive_stats),
            stmt_exclusive_stats=plain(self.stmt_exclusive_stats),
        )


def _standard_name(function: str) -> str:
    function = _LIBRARY.sub("", function)
    for before, place in _PLACES:
        function = before.sub(place, function)
    return function
