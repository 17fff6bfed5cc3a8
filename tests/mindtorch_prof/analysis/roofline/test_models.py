"""Models of ops: FLOP equal torch's FlopCounterMode, whose counts of these inputs were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roofline_inputs import T, file_inputs, work

from mindtorch_prof.analysis.roofline.models import known_ops, model_of, work_of
from mindtorch_prof.analysis.roofline.work import NotModelled
from mindtorch_prof.inputs import Inputs

FACTS = json.loads((Path(__file__).parents[2] / "facts" / "flop_counter.json").read_text())["ops"]


def inputs_of(fact: dict[str, Any]) -> Inputs:
    return Inputs.from_json(orjson.dumps(fact["inputs"]))


@pytest.mark.parametrize("fact", FACTS, ids=[f"{i}-{fact['name']}" for i, fact in enumerate(FACTS)])
def test_flop_equal_torch_s_counter(fact: dict[str, Any]) -> None:
    concrete, _, _, dims = fact["inputs"]
    expected = fact["flop"]
    if fact["name"] in ("aten::addmm", "aten::baddbmm"):  # torch leaves the addition out
        *batch, rows, _ = dims[1]
        expected += rows * dims[2][-1] * (batch[0] if batch else 1)
    if fact["name"] == "aten::convolution_backward" and concrete[9] != "1":
        # torch multiplies each group's gradient of the weight by the number of groups
        mask, groups = concrete[10], int(concrete[9])
        if mask == "[False, True, False]":
            expected //= groups
        elif mask == "[True, True, False]":
            expected = 2 * expected // (groups + 1)
    assert work_of(fact["name"], inputs_of(fact)).flop == expected


def test_the_facts_hold_every_family_that_torch_counts() -> None:
    names = {fact["name"] for fact in FACTS}
    assert {
        "aten::mm",
        "aten::convolution_backward",
        "aten::_scaled_dot_product_flash_attention_backward",
    } <= names


def test_an_overload_has_the_model_of_its_op() -> None:
    assert model_of("aten::add.Tensor") is model_of("aten::add")


def test_an_op_without_a_model_says_so() -> None:
    with pytest.raises(NotModelled, match="no model"):
        work("aten::unheard_of", T((2, 3)))


@pytest.mark.parametrize(
    "name", ["aten::mm", "aten::convolution", "aten::add", "aten::sum", "aten::embedding"]
)
def test_inputs_that_an_op_does_not_take_are_not_modelled(name: str) -> None:
    for arguments in ((), (1,), (None, None), (T((), "Int"),)):
        with pytest.raises(NotModelled):
            work_of(name, file_inputs(*arguments))


def test_another_library_s_name_for_a_product_is_modelled_by_its_shapes() -> None:
    product = work("aten::linear", T((8, 16)), T((32, 16)), T((32,)))
    assert work("vllm::rocm_unquantized_gemm", T((8, 16)), T((32, 16)), T((32,))) == product
    assert model_of("liger::fused_linear_cross_entropy") is None


ARGUMENTS = st.one_of(
    st.builds(
        T,
        st.lists(st.integers(0, 9), max_size=5).map(tuple),
        st.sampled_from(["float", "c10::BFloat16", "long int", "bool", "Int", "unheard of"]),
        st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=5).map(tuple)),
    ),
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.floats(-2, 2),
    st.lists(st.integers(-3, 9), max_size=4),
    st.lists(st.booleans(), max_size=4),
)


@given(name=st.sampled_from(known_ops()), arguments=st.lists(ARGUMENTS, max_size=15))
@settings(max_examples=1500)
def test_whatever_the_inputs_work_is_not_negative_or_not_modelled(name: str, arguments: list[Any]) -> None:
    try:
        done = work(name, *arguments)
    except NotModelled:
        return
    assert done.flop >= 0
    assert done.nbytes >= 0


PUBLISHED = json.loads((Path(__file__).parents[2] / "facts" / "tracelens_models.json").read_text())


@pytest.mark.parametrize("row", PUBLISHED, ids=[f"{n}-{row['name']}" for n, row in enumerate(PUBLISHED)])
def test_work_is_that_of_the_tables_that_tracelens_publishes(row: dict[str, Any]) -> None:
    """Inputs and figures are those of rows of its tables (AMD-AGI/TraceLens, MIT; `source` names the file).
    gflop None: TraceLens counts an operation for each element that is only copied."""
    inputs = Inputs.from_json(orjson.dumps([row["concrete"], row["types"], row["strides"], row["dims"]]))
    done = work_of(row["name"], inputs)
    assert done.nbytes / 2**20 == pytest.approx(row["mb"], rel=0.002)
    assert done.flop / 1e9 == pytest.approx(row["gflop"] or 0, rel=0.002)
