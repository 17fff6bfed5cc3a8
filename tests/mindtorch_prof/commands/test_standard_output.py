"""`-o -` and `-o /dev/stdout`: the file, and nothing else, goes to the stream; what is there stays."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_prof import cli

BEGINNINGS = {
    "convert {0} --to csv -o -": b"row,",
    "convert {0} --to csv -o /dev/stdout": b"row,",
    "convert {0} --to chrome -o -": b"{",
    "convert {0} --to speedscope -o -": b"{",
    "convert {0} --to native -o -": b"PK",
    "slice {0} --time 0..1s -o -": b"{",
    "slice {0} --time 0..1s --format json -o /dev/stdout": b"{",
    "merge {0} {1} -o -": b"{",
    "merge {0} {1} --format csv -o -": b"{",
    "redact {0} -o -": b"{",
    "redact {0} --format json -o -": b"{",
    "report {0} -o -": b"<!",
    "report {0} {1} -o /dev/stdout": b"<!",
    "stacks {0} --by ops -o -": b"",
    "critical-path {0} -o -": b"{",
    "fleet {0} -o -": b"<!",
}
PROGRAM = """
import sys
from mindtorch_prof import cli
for command in sys.argv[1:]:
    code = cli.main(command.split())
    print(f"\\n== {code}", flush=True)
"""


def test_only_the_file_is_written_to_the_stream(three_steps_path: str, tmp_path: Path) -> None:
    other = tmp_path / "other.json.gz"
    shutil.copy(three_steps_path, other)
    commands = [command.format(three_steps_path, other) for command in BEGINNINGS]
    with (tmp_path / "log").open("wb") as log:
        log.write(b"earlier\n")
        log.flush()
        words = [sys.executable, "-c", PROGRAM, *commands]
        done = subprocess.run(words, stdout=log, stderr=subprocess.PIPE, check=False, cwd=tmp_path)
    content = (tmp_path / "log").read_bytes()
    assert content.startswith(b"earlier\n")
    parts = content.removeprefix(b"earlier\n").split(b"\n== 0\n")
    assert len(parts) == len(commands) + 1, done.stderr
    for beginning, part in zip(BEGINNINGS.values(), parts):
        assert part.startswith(beginning)
        if beginning == b"{":
            json.loads(part)
        elif beginning == b"<!":
            assert part.rstrip().endswith(b"</html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "other.json.gz"]


def test_run_needs_a_file_because_the_program_itself_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.py").write_text("print('never')")
    assert cli.main(["run", "-o", "-", str(tmp_path / "p.py")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "the program itself writes to standard output; expected the name of a file" in err
