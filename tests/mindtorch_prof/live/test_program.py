"""Programs as `python` runs them: their code, namespace, arguments, and how they end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindtorch_prof.live.program import Program, ProgramError, prepared, reported


@pytest.fixture(autouse=True)
def same_interpreter() -> Iterator[None]:
    """A program changes sys.argv, sys.path and __main__."""
    argv, path, main = list(sys.argv), list(sys.path), sys.modules["__main__"]
    yield
    sys.argv[:], sys.path[:], sys.modules["__main__"] = argv, path, main


def test_a_file_gets_its_arguments_and_its_folder_first_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nresult = (__name__, sys.argv[1:], sys.path[0])\n")
    program = Program(str(tmp_path / "train.py"), ["--lr", "1"])
    code, namespace = prepared(program)
    exec(code, namespace)
    assert namespace["result"] == ("__main__", ["--lr", "1"], str(tmp_path))
    assert program.name == "train"


def test_a_folder_with_a_main_runs(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text("result = 5\n")
    code, namespace = prepared(Program(str(tmp_path)))
    exec(code, namespace)
    assert namespace["result"] == 5


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no module nothing"):
        prepared(Program("nothing.at.all", module=True))
    with pytest.raises(ProgramError, match=r"no __main__\.py"):
        prepared(Program(str(tmp_path)))


def test_ends_of_programs_have_python_s_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(SystemExit()) == (0, 0)
    assert reported(SystemExit(7)) == (7, 0)
    assert reported(SystemExit("no more")) == (1, 0)
    assert reported(KeyboardInterrupt()) == (130, signal.SIGINT)
    assert reported(ValueError("broken")) == (1, 0)
    error = capsys.readouterr().err
    assert "no more\n" in error
    assert "ValueError: broken" in error
