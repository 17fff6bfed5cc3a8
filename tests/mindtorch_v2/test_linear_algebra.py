"""Products, decompositions, einsum, transforms and factories against rows recorded from torch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).parent / "facts"))
rows = importlib.import_module("recorded_rows")


@pytest.mark.parametrize(("setup", "line", "fact"), rows.recorded("linear_algebra"))
def test_an_op_of_linear_algebra_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    rows.check(torch, setup, line, fact, scaled=True)
