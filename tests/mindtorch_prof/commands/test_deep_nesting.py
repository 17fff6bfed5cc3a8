"""Calls nested thousands of levels deep: memory grows with the levels, not with their square."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from mindtorch_prof.cli import main


def nested(path: Path, levels: int) -> str:
    """A trace of calls of modules, each inside the one before, around one op."""
    calls = [
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"nn.Module: Block_{level}",
            "pid": 1,
            "tid": 1,
            "ts": level,
            "dur": 2 * (levels - level),
            "args": {"Python id": level + 1, "Python parent id": level or None, "Python module id": level},
        }
        for level in range(levels)
    ]
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": levels + 0.1, "dur": 0.5}
    path.write_text(json.dumps({"traceEvents": [*calls, op]}))
    return str(path)


@pytest.mark.parametrize(
    "command", ["tree --depth 0 --python --min 0 --top 0", "report -o {}/out", "summary"]
)
def test_memory_grows_with_the_levels_and_not_with_their_square(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command.format(tmp_path).split()
    peaks = []
    for levels in (20, 1000, 2000):  # the first one imports
        file = nested(tmp_path / f"{levels}.json", levels)
        tracemalloc.start()
        assert main([words[0], file, *words[1:]]) == 0
        capsys.readouterr()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 2.6 * peaks[1]
