"""Recorded blocks and their counters, under this library and under real torch."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import mindtorch_v2
from mindtorch_prof.live.block import RecordedBlock, imported_library


def recorded(torch: Any) -> RecordedBlock:
    x = torch.ones(8, 8)
    block = RecordedBlock(torch)
    block.start()
    torch.relu(x @ x)
    block.close()
    return block


def test_counters_are_those_of_the_block() -> None:
    counters = recorded(mindtorch_v2).counters()
    assert counters.ops >= 2
    assert counters.allocations == 2
    assert counters.allocated == counters.peak_memory == 2 * 8 * 8 * 4
    assert counters.kernels == 0
    assert recorded(mindtorch_v2).counters() == counters


def test_nothing_is_recorded_before_the_end() -> None:
    with pytest.raises(RuntimeError, match="nothing is recorded"):
        RecordedBlock(mindtorch_v2).counters()


def test_the_library_is_the_one_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", mindtorch_v2)
    assert imported_library() is mindtorch_v2
    assert imported_library("real") is None
    monkeypatch.delitem(sys.modules, "torch")
    assert imported_library("mindtorch") is mindtorch_v2


def test_real_torch_counts_the_same_tensors(torch_reference: ModuleType) -> None:
    counters = recorded(torch_reference).counters()
    assert counters.allocated == 2 * 8 * 8 * 4
    assert counters.ops >= 2


def test_a_profiler_inside_the_block_ends_its_recording(torch_reference: ModuleType) -> None:
    torch: Any = torch_reference
    block = RecordedBlock(torch)
    block.start()
    torch.eye(2)
    with torch.profiler.profile() as own:
        torch.zeros(2)
    block.close()
    assert block.interrupted
    assert any(row.key == "aten::zeros" for row in own.key_averages())
