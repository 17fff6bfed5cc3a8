"""Made-up queues and timelines for torch.profiler._utils and _memory_profiler: modules in, what they make of them out."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

COUNT = 120


class Event:
    """What an event tree's node must have."""

    def __init__(self, number: int, name: str, start: int, end: int, *children: Event) -> None:
        self.id, self.name, self.start_time_ns, self.end_time_ns = number, name, start, end
        self.duration_time_ns, self.children, self.parent = end - start, list(children), None
        for child in children:
            child.parent = self


class Activity:
    """What an event of a device or its driver must have."""

    def __init__(self, name: str, start: int, duration: int, device: Any, linked: int) -> None:
        self.name, self._fields = name, (start, duration, device, linked)

    def start_ns(self) -> int:
        return self._fields[0]

    def duration_ns(self) -> int:
        return self._fields[1]

    def device_type(self) -> Any:
        return self._fields[2]

    def linked_correlation_id(self) -> int:
        return self._fields[3]


class Profile:
    """What a profile must have."""

    def __init__(self, tree: list[Event], activities: list[Activity]) -> None:
        self.kineto_results = self
        self.experimental_event_tree = lambda: tree
        self.events = lambda: activities


def queue(utils: ModuleType, devices: Any, seed: int) -> list[Any]:
    """A host that launches kernels, and a device that runs them later: depths, self times, idle times, ranks."""
    choose = random.Random(seed)
    tree, activities, busy = [], [], 0
    for number in range(choose.randint(1, 14)):
        start = number * 100_000
        inner = Event(1000 + number, f"inner{number}", start + 5_000, start + 60_000)
        tree.append(Event(number, f"op{number}", start, start + choose.randint(60_000, 100_000), inner))
        activities.append(Activity("cudaLaunchKernel", start + 20_000, 30_000, devices.CPU, number + 1))
        busy = max(busy + choose.randint(0, 40_000), start + 100_000)
        long = choose.randint(20_000, 350_000) if number < 6 else 10_000
        activities.append(Activity(f"kernel{number}", busy, long, devices.CUDA, number + 1))
        busy += long
    found = utils.BasicEvaluation(Profile(tree, activities))
    return [
        [[p.start, p.end, p.queue_depth] for p in found.queue_depth_list],
        [[k.event.name, m.self_time_ns, m.idle_time_ns, m.queue_depth] for k, m in found.metrics.items()],
        [key.event.name for key in found.rank_events(3)],
        [event.name for event in found.events],
    ]


def overlap(utils: ModuleType, seed: int) -> int:
    """How long intervals that do not touch each other overlap with an event."""
    choose = random.Random(seed)
    intervals, at = [], 0
    for _ in range(choose.randint(0, 5)):
        at += choose.randint(1, 20)
        intervals.append(utils.Interval(at, at := at + choose.randint(1, 20)))
    choose.shuffle(intervals)
    start = choose.randint(0, 60)
    return utils.EventKey(Event(1, "e", start, start + choose.randint(1, 60))).intervals_overlap(intervals)


def timeline(library: ModuleType, memory: ModuleType, seed: int) -> list[Any]:
    """The two JSON files of a timeline."""
    choose = random.Random(seed)
    cpu = library.device("cpu")
    keys = [memory.TensorKey(cpu, number, memory._Storage(1000 + number, number)) for number in range(6)]
    categories = memory.CategoryDict()
    for key in keys:
        for version in range(4):
            if (said := choose.choice([*memory.Category, None])) is not None:
                categories.set_by_version(key, version, said)
    rows, at, many = [], 10**15, choose.randint(0, 12)
    before = choose.randint(0, min(many, 3))
    for number in range(many):
        later = choose.choice([memory.Action.CREATE, memory.Action.DESTROY, memory.Action.INCREMENT_VERSION])
        at += choose.choice([0, 100, 500, 1000, 5000])
        key = choose.choice(keys) if choose.random() < 0.8 else memory.Key(cpu)
        old = number < before
        rows.append(
            (
                -1 if old else at,
                memory.Action.PREEXISTING if old else later,
                (key, choose.randint(0, 2)),
                choose.randint(1, 100),
            )
        )
    made = memory.MemoryProfileTimeline.__new__(memory.MemoryProfileTimeline)
    made.timeline, made.categories = rows, categories
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        made.export_memory_timeline_raw(str(path), "cpu")
        raw = json.loads(path.read_text())
        made.export_memory_timeline(str(path), "cpu")
        return [raw, json.loads(path.read_text())]


def locations(utils: ModuleType) -> list[str]:
    """Source lines of events under frames of these names, outermost last."""
    made = []
    for names in (
        ["a.py(3): f"],
        ["torch/nn/functional.py(12): linear", "a.py(3): f"],
        ["nn.Module: Linear_0", "x/y.py(7): g"],
        ["<built-in function foo>", "z.py(1): h"],
        ["aten::mm(3): x"],
        ["dir/a b.py(3): <module>"],
        ["a.pyc(3): f", "b.py(1): g"],
        ["a.py: f"],
        [],
    ):
        top = None
        for number, name in enumerate(reversed(names)):
            event = Event(number, name, 0, 1)
            event.parent = top
            top = event
        made.append(utils.source_code_location(top))
    return made


def observe(library: ModuleType, utils: ModuleType, memory: ModuleType, devices: Any) -> dict[str, Any]:
    """All facts."""
    return {
        "queues": [queue(utils, devices, seed) for seed in range(COUNT)],
        "overlaps": [overlap(utils, seed) for seed in range(COUNT)],
        "timelines": [timeline(library, memory, seed) for seed in range(COUNT)],
        "locations": locations(utils),
    }
