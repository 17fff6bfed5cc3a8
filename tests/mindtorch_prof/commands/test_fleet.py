"""`mindtorch-prof fleet`: tables, JSON, CSV, the page, and exit codes for gates."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet_jobs import GLOO, NCCL, make_job

from mindtorch_prof import cli


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("job")
    make_job(folder, NCCL, 4, 4, "host:1:2500:data", "missing:3", clock_us=1000)
    return str(folder / "*.gz")


def test_the_text_says_who_why_and_what_is_missing(printed: Callable[..., str], job: str) -> None:
    text = printed("fleet", job, "--workers", "1")
    assert text.startswith("rank 1 holds the others up by 2.5")
    assert "in data on the host" in " ".join(text.split())
    assert "missing: rank 3: no file of this rank" in text
    assert "Collectives, matched by order within steps" in text
    # the first line of what-if and the clocks are longer; tables fit a terminal of 80 columns
    tables = [
        line for line in text.splitlines() if line.startswith(("Rank", "0 ", "1 ", "Collective ", "all_"))
    ]
    assert max(map(len, tables)) <= 80


def test_json_has_the_whole_report_and_csv_the_ranks(printed: Callable[..., str], job: str) -> None:
    data = json.loads(printed("fleet", job, "--workers", "1", "--format", "json"))
    assert data["verdict"]["straggler"] == 1
    assert (data["verdict"]["phase"], data["verdict"]["where"]) == ("data", "host")
    rows = list(csv.DictReader(io.StringIO(printed("fleet", job, "--workers", "1", "--format", "csv"))))
    assert [row["rank"] for row in rows] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("conditions", "code"),
    [
        ("straggler", 1),
        ("skew>5%", 1),
        ("skew>90%", 0),
        ("exposed>99%,skew>0.9", 0),
        ("exposed>1%", 1),
        ("missing", 1),
        ("skew > 90%, straggler", 1),
    ],
)
def test_conditions_decide_the_exit_code(
    capsys: pytest.CaptureFixture[str], job: str, conditions: str, code: int
) -> None:
    assert cli.main(["fleet", job, "--workers", "1", "--fail-on", conditions]) == code
    assert ("fail: " in capsys.readouterr().err) == bool(code)


def test_a_job_without_a_straggler_passes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 3, 5)
    assert (
        cli.main(["fleet", str(tmp_path / "*.gz"), "--workers", "1", "--fail-on", "straggler,skew>20%"]) == 0
    )


@pytest.mark.parametrize("wrong", ["slow", "skew<5%", "skew>", "exposed>x"])
def test_a_wrong_condition_is_refused(capsys: pytest.CaptureFixture[str], job: str, wrong: str) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["fleet", job, "--fail-on", wrong])
    assert end.value.code == 2
    assert "expected straggler, missing, skew>5% or exposed>30%" in capsys.readouterr().err


def test_no_trace_at_all_is_an_error_that_names_the_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text("hello")
    assert cli.main(["fleet", str(tmp_path / "a.json"), str(tmp_path / "no.json")]) == 2
    error = capsys.readouterr().err
    assert "no trace could be read" in error
    assert "a.json: not a trace" in error
    assert "no.json: No such file or directory" in error


def test_the_page_is_written(printed: Callable[..., str], job: str, tmp_path: Path) -> None:
    out = tmp_path / "fleet.html"
    assert f"The page is in {out}." in printed("fleet", job, "--workers", "1", "-o", str(out))
    assert out.read_bytes().startswith(b"<!doctype html>")


def test_of_many_ranks_those_that_wait_least_are_shown(printed: Callable[..., str], tmp_path: Path) -> None:
    make_job(tmp_path, GLOO, 12, 5, "host:7:3000:forward")
    text = printed("fleet", str(tmp_path / "*.gz"), "--workers", "1", "--top", "3")
    assert next(line.split()[0] for line in text.splitlines() if line[:1].isdigit()) == "7"
    assert "9 more ranks, which wait longer (--top 0 shows all)" in text


def test_ops_that_would_save_time_have_names_that_differ(
    printed: Callable[..., str], ecosystem: Path
) -> None:
    text = printed("fleet", str(ecosystem / "ranks" / "hta_2_of_128"), "--workers", "1")
    ops = [line for line in text.splitlines() if line.startswith("op ")]
    assert len(ops) == 5
    assert len({line[: line.rindex(" ")].strip() for line in ops}) == 5
