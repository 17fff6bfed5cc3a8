"""torch.autograd.profiler: the older profile, emitters and their helpers."""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import profiler as old
from mindtorch_v2.profiler import itt, profile

X = torch.ones(2)


def names(prof: Any) -> list[str]:
    return [e.name for e in prof.events()]


def test_the_older_profile_answers_as_torchs() -> None:
    with old.profile(record_shapes=True) as prof:
        X + X
    assert [e.name for e in prof.function_events] == ["aten::add"]
    assert prof.self_cpu_time_total == prof.function_events.self_cpu_time_total > 0
    assert prof.total_average().key == "Total"
    assert prof.key_averages(group_by_input_shape=True)[0].input_shapes == [[2], [2], []]
    assert str(prof) == prof.table() == prof.function_events.table()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()


def test_the_older_profile_unstarted_and_disabled_is_harmless() -> None:
    prof = old.profile()
    assert repr(prof) == str(prof) == "<unfinished torch.autograd.profile>"
    assert prof.table() == ""
    assert prof.self_cpu_time_total == 0
    with old.profile(enabled=False) as nothing:
        X + X
    assert nothing is None


def test_emitters_let_the_block_run() -> None:
    for emit in (old.emit_nvtx, old.emit_itt):
        with emit():
            X + X
        assert emit(enabled=False).__enter__() is None


def test_itt_ranges_are_recorded_like_annotations() -> None:
    with profile() as prof:
        with itt.range("step {}", 3):
            itt.mark("here")
    assert names(prof) == ["step 3", "here"]
    assert not itt.is_available()


def test_nvprof_files_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"run\.nvvp: nvprof databases are not read"):
        old.load_nvprof("run.nvvp")


def test_enforce_unique_refuses_a_key_seen_before() -> None:
    unique = old.EnforceUnique()
    unique.see(1, 2)
    with pytest.raises(RuntimeError, match=r"duplicate key: \(1, 2\)"):
        unique.see(1, 2)
