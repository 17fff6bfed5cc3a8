"""`mindtorch-prof ranks`: the short form of `fleet`, of several files and of one merged file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_file_builder import rank_steps

from mindtorch_prof import cli


def test_the_commands_merge_and_show_the_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = [90, 95, 150]
    paths = [rank_steps(rank, time).dump(tmp_path / f"{rank}.json.gz") for rank, time in enumerate(work)]
    out = str(tmp_path / "all.json.gz")
    assert cli.main(["merge", *paths, "-o", out]) == 0
    assert f"{out}: " in capsys.readouterr().out
    assert cli.main(["ranks", out]) == 0
    text = capsys.readouterr().out
    assert text.startswith("rank 2 holds the others up")
    assert cli.main(["ranks", *paths, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"]["straggler"] == 2
    assert [(row["rank"], row["last_in"]) for row in data["ranks"]] == [(0, 0), (1, 0), (2, 6)]
    assert cli.main(["ranks", paths[0], "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("rank,label,file,")
