"""The command line: help, versions, exit codes, colours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_prof import cli, core
from mindtorch_v2 import version

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["show"],
        ["show", "trace.json", "--top", "-1"],
        ["show", "trace.json", "--format", "xml"],
        ["convert"],
    ],
)
def test_wrong_arguments_end_with_code_2_and_a_usage_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: mindtorch-prof")


@pytest.mark.parametrize("command", sorted(cli.commands()))
def test_every_command_has_an_example_in_its_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"example:\n  mindtorch-prof {command}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package_and_names_the_core(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"mindtorch-prof {version.__version__} (core: {core.name()})\n"


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert [name for name in cli.commands() if not re.search(rf"^ +{name}\s", text, re.MULTILINE)] == []


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{sys.executable} -m mindtorch_prof explain --format json | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_a_terminal_gets_colours_and_a_pipe_does_not() -> None:
    """The same table through a pseudo-terminal and through a pipe."""
    pty = pytest.importorskip("pty", reason="runs where there are pseudo-terminals")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-m", "mindtorch_prof", "explain"]
    piped = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in piped
    ours, theirs = pty.openpty()
    process = subprocess.Popen(words, env=environment, stdout=theirs, close_fds=True)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    assert b"\x1b[1m" in seen
    assert b"self_cpu_time_total" in seen
