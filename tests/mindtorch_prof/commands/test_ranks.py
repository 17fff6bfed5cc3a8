"""`mindtorch-prof ranks`: stragglers of several files and of one merged file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_file_builder import rank_steps

from mindtorch_prof import cli


def test_the_commands_merge_and_show_the_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [rank_steps(rank, work).dump(tmp_path / f"{rank}.json.gz") for rank, work in enumerate([90, 150])]
    out = str(tmp_path / "all.json.gz")
    assert cli.main(["merge", *paths, "-o", out]) == 0
    assert f"{out}: " in capsys.readouterr().out
    assert cli.main(["ranks", out]) == 0
    text = capsys.readouterr().out
    assert "stragglers: rank 1" in text
    assert cli.main(["ranks", *paths, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(row["rank"], row["slow"]) for row in data["rows"]] == [(0, False), (1, True)]
    assert cli.main(["ranks", paths[0]]) == 0
