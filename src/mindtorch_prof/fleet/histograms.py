"""Histograms of durations: names and durations in; per name count, sum, extremes and a histogram out, which add up over files.

Bins are fixed and the same everywhere: 20 per factor of two, so that a bin's middle is within 1.8 % of everything in it. All figures are
integers, so that adding them is exact: the order of files cannot change a digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, IntArray
from ..json_types import JSONObject, JSONValue
from ..trace import Columns

_PER_DOUBLING = 20
# The lower edge of each bin, in nanoseconds. Integers: durations are, and no rounding of a logarithm can put one into another bin.
_EDGES: IntArray = np.unique(
    np.concatenate([[0], np.ceil(np.exp2(np.arange(62 * _PER_DOUBLING) / _PER_DOUBLING)).astype(np.int64)])
)
_MIDDLE: FloatArray = np.sqrt(_EDGES[:-1].astype(float) * (_EDGES[1:] - 1))


@dataclass(frozen=True)
class Durations(Columns):
    """Per name, in alphabetic order: how often, how long in all, and a histogram of the durations. Times in nanoseconds."""

    names: tuple[str, ...]
    count: IntArray  # by name
    total_ns: IntArray
    self_ns: IntArray  # the part that no event inside it takes
    shortest_ns: IntArray
    longest_ns: IntArray
    bin_name: IntArray  # into `names`; in the order of (name, bin)
    bin: IntArray
    bin_count: IntArray

    @staticmethod
    def none() -> Durations:
        """No durations at all."""
        empty = np.empty(0, np.int64)
        return Durations((), empty, empty, empty, empty, empty, empty, empty, empty)

    @staticmethod
    def of(
        names: Sequence[str], name: IntArray, duration_ns: IntArray, self_ns: IntArray | None = None
    ) -> Durations:
        """Of events; `name` is into `names`. A negative duration counts as 0."""
        if not len(name):
            return Durations.none()
        own = duration_ns if self_ns is None else self_ns
        numbers, which = np.unique(name, return_inverse=True)
        present = [names[number] for number in numbers.tolist()]
        order = sorted(range(len(present)), key=lambda place: present[place])
        new_place = np.empty(len(order), np.int64)
        new_place[order] = np.arange(len(order))
        which = new_place[which.reshape(-1)]
        duration = np.maximum(duration_ns, 0).astype(np.int64)
        bins = np.searchsorted(_EDGES, duration, side="right") - 1
        cells, cell_count = np.unique(which * len(_EDGES) + bins, return_counts=True)
        shortest = np.full(len(order), np.iinfo(np.int64).max)
        longest = np.zeros(len(order), np.int64)
        np.minimum.at(shortest, which, duration)
        np.maximum.at(longest, which, duration)
        return Durations(
            tuple(present[place] for place in order),
            np.bincount(which, minlength=len(order)).astype(np.int64),
            _sums(which, duration, len(order)),
            _sums(which, np.maximum(own, 0).astype(np.int64), len(order)),
            shortest,
            longest,
            cells // len(_EDGES),
            cells % len(_EDGES),
            cell_count.astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: str) -> int:
        """Where a name stands in `names`; -1: it does not."""
        return self.names.index(name) if name in self.names else -1

    def quantiles(self, share: float) -> FloatArray:
        """By name the duration in nanoseconds that a share (0 to 1) of the events does not exceed, within 2 %."""
        wanted = np.maximum(np.ceil(self.count * share), 1)
        before = np.concatenate([[0], np.cumsum(self.bin_count)])
        first = np.searchsorted(self.bin_name, np.arange(len(self)))
        place = np.searchsorted(before, before[first] + wanted, side="left") - 1
        middle = _MIDDLE[self.bin[place]] if len(place) else np.empty(0)
        return np.clip(middle, self.shortest_ns, self.longest_ns)

    def shortened(self, most: int) -> Durations:
        """At most so many names, those with the most time of their own; the others are added up as `OTHERS`."""
        if len(self) <= most:
            return self
        kept = np.zeros(len(self), bool)
        kept[np.lexsort((np.arange(len(self)), -self.self_ns))[: most - 1]] = True
        renamed = replace(
            self, names=tuple(name if keep else OTHERS for name, keep in zip(self.names, kept.tolist()))
        )
        return _summed(renamed)

    def to_json(self) -> tuple[JSONObject, dict[str, IntArray]]:
        """Values and arrays for `packing`."""
        return {"names": list(self.names)}, {key: getattr(self, key) for key in _ARRAYS}

    @staticmethod
    def from_json(values: JSONValue, arrays: dict[str, IntArray]) -> Durations:
        """Back from `to_json`."""
        names = values["names"] if isinstance(values, dict) else []
        texts = tuple(str(name) for name in names) if isinstance(names, list) else ()
        return Durations(texts, *(arrays[key] for key in _ARRAYS))


OTHERS = "(other names)"
_ARRAYS = (
    "count",
    "total_ns",
    "self_ns",
    "shortest_ns",
    "longest_ns",
    "bin_name",
    "bin",
    "bin_count",
)


def merged(parts: Iterable[Durations]) -> Durations:
    """The durations of several files together. Neither the order nor the grouping of the files matters."""
    tables = [part for part in parts if len(part)]
    if not tables:
        return Durations.none()
    first = np.cumsum([0, *(len(table) for table in tables)])
    return _summed(
        Durations(
            tuple(name for table in tables for name in table.names),
            bin_name=np.concatenate([table.bin_name + start for table, start in zip(tables, first.tolist())]),
            **{
                key: np.concatenate([getattr(table, key) for table in tables])
                for key in _ARRAYS
                if key != "bin_name"
            },
        )
    )


def _summed(table: Durations) -> Durations:
    """The same with one row per name, where names stand several times and in any order."""
    names = sorted(set(table.names))
    place_of = {name: place for place, name in enumerate(names)}
    which = np.array([place_of[name] for name in table.names], np.int64)
    count = len(names)
    shortest = np.full(count, np.iinfo(np.int64).max)
    longest = np.zeros(count, np.int64)
    np.minimum.at(shortest, which, table.shortest_ns)
    np.maximum.at(longest, which, table.longest_ns)
    cells, place = np.unique(which[table.bin_name] * len(_EDGES) + table.bin, return_inverse=True)
    return Durations(
        tuple(names),
        _sums(which, table.count, count),
        _sums(which, table.total_ns, count),
        _sums(which, table.self_ns, count),
        shortest,
        longest,
        cells // len(_EDGES),
        cells % len(_EDGES),
        _sums(place.reshape(-1), table.bin_count, len(cells)),
    )


def _sums(which: IntArray, values: IntArray, count: int) -> IntArray:
    """Exact sums of integers by place: bincount would add floats."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, which, values)
    return sums
