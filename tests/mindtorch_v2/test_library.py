"""torch.library against what torch shows. In a process of its own: namespaces and guards stay for good."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

FACTS = Path(__file__).parent / "facts"
RECORDED = json.loads((FACTS / "library_cases.json").read_text())


def _shown(package: str) -> dict[str, list[str]]:
    code = f"""
        import json, sys
        sys.path.insert(0, {str(FACTS)!r})
        import case_runner, library_cases
        found = case_runner.cases(library_cases)
        lines = {{case: case_runner.run(found[case], {package!r}) for case in found}}
        print(json.dumps(lines), file=sys.__stdout__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shown() -> dict[str, list[str]]:
    return _shown("mindtorch_v2")


@pytest.mark.parametrize("case", list(RECORDED))
def test_ops_of_ones_own_show_what_torch_shows(case: str, shown: dict[str, list[str]]) -> None:
    assert shown[case] == RECORDED[case]


def test_torch_still_shows_what_was_recorded(torch_reference: types.ModuleType) -> None:
    assert _shown(torch_reference.__name__) == RECORDED
