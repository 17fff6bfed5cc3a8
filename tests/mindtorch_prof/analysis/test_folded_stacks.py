"""Folded stacks: their values add up to the self times."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from mindtorch_prof import load
from mindtorch_prof.analysis.folded_stacks import folded


def test_folded_stacks_add_up_to_the_own_times(three_steps: Any) -> None:
    lines = folded(three_steps, by="ops")
    assert dict(lines)["ProfilerStep*;aten::linear;aten::addmm;cudaLaunchKernel"] == 6
    assert sum(value for _, value in lines) == 303
    assert sum(value for _, value in folded(three_steps, by="ops", device=True)) == 90
    with pytest.raises(ValueError, match="cannot fold by 'x'"):
        folded(three_steps, by="x")


def test_deeply_nested_events_take_memory_by_their_number_not_by_the_length_of_their_stacks() -> None:
    count = 3000
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op{i % 7}",
            "pid": 1,
            "tid": 1,
            "ts": i,
            "dur": 2 * (count - i),
        }
        for i in range(count)
    ]
    loaded = load(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    loaded.key_averages()
    tracemalloc.start()
    stacks = folded(loaded, by="ops")
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(stacks) == count
    assert max(line.count(";") for line, _ in stacks) == count - 1
    assert size < 1000 * count  # the lines together have 18,000,000 characters
    assert list(stacks) == [stacks[i] for i in range(count)]
