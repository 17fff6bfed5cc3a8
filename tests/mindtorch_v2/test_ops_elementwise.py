"""Functions of single elements against rows recorded from torch.

Modules of _ops: pointwise, unary, powers, comparison.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("elementwise"))
def test_an_elementwise_op_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)


def test_infinities_come_without_a_warning_also_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.zeros(2, requires_grad=True)
        x.log().sum().backward()
        assert x.grad.tolist() == [math.inf, math.inf]
        assert (torch.ones(1) / 0).item() == math.inf


@pytest.mark.parametrize(
    ("call", "value", "dtype"),
    [
        (lambda: torch.add(1, 2), 3, torch.int64),
        (lambda: torch.add(1, 2, alpha=3), 7, torch.int64),
        (lambda: torch.sub(1.5, 2), -0.5, torch.float32),
        (lambda: torch.mul(True, 2), 2, torch.int64),
        (lambda: torch.div(1, 2), 0.5, torch.float32),
        (lambda: torch.div(7, 2, rounding_mode="floor"), 3, torch.int64),
        (lambda: torch.floor_divide(1.5, 2), 0, torch.float32),
        (lambda: torch.add(1j, 2), 2 + 1j, torch.complex64),
    ],
)
def test_arithmetic_takes_two_numbers_and_is_seen_as_one_op(call, value, dtype):
    with profile() as prof:
        made = call()
    assert (made.item(), made.dtype, made.shape) == (value, dtype, ())
    assert len(prof.events()) == 1
    with pytest.raises(TypeError):
        torch.remainder(1, 2)
