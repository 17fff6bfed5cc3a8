from __future__ import annotations

import numpy as np

from mindtorch_prof.arrays import rows_by


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
