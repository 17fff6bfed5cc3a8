"""Words and options of other programs: the error leads to what does the same here."""

from __future__ import annotations

import argparse
import re

import pytest

from mindtorch_prof import cli
from mindtorch_prof.commands._other_words import OTHER_OPTIONS, OTHER_WORDS


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("table", "show"),
        ("memory", "memory_summary()"),
        ("flops", "show --sort-by flops --columns name,calls,flops"),
        ("kernels", "device"),
        ("compare", "diff"),
        ("stats", "show --stats"),
        ("timeline", "report"),
    ],
)
def test_a_word_for_a_task_leads_to_the_command_that_does_it(
    word: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([word, "t.json"])
    error = capsys.readouterr().err
    assert command in error
    assert "did you mean" not in error


def test_other_words_name_commands_and_options_that_exist() -> None:
    parser = cli.make_parser()
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for word, answer in OTHER_WORDS.items():
        assert word not in subparsers.choices
        for quoted in re.findall(r"`([^`]+)`", answer):
            if quoted.startswith("--"):
                continue
            name, *options = quoted.split()
            known = subparsers.choices[name]._option_string_actions
            assert all(option in known for option in options if option.startswith("--")), quoted


def test_other_options_name_options_that_a_command_has() -> None:
    parser = cli.make_parser()
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    known = {option for command in subparsers.choices.values() for option in command._option_string_actions}
    for needed, written in OTHER_OPTIONS.values():
        assert needed in known
        assert written.startswith(needed)
