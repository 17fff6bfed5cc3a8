"""Inputs of events: from recordings and from files, as torch shows them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_prof.inputs import ELEMENT_TYPES, Inputs, TensorInput, TensorList


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1."),
        (0.1, "0.10000000000000001"),
        (-0.0, "-0."),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
        (True, "True"),
        (3, "3"),
        ((1, 2), "[1, 2]"),
        (None, ""),
        ("text", ""),
        (tuple(range(31)), ""),
    ],
)
def test_numbers_are_written_as_torch_prints_them(value: Any, text: str) -> None:
    assert Inputs((value,)).concrete == [text]


tensors = st.builds(
    lambda sizes, type: TensorInput(tuple(size for size, _ in sizes), tuple(step for _, step in sizes), type),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3),
    st.sampled_from(sorted(ELEMENT_TYPES)),
)
numbers = st.booleans() | st.integers() | st.floats(allow_nan=False)
arguments = st.one_of(
    tensors,
    st.lists(tensors, max_size=3).map(TensorList),
    numbers,
    st.lists(st.integers(), max_size=5).map(tuple),
    st.none(),
    st.text(max_size=3),
)


@given(st.lists(arguments, max_size=5))
def test_inputs_read_from_a_file_are_those_that_were_written(arguments: list[Any]) -> None:
    written = Inputs(arguments)
    document = written.document()
    keys = ("Concrete Inputs", "Input type", "Input Strides", "Input Dims")
    read = Inputs.from_json(orjson.dumps([document[key] for key in keys]))
    for field in ("concrete", "types", "strides", "dims", "shapes", "values"):
        assert getattr(read, field) == getattr(written, field), field


@pytest.mark.parametrize(
    ("tensor", "nbytes"),
    [
        (TensorInput((2, 3), (3, 1), "float"), 24),
        (TensorInput((3, 2), (1, 3), "double"), 48),
        (TensorInput((), (), "bool"), 1),
        (TensorInput((2, 3), (), "float"), 0),
        (TensorInput((2, 3), None, "float"), 0),
        (TensorInput((2, 3), (3, 1), "a type of tomorrow"), 0),
    ],
    ids=["contiguous", "transposed", "a number", "sparse", "strides not recorded", "type not known"],
)
def test_a_tensor_spans_its_longest_dimension_and_nothing_where_that_is_not_known(
    tensor: TensorInput, nbytes: int
) -> None:
    assert tensor.reach() == nbytes


def test_files_that_lack_strides_or_types_still_have_shapes() -> None:
    inputs = Inputs.from_json(b'[null, ["float"], null, [[2, 3], [4]]]')
    assert inputs.shapes == [[2, 3], [4]]
    assert inputs.tensors == [True, False]
    assert inputs.arguments[0] == TensorInput((2, 3), None, "float")
