"""Tests of mindtorch_v2.profiler.record.ring_keeper: the newest events of a recording."""

from __future__ import annotations

from typing import Any

import pytest
from kept_recordings import EVERYTHING, names

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function


@pytest.mark.parametrize("options", [{}, EVERYTHING])
def test_only_the_newest_events_are_kept_and_the_others_counted(
    each_core: Any, often: None, options: dict[str, bool]
) -> None:
    with profile(max_events=500, **options) as prof:
        x = torch.ones(2)
        for n in range(2000):
            with record_function(f"range {n}"):
                x + 1
    trace = prof.profiler._results.trace
    kept = [int(name[6:]) for name in names(trace) if name.startswith("range")]
    assert kept == list(range(2000 - len(kept), 2000))
    assert 0 < len(kept) <= 500
    n_events = int((trace.is_recorded).sum()) + len(trace.memory)
    assert n_events <= 500
    assert trace.health.dropped >= 3500
    assert f"{trace.health.dropped:,} dropped" in trace.health.line()
    if options:
        stacks = {trace.stacks[n][0] for n, name in zip(trace.stack, names(trace)) if name == "aten::add"}
        assert all("test_only_the_newest" in stack for stack in stacks)


def test_memory_stays_within_what_was_asked_for(often: None) -> None:
    with profile(max_memory=1 << 16, record_shapes=True) as prof:
        x = torch.ones(2)
        for _ in range(5000):
            x + 1
        prof.profiler._recorder.keeper.take()
        held = prof.profiler._recorder.logs.nbytes
    assert held <= 1.25 * (1 << 16)
    assert 100 < names(prof.profiler._results.trace).count("aten::add") < 5000
