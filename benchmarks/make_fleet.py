"""Make a job of many ranks with known faults: a real rank's file in; a folder of files and the truth out.

    python benchmarks/make_fleet.py rank0.json.gz OUT --ranks 64 --fault host:5:3000:forward --clock 2000

The rank's first whole step is repeated, and every rank gets a time axis of its own: it is late by what its
faults say, and at each collective it waits until the last rank of its group has come. So a late rank holds
the others up as it would in a real job, and its files are as large and as nested as the real one's.

faults:
    host:RANK:US:PHASE      the host takes so many microseconds longer in each step
    device:RANK:US:PHASE    the kernels launched in the phase do
    link:GROUP:FACTOR       transfers of a group of ranks take longer (with --group-size or --tensor-parallel)
    all_to_all:RANK:FACTOR  the rank receives so many times what the others do
    pipeline:STAGES:US      so many ranks that follow each other are a pipeline: each stage works for so many
                            microseconds before it sends to the next
    missing:RANK, truncated:RANK
    window:RANK:STEPS       the rank's recording begins so many steps later

The first two may end in `:FIRST-LAST`, the steps in which they act.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

Times = npt.NDArray[np.float64]  # microseconds
Event = dict[str, Any]

FIRST_STEP = 100  # the number of the first step that is written
_DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}
_ON_HOST = re.compile(r"gloo:")
_ON_DEVICE = re.compile(r"nccl", re.IGNORECASE)
_IDS = ("External id", "external id", "correlation", "Ev Idx", "Sequence number")
_PHASES = {
    "data": re.compile(r"data\b|enumerate\(DataLoader\)", re.IGNORECASE),
    "forward": re.compile(r"(## )?forward( ##)?$|DistributedDataParallel\.forward", re.IGNORECASE),
    "backward": re.compile(r"autograd::engine::evaluate_function|.*Backward\d*$"),
    "optimizer": re.compile(r"Optimizer\.step#"),
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    kind: str
    target: int  # a rank, or a group of ranks
    amount: float = 0.0  # microseconds per step, a factor, or steps
    phase: str = "forward"
    steps: tuple[int, int] | None = None  # first and last, from 0; None: all

    @staticmethod
    def parse(text: str) -> Fault:
        """From `kind:target[:amount[:phase[:first-last]]]`."""
        kind, target, *rest = text.split(":")
        steps = tuple(map(int, rest[2].split("-"))) if len(rest) > 2 else None
        assert steps is None or len(steps) == 2
        return Fault(
            kind, int(target), float(rest[0]) if rest else 0.0, rest[1] if len(rest) > 1 else "forward", steps
        )

    def acts_in(self, step: int) -> bool:
        return self.steps is None or self.steps[0] <= step <= self.steps[1]


@dataclass
class Step:
    """One step of the real rank: its events, and where on its time axis something can happen."""

    top: dict[str, Any]
    meta: list[Event]
    events: list[Event]  # times are since the step's start
    length: float
    arrival: Times  # of each collective
    end: Times
    phase_points: dict[str, float]  # inside an op of the phase
    kernels: dict[str, list[tuple[float, float]]]  # start and end of the kernels that are launched in a phase
    on_device: bool = False  # whether collectives are kernels
    launches: list[tuple[float, float]] = field(
        default_factory=list
    )  # of work on the device: when called, when begun
    waits: list[tuple[float, float]] = field(
        default_factory=list
    )  # start and end of calls that wait for the device
    # by event
    is_device: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    is_collective: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))


def read_step(path: str | os.PathLike[str]) -> Step:
    """The first whole step of a file, with the work that was launched in it."""
    data = Path(path).read_bytes()
    top = json.loads(gzip.decompress(data) if str(path).endswith(".gz") else data)
    every: list[Event] = top.pop("traceEvents")
    slices = [event for event in every if event.get("ph") == "X" and event.get("cat") != "Trace"]
    marks = sorted(
        (
            event
            for event in slices
            if str(event["name"]).startswith("ProfilerStep#") and event["cat"] != "gpu_user_annotation"
        ),
        key=lambda event: float(event["ts"]),
    )
    begin, until = float(marks[0]["ts"]), float(marks[0]["ts"]) + float(marks[0]["dur"])
    launched = {
        event["args"]["correlation"]
        for event in slices
        if event["cat"] in ("cuda_runtime", "cuda_driver") and begin <= float(event["ts"]) <= until
    }
    chosen = []
    for event in slices:
        args = event.get("args", {})
        if event["cat"] in _DEVICE_CATEGORIES:
            if args.get("correlation") in launched:
                chosen.append(event)
        elif begin <= float(event["ts"]) and float(event["ts"]) + float(event["dur"]) <= until + 1e-3:
            chosen.append(event)
    for event in chosen:
        event["ts"] = float(event["ts"]) - begin
        event["dur"] = float(event["dur"])
    chosen.sort(key=lambda event: event["ts"])
    step = Step(
        top,
        [event for event in every if event.get("ph") == "M"],
        chosen,
        until - begin,
        *_collectives(chosen),
        {},
        {},
    )
    step.length = max([step.length, *(event["ts"] + event["dur"] for event in chosen)])
    step.start_of = np.array([event["ts"] for event in chosen])
    step.end_of = step.start_of + np.array([event["dur"] for event in chosen])
    step.phase_points, step.kernels = _phases(chosen)
    step.is_device = np.array([event["cat"] in _DEVICE_CATEGORIES for event in chosen])
    step.is_collective = np.array(
        [event["cat"] == "kernel" and _ON_DEVICE.search(event["name"]) is not None for event in chosen]
    )
    step.on_device = bool(step.is_collective.any())
    calls = {e["args"]["correlation"]: e["ts"] for e in chosen if e["cat"] in ("cuda_runtime", "cuda_driver")}
    step.launches = sorted(
        (calls[e["args"]["correlation"]], e["ts"])
        for e in chosen
        if e["cat"] in _DEVICE_CATEGORIES - {"gpu_user_annotation"}
    )
    step.waits = [
        (e["ts"], e["ts"] + e["dur"])
        for e in chosen
        if re.search(r"Synchronize$", e["name"]) and e["dur"] > 1
    ]
    ids = [
        args[key]
        for event in chosen
        for args in [event.get("args", {})]
        for key in _IDS
        if isinstance(args.get(key), int)
    ]
    step.largest_id = max(ids, default=0) + 1
    return step


def _collectives(events: list[Event]) -> tuple[Times, Times]:
    """When the rank comes to each collective, and when that ends."""
    on_device = [e for e in events if e["cat"] == "kernel" and _ON_DEVICE.search(e["name"])]
    if on_device:
        return np.array([e["ts"] for e in on_device]), np.array([e["ts"] + e["dur"] for e in on_device])
    ran = [e for e in events if _ON_HOST.match(e["name"])]
    calls = [e for e in events if e["name"].startswith("c10d::")]
    arrival = [c["ts"] for c in calls] if len(calls) == len(ran) else [e["ts"] for e in ran]
    return np.array(arrival), np.array([e["ts"] + e["dur"] for e in ran])


def _phases(events: list[Event]) -> tuple[dict[str, float], dict[str, list[tuple[float, float]]]]:
    """A time inside each phase, and the kernels that are launched in it."""
    points, kernels = {}, {}
    calls = {e["args"]["correlation"]: e["ts"] for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")}
    for phase, pattern in _PHASES.items():
        rows = [e for e in events if e["cat"] in ("cpu_op", "user_annotation") and pattern.match(e["name"])]
        if not rows:
            continue
        longest = max(rows, key=lambda e: e["dur"])
        points[phase] = longest["ts"] + longest["dur"] / 2
        low, high = min(e["ts"] for e in rows), max(e["ts"] + e["dur"] for e in rows)
        kernels[phase] = [
            (e["ts"], e["ts"] + e["dur"])
            for e in events
            if e["cat"] == "kernel"
            and not _ON_DEVICE.search(e["name"])
            and low <= calls.get(e["args"].get("correlation"), -1) <= high
        ]
    return points, kernels


# ------------------------------------------------------------------------------------------------ time axes


class Axis:
    """The time axis of a rank's host or device within a step: at some times of the real step it jumps."""

    def __init__(self, late: float) -> None:
        self._late = late
        self._jumps: list[tuple[float, float]] = []

    def jump(self, time: float, size: float) -> None:
        if size:
            self._jumps.append((time, size))

    def at(self, time: float) -> float:
        """How much later than in the real step something happens that begins at a time."""
        return self._late + sum(size for when, size in self._jumps if when < time)

    def columns(self) -> tuple[Times, Times]:
        """The times of jumps, and how late it is before and after each."""
        self._jumps.sort()
        sizes = [size for _, size in self._jumps]
        return np.array([time for time, _ in self._jumps]), self._late + np.concatenate(
            [[0.0], np.cumsum(sizes)]
        )


