"""Merging: trace files of several ranks in, one file on one time base out. Streams: one batch of one file is in memory at a time.

Kept apart are processes (a pid that another file uses gets a new number) and everything that ties events together: flow ids, correlations,
external ids, Python frames. All numbers of one file move by the same amount, so that what was equal in it stays equal; of the first file
none moves. The same files in the same order give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..export.files import open_for_export
from ..load.collect import MERGED_FROM
from .raw_events import (
    DEVICE_CATEGORIES,
    NONE,
    Event,
    Head,
    Progress,
    Writer,
    batches,
    microseconds,
    nanoseconds,
    valid_top,
)

# arguments that hold a number of the file they are in; 0 is none, but of indices
_IDS = (
    "External id",
    "external id",
    "correlation",
    "Python id",
    "Python parent id",
    "wait_on_cuda_event_record_corr_id",
)
_INDICES = ("Ev Idx", "Profiler Event Index")
_FLOWS = frozenset("stfbenoONDP")  # phases whose `id` ties events together
_LARGE = 1 << 53  # numbers beyond are no counters; they get numbers of their own
BASE_STEP_NS = (
    7_889_238 * 10**9
)  # bases are multiples of a quarter of a year, so that times are exact in a double
_SORT_STEP = MERGED_FROM  # between ranks
_OF_THREADS = ("thread_name", "thread_sort_index")  # metadata that is about a thread, not its process
_WHOLE = object()  # in the place of a tid: the whole process
_RANK_IN_NAME = re.compile(r"rank[_\-. ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """One file of a merge."""

    path: str
    rank: int | None
    label: str  # before the names of its processes
    events: int
    pids: tuple[Any, ...]  # as they are in the merged file
    shift_ns: int  # added to its times
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Merged:
    """What was written."""

    path: str
    parts: tuple[Part, ...]
    base_ns: int
    notes: tuple[str, ...] = field(default=())

    @property
    def events(self) -> int:
        return sum(part.events for part in self.parts)


def merge_traces(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Merged:
    """Write one trace with the events of several files, each of which may be a rank of one job."""
    files = [os.fspath(path) for path in paths]
    if not files:
        raise ValueError("no files to merge; expected one or more")
    if len({os.path.realpath(path) for path in files}) < len(files):
        raise ValueError("a file is given twice; expected one file a rank")
    tops, begins = zip(*[_top(path) for path in files])
    ranks = [_rank(top, path) for top, path in zip(tops, files)]
    labels, notes = _labels(ranks, files)
    bases = [top.base_ns for top in tops]
    base, base_notes = _common_base(bases, begins)
    notes += base_notes
    numbers = _Numbers()
    parts: list[Part] = []
    heads = [_FileHead(top, label) for top, label in zip(tops, labels)]
    for place, head in enumerate(
        heads
    ):  # the devices' numbers stand in the head, so they are given out first
        numbers.begin(place)
        head.devices = [
            {**d, "id": numbers.pid(d["id"])} if _is_number(d.get("id")) else d for d in head.devices
        ]
    with open_for_export(out) as file:
        # the pids of each file are known at its end only: the list of ranks is written behind the events
        writer = Writer(file, _merged_top(heads, base, os.fspath(out)), last=("merged", "traceName"))
        for place, path in enumerate(files):
            numbers.begin(place)
            part = _Rewriter(numbers, bases[place] - base, labels[place], place)
            read = Head()
            for events in batches(path, read, strict=strict, progress=progress):
                writer.write(part.rewrite(events))
            writer.write(part.missing_names())
            numbers.end()
            parts.append(
                Part(
                    path,
                    ranks[place],
                    labels[place],
                    part.events,
                    tuple(part.pids),
                    bases[place] - base,
                    tuple(read.notes),
                )
            )
        writer.close({"merged": [_entry(part, head) for part, head in zip(parts, heads)]})
    return Merged(os.fspath(out), tuple(parts), base, tuple(notes))


# ---------------------------------------------------------------------------------------------------- heads


class _FileHead:
    def __init__(self, top: Head, label: str) -> None:
        self.top, self.label = top.top, label
        devices = top.top.get("deviceProperties")
        self.devices: list[Any] = (
            [d for d in devices if isinstance(d, dict)] if isinstance(devices, list) else []
        )


def _top(path: str) -> tuple[Head, int]:
    """What stands before the events of a file; and where it has no base of its times, its earliest time in nanoseconds (else 0)."""
    head = Head()
    stream = batches(path, head)
    first = next(stream, [])
    if "baseTimeNanoseconds" in head.top:
        stream.close()  # type: ignore[attr-defined]
        return head, 0
    earliest = _earliest(first)
    for events in stream:  # some writers put their keys behind the events
        earliest = min(earliest, _earliest(events))
    return head, 0 if earliest == _NEVER or head.base_ns else earliest


_NEVER = 1 << 62


def _earliest(events: list[Event]) -> int:
    times = nanoseconds([event.get("ts") for event in events if event.get("ph") != "M"], _NEVER)
    return int(times.min(initial=_NEVER))


def _rank(head: Head, path: str) -> int | None:
    if head.rank is not None:
        return head.rank
    found = _RANK_IN_NAME.search(os.path.basename(path))
    return int(found[1]) if found else None


def _labels(ranks: list[int | None], files: list[str]) -> tuple[list[str], list[str]]:
    """What is put before the names of processes, and what is odd about the ranks."""
    known = [rank for rank in ranks if rank is not None]
    if len(known) == len(ranks) and len(set(known)) == len(known):
        return [f"rank {rank}" for rank in known], []
    short = [re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", os.path.basename(path)) for path in files]
    if len(set(short)) < len(short):
        short = [f"{name} ({place})" for place, name in enumerate(short)]
    why = "two files are of the same rank" if len(set(known)) < len(known) else "not every file says its rank"
    labels = [f"rank {rank} {name}" if rank is not None else name for rank, name in zip(ranks, short)]
    return labels, [f"{why}: processes are labelled with the files' names"]


def _common_base(bases: list[int], begins: Sequence[int]) -> tuple[int, list[str]]:
    """The base that all times are to count from: the earliest one, so that no time becomes negative."""
    known = [base for base in bases if base > 0]
    if len(known) == len(bases):
        return min(known), []
    if not known:
        return 0, []
    earliest = min(begin for begin, base in zip(begins, bases) if base <= 0)
    return max(0, min(*known, earliest - earliest % BASE_STEP_NS)), [
        "not every file has baseTimeNanoseconds: times of those without are taken as microseconds since the epoch"
    ]


def _merged_top(heads: list[_FileHead], base: int, out: str) -> dict[str, Any]:
    """The head of the merged file: what all files say alike, all devices, and no rank of its own."""
    first = heads[0].top
    top = {
        key: value for key, value in first.items() if all(head.top.get(key) == value for head in heads[1:])
    }
    for key in (
        "traceEvents",
        "merged",
        "traceName",
        "distributedInfo",
        "deviceProperties",
        "trace_id",
        "schemaVersion",
    ):
        top.pop(key, None)
    made: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [d for head in heads for d in head.devices],
        **top,
    }
    for flag in ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"):
        if any(head.top.get(flag) for head in heads):
            made[flag] = 1
    infos = [head.top.get("distributedInfo") for head in heads]
    if len(heads) == 1 and isinstance(infos[0], dict):
        made["distributedInfo"] = infos[0]
    elif all(isinstance(info, dict) for info in infos):
        shared = {k: v for k, v in infos[0].items() if k != "rank" and all(i.get(k) == v for i in infos)}  # type: ignore[union-attr]
        if shared:
            made["distributedInfo"] = shared
    if base:
        made["baseTimeNanoseconds"] = base
    else:
        made.pop("baseTimeNanoseconds", None)
    made["traceName"] = out
    return valid_top(made)


def _entry(part: Part, head: _FileHead) -> dict[str, Any]:
    """What the merged file says of one of its files."""
    entry: dict[str, Any] = {"file": os.path.basename(part.path), "label": part.label}
    if part.rank is not None:
        entry["rank"] = part.rank
    for key in ("host_name", "trace_id"):
        if isinstance(head.top.get(key), str):
            entry[key] = head.top[key]
    entry |= {"events": part.events, "pids": list(part.pids), "shift_ns": part.shift_ns}
    return entry


# ---------------------------------------------------------------------------------------------------- events


class _Numbers:
    """Numbers of processes and ids, given out so that no two files share one."""

    def __init__(self) -> None:
        self._by_file: dict[int, tuple[dict[Any, Any], dict[Any, Any]]] = {}
        self._taken: set[Any] = set()
        self._taken_threads: set[Any] = set()
        self._place = 0
        self._free = 1_000 * _SORT_STEP
        self._pids: dict[Any, Any] = {}
        self._threads: dict[Any, Any] = {}
        self.offset = 0
        self.highest = -1  # of the ids given out so far
        self._odd: dict[Any, int] = {}
        self._odd_next = _LARGE

    def begin(self, place: int) -> None:
        """Go on with a file."""
        self._place = place
        self._pids, self._threads = self._by_file.setdefault(place, ({}, {}))
        self._odd = {}

    def end(self) -> None:
        """Done with a file: ids of the next one come after all so far."""
        self.offset = self.highest + 1

    def pid(self, pid: Any) -> Any:
        """The number of a process in the merged file: its own where no other file has it."""
        return self._given(pid, self._pids, self._taken)

    def thread(self, tid: Any) -> Any:
        """The number of a thread of the CPU: there are readers that tell threads by it alone."""
        return self._given(tid, self._threads, self._taken_threads)

    def _given(self, number: Any, mine: dict[Any, Any], taken: set[Any]) -> Any:
        made = mine.get(number)
        if made is None:
            made = number
            if made in taken:
                made = self._place * _SORT_STEP + abs(number)  # far above the numbers of a system
            while made in taken:
                self._free += 1
                made = self._free
            taken.add(made)
            mine[number] = made
        return made

    def id(self, number: int) -> int:
        """A number of the current file in the merged one."""
        if number <= 0:
            return number
        if number >= _LARGE:
            if not self.offset:
                return number
            made = self._odd.get(number)
            if made is None:
                self._odd_next -= 1
                made = self._odd[number] = self._odd_next
            return made
        made = number + self.offset
        self.highest = max(self.highest, made)
        return made


def _is_number(value: Any) -> bool:
    return value.__class__ is int


class _Rewriter:
    """Changes the events of one file so that they can stand beside those of others."""

    def __init__(self, numbers: _Numbers, shift_ns: int, label: str, place: int) -> None:
        self._numbers = numbers
        self._shift = shift_ns
        self._label, self._place = label, place
        self.pids: dict[Any, None] = {}
        self._threads: dict[tuple[Any, Any], tuple[Any, Any] | None] = {}
        self._devices: set[Any] = set()  # pids of the file that are devices
        self._named: set[Any] = set()
        self.events = 0

    def rewrite(self, events: list[Event]) -> list[Event]:
        """The events of a batch, changed in place."""
        move = self._numbers.id
        moving = self._numbers.offset > 0
        threads = self._threads
        self.events += len(events)
        for event in events:
            phase = event.get("ph")
            if phase.__class__ is not str:
                phase = ""
            if phase == "M" and event.get("name") not in _OF_THREADS:
                key: tuple[Any, Any] = (event.get("pid"), _WHOLE)
            else:
                key = (event.get("pid"), event.get("tid"))
            try:
                new = threads[key]
            except KeyError:
                new = threads[key] = self._thread(key, event)
            except TypeError:
                new = None  # a list where a number belongs: left alone
            if new is not None:
                event["pid"] = new[0]
                if key[1] is not _WHOLE:
                    event["tid"] = new[1]
            args = event.get("args")
            if args.__class__ is dict:
                for name in _IDS:
                    if name in args and args[name].__class__ is int:
                        args[name] = move(args[name])
                for name in _INDICES:
                    if name in args and args[name].__class__ is int:
                        args[name] = move(args[name] + 1) - 1
            if phase in _FLOWS and "id" in event:
                number = event["id"]
                if number.__class__ is int:
                    event["id"] = move(number)
                elif moving and number.__class__ is str:
                    event["id"] = f"{self._place}:{number}"
            elif phase == "M":
                self._rename(event, key[0])
        if self._shift:
            self._move(events)
        return events

    def _thread(self, key: tuple[Any, Any], event: Event) -> tuple[Any, Any] | None:
        """The numbers of a process and a thread in the merged file; None where they stay."""
        pid, tid = key
        if pid.__class__ is str and pid:
            new = f"{pid} ({self._label})"  # Spans, Traces and the like: one of each for every file
        else:
            new = self._numbers.pid(pid) if _is_number(pid) else pid
        if pid is not None and pid != "":
            self.pids.setdefault(new)
        if tid is not _WHOLE and _is_number(tid) and not self._on_device(pid, event):
            tid = self._numbers.thread(tid)
        return None if (new, tid) == key else (new, tid)

    def _on_device(self, pid: Any, event: Event) -> bool:
        """Whether a thread is a stream of a device, by the first that is heard of it."""
        category = event.get("cat")
        if (category.__class__ is str and category in DEVICE_CATEGORIES) or pid in self._devices:
            return True
        args = event.get("args")
        name = args.get("name") if args.__class__ is dict else None
        return event.get("ph") == "M" and name.__class__ is str and name.startswith("stream")

    def _rename(self, event: Event, old: Any) -> None:
        args, name = event.get("args"), event.get("name")
        if args.__class__ is not dict:
            return
        if name == "process_name":
            args["name"] = f"{self._label}: {args.get('name', '')}"
            if _is_number(event.get("pid")):
                self._named.add(event["pid"])
        elif name == "process_labels":
            if str(args.get("labels")).startswith("GPU") and _is_number(old):
                self._devices.add(old)
            args["labels"] = f"{self._label} {args.get('labels', '')}".rstrip()
        elif name == "process_sort_index" and args.get("sort_index").__class__ is int:
            args["sort_index"] += self._place * _SORT_STEP

    def _move(self, events: list[Event]) -> None:
        for event, at in zip(events, nanoseconds([event.get("ts") for event in events]).tolist()):
            if at != NONE and event["ts"].__class__ in (int, float):
                event["ts"] = microseconds(at + self._shift)

    def missing_names(self) -> list[Event]:
        """Names for the processes that the file gives none."""
        return [
            {"ph": "M", "name": "process_name", "ts": 0, "pid": pid, "tid": 0, "args": {"name": self._label}}
            for pid in self.pids
            if pid not in self._named and _is_number(pid)
        ]
