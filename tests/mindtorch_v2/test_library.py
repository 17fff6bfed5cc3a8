"""torch.library against what torch shows. In a process of its own: namespaces and guards stay for good."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest
import recorded_cases
from fact_files import FACTS

RECORDED = recorded_cases.facts("library_cases")


@pytest.fixture(scope="module")
def shown(run_python: Any) -> dict[str, list[str]]:
    return json.loads(run_python(recorded_cases.program("library_cases"), FACTS))


@pytest.mark.parametrize("case", list(RECORDED))
def test_ops_of_ones_own_show_what_torch_shows(case: str, shown: dict[str, list[str]]) -> None:
    assert shown[case] == RECORDED[case]


def test_torch_still_shows_what_was_recorded(run_python: Any, torch_reference: types.ModuleType) -> None:
    program = recorded_cases.program("library_cases", torch_reference.__name__)
    assert json.loads(run_python(program, FACTS)) == RECORDED


EARLY_KERNEL = """
import mindtorch_v2 as torch

torch.library.impl("early_kernels::plus", ["CPU"])(lambda x, number: x + number)
print(hasattr(torch.ops.early_kernels, "plus"))
torch.library.define("early_kernels::plus", "(Tensor x, int number) -> Tensor")
print(torch.ops.early_kernels.plus(torch.ones(2), 3).tolist())
"""


def test_a_kernel_may_be_registered_before_its_op_is_defined(run_python: Any) -> None:
    assert run_python(EARLY_KERNEL).split("\n")[:2] == ["False", "[4.0, 4.0]"]


TRITON_OP = """
import mindtorch_v2 as torch

def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

torch.library.triton_op("triton_ops::twice", twice, mutates_args=())
print(torch.ops.triton_ops.twice(torch.ones(2)).tolist(), torch.library.wrap_triton(twice) is twice)
"""


def test_an_op_of_triton_kernels_is_a_custom_op(run_python: Any) -> None:
    assert run_python(TRITON_OP).strip() == "[2.0, 2.0] True"
