"""Type promotion against a table recorded from torch; ops give what result_type promises."""

from __future__ import annotations

import json
from typing import Any

import fact_files
import promotion_cases as cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype

TABLE: dict[str, Any] = fact_files.read("promotion.json.gz")
if not _dtype.HALF_COMPLEX:  # an older ml_dtypes: the next type takes its place
    TABLE = json.loads(json.dumps(TABLE).replace("complex32", "complex64"))
TENSORS = [form for form in cases.SUMMED if form not in cases.NUMBERS]
WHOLE = [d for d in cases.DTYPES if d not in ("uint16", "uint32", "uint64")]


@pytest.mark.parametrize("first", cases.DTYPES)
@pytest.mark.parametrize("question", ["promote_types", "can_cast"])
def test_two_dtypes_meet_as_in_torch(question: str, first: str) -> None:
    ask = getattr(torch, question)
    ours = [cases.answer(ask, getattr(torch, first), getattr(torch, second)) for second in cases.DTYPES]
    assert dict(zip(cases.DTYPES, ours)) == dict(
        zip(cases.DTYPES, TABLE[question][cases.DTYPES.index(first)])
    )


@pytest.mark.parametrize("default", cases.DEFAULTS)
@pytest.mark.parametrize("first", cases.FORMS)
def test_tensors_and_numbers_meet_as_in_torch(default: str, first: str) -> None:
    ours = [cases.result_type(torch, default, first, second) for second in cases.FORMS]
    wanted = TABLE["result_type"][default][cases.FORMS.index(first)]
    assert dict(zip(cases.FORMS, ours)) == dict(zip(cases.FORMS, wanted))


@pytest.mark.parametrize("first", TENSORS)
def test_a_sum_has_the_dtype_it_has_in_torch(first: str) -> None:
    ours = [cases.of_sum(torch, first, second) for second in cases.SUMMED]
    wanted = TABLE["of_sum"][TENSORS.index(first)]
    assert dict(zip(cases.SUMMED, ours)) == dict(zip(cases.SUMMED, wanted))


def recorded(first: str, second: str) -> str:
    return TABLE["result_type"]["float32"][cases.FORMS.index(first)][cases.FORMS.index(second)]


forms = st.sampled_from([form for form in cases.FORMS if form in cases.NUMBERS or form.split()[0] in WHOLE])
shapes = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)


@settings(max_examples=150)
@given(
    first=forms, second=forms, shape=shapes, name=st.sampled_from(["add", "mul", "maximum", "where", "eq"])
)
def test_ops_follow_the_table_whatever_the_shapes(first: str, second: str, shape: tuple, name: str) -> None:
    if first in cases.NUMBERS or (name == "maximum" and second in cases.NUMBERS):
        first, second = second, first
    if first in cases.NUMBERS:
        return
    a, b = (
        x.expand(shape) if isinstance(x, torch.Tensor) and x.ndim else x
        for x in (cases.operand(torch, form) for form in (first, second))
    )
    expected = recorded(first, second)
    if name == "where":
        made = torch.where(torch.ones(shape, dtype=torch.bool), a, b)
    elif name == "maximum" and (second in cases.NUMBERS or "complex" in expected):
        return
    else:
        made = getattr(torch, name)(a, b)
    if name == "eq":
        expected = "bool"
    assert str(made.dtype) == f"torch.{expected}"


@settings(max_examples=100)
@given(st.sampled_from(WHOLE), st.sampled_from(WHOLE))
def test_promotion_does_not_mind_the_order_and_keeps_equals(first: str, second: str) -> None:
    a, b = getattr(torch, first), getattr(torch, second)
    assert torch.promote_types(a, b) is torch.promote_types(b, a)
    assert torch.promote_types(a, a) is a


@pytest.mark.parametrize(
    ("default", "number", "wanted"),
    [
        ("float16", 1j, "complex32"),
        ("bfloat16", 1j, "complex64"),
        ("bfloat16", 1.5, "bfloat16"),
        ("float16", 1.5, "float16"),
    ],
)
def test_integers_and_a_number_make_the_dtype_of_the_default(
    default: str, number: complex, wanted: str
) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        results = [torch.tensor([1, 2]) + number, number - torch.tensor([1]), torch.tensor([True]) * number]
    finally:
        torch.set_default_dtype(before)
    expected = getattr(torch, wanted) if wanted != "complex32" or _dtype.HALF_COMPLEX else torch.complex64
    assert [result.dtype for result in results] == [expected] * 3
