"""Analyses as methods of a loaded trace: the same answers as those of the command line, as objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest
from trace_file_builder import training

from mindtorch_prof import load


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(documents.waiting_device(tmp_path_factory.mktemp("calls") / "d.json"))


def test_answers_equal_those_of_the_commands(waiting: str, printed: Callable[..., str]) -> None:
    loaded = load(waiting)
    summary = json.loads(printed("summary", waiting, "--format", "json"))
    assert json.loads(json.dumps(loaded.summary().to_dict())) == summary
    assert str(loaded.summary()) + "\n" == printed("summary", waiting)
    doctor = json.loads(printed("doctor", waiting, "--format", "json"))
    assert loaded.doctor().to_dict() == {"healthy": doctor["healthy"], "findings": doctor["rows"]}
    advise = json.loads(printed("advise", waiting, "--format", "json", code=1))["rows"]
    assert json.loads(json.dumps(loaded.advise().to_dict()["suggestions"])) == advise
    assert [advice.code for advice in loaded.advise()] == [row["code"] for row in advise]


def test_a_comparison_takes_files_and_recordings(tmp_path: Path) -> None:
    before, after = (training(4, slow=slow).dump(tmp_path / f"{slow}.json") for slow in (1.0, 3.0))
    by_path, by_object = load(before).diff(after), load(before).diff(load(after))
    assert by_path
    assert by_path.to_dict() == by_object.to_dict()
    assert [row.key[0] for row in by_path.findings] == [row["op"] for row in by_path.to_dict()["findings"]]
    assert not load(before).diff(before)


def test_a_check_takes_files_recordings_and_baselines(tmp_path: Path, printed: Callable[..., str]) -> None:
    before, after = training(4).dump(tmp_path / "a.json"), training(4, extra=True).dump(tmp_path / "b.json")
    baseline = str(tmp_path / "base.json")
    printed("check", before, "--write-baseline", baseline)
    for base in (before, load(before), baseline):
        assert load(before).check(base)
        worse = load(after).check(base)
        assert not worse
        assert {finding.name for finding in worse.failures} == {"aten::erf"}
        assert "aten::erf" in str(worse)


def test_a_report_is_written_and_its_path_is_known(waiting: str, tmp_path: Path) -> None:
    report = load(waiting).report(tmp_path / "r.html", other=waiting)
    assert Path(report).read_bytes().startswith(b"<!doctype html>")
    assert report.to_dict() == {
        "path": str(tmp_path / "r.html"),
        "bytes": (tmp_path / "r.html").stat().st_size,
    }


def test_a_query_gives_columns_and_rows(waiting: str) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    answer = load(waiting).query("select name, count from averages where name = 'aten::mm'")
    assert answer.to_dict() == {"name": ["aten::mm"], "count": [3]}
    assert answer.rows() == [{"name": "aten::mm", "count": 3}]
    assert answer["count"].tolist() == [3]
