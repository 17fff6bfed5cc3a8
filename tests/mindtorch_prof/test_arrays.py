from __future__ import annotations

import numpy as np
import pytest

from mindtorch_prof.arrays import distinct, distinct_values, first_rows, rows_by, stable_order

COLUMNS = {
    "close together": np.array([7, -1, 7, 3, -1, 7]),
    "far apart": np.array([2**62, -(2**62), 5, 2**62, 0]),
    "of 8 bits": np.array([127, -128, 0, 127, -5], np.int8),
    "empty": np.empty(0, np.int32),
    "random": np.random.default_rng(0).integers(-50, 50, 300),
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_distinct_values_and_their_places_are_those_of_numpy(values: np.ndarray) -> None:
    expected, place = np.unique(values, return_inverse=True)
    found, found_place = distinct(values)
    assert found.tolist() == distinct_values(values).tolist() == expected.tolist()
    assert found_place.tolist() == place.reshape(-1).tolist()


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_first_rows_are_those_of_numpy(values: np.ndarray) -> None:
    found, place = distinct(values)
    assert first_rows(place, len(found)).tolist() == np.unique(values, return_index=True)[1].tolist()


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_the_order_of_rows_by_value_is_stable(values: np.ndarray) -> None:
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_rows_by_gives_each_value_once_with_its_rows_in_order() -> None:
    values = np.array([7, -1, 7, 3, -1, 7])
    assert [(value, rows.tolist()) for value, rows in rows_by(values)] == [
        (-1, [1, 4]),
        (3, [3]),
        (7, [0, 2, 5]),
    ]


def test_rows_by_of_an_empty_column_gives_nothing() -> None:
    assert list(rows_by(np.empty(0, np.int64))) == []


def test_rows_by_reads_the_column_a_fixed_number_of_times_however_many_values_it_has() -> None:
    class Counted(np.ndarray):
        reads = 0

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            Counted.reads += 1
            plain = [np.asarray(each) if isinstance(each, Counted) else each for each in inputs]
            return getattr(ufunc, method)(*plain, **kwargs)

    values = np.arange(1000).view(Counted)
    assert len(list(rows_by(values))) == 1000
    assert Counted.reads < 10
