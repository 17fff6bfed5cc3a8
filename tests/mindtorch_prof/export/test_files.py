"""Exported files: complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindtorch_prof.export.files import open_for_export


def test_a_failed_export_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")

    def fail_half_way() -> None:
        with open_for_export(path) as out:
            out.write(b"half of it")
            assert path.read_text() == "old"
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fail_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.json"]


def test_an_exclusive_export_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    with pytest.raises(FileExistsError), open_for_export(path, exclusive=True) as out:
        out.write(b"new")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["t.json"])
