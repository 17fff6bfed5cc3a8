"""Functions of single elements against rows recorded from torch."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).parent / "facts"))
rows = importlib.import_module("recorded_rows")


@pytest.mark.parametrize(("setup", "line", "fact"), rows.recorded("elementwise"))
def test_an_elementwise_op_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    rows.check(torch, setup, line, fact)


def test_infinities_come_without_a_warning_also_where_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.zeros(2, requires_grad=True)
        x.log().sum().backward()
        assert x.grad.tolist() == [math.inf, math.inf]
        assert (torch.ones(1) / 0).item() == math.inf
