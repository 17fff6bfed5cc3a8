"""Answers: each prints, converts and shows in notebooks; names of a trace are text in all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

from mindtorch_prof import load


def answers(loaded: Any, folder: Path) -> dict[str, Any]:
    """Every call and its answer."""
    made = {
        "summary": loaded.summary(),
        "doctor": loaded.doctor(),
        "advise": loaded.advise(),
        "diff": loaded.diff(loaded),
        "check": loaded.check(loaded),
        "report": loaded.report(folder / "r.html"),
    }
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return made
    return {**made, "query": loaded.query("select name, count from averages")}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(documents.waiting_device(tmp_path_factory.mktemp("calls") / "d.json"))


def test_every_answer_prints_converts_and_shows_in_notebooks(waiting: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="runs with the extra `pandas`")
    for name, answer in answers(load(waiting), tmp_path).items():
        assert str(answer).strip(), name
        assert "\x1b" not in str(answer)
        assert answer._repr_html_().startswith("<"), name
        json.dumps(answer.to_dict(), default=str)
        assert len(answer.to_pandas().columns) > 0, name


def test_names_are_text_in_answers(tmp_path: Path) -> None:
    events = [
        documents.event(documents.HOSTILE_NAME, 0, 100),
        documents.event("<img src=x>\x1b[31m", 200, 100),
    ]
    loaded = load(documents.write(tmp_path / "t.json", events))
    summary = loaded.summary()
    assert "\x1b" not in str(summary)
    assert "<img" not in summary._repr_html_()
    assert "&lt;img" in summary._repr_html_()
