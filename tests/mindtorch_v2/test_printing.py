"""Tensors print byte for byte as torch prints them."""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
RECORDED = json.loads((FACTS / "printing_cases.json").read_text())


def _load(name: str) -> Any:
    if str(FACTS) not in sys.path:
        sys.path.insert(0, str(FACTS))
    return importlib.import_module(name)


def test_random_tensors_of_every_dtype_print_as_torch_printed_them() -> None:
    recorded = json.loads(gzip.decompress((FACTS / "printing.json.gz").read_bytes()))
    shown = _load("record_printing").texts(torch)
    assert len(shown) == len(recorded)
    assert [(i, s, t) for i, (s, t) in enumerate(zip(shown, recorded)) if s != t] == []


def test_random_tensors_print_as_torch_prints_them_now(torch_reference: ModuleType) -> None:
    cases = _load("record_printing")
    assert cases.texts(torch) == cases.texts(torch_reference)


@pytest.mark.parametrize("case", RECORDED)
def test_a_case_shows_what_torch_showed(case: str) -> None:
    runner = _load("case_runner")
    function = runner.cases(_load("printing_cases"))[case]
    assert runner.run(function, "mindtorch_v2") == RECORDED[case]
