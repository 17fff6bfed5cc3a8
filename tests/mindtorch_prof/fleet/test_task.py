"""The task: every file gives a sketch; one that cannot be read gives the reason."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fleet_jobs import GLOO

from mindtorch_prof.fleet.sketch import Sketch
from mindtorch_prof.fleet.task import Task

WHOLE = GLOO.read_bytes()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "No such file or directory"),
        (b"", "empty, not a trace"),
        (b"hello", "not a trace"),
        (b'{"a": 1}', "JSON, but not a trace"),
        (WHOLE[: len(WHOLE) // 2], "truncated: "),
        (gzip.compress(gzip.decompress(WHOLE)[:-2000]), "truncated: the end of the file is missing"),
        (b'{"schemaVersion": 1, "traceEvents": []}', "a trace without events"),
    ],
)
def test_a_file_that_cannot_be_read_gives_the_reason(tmp_path: Path, data: bytes | None, reason: str) -> None:
    path = tmp_path / "rank0.json"
    if data is not None:
        path.write_bytes(data)
    sketch = Sketch.from_bytes(Task()(str(path)))
    assert sketch.ranks == ()
    (missing,) = sketch.missing
    assert missing.file == str(path)
    assert missing.reason.startswith(reason)


def test_a_damaged_file_is_repaired_unless_strict(tmp_path: Path) -> None:
    text = gzip.decompress(WHOLE).replace(b'"dur":', b'"dur":"x","was":', 1)
    (tmp_path / "rank0.json").write_bytes(text)
    assert Task().sketch(str(tmp_path / "rank0.json")).ranks[0].health
    assert Task(strict=True).sketch(str(tmp_path / "rank0.json")).missing
