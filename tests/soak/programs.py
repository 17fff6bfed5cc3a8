"""Programs of the soak: each records something whose result is known, and compares.

A program takes a generator of random numbers and an empty folder, raises AssertionError where a recording
differs from the truth, and returns how many recordings it made. `PROGRAMS` lists them; a further kind of
recording is one more function there.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from damaged_traces import KINDS
from fuzz_commands import COMMANDS, TRACES, outcome

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_v2 import nn
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function, schedule

Program: TypeAlias = "Callable[[random.Random, Path], int]"
WORD = "soak::range"


def options(random_: random.Random) -> dict[str, bool]:
    """Some of the options of a profile."""
    names = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
    return {name: random_.random() < 0.5 for name in names}


def work(count: int) -> Counter[str]:
    """Run ops and ranges; how many of each name a recording has to show."""
    tensor = torch.ones(3)
    for _ in range(count):
        with record_function(WORD):
            tensor = tensor.add(1).mul(0.5)
    return Counter({"aten::add": count, "aten::mul": count, WORD: count})


def check(recording: Any, truth: Counter[str]) -> None:
    """Every event once, no negative times, parents around their children."""
    results = recording if hasattr(recording, "trace") else recording.profiler._results
    trace = results.trace
    counts = np.bincount(trace.name, minlength=len(trace.names)) if len(trace) else []
    recorded = {name: int(counts[i]) for i, name in enumerate(trace.names) if name in truth}
    assert recorded == {name: count for name, count in truth.items() if count}, (recorded, truth)
    assert (trace.end_ns >= trace.start_ns).all()
    rows = np.stack((trace.thread, trace.start_ns, trace.end_ns, trace.name), axis=1)
    synthetic = np.zeros(len(trace), bool) if trace.synthetic is None else trace.synthetic != 0
    longer = ~synthetic & (trace.end_ns > trace.start_ns)
    assert len(np.unique(rows[longer], axis=0)) == int(longer.sum()), "an event is there twice"
    for row in recording.key_averages():
        assert row.self_cpu_time_total >= 0
        assert row.self_cpu_time_total <= row.cpu_time_total + 1e-3


def check_file(path: Path, truth: Counter[str]) -> None:
    loaded = load(path)
    check(loaded, truth)


# ------------------------------------------------------------ recordings


def recordings(random_: random.Random, folder: Path) -> int:
    """Recordings one after the other, some of which are written and read back."""
    for number in range(20):
        with profile(**options(random_)) as prof:
            truth = work(random_.choice((0, 1, 5, 50)))
        check(prof, truth)
        if number % 5 == 0:
            path = folder / random_.choice(("t.json", "t.json.gz"))
            prof.export_chrome_trace(str(path))
            check_file(path, truth)
    return 20


def training(random_: random.Random, folder: Path) -> int:
    """A schedule over a training loop: every cycle has its steps, no more."""
    active, repeat = random_.randrange(1, 4), random_.randrange(1, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ready: list[Counter[str]] = []

    def on_ready(prof: Any) -> None:
        ready.append(Counter(event.name for event in prof.events()))

    plan = schedule(wait=1, warmup=1, active=active, repeat=repeat)
    with profile(schedule=plan, on_trace_ready=on_ready, **options(random_)) as prof:
        for _ in range((2 + active) * repeat):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    assert len(ready) == repeat
    for counts in ready:
        assert counts["Optimizer.step#SGD.step"] == active
        assert sum(n for name, n in counts.items() if name == "ProfilerStep*") == active
    return repeat


def threads(random_: random.Random, folder: Path) -> int:
    """Threads at once and one after the other: all their ops, or only those of the thread that records."""
    all_threads = random_.random() < 0.5
    count, each = random_.randrange(1, 9), random_.choice((1, 20, 200))
    config = _ExperimentalConfig(profile_all_threads=all_threads)
    truth: Counter[str] = Counter()
    with profile(experimental_config=config, **options(random_)) as prof:
        if random_.random() < 0.5:
            workers = [threading.Thread(target=work, args=(each,)) for _ in range(count)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        else:
            for _ in range(count):
                worker = threading.Thread(target=work, args=(each,))
                worker.start()
                worker.join()
        truth += work(each)
    if all_threads:
        truth = Counter({name: n * (count + 1) for name, n in truth.items()})
    check(prof, truth)
    return 1


def exceptions(random_: random.Random, folder: Path) -> int:
    """A program that raises, also while its trace cannot be written: its own exception arrives."""

    def fails(prof: Any) -> None:
        prof.export_chrome_trace(str(folder / "missing" / "t.json"))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with profile(on_trace_ready=fails if random_.random() < 0.5 else None, **options(random_)):
                work(random_.randrange(5))
                raise KeyError("the program's own")
    except KeyError as error:
        raised: object = error.args[0]
    else:
        raised = None
    assert raised == "the program's own"
    return 1 + recordings(random_, folder)


def signals(random_: random.Random, folder: Path) -> int:
    """A signal whose handler raises at any moment: the recording ends, and the next one is right."""

    def interrupt(*_: object) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            with profile(**options(random_)):
                signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.02 * random_.random())
                work(100_000)
        except InterruptedError:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    with profile() as prof:
        truth = work(10)
    check(prof, truth)
    return 2


def forks(random_: random.Random, folder: Path) -> int:
    """A process that forks while it records: its own ops once, and the child works."""
    with profile(**options(random_)) as prof:
        truth = work(10)
        child = os.fork()
        if child == 0:
            os._exit(0 if work(50)["aten::add"] == 50 else 1)
        truth += work(10)
        assert os.waitpid(child, 0)[1] == 0
    check(prof, truth)
    return 1


# ------------------------------------------------------------ files


def full_disk(random_: random.Random, folder: Path) -> int:
    """A disk that is full after some bytes: the old file stays, and nothing else is left."""
    path = folder / "t.json"
    with profile(**options(random_)) as prof:
        work(200)
    path.write_text("old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (random_.choice((1, 100, 4096, 20_000)), limit[1]))
    try:
        prof.export_chrome_trace(str(path))
    except OSError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_text() == "old"
    assert os.listdir(folder) == ["t.json"]
    return 1


_EXPORTS = """
import sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
with profile() as prof:
    for _ in range(300):
        torch.ones(3).add(1)
