"""Ops on lists of tensors give what their tensors give one by one."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "clamp_min"])
def test_a_list_gives_what_its_tensors_give_one_by_one(name: str) -> None:
    a = [torch.randn(3), torch.randn(2, 2)]
    b = [torch.randn(3), torch.randn(2, 2)]
    together = getattr(torch, f"_foreach_{name}")(a, b)
    single = getattr(torch, {"clamp_min": "maximum"}.get(name, name))
    assert [t.tolist() for t in together] == [single(x, y).tolist() for x, y in zip(a, b, strict=True)]


def test_numbers_may_be_given_one_by_tensor_and_the_list_is_written() -> None:
    a = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
    b = [torch.tensor([4.0, 5.0]), torch.tensor([6.0])]
    written = torch._foreach_addcdiv_(a, b, b, [1.0, 2.0])
    assert [t is x for t, x in zip(written, a, strict=True)] == [True, True]
    assert [t.tolist() for t in a] == [[2.0, 3.0], [5.0]]
