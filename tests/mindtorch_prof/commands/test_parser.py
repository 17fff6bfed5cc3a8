"""The parser: typing errors get a suggestion, help fits the terminal, a file alone is summarised."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mindtorch_prof import cli


def error_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["sumary", "t.json"], "did you mean summary?"),
        (["Summary", "t.json"], "did you mean summary?"),
        (["reprot", "t.json"], "did you mean report?"),
        (["summary", "t.json", "--formt", "json"], "--formt (did you mean --format?)"),
        (["summary", "t.json", "--topp=5"], "--topp (did you mean --top?)"),
        (["summary", "t.json", "--format", "jsn"], "did you mean json?"),
        (["summary", "t.json", "--json"], "--json (did you mean --format json?)"),
        (["diff", "a.json", "b.json", "--md"], "--md (did you mean --format md?)"),
        (["show", "t.json", "-n", "3"], "-n (did you mean --top N?)"),
        (
            ["check", "t.json", "--baseline", "b.json", "--max-slower=5%"],
            "--max-slower (did you mean --max-regression PCT?)",
        ),
        (["convert", "t.json", "--to", "speedscop"], "did you mean speedscope?"),
    ],
)
def test_a_typing_error_gets_a_suggestion(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hint in error_of(words, capsys)


@pytest.mark.parametrize("words", [["zzzz"], ["summary", "t.json", "--quux"]])
def test_a_word_that_is_near_to_nothing_gets_none(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "did you mean" not in error_of(words, capsys)


@pytest.mark.parametrize("command", sorted(cli.commands()))
@pytest.mark.parametrize("width", [60, 100])
def test_help_fits_the_terminal(
    command: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    text = capsys.readouterr().out
    lines = text.partition("\n\n")[2].splitlines()  # without the usage, whose words cannot be broken
    examples = [line for line in lines if line.startswith("  mindtorch-prof")]
    assert examples
    assert [line for line in lines if len(line) > width and line not in examples] == []


def test_a_file_alone_is_summarised(three_steps_path: str, printed: Callable[..., str]) -> None:
    assert printed(three_steps_path) == printed("summary", three_steps_path)
    assert printed(three_steps_path, "--top", "2", "--format", "json") == printed(
        "summary", three_steps_path, "--top", "2", "--format", "json"
    )


def test_a_missing_file_alone_is_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["none.json"]) == 2
    assert capsys.readouterr().err == "mindtorch-prof: none.json: No such file or directory\n"


def test_no_words_and_the_word_help_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Summarise a trace on one page" in error_of([], capsys)
    for words, text in (
        (["help"], "Summarise a trace on one page"),
        (["help", "diff"], "Compare two traces"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        assert ended.value.code == 0
        assert text in capsys.readouterr().out


def test_a_second_file_is_answered_with_the_commands_that_take_several(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "`diff` compares two traces, `fleet` the ranks" in error_of(
        ["summary", "a.json", "b.json"], capsys
    )
    assert "`diff`" not in error_of(["summary", "a.json", "--quux"], capsys)
