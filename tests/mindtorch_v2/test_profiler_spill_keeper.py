"""Tests of mindtorch_v2.profiler.record.spill_keeper: recordings that survive their process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forked import ends_well
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_recordings import EVERYTHING, FLAGS, KINDS, names, spilled, work
from trace_equality import events_of, parts_of

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_prof import spill_file
from mindtorch_prof.load.spill import read_spill, spill_folders
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function, schedule
from mindtorch_v2.profiler.record import keeper, spill_keeper, spill_tables
from mindtorch_v2.profiler.recording import recording_now


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    program=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6), flags=st.sets(st.sampled_from(FLAGS))
)
def test_what_was_spilled_is_what_was_recorded(
    each_core: Any, often: None, tmp_path_factory: pytest.TempPathFactory, program: list[str], flags: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("spill")
    with profile(**dict.fromkeys(flags, True), spill_dir=folder) as prof:
        for kind in program:
            work(kind)
    recorded, read = prof.profiler._results.trace, spilled(folder)
    assert not read.health.notes
    assert events_of(read) == events_of(recorded)
    assert parts_of(read) == parts_of(recorded)
    assert read.settings.threads == recorded.settings.threads


def test_a_spilled_recording_has_the_events_of_another(each_core: Any, often: None, tmp_path: Path) -> None:
    def run(**options: Any) -> Any:
        torch.manual_seed(0)
        with profile(**EVERYTHING, **options) as prof:
            for kind in KINDS:
                work(kind)
        trace = prof.profiler._results.trace
        events = [(*event[:4], event[-1]) for event in events_of(trace)]
        # of this package and the programs: the garbage collector calls others whenever it runs
        calls = [
            name
            for name, *_ in parts_of(trace)["calls"]
            if "mindtorch_v2" in name or "kept_recordings" in name
        ]
        return events, calls

    runs = [run(**options) for options in ({}, {"spill_dir": tmp_path}, {})]
    assert runs[1] == runs[2]


def test_all_threads_are_there_each_event_once(each_core: Any, often: None, tmp_path: Path) -> None:
    def ops() -> None:
        x = torch.ones(2)
        for _ in range(200):
            x + 1

    config = _ExperimentalConfig(profile_all_threads=True)
    with profile(record_shapes=True, with_stack=True, experimental_config=config, spill_dir=tmp_path) as prof:
        threads = [threading.Thread(target=ops) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read = spilled(tmp_path)
    assert names(read).count("aten::add") == 16 * 200
    assert events_of(read) == events_of(prof.profiler._results.trace)
    assert not [n for n in read.frames.names if "keeper.py" in n and n in names(read)]


def test_64_threads_of_1000_ops_are_counted_exactly(often: None, tmp_path: Path) -> None:
    def ops() -> None:
        x = torch.ones(2)
        for _ in range(1000):
            x + 1

    config = _ExperimentalConfig(profile_all_threads=True)
    with profile(experimental_config=config, spill_dir=tmp_path):
        threads = [threading.Thread(target=ops) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    read = spilled(tmp_path)
    adds = np.array([name == "aten::add" for name in read.names])[read.name]
    assert np.unique(read.thread[adds], return_counts=True)[1].tolist() == [1000] * 64


def test_coroutines_and_generators_keep_their_ranges(often: None, tmp_path: Path) -> None:
    async def one(name: str) -> None:
        with record_function(name):
            torch.ones(1)
            await asyncio.sleep(0.003)

    def generate() -> Any:
        with record_function("generator"):
            yield torch.ones(1)

    async def both() -> None:
        await asyncio.gather(one("a"), one("b"))

    with profile(spill_dir=tmp_path) as prof:
        asyncio.run(both())
        list(generate())
    read = spilled(tmp_path)
    assert {"a", "b", "generator"} < set(names(read))
    assert events_of(read) == events_of(prof.profiler._results.trace)


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_each_cycle_of_a_schedule_has_a_folder(tmp_path: Path) -> None:
    counted = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda prof: counted.append(len(prof.profiler._results.trace)),
        spill_dir=tmp_path,
    ) as prof:
        for _ in range(6):
            torch.ones(2) + 1
            prof.step()
    folders = spill_folders(tmp_path)
    assert [len(read_spill(folder)) for folder in folders] == counted
    assert len(folders) == 2
    with pytest.raises(mindtorch_prof.NotATraceError, match="a folder with 2 traces"):
        mindtorch_prof.load(tmp_path)


# --------------------------------------------------------------------------------- ends


_HEAD = """
import os, signal, sys, threading, time
for ends in (signal.SIGTERM, signal.SIGHUP):  # also under nohup, which leaves a signal ignored
    signal.signal(ends, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
x = torch.ones(2)
with profile(record_shapes=True):  # measures what recording costs, once for all
    x + 1
def work(n):
    for _ in range(n):
        x + 1
def wait_until_written():
    keeper, written = prof.profiler._recorder.keeper, threading.Event()
    keep = keeper._keep
    keeper._keep = lambda: (keep(), written.set())
    assert written.wait(300)
for number, program in enumerate(PROGRAMS):
    child = os.fork()
    if not child:
        prof = profile(spill_dir=f"{FOLDER}/{number}", record_shapes=True)
        exec(program)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_SIGINT = "signal SIGINT (KeyboardInterrupt)"
ENDS = {
    "prof.start(); work(500); os.kill(os.getpid(), signal.SIGTERM)": ("signal SIGTERM", -signal.SIGTERM),
    "prof.start(); work(500); os.kill(os.getpid(), signal.SIGHUP)": ("signal SIGHUP", -signal.SIGHUP),
    "prof.start(); work(500); os.kill(os.getpid(), signal.SIGINT)": (_SIGINT, -signal.SIGINT),
    "prof.start(); work(500); sys.exit(3)": ("the program ended without stopping it", 3),
    "prof.start(); work(500); raise ValueError('wrong')": ("exception ValueError: wrong", 1),
    "prof.start(); work(500); raise MemoryError": ("exception MemoryError: ", 1),
    "with prof:\n    work(500)\n    raise ValueError('wrong')": ("exception ValueError: wrong", 1),
    "with prof:\n    work(500)": ("", 0),
}
_OWN = """
def own(number, frame):
    {}
signal.signal(signal.{}, own)
prof.start()
work(500)
os.kill(os.getpid(), signal.{})
work(7)
prof.stop()
"""
# programs that handle the signal themselves: what they do at it, exit code, ops that are there
OWN_HANDLERS = {
    _OWN.format("os._exit(7)", "SIGTERM", "SIGTERM"): (7, 500),
    _OWN.format("os._exit(8)", "SIGINT", "SIGINT"): (8, 500),
    _OWN.format("sys.exit(9)", "SIGHUP", "SIGHUP"): (9, 500),
    _OWN.format("pass", "SIGTERM", "SIGTERM"): (0, 507),
}
_KILLED = """
prof.start()
with record_function("outer"):
    work(300)
    wait_until_written()
    work(5)
    {}
"""
_KILLING = ("os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGQUIT)", "os._exit(0)")
KILLS = [_KILLED.format(end) for end in _KILLING]
FORKS = """
prof.start()
work(100)
wait_until_written()
if os.fork():
    work(100)
    assert os.wait()[1] == 0
    prof.stop()
else:
    work(1000)
    time.sleep(0.3)
    prof.stop()
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, Path]]:
    """By program: its exit code and its spill folder. One interpreter runs them all, in forked processes."""
    folder = tmp_path_factory.mktemp("ended")
    programs = [*ENDS, *OWN_HANDLERS, *KILLS, FORKS]
    text = f"PROGRAMS, FOLDER = {programs!r}, {os.fspath(folder)!r}" + _HEAD
    done = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True, timeout=600
    )
    codes = map(int, done.stdout.split())
    return {
        program: (code, folder / str(number)) for number, (program, code) in enumerate(zip(programs, codes))
    }


@pytest.mark.parametrize("program", list(ENDS))
def test_everything_is_there_however_the_program_ends(
    ended: dict[str, tuple[int, Path]], program: str
) -> None:
    reason, exit_code = ENDS[program]
    loaded = mindtorch_prof.load(ended[program][1])
    assert names(loaded.trace).count("aten::add") == 500
    assert ended[program][0] == exit_code
    health = replace(loaded.health, remarks=())  # a busy machine holds the program up
    assert health.line() == (f"the recording ended early: {reason}" if reason else "")


@pytest.mark.parametrize("program", list(OWN_HANDLERS))
def test_a_handler_of_the_program_decides_and_everything_until_then_is_there(
    ended: dict[str, tuple[int, Path]], program: str
) -> None:
    exit_code, n_ops = OWN_HANDLERS[program]
    assert ended[program][0] == exit_code
    trace = mindtorch_prof.load(ended[program][1]).trace
    assert names(trace).count("aten::add") == n_ops


def test_handlers_are_as_before_after_a_spilled_recording(tmp_path: Path) -> None:
    def own(number: int, frame: object) -> None: ...

    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    first = signal.signal(signal.SIGTERM, own)
    try:
        before = [signal.getsignal(number) for number in numbers]
        with profile(spill_dir=tmp_path / "p"):
            torch.ones(2) + 1
        assert [signal.getsignal(number) for number in numbers] == before
    finally:
        signal.signal(signal.SIGTERM, first)


def test_without_a_spill_folder_or_where_that_is_not_wanted_no_handler_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    monkeypatch.setenv(spill_keeper.SIGNALS_VARIABLE, "0")
    for options in ({}, {"max_events": 10}, {"spill_dir": tmp_path / "p"}):
        with profile(**options):
            torch.ones(2) + 1
            assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize("program", KILLS)
def test_what_was_written_while_the_recording_went_on_survives_a_kill(
    ended: dict[str, tuple[int, Path]], program: str
) -> None:
    loaded = mindtorch_prof.load(ended[program][1])
    assert names(loaded.trace).count("aten::add") >= 300
    assert names(loaded.trace).count("outer") == 1  # under way, and ended by the kill
    assert "killed" in loaded.health.line()
    assert loaded.health.unfinished == 1


def test_a_forked_process_neither_duplicates_nor_corrupts(ended: dict[str, tuple[int, Path]]) -> None:
    code, folder = ended[FORKS]
    loaded = mindtorch_prof.load(folder)
    assert names(loaded.trace).count("aten::add") == 200
    assert loaded.health
    assert code == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_process_that_is_forked_while_rows_are_taken_can_end(tmp_path: Path) -> None:
    prof = profile(spill_dir=tmp_path / "p")
    prof.start()
    keeper = prof.profiler._recorder.keeper
    taken, forked = threading.Event(), threading.Event()

    def take() -> None:
        with keeper._lock:
            taken.set()
            forked.wait(300)

    thread = threading.Thread(target=take)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        prof.stop()
        keeper._at_exit()  # what the end of an interpreter calls
        os._exit(0)
    forked.set()
    thread.join()
    ended_well = ends_well(child)
    prof.stop()
    assert ended_well


_PROCESSES = """
import multiprocessing, sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, place):
        return torch.full((2,), float(place)) * 2  # an op of a worker process

