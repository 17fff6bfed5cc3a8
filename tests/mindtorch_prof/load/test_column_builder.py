"""Columns that grow: rows that are added in many small parts."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.load.column_builder import ColumnBuilder


def test_rows_that_come_one_by_one_are_joined_before_they_are_many() -> None:
    builder = ColumnBuilder(name=np.int32, start=np.int64)
    for time in range(3000):
        builder.add({"name": [0], "start": [float(time)]})
        assert len(builder._open["start"]) < 1025
    assert len(builder.whole()["start"]) == 3000