@dataclass(frozen=True)
class Layout:
    """Which ranks take part in the collectives of a step, and how the files describe them."""

    ranks: int
    group_size: int = 0  # collectives are between so many ranks that follow each other; 0: all
    # by turns between so many ranks that follow each other, and between those in the same place of them
    tensor_parallel: int = 0
    stages: int = 0  # of a pipeline: the first collectives of a step become messages from stage to stage
    unequal: tuple[
        tuple[int, float], ...
    ] = ()  # ranks that receive more in all-to-alls, and how many times as much
    sequence_numbers: bool = False

    @property
    def is_described(self) -> bool:
        return bool(
            self.group_size or self.tensor_parallel or self.stages or self.unequal or self.sequence_numbers
        )

    def groups(self, place: int) -> npt.NDArray[np.int64]:
        """By rank the group with which it runs a collective of a step."""
        rank = np.arange(self.ranks)
        if self.tensor_parallel:
            across = place % 2 == 1
            return rank % self.tensor_parallel if across else rank // self.tensor_parallel
        return rank // (self.group_size or self.ranks)

    def is_message(self, place: int) -> bool:
        """Whether a collective of a step becomes the message from the stage of that number to the next."""
        return place + 1 < self.stages

    def peer(self, rank: int, place: int) -> int | None:
        """The other rank of a message; None: this rank is none of the two."""
        stage = rank % self.stages
        return {place: rank + 1, place + 1: rank - 1}.get(stage)

    def arguments(self, kernel: str, rank: int, place: int, number: int) -> dict[str, Any]:
        """The arguments of a kernel, as torch writes them. number: of the collective, from 0."""
        elements = 1024 * (place + 1)  # equal messages in every step
        if self.is_message(place):
            peer = self.peer(rank, place) or 0
            name, other = ("send", "Dst Rank") if peer > rank else ("recv", "Src Rank")
            return {
                "Collective name": name,
                other: peer,
                "In msg nelems": elements,
                "Out msg nelems": elements,
                "dtype": "Float",
                "Group size": 2,
            }
        groups = self.groups(place)
        members = np.flatnonzero(groups == groups[rank]).tolist()
        axis = "tp" if self.tensor_parallel and place % 2 == 0 else "dp" if self.tensor_parallel else ""
        reduces = "AllReduce" in kernel
        received = elements if reduces else round(elements * dict(self.unequal).get(rank, 1.0))
        arguments = {
            "Collective name": "allreduce" if reduces else "all_to_allv" if self.unequal else "all_to_all",
            "In msg nelems": elements,
            "Out msg nelems": received,
            "dtype": "Float",
            "Group size": len(members),
            "Process Group Name": f"{axis}{groups[rank]}",
            "Process Group Ranks": str(members),
        }
        return arguments | ({"Seq": number} if self.sequence_numbers else {})


