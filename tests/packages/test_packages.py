"""Programs of other packages on this library, with the numbers that torch 2.13 gives: `pytest -m packages`.

MINDTORCH_PACKAGES names the folder that `make_environments.py` filled.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FACTS = {path.stem: path for path in sorted((HERE / "facts").glob("*.json"))}


def differences(expected: Any, actual: Any, place: str = "") -> list[str]:
    """Where two results differ: numbers by more than rounding, anything else at all."""
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        return [
            text for key in expected for text in differences(expected[key], actual[key], f"{place}.{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            text
            for i, pair in enumerate(zip(expected, actual))
            for text in differences(*pair, f"{place}[{i}]")
        ]
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        close = math.isclose(expected, actual, rel_tol=2e-4, abs_tol=2e-5)
        same = close or (math.isnan(expected) and math.isnan(actual))
    else:
        same = expected == actual
    return [] if same else [f"{place}: torch {expected!r}, here {actual!r}"]


@pytest.mark.packages
@pytest.mark.parametrize("name", FACTS)
def test_a_program_gives_the_numbers_of_torch(name: str, tmp_path: Path) -> None:
    folder = os.environ.get("MINDTORCH_PACKAGES")
    if folder is None:
        pytest.skip("MINDTORCH_PACKAGES names no folder of environments")
    done = subprocess.run(
        [f"{folder}/packages/bin/python", str(HERE / "run_workload.py"), name, "mindtorch_v2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    result = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    assert result is not None, done.stderr[-2000:]
    expected = json.loads(FACTS[name].read_text(encoding="utf-8"))
    assert not differences(expected, json.loads(result.removeprefix("RESULT ")))


def test_results_that_differ_are_told_apart() -> None:
    assert differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.0000001]}) == []
    assert differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.1]}) == [".a[1]: torch 2.0, here 2.1"]
    assert differences([1, 2], [1]) != []
    assert differences("x", "y") != []
