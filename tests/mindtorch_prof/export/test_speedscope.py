"""speedscope files: frames open and close in order, and every event is there."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from mindtorch_prof import cli


def test_speedscope_files_open_and_close_frames_in_order(
    three_steps_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.speedscope.json"
    assert cli.main(["convert", three_steps_path, "--to", "speedscope", "-o", str(out)]) == 0
    document = json.loads(out.read_text())
    counts: Counter[str] = Counter()
    for profile in document["profiles"]:
        open_: list[int] = []
        before = profile["startValue"]
        for step in profile["events"]:
            assert step["at"] >= before
            before = step["at"]
            if step["type"] == "O":
                open_.append(step["frame"])
                counts[document["shared"]["frames"][step["frame"]]["name"]] += 1
            else:
                assert open_.pop() == step["frame"]
        assert not open_
        assert before <= profile["endValue"]
    assert counts["aten::addmm"] == counts["ampere_sgemm"] == counts["nn.Module: Linear_0"] == 3
