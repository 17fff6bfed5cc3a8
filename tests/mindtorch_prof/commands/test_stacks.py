"""`mindtorch-prof stacks`: folded stacks on standard output or in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import cli

OPS = [documents.event("aten::linear", 10, 50), documents.event("aten::mm", 20, 30)]
CALL = documents.event("model.py(3): forward", 0, 90, "python_function", **{"Python id": 1})


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], ["model.py(3):_forward 50"]),
        (["--by", "ops"], ["aten::linear;aten::mm 30", "aten::linear 20"]),
        (
            ["--by", "both"],
            ["model.py(3):_forward;aten::linear;aten::mm 30", "model.py(3):_forward;aten::linear 20"],
        ),
    ],
)
def test_frames_are_python_calls_ops_or_both(
    words: list[str], lines: list[str], tmp_path: Path, printed: Callable[..., str]
) -> None:
    path = documents.write(tmp_path / "t.json", [CALL, *OPS])
    assert printed("stacks", str(path), *words).splitlines() == lines


def test_ops_are_the_frames_of_a_trace_without_stacks(
    tmp_path: Path, printed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(documents.write(tmp_path / "t.json", OPS))
    assert printed("stacks", path).splitlines() == ["aten::linear;aten::mm 30", "aten::linear 20"]
    assert cli.main(["stacks", path, "--by", "python"]) == 2
    assert "record with with_stack=True" in capsys.readouterr().err


def test_device_time_is_written_to_a_file(
    three_steps_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stacks.txt"
    words = ["stacks", three_steps_path, "--by", "ops", "--metric", "device", "-o", str(out)]
    assert cli.main(words) == 0
    assert out.read_text().splitlines() == [
        "ProfilerStep*;aten::linear;aten::addmm 60",
        "ProfilerStep*;aten::copy_ 30",
    ]
    assert capsys.readouterr().err == f"{out}: {out.stat().st_size} bytes\n"