def work(n):
    x = torch.ones(2)
    for _ in range(n):
        x + 1

def record(n):
    with profile(spill_dir=sys.argv[1] + "/spawn"):
        work(n)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with profile(spill_dir=sys.argv[1] + "/spawn"):
        processes = [context.Process(target=target, args=(n,)) for target, n in ((record, 30), (work, 70))]
        for process in processes:
            process.start()
        work(10)
        for process in processes:
            process.join()
            assert process.exitcode == 0
    with profile(spill_dir=sys.argv[1] + "/loader"):
        for batch in DataLoader(Numbers(), batch_size=4, num_workers=2):
            batch + 1
"""


@pytest.fixture(scope="module")
def with_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spill folders of a program that starts processes while it records."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "program.py").write_text(_PROCESSES)
    command = [sys.executable, os.fspath(folder / "program.py"), os.fspath(folder)]
    subprocess.run(command, check=True, timeout=600)
    return folder


def test_a_spawned_process_that_records_has_a_folder_with_its_own_events(with_processes: Path) -> None:
    recordings = [read_spill(recording) for recording in spill_folders(with_processes / "spawn")]
    assert [names(recording).count("aten::add") for recording in recordings] == [10, 30]
    assert not [note for recording in recordings for note in recording.health.notes]


def test_workers_of_a_data_loader_leave_the_recording_of_their_parent_alone(with_processes: Path) -> None:
    recording = spilled(with_processes / "loader")
    assert names(recording).count("aten::add") == 10
    assert "aten::mul" not in names(recording)
    assert not recording.health.notes


@pytest.mark.parametrize("after_snapshot", [False, True])
def test_a_recording_that_is_under_way_can_be_opened(tmp_path: Path, after_snapshot: bool) -> None:
    with profile(spill_dir=tmp_path) as prof:
        torch.ones(2) + 1
        if after_snapshot:  # which opens and closes the files
            prof.snapshot()
        prof.profiler._recorder.keeper.take()
        ours, theirs = os.pipe()
        if not os.fork():  # another process, which has no lock on the file
            loaded = mindtorch_prof.load(tmp_path)
            os.write(theirs, f"{len(loaded.trace)} {loaded.health.line()}".encode())
            os._exit(0)
        os.wait()
        shown = os.read(ours, 1000).decode()
        os.close(ours)
        os.close(theirs)
    assert "still under way" in shown
    assert int(shown.split()[0]) >= 2


# --------------------------------------------------------------------------------- full and read-only disks


@pytest.mark.parametrize("failing", range(6))
@pytest.mark.parametrize("for_ever", [True, False])
def test_a_disk_that_is_full_at_any_write_costs_only_what_comes_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, for_ever: bool
) -> None:
    pwrite, n_writes = os.pwrite, 0

    def write(file: int, data: Any, at: int) -> int:
        nonlocal n_writes
        n_writes += 1
        if n_writes > failing and (for_ever or n_writes == failing + 1):
            raise OSError(28, "No space left on device")
        return pwrite(file, data, at)

    monkeypatch.setattr(os, "pwrite", write)
    monkeypatch.setattr(keeper, "PERIOD_S", 3600.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(spill_dir=tmp_path) as prof:
            for _ in range(3):
                torch.ones(2) + 1
                prof.profiler._recorder.keeper.take()
    assert names(prof.profiler._results.trace).count("aten::add") == 3  # all of it is in memory
    (folder,) = spill_folders(tmp_path)
    # the end is tried twice: that it failed once nobody needs to know
    assert any("No space left on device" in str(each.message) for each in told) or (
        not for_ever and failing == 5
    )
    if for_ever and failing < 1:  # not even the first chunk
        with pytest.raises(mindtorch_prof.NotATraceError, match="nothing was recorded"):
            read_spill(folder)
        return
    read = read_spill(folder)
    if for_ever:
        assert names(read).count("aten::add") == min(failing - 1, 3)
        assert not read.health
    else:
        assert names(read).count("aten::add") == 3
        assert read.health


def test_the_end_of_a_recording_says_that_it_waits_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, is_writing, was_told = os.pwrite, threading.Event(), threading.Event()
    messages: list[str] = []

    def slow_write(file: int, data: Any, at: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            is_writing.set()
            assert was_told.wait(60)
        return pwrite(file, data, at)

    def warn(message: str) -> None:
        messages.append(message)
        was_told.set()

    monkeypatch.setattr(spill_keeper, "_SILENT_S", 0.01)
    monkeypatch.setattr(spill_keeper, "warn_in_background", warn)
    with profile(spill_dir=tmp_path) as prof:
        monkeypatch.setattr(os, "pwrite", slow_write)
        torch.ones(2) + 1
        assert is_writing.wait(60)
    (message,) = messages
    assert "the disk is slow" in message
    assert str(tmp_path) in message
    assert names(prof.profiler._results.trace).count("aten::add") == 1


class _OwnInterrupt(Exception):
    pass


def _raise_own(number: int, frame: Any) -> None:
    raise _OwnInterrupt


@pytest.mark.parametrize("own_handler", [False, True])
@pytest.mark.parametrize("stuck", ["while recording", "at the end"])
def test_ctrl_c_ends_the_wait_for_a_slow_disk_and_nothing_is_lost(
    each_core: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: str, own_handler: bool
) -> None:
    pwrite, is_writing, goes_on, is_slow = os.pwrite, threading.Event(), threading.Event(), threading.Event()
    keeper_has_closed, close = threading.Event(), spill_file.SpillFolder.close

    def close_and_say(folder: Any) -> None:
        close(folder)
        keeper_has_closed.set()

    def slow_write(file: int, data: Any, at: int) -> int:
        if is_slow.is_set() and not goes_on.is_set():
            is_writing.set()
            assert goes_on.wait(60)
        return pwrite(file, data, at)

    def press_ctrl_c(message: str) -> None:
        """Called while the program waits."""
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    monkeypatch.setattr(spill_keeper, "_SILENT_S", 0.01)
    monkeypatch.setattr(spill_file.SpillFolder, "close", close_and_say)
    monkeypatch.setattr(keeper, "PERIOD_S", 0.002 if stuck == "while recording" else 3600.0)
    monkeypatch.setattr(spill_keeper, "warn_in_background", press_ctrl_c)
    monkeypatch.setattr(os, "pwrite", slow_write)
    handler = signal.signal(signal.SIGINT, _raise_own if own_handler else signal.default_int_handler)
    try:
        prof = profile(spill_dir=tmp_path, record_shapes=True)
        prof.start()
        torch.ones(2) + 1
        prof.profiler._recorder.keeper.take()
        is_slow.set()
        torch.ones(2) * 2
        assert stuck == "at the end" or is_writing.wait(60)
        torch.ones(2) - 3
        with pytest.raises(_OwnInterrupt if own_handler else KeyboardInterrupt):
            prof.stop()
        assert is_writing.is_set()
        assert signal.getsignal(signal.SIGINT) is (_raise_own if own_handler else signal.default_int_handler)
        assert recording_now() is False
        read = spilled(tmp_path)
        assert (names(read).count("aten::add"), names(read).count("aten::mul")) == (1, 0)
    finally:
        goes_on.set()
        signal.signal(signal.SIGINT, handler)
    in_memory = [names(prof.profiler._results.trace).count(f"aten::{op}") for op in ("add", "mul", "sub")]
    assert in_memory == [1, 1, 1]
    keeper_has_closed.wait(60)
    read = spilled(tmp_path)
    assert [names(read).count(f"aten::{op}") for op in ("add", "mul", "sub")] == [1, 0, 0]
    assert read.health.dropped == 4  # mul and sub, and the ones() of each
    assert "4 events could not be written: the program was interrupted while it waited" in read.health.line()
    assert "left out" not in read.health.line()


def test_after_ctrl_c_at_a_slow_disk_a_recording_that_goes_on_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, goes_on = os.pwrite, threading.Event()

    def slow_write(file: int, data: Any, at: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            assert goes_on.wait(60)
        return pwrite(file, data, at)

    def press_ctrl_c(message: str) -> None:
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT)).start()

    monkeypatch.setattr(spill_keeper, "_SILENT_S", 0.01)
    monkeypatch.setattr(keeper, "PERIOD_S", 3600.0)
    monkeypatch.setattr(spill_keeper, "warn_in_background", press_ctrl_c)
    prof = profile(spill_dir=tmp_path, acc_events=True)
    prof.start()
    torch.ones(2) + 1
    monkeypatch.setattr(os, "pwrite", slow_write)
    try:
        with pytest.raises(KeyboardInterrupt):
            prof.stop()
        prof.start()
        torch.ones(2) * 2
        prof.stop()
    finally:
        goes_on.set()
    assert [names(prof.profiler._results.trace).count(f"aten::{op}") for op in ("add", "mul")] == [1, 1]


_TERMINATED_AT_THE_END = """
import os, signal, sys, threading
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import keeper, spill_keeper

