"""`mindtorch-prof doctor`: its text, its JSON and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents


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
