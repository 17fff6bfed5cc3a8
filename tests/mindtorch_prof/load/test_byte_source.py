"""Sources of bytes: paths, open files and gzip; limits on what is unpacked."""

from __future__ import annotations

import gzip
import os
import random
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import kineto_documents as documents
import pytest
from kineto_documents import load_document

from mindtorch_prof import load
from mindtorch_prof.load import NotATraceError, RefusedTraceError
from mindtorch_prof.load.byte_source import Limits, Source, ahead


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


def packed_noise(path: Path, size: int = 3 << 20) -> bytes:
    """Write a packed file that is long enough to be unpacked ahead; its content."""
    content = random.Random(0).randbytes(size)
    path.write_bytes(gzip.compress(content, 1))
    return content


def test_a_long_packed_file_is_unpacked_ahead_on_a_second_thread(tmp_path: Path) -> None:
    content = packed_noise(tmp_path / "t.gz")
    with Source(tmp_path / "t.gz", Limits()) as source:
        chunks = source.chunks()
        first = next(chunks)
        assert "mindtorch_prof unpacks" in {thread.name for thread in threading.enumerate()}
        assert b"".join([first, *chunks]) == content
    assert "mindtorch_prof unpacks" not in {thread.name for thread in threading.enumerate()}


def test_an_error_leaves_no_thread_behind(tmp_path: Path) -> None:
    packed_noise(tmp_path / "t.gz")
    with pytest.raises(NotATraceError) as raised:
        load(tmp_path / "t.gz")
    assert "mindtorch_prof unpacks" not in {thread.name for thread in threading.enumerate()}
    assert raised.value.__traceback__ is not None


def test_limits_hold_for_what_is_unpacked_ahead(tmp_path: Path) -> None:
    packed_noise(tmp_path / "t.gz")
    with Source(tmp_path / "t.gz", Limits(max_bytes=1 << 20)) as source:
        with pytest.raises(RefusedTraceError, match="larger than 1,048,576 bytes"):
            sum(map(len, source.chunks()))


def test_a_file_that_the_caller_opened_is_read_by_the_callers_thread_only(tmp_path: Path) -> None:
    content = packed_noise(tmp_path / "t.gz")
    readers: set[int] = set()

    class File:
        def __init__(self) -> None:
            self.file = (tmp_path / "t.gz").open("rb")
            self.fileno = self.file.fileno

        def read(self, size: int, /) -> bytes:
            readers.add(threading.get_ident())
            return self.file.read(size)

    file = File()
    with Source(file, Limits()) as source, file.file:
        assert b"".join(source.chunks()) == content
    assert readers == {threading.get_ident()}


def test_items_made_ahead_keep_their_order_and_their_error() -> None:
    def items() -> Iterator[int]:
        yield from range(100)
        raise OSError("no more")

    made_ahead = ahead(items(), 4)
    assert [next(made_ahead) for _ in range(100)] == list(range(100))
    with pytest.raises(OSError, match="no more"):
        next(made_ahead)


def test_an_iterator_that_is_closed_stops_its_thread() -> None:
    made = 0

    def items() -> Iterator[int]:
        nonlocal made
        while True:
            made += 1
            yield made

    before = threading.active_count()
    endless = ahead(items(), 3)
    assert [next(endless), next(endless)] == [1, 2]
    endless.close()
    assert threading.active_count() == before
    assert made < 100