pwrite, goes_on = os.pwrite, threading.Event()

def slow_write(file, data, at):
    assert goes_on.wait(60)
    return pwrite(file, data, at)

def terminate(message):  # called while the program waits for the disk
    threading.Timer(0.1, goes_on.set).start()
    os.kill(os.getpid(), signal.SIGTERM)

keeper.PERIOD_S, spill_keeper._SILENT_S, spill_keeper.warn_in_background = 3600.0, 0.01, terminate
prof = profile(spill_dir=sys.argv[1])
prof.start()
torch.ones(2) + 1
os.pwrite = slow_write
prof.stop()
"""


def test_sigterm_while_the_end_is_written_to_a_slow_disk_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _TERMINATED_AT_THE_END, os.fspath(tmp_path)]
    assert subprocess.run(command, check=False, timeout=600).returncode == -signal.SIGTERM
    read = spilled(tmp_path)
    assert names(read).count("aten::add") == 1
    assert read.health


def test_a_disk_slower_than_the_recording_takes_bounded_memory_and_what_is_dropped_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite, made, most_waiting = os.pwrite, 0, 0
    x = torch.ones(2)

    def add(count: int) -> None:
        nonlocal made
        made += count
        for _ in range(count):
            x + 1

    def slow_write(file: int, data: Any, at: int) -> int:
        nonlocal most_waiting
        keeper = prof.profiler._recorder.keeper
        if keeper is not None and len(data) > 100:  # the program goes on meanwhile
            add(10)
            most_waiting = max(most_waiting, sum(logs.nbytes for _, logs in keeper._pending))
        return pwrite(file, data, at)

    monkeypatch.setattr(keeper, "PERIOD_S", 3600.0)
    monkeypatch.setattr(spill_keeper, "_MOST_PENDING", 20_000)
    monkeypatch.setattr(spill_file, "_LONGEST_WRITE", 200)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(spill_dir=tmp_path) as prof:
            add(10)
            with monkeypatch.context() as slow:
                slow.setattr(os, "pwrite", slow_write)
                prof.profiler._recorder.keeper.take()
            add(10)
    assert 20_000 < most_waiting < 22_000
    messages = [str(each.message) for each in told if "slower than the recording" in str(each.message)]
    assert len(messages) == 1
    for trace in (spilled(tmp_path), prof.profiler._results.trace):
        assert trace.health.dropped > 0
        assert names(trace).count("aten::add") + trace.health.dropped == made
        assert "the disk is slower than the recording" in trace.health.line()


_SMALL_DISK = """
import resource, sys, warnings
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
x = torch.ones(2)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with profile(spill_dir=sys.argv[1]) as prof:
        for _ in range(40):
            for _ in range(1000):
                x + 1
            prof.profiler._recorder.keeper.take()
