"""Tests of mindtorch_prof.sealing.row_columns: wherever memory runs out in sealing, no row is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from raw_recordings import MAIN, raw_recording
from trace_equality import assert_same

from mindtorch_prof.sealing import logs as logs_module
from mindtorch_prof.sealing import row_columns, seal
from mindtorch_prof.sealing.logs import Logs
from mindtorch_prof.sealing.raw import RawRecording, TensorTables

COLUMNS = ("key", "start", "end", "sequence", "inputs", "tensors")
FILES = {module.__file__ for module in (seal, row_columns, logs_module)}


def recording(count: int = 12, block: int = 5) -> RawRecording:
    """Two threads, events that start together, several blocks, places of tensors that count per thread."""
    rows = {
        thread: [(i % 2, i // 3 * 10, i * 10 + 100, i % 5, -1, i % 4 - 1) for i in range(count + shift)]
        for thread, shift in ((MAIN, 0), (8000, 3))
    }
    tables = TensorTables(0, np.empty((0, 2), np.int64), {}, (), {}, np.empty((0, 3), np.int64))
    tensors = {("tensors", MAIN): list(range(20)), ("tensors", 8000): list(range(50, 70))}
    raw = raw_recording(rows, columns=COLUMNS, logs=tensors, tensor_tables=tables)
    for key, parts in raw.logs.blocks.items():
        size = block * (len(COLUMNS) if key[0] == "rows" else 1)
        raw.logs.blocks[key] = [part[i : i + size] for part in parts for i in range(0, len(part), size)]
    return raw


def out_of_memory_at(line: int, function: Callable[[], object]) -> bool:
    """Call a function; memory is gone at this line, counted among those of sealing. Whether it came."""
    left = line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in FILES:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise MemoryError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except MemoryError:
        assert left == 0
    finally:
        sys.settrace(before)
    return left <= 0


def again(raw: RawRecording, blocks: list[tuple[Any, np.ndarray]]) -> RawRecording:
    """The same recording from blocks that were written."""
    by_key: dict[Any, list[np.ndarray]] = {}
    for key, block in blocks:
        by_key.setdefault(key, []).append(np.array(block))
    raw.logs = Logs(by_key.items(), raw.logs.natives)
    return raw


@pytest.mark.parametrize("piece", [5, 1 << 16])
def test_wherever_memory_runs_out_the_recording_can_be_sealed_or_written_later(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_columns, "_PIECE", piece)
    expected = seal.seal(recording())
    line = 0
    while True:
        line += 1
        raw = recording()
        came = out_of_memory_at(line, lambda raw=raw: seal.seal(raw, keep_logs=False))  # type: ignore[misc]
        if raw.logs.gathered is None and not raw.logs.count("rows", 1):  # sealed
            break
        written = [*raw.logs]  # what a spill folder gets
        if came:
            assert_same(seal.seal(raw, keep_logs=False), expected, f"the second question after line {line}")
            assert_same(seal.seal(again(recording(), written)), expected, f"written after line {line}")
        else:
            break
    assert line > 150


def test_a_log_that_is_joined_stays_whole_wherever_memory_runs_out() -> None:
    for line in range(1, 60):
        joined = Logs([(("calls", 3), [np.arange(4), np.arange(4, 6), np.arange(6, 10)])])
        out_of_memory_at(line, lambda joined=joined: joined.joined("calls", 3))  # type: ignore[misc]
        assert joined.joined("calls", 3).reshape(-1).tolist() == list(range(10))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a process")
def test_a_real_limit_of_memory_loses_nothing_however_low_it_is() -> None:
    # In a process of its own whose allocator gives every freed array back to the system: memory that it kept
    # would serve a limited call, and how much it keeps differs from machine to machine.
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_ARENA_MAX": "1"}
    code = f"import sys; sys.path[:0] = {[os.path.dirname(__file__), *sys.path]!r}\n"
    code += "import test_row_columns; test_row_columns._seal_under_limits()"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **allocator})


def _seal_under_limits() -> None:
    import resource

    source = recording(60_000, 4_000)
    blocks = [*source.logs]
    expected = seal.seal(source)
    page = resource.getpagesize()
    failures = 0
    for megabytes in range(0, 40, 2):
        raw = again(recording(), blocks)
        in_use = int(open("/proc/self/statm").read().split()[0]) * page  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_AS, (in_use + (megabytes << 20), resource.RLIM_INFINITY))
        try:
            seal.seal(raw, keep_logs=False)
        except MemoryError:
            failures += 1
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            trace = seal.seal(raw, keep_logs=False)
            np.testing.assert_array_equal(trace.start_ns, expected.start_ns)
            np.testing.assert_array_equal(trace.tensor_ids.first, expected.tensor_ids.first)
            np.testing.assert_array_equal(trace.sequence, expected.sequence)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert failures >= 3
