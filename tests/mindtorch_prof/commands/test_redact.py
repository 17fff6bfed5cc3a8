"""`mindtorch-prof redact`, and what `doctor` says of secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import planted_secrets as planted
import pytest

from mindtorch_prof import cli


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with secrets everywhere."""
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(planted.document()))
    return file


def test_redact_says_what_it_replaced(path: Path, printed: Callable[..., str]) -> None:
    text = printed("redact", str(path))
    assert f"{path}: " in text
    assert "'secret'" in text
    assert planted.leaks(path.read_text()) == []
    assert printed("redact", str(path)) == f"{path}: nothing to redact\n"
    assert json.loads(printed("redact", str(path), "--format", "json")) == {
        "rows": [{"path": str(path), "replaced": {}}]
    }


def test_doctor_warns_of_secrets_until_they_are_gone(path: Path, printed: Callable[..., str]) -> None:
    text = printed("doctor", str(path), code=1)
    assert "tokens or passwords" in text
    assert "mindtorch-prof redact" in text
    assert planted.leaks(text) == []
    printed("redact", str(path))
    codes = [row["code"] for row in json.loads(printed("doctor", str(path), "--format", "json"))["rows"]]
    assert "secrets" not in codes
    assert "environment" not in codes


def test_all_traces_of_a_folder_are_redacted(path: Path, printed: Callable[..., str]) -> None:
    other = path.with_name("other.json")
    other.write_text(path.read_text())
    assert printed("redact", str(path.parent)).count("texts replaced") == 2
    assert planted.leaks(path.read_text() + other.read_text()) == []
    assert cli.main(["redact", str(path.parent), "-o", str(path.parent / "out.json")]) == 2


def test_a_missing_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["redact", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    damaged = tmp_path / "damaged.json.gz"
    damaged.write_bytes(b"\x1f\x8b\x08\x00nothing")
    assert cli.main(["redact", str(damaged)]) == 2
    assert "damaged" in capsys.readouterr().err
