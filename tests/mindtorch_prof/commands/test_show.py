"""`mindtorch-prof show`: which rows and columns are printed, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import cli
from mindtorch_prof.analysis.columns import COLUMNS
from mindtorch_prof.load import load
from mindtorch_prof.text_escaping import terminal_text


def test_top_cuts_rows_and_0_shows_all(three_steps_path: str, printed: Callable[..., str]) -> None:
    all_rows = json.loads(printed("show", three_steps_path, "--top", "0", "--format", "json"))["rows"]
    two = json.loads(printed("show", three_steps_path, "--top", "2", "--format", "json"))["rows"]
    assert two == all_rows[:2]


def test_the_plain_table_is_that_of_the_loaded_averages(
    three_steps_path: str, printed: Callable[..., str]
) -> None:
    averages = load(three_steps_path).key_averages()
    for row in averages:
        row.key = terminal_text(row.key)
    lines = averages.table(sort_by="cpu_time_total", row_limit=4).splitlines()
    shown = printed("show", three_steps_path, "--sort-by", "cpu_total", "--top", "4").splitlines()
    assert shown == lines


def test_conditions_and_columns_choose_what_is_shown(
    three_steps_path: str, printed: Callable[..., str]
) -> None:
    text = printed(
        "show",
        three_steps_path,
        "--where",
        'name ~ "mm$" and count >= 3',
        "--columns",
        "calls,name",
        "--format",
        "csv",
    )
    assert text == "count,name\n3,aten::addmm\n3,ampere_sgemm\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--sort-by", "nothing"],
        ["--where", "nothing > 3"],
        ["--group-by", "nothing"],
        ["--columns", "nothing"],
        ["--columns", "stream"],
        ["--legend", "--format", "csv"],
    ],
)
def test_wrong_words_end_with_2_and_a_sentence(
    three_steps_path: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["show", three_steps_path, *words]) == 2
    assert capsys.readouterr().err.startswith("mindtorch-prof: ")


def test_keys_that_were_not_recorded_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(documents.write(tmp_path / "t.json", [documents.event("aten::add", 1, 2)]))
    assert cli.main(["show", path, "--group-by", "shape,stack:2,step", "--format", "json"]) == 0
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert captured.err.splitlines() == [
        "note: the trace has no shapes to group by; record_shapes=True records them",
        "note: the trace has no stacks to group by; with_stack=True records them",
        "note: the trace has no steps to group by; prof.step() records them",
    ]
    assert cli.main(["show", path, "--group-by", "thread"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words", [["--sort-by", "p95"], ["--columns", "name,median,p95"], ["--where", "p95 > 0us"]]
)
def test_naming_a_statistic_adds_the_statistics(
    three_steps_path: str, printed: Callable[..., str], words: list[str]
) -> None:
    rows = json.loads(printed("show", three_steps_path, *words, "--format", "json"))["rows"]
    with_stats = json.loads(printed("show", three_steps_path, "--stats", "--format", "json"))["rows"]
    p95 = {row["name"]: row["p95"] for row in with_stats}
    assert {row["name"]: row["p95"] for row in rows} == {
        name: p95[name] for name in (row["name"] for row in rows)
    }
    assert len(rows) >= 3


def test_the_legend_of_torchs_table_is_below_it(three_steps_path: str, printed: Callable[..., str]) -> None:
    plain, defined = (printed("show", three_steps_path, *words) for words in ([], ["--legend"]))
    assert defined.startswith(f"{plain}\nName ")
    assert COLUMNS["self_device_time_total"].meaning[:30] in defined


def test_json_has_the_definitions_of_its_keys_under_legend(
    three_steps_path: str, printed: Callable[..., str]
) -> None:
    words = ["show", three_steps_path, "--columns", "name,p95", "--format", "json"]
    plain, defined = json.loads(printed(*words)), json.loads(printed(*words, "--legend"))
    fact = COLUMNS["p95"]
    assert list(defined.pop("legend").items())[1] == (
        "p95",
        {"title": "p95", "unit": "us", "meaning": fact.meaning, "not_in_it": fact.not_in_it},
    )
    assert defined == plain


def test_markdown_has_the_legend_as_a_list(three_steps_path: str, printed: Callable[..., str]) -> None:
    lines = printed("show", three_steps_path, "--columns", "calls", "--format", "md", "--legend").splitlines()
    assert lines[-2:] == ["", f"- **# of Calls**: {COLUMNS['count'].definition}"]
