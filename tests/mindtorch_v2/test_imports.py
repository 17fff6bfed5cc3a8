"""Imports: the trace engine needs nothing of the library, and arrows between modules point one way."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = "{'mindtorch_v2._tensor', 'mindtorch_v2._dispatch', 'scipy', 'torch', 'pandas'} & set(sys.modules)"

READING = [
    "show trace.json",
    "show trace.json --group-by module,step,category --format json",
    "tree trace.json",
    "summary trace.json",
    "doctor trace.json",
    "stacks trace.json",
    "convert trace.json --to csv -o out.csv",
    "convert trace.json --to speedscope -o out.speedscope.json",
    "convert trace.json --to chrome -o out.json",
    "query trace.json --tables",
    "explain",
]


def python(code: str, folder: Path) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("light")
    with profile(record_shapes=True, profile_memory=True) as prof:
        torch.ones(3) + 1
    prof.export_chrome_trace(str(made / "trace.json"))
    return made


def test_commands_that_read_traces_load_no_tensors(folder: Path) -> None:
    code = f"""
import contextlib, io, sys
from mindtorch_prof import main
for line in {READING!r}:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        words = line.split()
        assert main(words) == 0, words
    assert not {HEAVY}, (words, {HEAVY})
print(len(out.getvalue()) > 0)
"""
    assert python(code, folder) == "True\n"


