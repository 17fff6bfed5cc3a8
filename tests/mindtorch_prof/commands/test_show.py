"""`mindtorch-prof show`: which rows and columns are printed, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import cli
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
        ["--columns", "p95"],
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
