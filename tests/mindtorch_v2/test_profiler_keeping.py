"""Tests of mindtorch_v2.profiler.record.keeping: the arguments that say what is kept of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindtorch_v2.profiler import profile


def test_a_folder_that_cannot_be_written_to_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        profile(spill_dir=tmp_path / "file")
    with pytest.raises(ValueError, match="one or the other"):
        profile(spill_dir=tmp_path, max_events=3)
    with pytest.raises(ValueError, match="max_events must be at least 1"):
        profile(max_events=0)
    with pytest.raises(TypeError, match="max_memory must be a whole number"):
        profile(max_memory="1 MB")  # type: ignore[arg-type]
