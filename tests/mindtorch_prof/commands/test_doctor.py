"""`mindtorch-prof doctor`: its text, its JSON and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import core
from mindtorch_prof.load.core import MODULE


def test_doctor_ends_with_1_if_it_found_something(
    three_steps_path: str, tmp_path: Path, printed: Callable[..., str]
) -> None:
    assert "complete and consistent" in printed("doctor", three_steps_path)
    sick = str(
        documents.write(
            tmp_path / "sick.json", [*documents.training_step(1, 0.0), *documents.training_step(3, 500.0)]
        )
    )
    assert "[missing_steps]" in printed("doctor", sick, code=1)
    assert json.loads(printed("doctor", sick, "--format", "json", code=1))["healthy"] is False


def test_doctor_says_which_core_read_the_file(
    three_steps_path: str, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed("doctor", three_steps_path).splitlines()[-1] == f"core: {core.name()}"
    monkeypatch.setenv(core.VARIABLE, "python")
    assert printed("doctor", three_steps_path).splitlines()[-1] == "core: python"
    assert json.loads(printed("doctor", three_steps_path, "--format", "json"))["core"] == "python"


@pytest.mark.skipif(core.compiled(MODULE) is None, reason="the compiled reader is not built or not wanted")
def test_doctor_names_the_compiled_core(three_steps_path: str, printed: Callable[..., str]) -> None:
    assert json.loads(printed("doctor", three_steps_path, "--format", "json"))["core"] == "c"
