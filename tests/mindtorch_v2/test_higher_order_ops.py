"""torch._higher_order_ops: scans against closed formulas."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._higher_order_ops import associative_scan


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_sums_is_cumsum(length: int, reverse: bool) -> None:
    x = torch.arange(2.0 * length, dtype=torch.float64).view(2, length).requires_grad_()
    result = associative_scan(torch.add, x, 1, reverse=reverse, combine_mode="generic")
    expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    assert torch.equal(result, expected)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    counts = torch.arange(1.0, length + 1, dtype=torch.float64)
    assert torch.equal(gradient, (counts if reverse else counts.flip(0)).expand(2, -1))


def test_a_scan_of_pairs_is_a_linear_recurrence() -> None:
    def combine(left: Any, right: Any) -> Any:
        return {"a": left["a"] * right["a"], "b": left["b"] * right["a"] + right["b"]}

    a, b = torch.tensor([2.0, 0.5, 3.0, 1.0, 2.0]), torch.tensor([1.0, 1.0, 2.0, 0.0, 5.0])
    state, expected = 0.0, []
    for factor, term in zip(a.tolist(), b.tolist()):
        state = state * factor + term
        expected.append(state)
    assert associative_scan(combine, {"a": a, "b": b}, 0, combine_mode="generic")["b"].tolist() == expected


def test_mistakes_are_reported_as_torch_does() -> None:
    x = torch.ones(3, 2)
    for error, match, arguments in (
        (ValueError, "all input tensors need to be on CUDA or XPU", (torch.add, x, 0)),
        (ValueError, "Combine_fn must be a callable, but got 3", (3, x, 0, False, "generic")),
        (ValueError, "must either 'pointwise' or 'generic', but got foo", (torch.add, x, 0, False, "foo")),
        (ValueError, "scan dimension > 0", (torch.add, x[:0], 0, False, "generic")),
        (IndexError, r"range of \[-2, 1\], but got 5", (torch.add, x, 5, False, "generic")),
    ):
        with pytest.raises(error, match=match):
            associative_scan(*arguments)
