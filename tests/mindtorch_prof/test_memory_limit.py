"""The limit of memory: one sentence and exit code 3, and the limit ends with the command."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import kineto_documents as documents
import pytest

from mindtorch_prof import cli
from mindtorch_prof.memory_limit import memory_limit


def test_more_memory_than_the_limit_is_a_memory_error_and_the_limit_ends(
    run_python: Callable[..., str],
) -> None:
    # in a process of its own: the limit holds for all threads, and pytest's processes have others
    program = """
        import resource
        import numpy as np
        from mindtorch_prof.memory_limit import memory_limit
        before = resource.getrlimit(resource.RLIMIT_DATA)
        try:
            with memory_limit(1 << 30):
                np.ones(1 << 28)
        except MemoryError:
            print("refused", resource.getrlimit(resource.RLIMIT_DATA) == before)
    """
    assert run_python(program) == "refused True\n"


@pytest.mark.parametrize("command", [*cli._COMMANDS, "demo"])
def test_every_command_has_the_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    assert "--max-memory SIZE" in capsys.readouterr().out


@pytest.mark.parametrize("size", [1, 20, 60])
def test_a_trace_that_needs_more_is_one_sentence_and_code_3(tmp_path: Path, size: int) -> None:
    events = [documents.event("aten::add", 10 * i, 5) for i in range(20_000)]
    path = documents.write(tmp_path / "trace.json.gz", events)
    words = [sys.executable, "-m", "mindtorch_prof", "summary", str(path), "--max-memory"]
    done = subprocess.run([*words, f"{size}MB"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert done.stderr.startswith(
        f"mindtorch-prof: more memory is needed than --max-memory allows ({size}.00 MB)"
    )
    assert done.stderr.count("\n") == 1
    assert subprocess.run([*words, "2GB"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("size", [120, 150, 180])
def test_a_program_that_is_run_with_too_little_memory_ends_with_one_sentence(
    tmp_path: Path, size: int
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\ntorch.ones(2000, 20, 500) + 1\n")
    words = [
        sys.executable,
        "-m",
        "mindtorch_prof",
        "run",
        "--torch",
        "mindtorch",
        "-o",
        str(tmp_path / "t.json"),
    ]
    done = subprocess.run(
        [*words, "--max-memory", f"{size}MB", str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    # either the library itself needs more, or the program, which then gets a MemoryError of its own
    assert done.returncode in (1, 3), done.stderr
    assert "MemoryError" in done.stderr or "--max-memory allows" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("x.so: failed to map segment from shared object: Cannot allocate memory"),
        RuntimeError("can't start new thread"),
    ],
)
def test_errors_that_want_of_memory_leads_to_are_memory_errors(error: Exception) -> None:
    with pytest.raises(MemoryError), memory_limit(1 << 40):
        raise error


def test_other_errors_pass_the_limit_of_memory() -> None:
    with pytest.raises(FileNotFoundError), memory_limit(1 << 40):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("2k", 2048), ("1.5GB", 3 << 29), ("3MiB", 3 << 20)]
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert cli.make_parser(["show"]).parse_args(["show", "x", "--max-memory", text]).max_memory == size


def test_a_size_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["show", "x", "--max-memory", "much"])
    assert "'much' is not a size; expected something like 500MB or 2GB" in capsys.readouterr().err
