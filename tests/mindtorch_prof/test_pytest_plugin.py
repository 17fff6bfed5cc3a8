"""The pytest plugin: runs of pytest in folders of their own, with this library and with real torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"
TESTS = """
import os
import {library} as torch
COUNT = int(os.environ.get("COUNT", "1"))

def test_step(torch_prof):
    x = torch.ones(4, 4)
    with torch_prof:
        for _ in range(COUNT):
            torch.relu(x @ x)
    assert torch_prof.counters.allocated == 128 * COUNT
    torch_prof.assert_no_regression("baselines/step.json")

def test_add():
    for _ in range(COUNT):
        torch.ones(3) + 1

def test_own():
    with torch.profiler.profile() as prof:
        torch.ones(3)
    assert any(row.key == "aten::ones" for row in prof.key_averages())

def test_nothing():
    pass
"""


def run(folder: Path, *options: str, count: int = 1) -> tuple[int, str]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "mindtorch_prof.pytest_plugin",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "COUNT": str(count),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(params=["mindtorch_v2", "torch"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Tests that use one library; those of real torch are skipped where it is not installed."""
    if request.param == "torch":
        request.getfixturevalue("torch_reference")
    (tmp_path / "test_it.py").write_text(TESTS.format(library=request.param))
    return tmp_path


def test_a_baseline_is_written_and_a_test_that_does_more_fails(folder: Path) -> None:
    code, out = run(folder)
    assert code == 1
    assert "there is no baseline; `pytest --torch-prof-update` writes it" in out
    assert run(folder, "--torch-prof-update")[0] == 0
    assert run(folder)[0] == 0
    code, out = run(folder, count=3)
    assert code == 1
    assert "counters are worse than the baseline" in out
    assert "aten::mm: count 1 -> 3" in out


def test_every_test_is_counted_saved_and_compared(folder: Path) -> None:
    run(folder, "--torch-prof-update")
    code, out = run(folder, "--torch-prof", "--torch-prof-save", "counters.json")
    assert code == 0, out
    assert "test_it.py::test_add" in out.split("torch-prof")[-1]
    saved: dict[str, Any] = json.loads((folder / "counters.json").read_text())
    assert saved["test_it.py::test_step"]["allocations"] == 2
    assert saved["test_it.py::test_nothing"]["ops"] == 0
    assert "test_it.py::test_own" not in saved or saved["test_it.py::test_own"]["ops"] > 0
    code, out = run(folder, "--torch-prof-compare", "counters.json", "-k", "test_add", count=2)
    assert code == 1
    assert "test_it.py::test_add: ops " in out


def test_nothing_is_imported_where_nobody_asks(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    assert not {'numpy', 'mindtorch_prof.live.block', 'torch'} & set(sys.modules)\n"
    )
    assert run(tmp_path)[0] == 0


def test_the_fixture_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_it(torch_prof):\n"
        "    with pytest.raises(RuntimeError, match='nothing is recorded'):\n"
        "        torch_prof.counters\n"
        "    with pytest.raises(RuntimeError, match='neither torch nor mindtorch_v2'):\n"
        "        torch_prof.__enter__()\n"
    )
    code, out = run(tmp_path)
    assert code == 0, out


def test_real_torch_is_chosen_where_both_are_imported(torch_reference: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import torch, mindtorch_v2\n"
        "def test_it(torch_prof):\n"
        "    with torch_prof:\n"
        "        torch.ones(3)\n"
        "    assert torch_prof.counters.ops > 0\n"
    )
    assert run(tmp_path)[0] == 0
    assert run(tmp_path, "--torch-prof-library", "mindtorch")[0] == 1