Columns = tuple[Times, Times]
# by rank and step: of the host, of the device, and what the rank's own faults alone add to work on the device
Axes = list[list[tuple[Columns, Columns, Columns]]]


def time_axes(
    step: Step,
    ranks: int,
    steps: int,
    faults: Sequence[Fault],
    layout: Layout,
    jitter: float,
    generator: np.random.Generator,
) -> Axes:
    """Let ranks be late by faults and by chance, and wait at each collective for the last one of the group.

    What delays the device delays the host at its next call that waits for it, or at the end of the step.
    """
    late = np.zeros(ranks)  # of each rank so far
    axes: Axes = [[] for _ in range(ranks)]
    factors = {fault.target: fault.amount for fault in faults if fault.kind == "link"}
    for number in range(steps):
        host, device = [Axis(time) for time in late], [Axis(time) for time in late]
        own_work = [Axis(0.0) for _ in late]
        for rank in range(ranks):
            _add_faults(step, rank, number, faults, host[rank], device[rank], own_work[rank])
        noise = generator.exponential(
            jitter * step.length / max(len(step.arrival), 1), (ranks, len(step.arrival))
        )
        own = device if step.on_device else host
        for place, (arrival, end) in enumerate(zip(step.arrival.tolist(), step.end.tolist())):
            for rank in range(ranks):
                own[rank].jump(arrival - 1e-3, float(noise[rank, place]))
            if layout.is_message(place):
                _pass_on(layout, place, arrival, end, own, faults)
                continue
            group = layout.groups(place)
            come = np.array([axis.at(arrival) for axis in own])
            # a slow link is that of ranks that follow each other
            is_link = not (layout.tensor_parallel and place % 2 == 1)
            for rank in range(ranks):
                factor = factors.get(int(group[rank]), 1.0) if is_link else 1.0
                over = float(come[group == group[rank]].max()) + arrival + (end - arrival) * factor
                # within its last microsecond the collective takes longer, and all that follows is later;
                # a rank that waits for two collectives at once waits once
                own[rank].jump(end - min(1.0, (end - arrival) / 2), max(over - end - own[rank].at(end), 0.0))
            if step.on_device:
                for rank in range(ranks):
                    _wait_for_device(step, end, host[rank], device[rank])
        for rank in range(ranks):
            if step.on_device:
                host[rank].jump(step.length + 1.0, device[rank].at(np.inf) - host[rank].at(np.inf))
            axes[rank].append((host[rank].columns(), device[rank].columns(), own_work[rank].columns()))
            late[rank] = host[rank].at(np.inf)
    return axes


