"""Tests of mindtorch_prof.spill_file: chunks that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindtorch_prof import spill_file
from mindtorch_prof.load.spill import SpilledChunks, spill_folders
from mindtorch_prof.spill_file import SpillFolder


def block(*integers: int) -> Any:
    return (("rows", 7), np.array(integers, np.int64))


def contents(folder: str) -> list[tuple[Any, list[list[int]]]]:
    return [
        (chunk.header["n"], [each.tolist() for _, each in chunk.blocks]) for chunk in SpilledChunks(folder)
    ]


def test_chunks_come_back_in_order_over_several_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill_file, "SEGMENT_BYTES", 100)
    folder = SpillFolder(tmp_path)
    for n in range(5):
        folder.write({"n": n, "text": "x" * n}, [block(n, n + 1), block(n)])
    folder.close()
    assert contents(folder.path) == [(n, [[n, n + 1], [n]]) for n in range(5)]
    assert len(os.listdir(folder.path)) == 5  # segments, and no reserve


def test_two_recordings_have_folders_of_their_own_in_the_order_of_their_start(tmp_path: Path) -> None:
    folders = [SpillFolder(tmp_path) for _ in range(12)]
    assert spill_folders(tmp_path) == [each.path for each in folders]


def test_every_cut_and_every_flipped_byte_leaves_the_chunks_before_it(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    ends = []
    for n in range(3):
        folder.write({"n": n}, [block(n, 1 << 40)])
        ends.append(folder.n_bytes)
    folder.close()
    (segment,) = Path(folder.path).iterdir()
    whole = segment.read_bytes()
    for place in range(len(whole)):
        n_whole = sum(end <= place for end in ends)
        segment.write_bytes(whole[:place])
        assert [n for n, _ in contents(folder.path)] == list(range(n_whole))
        segment.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        chunks = SpilledChunks(folder.path)
        assert [chunk.header["n"] for chunk in chunks] == list(range(n_whole))
        assert (
            chunks.damage
            == f"{len(whole) - ([0, *ends][n_whole]):,} bytes after its last whole chunk are left out"
        )


@pytest.mark.parametrize("n_written", [0, 3, 30])
def test_a_chunk_that_cannot_be_written_leaves_no_trace_and_can_be_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    folder = SpillFolder(tmp_path)
    folder.write({"n": 0}, [block(1)])
    size, pwrite, calls = folder.n_bytes, os.pwrite, 0

    def failing(file: int, data: Any, at: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 2 or not n_written:
            raise OSError(28, "No space left on device")
        return pwrite(file, data[:n_written], at)

    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(OSError, match="No space left"):
        folder.write({"n": 1}, [block(2)])
    monkeypatch.undo()
    assert os.path.getsize(os.path.join(folder.path, "000001.segment")) == size
    folder.write({"n": 1}, [block(2)])
    assert contents(folder.path) == [(0, [[1]]), (1, [[2]])]


def test_a_forked_process_writes_nothing(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    child = os.fork()
    if not child:
        os._exit(1 if folder.is_open else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert folder.is_open


def test_chunks_that_a_signal_handler_writes_between_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SpillFolder(tmp_path)
    pwrite, handled = os.pwrite, False

    def interrupted(file: int, data: Any, at: int) -> int:
        nonlocal handled
        count = pwrite(file, data, at)
        if not handled:
            handled = True
            folder.write(
                {"n": 0}, [block(1, 2, 3)]
            )  # the chunk that is being written, as it is the first that waits
            folder.write({"n": 1}, [block(4)])
        return count

    monkeypatch.setattr(os, "pwrite", interrupted)
    folder.write({"n": 0}, [block(1, 2, 3)])
    folder.write({"n": 2}, [block(5)])
    folder.close()
    assert contents(folder.path) == [(0, [[1, 2, 3]]), (1, [[4]]), (2, [[5]])]


def test_a_chunk_that_is_not_accepted_is_no_part_of_the_recording(tmp_path: Path) -> None:
    folder = SpillFolder(tmp_path)
    folder.write({"n": 0}, [block(1)])
    folder.put({"n": 1}, [block(*range(1000))])
    chunks = SpilledChunks(folder.path, folder.place)
    assert ([chunk.header["n"] for chunk in chunks], chunks.damage) == ([0], "")
    folder.cut()
    folder.write({"n": 2}, [block(3)])
    assert contents(folder.path) == [(0, [[1]]), (2, [[3]])]


def test_a_long_chunk_lets_others_work_between_its_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill_file, "_LONGEST_WRITE", 100)
    folder = SpillFolder(tmp_path)
    calls: list[int] = []
    folder.write({"n": 0}, [block(*range(100))], lambda: calls.append(1))
    folder.write({"n": 1}, [block(1)], lambda: calls.append(2))
    folder.close()
    assert contents(folder.path) == [(0, [[*range(100)]]), (1, [[1]])]
    assert len(calls) >= 8
