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


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_whole_powers_of_negative_numbers_have_the_sign_of_products(dtype):
    x = torch.tensor([-3.0, -0.5, -0.0, 0.0, 2.0, -float("inf"), float("inf"), float("nan")], dtype=dtype)
    for exponent in (4, 5.0, -3, -4, 0, 7):
        expected = [_power(v, exponent) for v in x.tolist()]
        torch.testing.assert_close(x**exponent, torch.tensor(expected, dtype=dtype), equal_nan=True)
        assert torch.equal(torch.signbit(x**exponent)[:7], torch.signbit(torch.tensor(expected[:7])))
    assert torch.isnan(x[:2] ** 0.3).all()
    assert (torch.tensor([-2.0, 2.0]) ** (2**24 + 1)).tolist() == [-math.inf, math.inf]


def _power(base, exponent):
    if base == 0 and exponent < 0:
        return math.copysign(math.inf, base) if exponent % 2 else math.inf
    return math.pow(base, exponent)


def test_the_physical_conjugate_of_a_real_tensor_is_the_tensor_itself():
    x, c = torch.ones(3), torch.tensor([1 + 2j])
    assert torch.conj_physical(x) is x
    assert x.conj_physical() is x
    assert torch.conj_physical(c).tolist() == [1 - 2j]
    assert torch.conj_physical(c, out=torch.empty(1, dtype=c.dtype)).tolist() == [1 - 2j]
    assert torch.conj_physical(x, out=torch.empty(3)).tolist() == [1, 1, 1]
    assert c.clone().conj_physical_().tolist() == [1 - 2j]
    leaf = c.clone().requires_grad_()
    nodes = [torch.conj_physical(leaf).grad_fn, (leaf * 1).conj_physical_().grad_fn]
    assert [node.name() for node in nodes] == ["ConjPhysicalBackward0", "ConjPhysicalBackward1"]


def test_a_profile_shows_the_ops_of_a_physical_conjugate_as_torch_does():
    c, out = torch.tensor([1 + 2j]), torch.tensor([0j])
    with profile() as prof:
        torch.conj_physical(c)
        torch.conj_physical(c, out=out)
    assert [event.name for event in prof.events()] == [
        "aten::conj_physical",
        "aten::_conj_physical",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::conj_physical",
        "aten::conj_physical",
    ]