def _pass_on(
    layout: Layout, place: int, arrival: float, end: float, own: list[Axis], faults: Sequence[Fault]
) -> None:
    """Let a stage work, then send; the next stage waits for that."""
    work = next(fault.amount for fault in faults if fault.kind == "pipeline")
    for rank, axis in enumerate(own):
        peer = layout.peer(rank, place)
        if peer is None or peer < rank:
            continue
        axis.jump(arrival - 2e-3, work)
        come = max(axis.at(arrival), own[peer].at(arrival))
        for each in (axis, own[peer]):
            each.jump(end - min(1.0, (end - arrival) / 2), max(come - each.at(end), 0.0))


def _wait_for_device(step: Step, end: float, host: Axis, device: Axis) -> None:
    """The host's next call that waits for the device takes as much longer as the device is later."""
    later = [call for call in step.waits if call[1] > end]
    if later:
        begin, until = later[0]
        host.jump((max(begin, min(end, until)) + until) / 2, max(device.at(until) - host.at(until), 0.0))


def _add_faults(
    step: Step, rank: int, number: int, faults: Sequence[Fault], host: Axis, device: Axis, own_work: Axis
) -> None:
    """What the rank's own faults add in a step."""
    for fault in faults:
        if fault.target != rank or not fault.acts_in(number):
            continue
        if fault.kind == "host":
            point = step.phase_points[fault.phase]
            host.jump(point, fault.amount)
            launched = [start for launch, start in step.launches if launch > point]
            if launched:  # the device gets its next work later
                device.jump(min(launched) - 1e-3, fault.amount)
        elif fault.kind == "device":
            kernels = step.kernels[fault.phase]
            total = sum(end - start for start, end in kernels)
            for start, end in kernels:
                for axis in (device, own_work):
                    axis.jump((start + end) / 2, fault.amount * (end - start) / total)


