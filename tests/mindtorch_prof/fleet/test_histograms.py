"""Histograms of durations: quantiles within 2 %, and sums that do not depend on the order of files."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.fleet.histograms import OTHERS, Durations, merged

NAMES = ("aten::mm", "aten::add", "b", "a")
events = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 10**12) | st.integers(0, 50)), min_size=1, max_size=60
)


def durations(rows: list[tuple[int, int]]) -> Durations:
    name, time = np.array(rows, np.int64).T
    return Durations.of(NAMES, name, time)


def plain(table: Durations) -> tuple[object, ...]:
    return tuple(v.tolist() if isinstance(v, np.ndarray) else v for v in vars(table).values())


@given(events, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_quantiles_are_within_two_percent_of_the_exact_ones(
    rows: list[tuple[int, int]], share: float
) -> None:
    table = durations(rows)
    estimate = table.quantiles(share)
    for place, name in enumerate(table.names):
        exact = np.quantile([t for n, t in rows if NAMES[n] == name], share, method="inverted_cdf")
        assert abs(estimate[place] - exact) <= 0.02 * exact


@given(events, events, events)
def test_merging_gives_the_table_of_all_events_in_any_order_and_grouping(
    a: list[tuple[int, int]], b: list[tuple[int, int]], c: list[tuple[int, int]]
) -> None:
    x, y, z = map(durations, (a, b, c))
    whole = plain(durations(a + b + c))
    assert plain(merged([x, y, z])) == whole
    assert plain(merged([merged([z, x]), y])) == whole
    assert plain(merged([z, merged([y, x])])) == whole


def test_counts_sums_and_extremes_are_exact() -> None:
    table = durations([(1, 5), (1, 2**60 + 1), (0, 7)])
    assert table.names == ("aten::add", "aten::mm")
    assert table.count.tolist() == [2, 1]
    assert table.total_ns.tolist() == [2**60 + 6, 7]
    assert (table.shortest_ns.tolist(), table.longest_ns.tolist()) == ([5, 7], [2**60 + 1, 7])


def test_of_too_many_names_the_shortest_are_added_up() -> None:
    table = durations([(0, 10), (1, 3), (2, 4), (3, 20)]).shortened(3)
    assert table.names == (OTHERS, "a", "aten::mm")
    assert table.total_ns.tolist() == [7, 20, 10]
    assert merged([Durations.none(), Durations.none()]).names == ()