(row,) = [row for row in prof.key_averages() if row.key == "aten::add"]
print(row.count, len(told))
"""


def test_a_write_that_the_system_cuts_short_leaves_all_chunks_before_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SMALL_DISK, os.fspath(tmp_path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    assert said.stdout.split() == ["40000", "1"]  # all of it is in memory, and one warning was given
    trace = spilled(tmp_path)
    kept = names(trace).count("aten::add")
    assert kept + trace.health.dropped == 40_000
    (segment,) = [path.stat().st_size for path in tmp_path.glob("*/*.segment")]
    assert 150_000 < segment <= 200_000
    assert kept * 24 > 100_000  # what had room is there: three numbers for each op
    assert "could not be written: File too large" in trace.health.line()


def test_callers_that_end_in_a_later_part_are_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill_tables, "_CARRIED_ROWS", 64)
    monkeypatch.setattr(keeper, "PERIOD_S", 3600.0)
    with profile(record_shapes=True, spill_dir=tmp_path) as prof:
        take = prof.profiler._recorder.keeper.take
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).sum()
        x.register_hook(lambda gradient: take())  # inside the backward pass
        y.backward()
        take()
    assert events_of(spilled(tmp_path)) == events_of(prof.profiler._results.trace)


def test_a_range_that_begins_while_rows_are_taken_does_not_spoil_the_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each_core: Any
) -> None:
    late: list[Any] = []
    monkeypatch.setattr(keeper, "PERIOD_S", 3600.0)  # the rows are taken here and nowhere else

    def one_call() -> None:
        pass

    with profile(with_stack=True, spill_dir=tmp_path) as prof:
        recorder = prof.profiler._recorder
        hand_over = recorder.hand_over

        def slowly() -> Any:
            logs = hand_over()
            for _ in range(5000):  # as if another thread ran meanwhile
                one_call()
            late.append(record_function("late").__enter__())
            return logs

        with record_function("early"):
            torch.ones(2) + 1
            with monkeypatch.context() as slow:
                slow.setattr(recorder, "hand_over", slowly)
                recorder.keeper.take()
            found = spilled(tmp_path)
        for each in late:
            each.__exit__(None, None, None)
    names = [found.names[name] for name in found.name.tolist()]
    assert "early" in names
    assert "late" not in names
