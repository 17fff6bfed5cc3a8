"""Sources of bytes: paths, open files and gzip; limits on what is unpacked."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from pathlib import Path

import kineto_documents as documents
import pytest
from kineto_documents import load_document

from mindtorch_prof import load
from mindtorch_prof.load import NotATraceError, RefusedTraceError


def test_paths_open_files_and_text_files_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(documents.as_bytes(documents.cpu()))
    with path.open("rb") as binary, path.open() as text:
        for file in (path, str(path), os.fsencode(path), binary, text):
            assert len(load(file).trace) == 4
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.json")


def test_a_packed_file_that_ends_too_early_gives_what_is_there() -> None:
    many = documents.document([documents.event(f"op{i % 7}", float(i), 0.5) for i in range(5000)])
    packed = gzip.compress(documents.as_bytes(many))
    loaded = load_document(packed[: len(packed) // 2])
    assert 500 < len(loaded.trace) < 5000
    assert "ends too early" in loaded.health.line()
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 255
    assert load_document(bytes(damaged)).health.notes


def test_a_directory_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="directory"):
        load(tmp_path)


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mindtorch_prof.load.byte_source"], "_RATIO_FROM", 1 << 20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(b'{"traceEvents": [' + b" " * (8 << 20)) + packer.flush()
    with pytest.raises(RefusedTraceError, match="500 times"):
        load_document(bomb)
    with pytest.raises(RefusedTraceError, match="larger than"):
        load_document(documents.cpu(), max_bytes=100)
