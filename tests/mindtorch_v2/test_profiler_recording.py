"""Tests of mindtorch_v2.profiler.recording: sealing with little memory, and snapshots."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kept_recordings import EVERYTHING, names, work
from trace_equality import events_of

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof.load.spill import read_spill, spill_folders
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.trace import Trace
from mindtorch_v2.profiler import profile, record_function


def test_too_little_memory_to_seal_writes_the_recording_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindtorch_v2.profiler import recording

    seal = recording.seal
    monkeypatch.setattr(recording.tempfile, "gettempdir", lambda: os.fspath(tmp_path))

    def fail(raw: Any, *, keep_logs: bool) -> Trace:
        raise MemoryError

    monkeypatch.setattr(recording, "seal", fail)
    with profile(**EVERYTHING) as prof:
        work("train")
    for _ in range(2):  # it is written once
        with pytest.raises(MemoryError, match="not enough memory to build the profile; it was written to"):
            prof.key_averages()
    (folder,) = spill_folders(tmp_path / "mindtorch_profiles")
    monkeypatch.setattr(recording, "seal", seal)
    assert events_of(read_spill(folder)) == events_of(
        prof.profiler._results.trace
    )  # also in memory, once there is enough


def test_rows_are_freed_while_they_are_read_only_where_memory_suffices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindtorch_prof.sealing import seal
    from mindtorch_v2.profiler import recording

    monkeypatch.setattr(recording.tempfile, "gettempdir", lambda: os.fspath(tmp_path))
    with monkeypatch.context() as limited:
        limited.setattr(seal, "_SEALING_BYTES", 1 << 50)
        with profile(record_shapes=True) as prof:
            work("train")
        with pytest.raises(MemoryError, match="it was written to"):
            prof.events()
    (folder,) = spill_folders(tmp_path / "mindtorch_profiles")
    assert events_of(read_spill(folder)) == events_of(prof.profiler._results.trace)


_LIMITED = """
import resource, sys, tempfile, warnings
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
tempfile.tempdir = sys.argv[1]
x = torch.ones(2)
with profile(record_shapes=True) as prof:
    for _ in range(150_000):
        x + 1
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
failures = 0
for megabytes in range(1, 40, 3):
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (megabytes << 20), resource.RLIM_INFINITY))
    try:
        prof.profiler._recorded_trace()
        break
    except MemoryError as error:
        assert "not enough memory to build the profile" in str(error), error
        failures += 1
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
(row,) = [row for row in prof.key_averages() if row.key == "aten::add"]
print(failures > 0, row.count)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a process")
def test_a_process_without_memory_keeps_its_recording_until_there_is_some(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "150000"], done.stderr


@pytest.mark.parametrize("acc_events", [False, True])
def test_too_little_memory_for_the_torch_view_leaves_what_was_recorded(
    acc_events: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindtorch_v2.profiler import recording

    def fail(trace: Trace) -> Trace:
        raise MemoryError

    with profile(record_shapes=True, acc_events=acc_events) as prof:
        work("train")
    with monkeypatch.context() as limited:
        limited.setattr(recording, "torch_view", fail)
        for ask in (prof.key_averages, prof.events, lambda: prof.export_chrome_trace("x.json")):
            with pytest.raises(MemoryError, match=r"what ran is there: as_recorded\(\)"):
                ask()
        ran = prof.as_recorded()
        ran.export_chrome_trace(tmp_path / "trace.json")
    whole = prof.profiler._results.trace  # there is memory now
    assert whole.n_synthetic > 0
    assert events_of(ran.trace) == events_of(as_recorded(whole))
    assert (
        len(mindtorch_prof.load(tmp_path / "trace.json").trace) == len(ran.trace) == ran.overhead().n_events
    )


def test_too_little_memory_for_averages_leaves_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindtorch_prof.torch_api import results

    def fail(*arguments: Any, **options: Any) -> Any:
        raise MemoryError

    with profile(record_shapes=True) as prof:
        work("train")
    with monkeypatch.context() as limited:
        limited.setattr(results.Results, "key_averages", fail)
        with pytest.raises(MemoryError):
            prof.key_averages()
        prof.save(tmp_path / "saved.mtprof")
    assert len(mindtorch_prof.load(tmp_path / "saved.mtprof").trace) == len(prof.profiler._results.trace)


def test_nothing_is_sealed_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2.profiler import recording

    seal, sealed = recording.seal, []
    monkeypatch.setattr(recording, "seal", lambda *a, **options: sealed.append(a) or seal(*a, **options))
    with profile() as prof:
        work("train")
    assert not sealed
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(lambda _: prof.key_averages().table(), range(8)))
    assert len(sealed) == len(set(tables)) == 1


@pytest.mark.parametrize("options", [{}, {"max_events": 10_000}, {"spill_dir": True}])
def test_a_snapshot_has_what_was_recorded_and_recording_goes_on(
    each_core: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    from mindtorch_v2.profiler import recording

    options = {**options, "spill_dir": tmp_path} if "spill_dir" in options else options
    with profile(**EVERYTHING, **options) as prof:
        with record_function("open"):
            torch.ones(2) + 1
            first = prof.snapshot()
            time.sleep(0.001)
            between_ns = time.perf_counter_ns()
            time.sleep(0.001)
            torch.ones(2) * 2
            now_ns = time.perf_counter_ns()
            seconds = (now_ns - between_ns) / 1e9
            with monkeypatch.context() as clock:  # however long it takes until the snapshot begins
                clock.setattr(recording, "time", SimpleNamespace(perf_counter_ns=lambda: now_ns))
                second = prof.snapshot(seconds=seconds)
    assert names(first.trace).count("aten::add") == 1
    assert (names(first.trace).count("open"), first.health.unfinished) == (1, 1)
    assert "aten::add" not in names(second.trace)
    assert names(second.trace).count("aten::mul") == 1
    assert f"only the last {seconds:g} s" in second.health.line()
    trace = prof.profiler._results.trace
    assert [name for name in names(trace) if name in ("aten::add", "aten::mul", "open")] == [
        "open",
        "aten::add",
        "aten::mul",
    ]
    with pytest.raises(RuntimeError, match="under way"):
        prof.snapshot()


def test_a_signal_writes_a_snapshot_and_then_calls_the_programs_handler(tmp_path: Path) -> None:
    calls = []
    before = signal.signal(signal.SIGUSR2, lambda *_: calls.append("program"))
    try:
        with profile(max_events=1000) as prof:
            release = prof.snapshot_on_signal("USR2", tmp_path / "now.json.gz")
            torch.ones(2) + 1
            os.kill(os.getpid(), signal.SIGUSR2)
            release()
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert calls == ["program"]
    assert "aten::add" in names(mindtorch_prof.load(tmp_path / "now.json.gz").trace)
