"""Reductions, scans, sorting and norms against rows recorded from torch.

Modules of _ops: sums, variance, extremes, quantifiers, scan, sorting, norms, quantiles, histograms.
"""

from __future__ import annotations

from typing import Any

import pytest
import recorded_rows

import mindtorch_v2 as torch


@pytest.mark.parametrize(("setup", "line", "fact"), recorded_rows.recorded("reduction"))
def test_a_reduction_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    recorded_rows.check(torch, setup, line, fact)


def test_a_reduction_over_none_is_one_along_dimensions():
    x = torch.ones(2, 3, requires_grad=True)
    for total, node in (
        (x.sum(), "SumBackward0"),
        (x.sum(None), "SumBackward1"),
        (x.mean(dim=None), "MeanBackward1"),
    ):
        assert type(total.grad_fn).__name__ == node
        x.grad = None
        total.backward()
        assert x.grad.sum().item() == (6 if "Sum" in node else pytest.approx(1))
