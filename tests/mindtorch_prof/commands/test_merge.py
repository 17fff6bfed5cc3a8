"""`mindtorch-prof merge`: misuse ends with code 2 and leaves files alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_file_builder import training

from mindtorch_prof import cli


def test_misuse_ends_with_code_2_and_leaves_files_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, out = training(1).dump(tmp_path / "a.json"), str(tmp_path / "out.json")
    text = Path(a).read_text()
    (tmp_path / "no.json").write_text("no trace")
    for arguments in (
        [a, a, "-o", out],
        [a, "-o", a],
        [a, str(tmp_path / "no.json"), "-o", out],
        ["missing.json", "-o", out],
    ):
        assert cli.main(["merge", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert Path(a).read_text() == text
    assert not Path(out).exists()
