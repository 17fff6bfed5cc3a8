"""A profile that callbacks drive: which steps it records, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mindtorch_v2
from mindtorch_prof import load
from mindtorch_prof.live.training import TrainingProfile


def test_the_steps_that_were_asked_for_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", mindtorch_v2)
    training = TrainingProfile(str(tmp_path), first_step=2, steps=2, report=False, record_shapes=True)
    training.step()  # before the start: nothing
    training.start()
    for _ in range(6):
        mindtorch_v2.ones(2) + 1
        training.step()
    training.stop()
    training.stop()
    (path,) = tmp_path.iterdir()
    steps = [name for name in load(path).trace.names if name.startswith("ProfilerStep#")]
    assert steps == ["ProfilerStep#2", "ProfilerStep#3"]


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"first_step": -1}, {"steps": 3, "every": 3}])
def test_wrong_steps_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        TrainingProfile(str(tmp_path), **wrong)  # type: ignore[arg-type]


def test_torch_must_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="not imported"):
        TrainingProfile(str(tmp_path)).start()
