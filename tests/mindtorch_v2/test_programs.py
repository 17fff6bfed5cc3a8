"""Whole programs, as people write them with `import torch`, print here what they print with real torch."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import fact_files
import pytest
from python_texts import as_recorded

import mindtorch_v2

HERE = Path(__file__).parent

FACTS: dict[str, list[str]] = fact_files.read("programs.json.gz")

NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")

TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def printed() -> dict[str, list[str]]:
    """What the programs print when this package is their torch: one process runs them all."""
    package = str(Path(mindtorch_v2.__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, str(HERE / "facts" / "program_runner.py"), "--as-torch"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def words(line: str) -> str:
    """The line without its numbers, their signs and the spaces that their widths ask for."""
    return re.sub(r"[\s-]+", "", NUMBER.sub("#", line))


def agree(expected: str, found: str) -> bool:
    """Whether two lines say the same, numbers compared as numbers."""
    if expected == found:
        return True
    wanted, given = (list(map(float, NUMBER.findall(line))) for line in (expected, found))
    return (
        words(expected) == words(found)
        and len(wanted) == len(given)
        and all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(wanted, given))
    )


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_program_prints_what_it_prints_with_torch(name: str, printed: dict[str, list[str]]) -> None:
    expected, found = FACTS[name], [as_recorded(line) for line in printed[name]]
    for number, (a, b) in enumerate(zip(expected, found), 1):
        assert agree(a, b), f"line {number}:\n  torch: {a}\n  here:  {b}"
    assert len(found) == len(expected), f"ends with: {found[-3:]}"


def test_every_program_has_a_recorded_output() -> None:
    assert sorted(FACTS) == sorted(path.stem for path in (HERE / "programs").glob("*.py"))