# ------------------------------------------------------------------------------------------------ files


def make_fleet(
    base: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    ranks: int,
    steps: int,
    faults: Sequence[Fault] = (),
    clock_us: float = 0.0,
    drift_ppm: float = 0.0,
    group_size: int = 0,
    tensor_parallel: int = 0,
    sequence_numbers: bool = False,
    jitter: float = 0.002,
    seed: int = 0,
    ranks_per_host: int = 8,
) -> dict[str, Any]:
    """Write the files and `truth.json`, and give the truth.

    clock_us, drift_ppm: clocks are ahead by up to so much, and run faster by up to so much.
    group_size, tensor_parallel: as in Layout; sequence_numbers: files have `Seq`.
    jitter: how much later a rank comes to a collective by chance, on average, as a share of the step.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    step = read_step(base)
    generator = np.random.default_rng(seed)
    layout = Layout(
        ranks,
        group_size,
        tensor_parallel,
        next((fault.target for fault in faults if fault.kind == "pipeline"), 0),
        tuple((fault.target, fault.amount) for fault in faults if fault.kind == "all_to_all"),
        sequence_numbers,
    )
    axes = time_axes(step, ranks, steps, faults, layout, jitter, generator)
    offsets, drifts = generator.uniform(-1, 1, ranks) * clock_us, generator.uniform(-1, 1, ranks) * drift_ppm
    offsets[0] = drifts[0] = 0.0
    missing = {fault.target for fault in faults if fault.kind == "missing"}
    truncated = {fault.target for fault in faults if fault.kind == "truncated"}
    later = {fault.target: int(fault.amount) for fault in faults if fault.kind == "window"}
    # times stay small enough for nanoseconds in a double; the base says when that was
    events = _repeated(step, steps)
    for rank in range(ranks):
        if rank in missing:
            continue
        start, end = _times(step, axes[rank])
        top = _top(step, rank, ranks, ranks_per_host)
        drift = drifts[rank] * 1e-6
        data = _document(
            top, step.meta, events, start * (1 + drift) + offsets[rank], end * (1 + drift) + offsets[rank],
            rank, layout, later.get(rank, 0) * len(step.events), len(step.arrival),
        )  # fmt: skip
        if rank in truncated:
            data = data[: len(data) * 2 // 3]
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(data, 1, mtime=0))
    slow = [fault for fault in faults if fault.kind in ("host", "device")]
    truth = {
        "ranks": ranks,
        "steps": steps,
        "events_per_rank": len(events),
        "slow": [vars(fault) for fault in slow],
        "links": [vars(fault) for fault in faults if fault.kind == "link"],
        "missing": sorted(missing),
        "truncated": sorted(truncated),
        "windows": {str(rank): count for rank, count in later.items()},
        "offset_us": offsets.tolist(),
        "drift_ppm": drifts.tolist(),
    }
    (folder / "truth.txt").write_text(json.dumps(truth, indent=1))
    return truth


def _repeated(step: Step, steps: int) -> list[Event]:
    """The events of all steps, with ids of their own; times are set per rank."""
    events = []
    for number in range(steps):
        shift = number * step.largest_id
        for event in step.events:
            copy = dict(event)
            args = dict(event.get("args", {}))
            for key in _IDS:
                if isinstance(args.get(key), int):
                    args[key] += shift
            copy["args"] = args
            if event["name"].startswith("ProfilerStep#"):
                copy["name"] = f"ProfilerStep#{FIRST_STEP + number}"
            events.append(copy)
    return events


def _times(step: Step, axes: list[tuple[Columns, Columns, Columns]]) -> tuple[Times, Times]:
    """Starts and ends of all events of a rank, step after step."""
    starts, ends = [], []
    for number, (host, device, own_work) in enumerate(axes):
        begin = 1000.0 + number * (step.length + 20.0)
        host_start, device_start, work_start = (
            _late(axis, step.start_of) for axis in (host, device, own_work)
        )
        host_end, device_end, work_end = (_late(axis, step.end_of) for axis in (host, device, own_work))
        # a kernel beside a collective does not run longer because that waits
        device_end = np.where(step.is_collective, device_end, device_start + work_end - work_start)
        starts.append(begin + step.start_of + np.where(step.is_device, device_start, host_start))
        ends.append(begin + step.end_of + np.where(step.is_device, device_end, host_end))
    return np.concatenate(starts), np.concatenate(ends)


def _late(axis: Columns, time: Times) -> Times:
    times, sums = axis
    return sums[np.searchsorted(times, time, side="left")]


def _top(step: Step, rank: int, ranks: int, ranks_per_host: int) -> dict[str, Any]:
    info = {key: value for key, value in step.top.get("distributedInfo", {}).items() if key != "pg_config"}
    return {
        **step.top,
        "distributedInfo": {**info, "rank": rank, "world_size": ranks},
        "host_name": f"node{rank // ranks_per_host}",
        "baseTimeNanoseconds": 1_790_857_026_000_000_000,
        "trace_id": f"{random.Random(rank).getrandbits(64):016X}",
    }


def _document(
    top: dict[str, Any],
    meta: list[Event],
    events: list[Event],
    start: Times,
    end: Times,
    rank: int,
    layout: Layout,
    first: int,
    per_step: int,
) -> bytes:
    """A rank's file. `events` are changed and written; the next rank changes them again."""
    starts, lengths = np.round(start, 3).tolist(), np.round(end - start, 3).tolist()
    for event, ts, length in zip(events, starts, lengths):
        event["ts"], event["dur"] = ts, length
    absent: set[int] = set()
    if layout.is_described:
        collectives = [
            event for event in events if event["cat"] == "kernel" and _ON_DEVICE.search(event["name"])
        ]
        for number, event in enumerate(collectives):
            place = number % per_step
            for key in ("Src Rank", "Dst Rank", "Process Group Name", "Process Group Ranks", "Seq"):
                event["args"].pop(key, None)
            event["args"] |= layout.arguments(event["name"], rank, place, number)
            if layout.is_message(place) and layout.peer(rank, place) is None:
                absent.add(id(event))
    written = [event for event in events[first:] if id(event) not in absent]
    return orjson.dumps({**top, "traceEvents": [*meta, *written]})


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", help="a trace file of one rank with steps and collectives")
    parser.add_argument("out", help="the folder to write")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--fault", type=Fault.parse, action="append", default=[])
    parser.add_argument(
        "--clock", type=float, default=0.0, metavar="US", help="clocks are up to so far apart"
    )
    parser.add_argument("--drift", type=float, default=0.0, metavar="PPM")
    parser.add_argument("--group-size", type=int, default=0)
    parser.add_argument("--tensor-parallel", type=int, default=0)
    parser.add_argument("--seq", action="store_true", help="files have sequence numbers of collectives")
    parser.add_argument("--jitter", type=float, default=0.002)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    truth = make_fleet(
        options.base,
        options.out,
        ranks=options.ranks,
        steps=options.steps,
        faults=options.fault,
        clock_us=options.clock,
        drift_ppm=options.drift,
        group_size=options.group_size,
        tensor_parallel=options.tensor_parallel,
        sequence_numbers=options.seq,
        jitter=options.jitter,
        seed=options.seed,
    )
    print(f"{options.out}: {options.ranks} ranks of {truth['events_per_rank']:,} events")


if __name__ == "__main__":
    main()
