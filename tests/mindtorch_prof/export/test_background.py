"""Exports in the background: waited for, or told what went wrong."""

from __future__ import annotations

import threading

import pytest

from mindtorch_prof.export.background import Export


def test_an_export_gives_its_path_when_it_is_written() -> None:
    may_end = threading.Event()
    export = Export(may_end.wait, "t.json")
    assert not export.done()
    with pytest.raises(TimeoutError, match=r"t\.json: still being written after 0\.01 seconds"):
        export.result(0.01)
    may_end.set()
    assert export.result(300) == "t.json"
    assert repr(export) == "<export of t.json: written>"


def test_whoever_waits_is_told_what_went_wrong() -> None:
    def fail() -> None:
        raise OSError("disk full")

    export = Export(fail, "t.json")
    with pytest.raises(OSError, match="disk full"):
        export.result(300)
    assert repr(export) == "<export of t.json: failed>"