print("ready", flush=True)
while True:
    prof.export_chrome_trace(sys.argv[1])
"""


def kills(random_: random.Random, folder: Path) -> int:
    """A process that is killed while it writes: the file is whole, and the next export removes the rest."""
    path = folder / "t.json.gz"
    process = subprocess.Popen([sys.executable, "-c", _EXPORTS, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2 * random_.random())
    process.kill()
    process.wait()
    process.stdout.close()
    if path.exists():
        assert len(json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]) > 300
    for left in folder.glob("*.tmp"):
        os.utime(left, (1, 1))  # as if the export had been some time ago
    with profile() as prof:
        truth = work(3)
    prof.export_chrome_trace(str(path))
    check_file(path, truth)
    assert os.listdir(folder) == [path.name]
    return 1


_SPILLS = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
x = torch.ones(3)
flags = {name: True for name in sys.argv[3:]}
with profile(spill_dir=sys.argv[1], **flags):
    done = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
    for number in range(1, 10_000_000):
        x.add(1)
        os.pwrite(done, b"%12d" % number, 0)
"""
_SPILLED_S = 300.0  # in which an op has to be on disk: some tenths of a second, but machines stand still


def n_spilled(folder: Path) -> int:
    """How many ops a spill folder has: of a process that has ended, or one that goes on."""
    trace = load(folder).as_recorded().trace
    return int(np.array([name == "aten::add" for name in trace.names] or [False])[trace.name].sum())


def spills(random_: random.Random, folder: Path) -> int:
    """A process that is ended while it spills: what it did before is in its folder, by and by and once."""
    spilled, done = folder / "spilled", folder / "done"
    flags = [name for name, wanted in options(random_).items() if wanted]
    program = [sys.executable, "-c", _SPILLS, str(spilled), str(done), *flags]
    process = subprocess.Popen(program, stderr=subprocess.DEVNULL)
    try:
        while not done.exists() or not done.read_bytes():
            assert process.poll() is None, "the program ended by itself"
            time.sleep(0.01)
        time.sleep(0.5 * random_.random())
        before = int(done.read_bytes())
        ending = random_.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        if ending == signal.SIGKILL:
            until = time.monotonic() + _SPILLED_S
            while n_spilled(spilled) < before:
                assert time.monotonic() < until, "what was done is not written"
                time.sleep(0.1)
        process.send_signal(ending)
        process.wait()
    finally:
        process.kill()
        process.wait()
    after = int(done.read_bytes())
    trace = load(spilled).as_recorded().trace
    is_add = np.array([name == "aten::add" for name in trace.names] or [False])[trace.name]
    count = int(is_add.sum())
    # after other signals everything is there; the last op has perhaps not been counted
    least = before if ending == signal.SIGKILL else after
    assert least <= count <= after + 1, (ending, before, count, after)
    assert (np.diff(trace.start_ns[is_add]) > 0).all(), "an op is there twice"
    assert (trace.end_ns >= trace.start_ns).all()
    return 1


def broken_files(random_: random.Random, folder: Path) -> int:
    """Damaged traces of all formats: every command gives an answer or one sentence."""
    for number in range(5):
        inner = folder / str(number)
        inner.mkdir()
        kind = random_.choice(("generated", "ascend text", "nsys"))  # made up: no real trace is needed
        path = KINDS[kind](random_, TRACES, inner)
        name = random_.choice(list(COMMANDS))
        failure = outcome([part.replace("{}", str(path)) for part in COMMANDS[name]], str(inner))
        assert failure is None, f"{name}: {failure}"
    return 0


PROGRAMS: dict[str, Program] = {
    each.__name__: each
    for each in (
        recordings,
        training,
        threads,
        exceptions,
        signals,
        forks,
        full_disk,
        kills,
        spills,
        broken_files,
    )
}
