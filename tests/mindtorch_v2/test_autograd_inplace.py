"""Views and writes under autograd: histories, versions, refusals, inference tensors, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from autograd_steps import RECORDED, shown, steps

import mindtorch_v2 as torch


@pytest.mark.parametrize(("program", "label"), steps("inplace"))
def test_a_step_shows_what_torch_showed(program: str, label: str) -> None:
    assert shown(program)[label] == RECORDED[program][label]


def test_views_made_before_their_base_took_part_in_gradients_follow_it() -> None:
    base = torch.zeros(4, dtype=torch.float64)
    views = [base[:2], base.view(2, 2), base[1:][1:]]
    weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
    base.add_(weight)
    assert all(view.requires_grad for view in views)
    sum(view.sum() for view in views).backward()
    assert weight.grad.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("write", [lambda x: x.mul_(x[:, :1]), lambda x: x.mul_(x)])
def test_a_write_that_spoils_its_own_operand_is_noticed(write: object) -> None:
    x = torch.ones(2, 3, requires_grad=True) * 1
    write(x)  # type: ignore[operator]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_writes_through_views_pass_gradcheck_twice() -> None:
    def written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x * 1
        z[0].mul_(y)
        z[:, 1] = y[0]
        z.t()[2].exp_()
        return z * z

    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(written, (x, y))
    assert torch.autograd.gradgradcheck(written, (x, y))


def test_an_inference_tensor_is_refused_by_a_backward_that_saved_it() -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    y = torch.ones(2, requires_grad=True) * made
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        y.sum().backward()


def test_a_refused_write_to_an_inference_tensor_leaves_it_as_it_was() -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        made.add_(1)
    assert made.tolist() == [1, 1]


def test_tensors_are_ordinary_again_after_inference_mode() -> None:
    with torch.inference_mode(), torch.inference_mode(False):
        assert not torch.ones(2).is_inference()
    assert not torch.ones(2).is_inference()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[1:].sub_(x[:-1]),
        lambda x: x[1:].div_(x[:-1]),
        lambda x: x.view(2, 3)[0].mul_(x[1:4]),
        lambda x: x.view(2, 3).t().sub_(x.view(3, 2)),
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x.__setitem__(slice(1, None), x[:-1]),
    ],
)
def test_an_operand_that_overlaps_in_part_with_what_is_written_is_refused(write: Any) -> None:
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        write(torch.arange(6.0))


def test_operands_that_are_or_do_not_touch_what_is_written_are_fine() -> None:
    x = torch.arange(6.0)
    assert x.add_(x).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    x[:3].mul_(x[3:])
    x[::2].add_(x[1::2])
    assert x.tolist() == [16.0, 16.0, 46.0, 6.0, 18.0, 10.0]


@pytest.mark.parametrize("product", ["linear", "mm", "bmm", "addmm"])
def test_a_matrix_may_be_written_to_when_only_its_own_gradient_is_wanted(product: str) -> None:
    w = torch.ones(2, 3, 3, requires_grad=True) if product == "bmm" else torch.ones(3, 3, requires_grad=True)
    x = torch.ones(2, 3, 3) if product == "bmm" else torch.full((2, 3), 2.0)
    made = {
        "linear": lambda: torch.nn.functional.linear(x, w),
        "mm": lambda: x.mm(w),
        "bmm": lambda: x.bmm(w),
        "addmm": lambda: torch.addmm(torch.ones(3), x, w),
    }[product]()
    with torch.no_grad():
        w.add_(1)
    made.sum().backward()
    assert set(w.grad.flatten().tolist()) == {3.0 if product == "bmm" else 4.0}
    x.requires_grad_()
    made = x.bmm(w) if product == "bmm" else x.mm(w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()
