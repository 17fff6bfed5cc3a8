"""The answer of `load(...).device()`: the same figures as the command's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fact_files import FACTS

from mindtorch_prof import load

TRACE = Path(__file__).parents[1] / "commands" / "screens" / "traces" / "dlrm_rank0.json.gz"


def test_the_answer_is_what_the_command_prints(printed: Callable[..., str]) -> None:
    answer = load(TRACE).device()
    shown = json.loads(printed("device", str(TRACE), "--format", "json"))
    assert json.loads(json.dumps(answer.to_dict())) == {"devices": shown["devices"]}


def test_the_answer_prints_and_converts() -> None:
    pytest.importorskip("pandas", reason="runs with the extra `pandas`")
    answer = load(TRACE).device()
    assert "device 0: 50.7% busy of 13.009ms" in str(answer)
    assert "<table" in answer._repr_html_()
    frame = answer.to_pandas()
    parts = ["computation_us", "exposed_communication_us", "exposed_copy_us", "idle_us"]
    assert (abs(frame[parts].sum(axis=1) - frame["span_us"]) < 1e-6).all()


def test_a_recording_without_a_device_says_so() -> None:
    answer = load(FACTS / "torch_trace.json.gz").device()
    assert answer.devices == []
    assert "no work of a device" in str(answer)
