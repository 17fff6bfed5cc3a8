"""Tensors print byte for byte as torch prints them."""

from __future__ import annotations

from types import ModuleType

import fact_files
import pytest
import record_printing
import recorded_cases

import mindtorch_v2 as torch


def test_random_tensors_of_every_dtype_print_as_torch_printed_them() -> None:
    recorded = fact_files.read("printing.json.gz")
    shown = record_printing.texts(torch)
    assert len(shown) == len(recorded)
    assert [(i, s, t) for i, (s, t) in enumerate(zip(shown, recorded)) if s != t] == []


def test_random_tensors_print_as_torch_prints_them_now(torch_reference: ModuleType) -> None:
    assert record_printing.texts(torch) == record_printing.texts(torch_reference)


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("printing_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_printing_records_only_what_it_runs() -> None:
    x = torch.tensor([[1.5, float("nan")], [2.0, 1e9]])
    with torch.profiler.profile() as prof:
        text = repr(x)
    assert text == repr(x)
    assert len(prof.events()) == 0
