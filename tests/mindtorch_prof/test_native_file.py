"""Tests of mindtorch_prof.native_file: how values are written; test_native reads whole traces."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.inputs import IndexList, TensorInput, TensorList
from mindtorch_prof.load.native import unpacked
from mindtorch_prof.native_file import packed

NUMBERS = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text()
VALUES = st.recursive(
    NUMBERS | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner)
    ),
    max_leaves=10,
)


@given(value=VALUES)
def test_any_plain_value_comes_back_as_it_was(value: Any) -> None:
    again = unpacked(json.loads(json.dumps(packed(value))))
    assert repr(again) == repr(value)


def test_lists_of_tensors_keep_their_class() -> None:
    tensors = TensorList([TensorInput((2,), None, "float")])
    for value in (tensors, IndexList(tensors), (1, tensors)):
        again = unpacked(packed(value))
        assert type(again) is type(value)
        assert again == value
    assert math.isnan(unpacked(packed(float("nan"))))  # type: ignore[arg-type]
