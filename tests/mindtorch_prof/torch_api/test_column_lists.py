"""Columns as lists of Python values."""

from __future__ import annotations

import numpy as np

from mindtorch_prof.torch_api.column_lists import int_list, value_list


def test_integers_of_any_width_become_pythons() -> None:
    values = int_list(np.array([3, -1, 1 << 40], np.int64))
    assert values == [3, -1, 1 << 40]
    assert {type(value) for value in (*values, *int_list(np.array([7], np.int8)))} == {int}


def test_values_are_looked_up_by_index_and_stay_the_same_objects() -> None:
    table = (("a", "b"), ("c", "d"), "e")
    assert value_list(table[:2], np.array([1])) == [("c", "d")]
    values = value_list(table, np.array([2, 0, 0, 1], np.int32))
    assert values == ["e", ("a", "b"), ("a", "b"), ("c", "d")]
    assert values[1] is table[0]
    assert value_list((), np.empty(0, np.int32)) == []
