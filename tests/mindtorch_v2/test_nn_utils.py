"""nn.utils and torch.func show what torch was recorded to show."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

FACTS = Path(__file__).parent / "facts"
MODULES = ("nn_utils_cases", "nn_parametrize_cases", "func_cases")


def _load(name: str) -> Any:
    if str(FACTS) not in sys.path:
        sys.path.insert(0, str(FACTS))
    return importlib.import_module(name)


RECORDED = {name: json.loads((FACTS / f"{name}.json").read_text()) for name in MODULES}


@pytest.mark.parametrize(("module", "case"), [(m, c) for m, found in RECORDED.items() for c in found])
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    runner = _load("case_runner")
    function = runner.cases(_load(module))[case]
    assert runner.run(function, "mindtorch_v2") == RECORDED[module][case]
