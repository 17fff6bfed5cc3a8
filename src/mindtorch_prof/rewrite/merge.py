"""Merging: trace files of several ranks in, one file on one time base out. Streams: one batch of one file is in memory at a time.

Numbers that would mean two things in the merged file get new ones: pids that another file uses too, and all ids that link events: flow ids,
correlation ids, external ids, Python ids. All ids of one file move by the same amount, so that equal ids stay equal; those of the first file
do not move. The same files in the same order give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..files import open_for_export
from ..json_types import JSONObject, JSONScalar, JSONValue
from ..load.collect import MERGED_FROM
from ..load.json_slices import RawEvent
from ..recorded_health import KEY as HEALTH_KEY
from ..recorded_health import health_entry, health_of_parts
from ..trace import Health
from .raw_events import (
    DEVICE_CATEGORIES,
    NONE,
    Head,
    MetadataFilter,
    Progress,
    ThreadKey,
    Writer,
    batches,
    microseconds,
    nanoseconds,
    valid_top,
)

# arguments that are ids of the file they are in, and those that are indices; an id of 0 is none
_IDS = (
    "External id",
    "external id",
    "correlation",
    "Python id",
    "Python parent id",
    "wait_on_cuda_event_record_corr_id",
)
_INDICES = ("Ev Idx", "Profiler Event Index")
_FLOWS = frozenset("stfbenoONDP")  # phases whose `id` links events
_LARGE = 1 << 53  # ids from here on are no counters; they are numbered one by one
BASE_STEP_NS = (
    7_889_238 * 10**9
)  # a quarter of a year: bases are multiples of it, so that times are exact in a double
_SORT_STEP = MERGED_FROM  # between ranks
_OF_THREADS = ("thread_name", "thread_sort_index")  # metadata that is about a thread, not its process
_WHOLE_PROCESS = object()  # in the place of a tid
_RANK_IN_NAME = re.compile(r"rank[_\-. ]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """One file of a merge."""

    path: str
    rank: int | None
    label: str  # before the names of its processes
    events: int
    pids: tuple[JSONScalar, ...]  # as they are in the merged file
    shift_ns: int  # added to its times
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Merged:
    """The file that was written."""

    path: str
    parts: tuple[Part, ...]
    base_ns: int
    notes: tuple[str, ...] = field(default=())
    left_out: tuple[str, ...] = ()  # keys of metadata that hold an environment or a secret

    @property
    def events(self) -> int:
        return sum(part.events for part in self.parts)


def merge_traces(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    strict: bool = False,
    as_recorded: bool = False,
    keep_metadata: bool = False,
    progress: Progress | None = None,
) -> Merged:
    """Write one trace with the events of several files, each of which may be a rank of one job. as_recorded: without synthetic events.
    keep_metadata: with environments, command lines and tokens in the files' metadata."""
    files = [os.fspath(path) for path in paths]
    if not files:
        raise ValueError("no files to merge; expected one or more")
    if len({os.path.realpath(path) for path in files}) < len(files):
        raise ValueError("a file is given twice; expected one file per rank")
    heads, begins = zip(*[_read_head(path) for path in files])
    ranks = [_rank(head, path) for head, path in zip(heads, files)]
    labels, notes = _labels(ranks, files)
    bases = [head.base_ns for head in heads]
    base, base_notes = _common_base(bases, begins)
    notes += base_notes
    numbers = _Numbers()
    parts: list[Part] = []
    healths: list[tuple[str, Health]] = []
    # the numbers of devices stand in the head, so they are assigned first
    devices = [device for place, head in enumerate(heads) for device in _devices(head, numbers, place)]
    metadata = MetadataFilter(keep_metadata)
    tops = [metadata.top(head.top) for head in heads]
    with open_for_export(out) as file:
        # the pids of each file are known at its end only: the list of ranks is written after the events
        top = _merged_top(tops, devices, base, os.fspath(out))
        writer = Writer(file, top, last=("merged", "traceName"))
        for place, path in enumerate(files):
            numbers.begin(place)
            rewriter = _Rewriter(numbers, bases[place] - base, labels[place], place)
            head = Head()
            for events in batches(path, head, strict=strict, as_recorded=as_recorded, progress=progress):
                writer.write(rewriter.rewrite(metadata.events(events)))
            writer.write(rewriter.missing_names())
            numbers.end()
            healths.append((labels[place], head.health))
            parts.append(
                Part(
                    path,
                    ranks[place],
                    labels[place],
                    rewriter.events,
                    tuple(rewriter.pids),
                    bases[place] - base,
                    tuple(head.notes),
                )
            )
        entries: list[JSONValue] = [_entry(part, top) for part, top in zip(parts, tops)]
        writer.close({"merged": entries, **health_entry(health_of_parts(healths))})
    return Merged(os.fspath(out), tuple(parts), base, tuple(notes), metadata.left_out)


# ---------------------------------------------------------------------------------------------------- heads


def _read_head(path: str) -> tuple[Head, int]:
    """The head of a file; and where it has no base of its times, its earliest time in nanoseconds (else 0)."""
    head = Head()
    stream = batches(path, head)
    first = next(stream, [])
    if "baseTimeNanoseconds" in head.top:
        stream.close()
        return head, 0
    earliest = _earliest(first)
    for events in stream:  # some writers put their keys after the events
        earliest = min(earliest, _earliest(events))
    return head, 0 if earliest == _NEVER or head.base_ns else earliest


def _devices(head: Head, numbers: _Numbers, place: int) -> list[JSONObject]:
    """The deviceProperties of a file, with the devices' numbers in the merged file."""
    numbers.begin(place)
    properties = head.top.get("deviceProperties")
    devices = [d for d in properties if isinstance(d, dict)] if isinstance(properties, list) else []
    return [
        {**device, "id": numbers.pid(number)} if (number := device.get("id")).__class__ is int else device
        for device in devices
    ]


_NEVER = 1 << 62


def _earliest(events: list[RawEvent]) -> int:
    times = nanoseconds([event.get("ts") for event in events if event.get("ph") != "M"], _NEVER)
    return int(times.min(initial=_NEVER))


def _rank(head: Head, path: str) -> int | None:
    if head.rank is not None:
        return head.rank
    match = _RANK_IN_NAME.search(os.path.basename(path))
    return int(match[1]) if match else None


def _labels(ranks: list[int | None], files: list[str]) -> tuple[list[str], list[str]]:
    """The texts before the names of processes, and a note where they are not the ranks."""
    known = [rank for rank in ranks if rank is not None]
    if len(known) == len(ranks) and len(set(known)) == len(known):
        return [f"rank {rank}" for rank in known], []
    short = [re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", os.path.basename(path)) for path in files]
    if len(set(short)) < len(short):
        short = [f"{name} ({place})" for place, name in enumerate(short)]
    reason = (
        "two files are of the same rank" if len(set(known)) < len(known) else "not every file says its rank"
    )
    labels = [f"rank {rank} {name}" if rank is not None else name for rank, name in zip(ranks, short)]
    return labels, [f"{reason}: processes are labelled with the files' names"]


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


def _merged_top(tops: list[JSONObject], devices: list[JSONObject], base: int, out: str) -> JSONObject:
    """The head of the merged file: the keys that all files have alike, all devices, and no rank of its own."""
    merged: JSONObject = {"schemaVersion": 1, "deviceProperties": [*devices]}
    merged |= {
        key: value
        for key, value in tops[0].items()
        if key not in _OWN_KEYS and all(top.get(key) == value for top in tops[1:])
    }
    for flag in ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"):
        if any(top.get(flag) for top in tops):
            merged[flag] = 1
    infos = [info for top in tops if isinstance(info := top.get("distributedInfo"), dict)]
    if len(tops) == 1 and infos:
        merged["distributedInfo"] = infos[0]
    elif len(infos) == len(tops):
        first, *others = infos
        shared = {k: v for k, v in first.items() if k != "rank" and all(i.get(k) == v for i in others)}
        if shared:
            merged["distributedInfo"] = shared
    if base:
        merged["baseTimeNanoseconds"] = base
    else:
        merged.pop("baseTimeNanoseconds", None)
    merged["traceName"] = out
    return valid_top(merged)


# keys that a merged file does not take over from its files
_OWN_KEYS = frozenset(
    (
        "traceEvents",
        "merged",
        "traceName",
        "distributedInfo",
        "deviceProperties",
        "trace_id",
        "schemaVersion",
        HEALTH_KEY,
    )
)


def _entry(part: Part, top: JSONObject) -> JSONObject:
    """What the merged file says about one of its files."""
    entry: JSONObject = {"file": os.path.basename(part.path), "label": part.label}
    if part.rank is not None:
        entry["rank"] = part.rank
    for key in ("host_name", "trace_id"):
        if isinstance(top.get(key), str):
            entry[key] = top[key]
    entry |= {"events": part.events, "pids": [*part.pids], "shift_ns": part.shift_ns}
    return entry


# ---------------------------------------------------------------------------------------------------- events


class _Numbers:
    """Numbers of processes and threads, and ids, such that no two files share one."""

    def __init__(self) -> None:
        self._by_file: dict[int, tuple[dict[int, int], dict[int, int]]] = {}  # pids and tids of each file
        self._taken_pids: set[int] = set()
        self._taken_threads: set[int] = set()
        self._place = 0
        self._free = 1_000 * _SORT_STEP
        self._pids: dict[int, int] = {}
        self._threads: dict[int, int] = {}
        self.offset = 0
        self.highest = -1  # of the ids so far
        self._large_ids: dict[int, int] = {}
        self._next_large_id = _LARGE

    def begin(self, place: int) -> None:
        """Continue with a file."""
        self._place = place
        self._pids, self._threads = self._by_file.setdefault(place, ({}, {}))
        self._large_ids = {}

    def end(self) -> None:
        """Done with a file: ids of the next one come after all so far."""
        self.offset = self.highest + 1

    def pid(self, pid: int) -> int:
        """The number of a process in the merged file: its own where no other file has it."""
        return self._unique(pid, self._pids, self._taken_pids)

    def thread(self, tid: int) -> int:
        """The number of a thread of the CPU: some readers tell threads apart by it alone."""
        return self._unique(tid, self._threads, self._taken_threads)

    def _unique(self, number: int, of_file: dict[int, int], taken: set[int]) -> int:
        unique = of_file.get(number)
        if unique is None:
            unique = number
            if unique in taken:
                unique = self._place * _SORT_STEP + abs(number)  # far above the numbers of a system
            while unique in taken:
                self._free += 1
                unique = self._free
            taken.add(unique)
            of_file[number] = unique
        return unique

    def id(self, number: int) -> int:
        """An id of the current file in the merged one."""
        if number <= 0:
            return number
        if number >= _LARGE:
            if not self.offset:
                return number
            large = self._large_ids.get(number)
            if large is None:
                self._next_large_id -= 1
                large = self._large_ids[number] = self._next_large_id
            return large
        moved = number + self.offset
        self.highest = max(self.highest, moved)
        return moved


class _Rewriter:
    """Changes the events of one file so that they can stand beside those of others."""

    def __init__(self, numbers: _Numbers, shift_ns: int, label: str, place: int) -> None:
        self._numbers = numbers
        self._shift = shift_ns
        self._label, self._place = label, place
        self.pids: dict[JSONScalar, None] = {}  # as they are in the merged file
        self._new_keys: dict[tuple[JSONScalar, object], ThreadKey | None] = {}  # None: as before
        self._devices: set[int] = set()  # pids of the file that are devices
        self._named: set[int] = set()  # pids that have a name
        self.events = 0

    def rewrite(self, events: list[RawEvent]) -> list[RawEvent]:
        """The events of a batch, changed in place."""
        move = self._numbers.id
        moving = self._numbers.offset > 0
        new_keys = self._new_keys
        self.events += len(events)
        for event in events:
            phase = event.get("ph")
            if phase.__class__ is not str:
                phase = ""
            pid = event.get("pid")
            of_process = phase == "M" and event.get("name") not in _OF_THREADS
            key = pid, _WHOLE_PROCESS if of_process else event.get("tid")
            try:
                new = new_keys[key]
            except KeyError:
                new = new_keys[key] = self._new_key(event, of_process)
            except TypeError:
                new = None  # a list where a number belongs: left alone
            if new is not None:
                event["pid"] = new[0]
                if not of_process:
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
                self._rename(event, pid)
        if self._shift:
            self._move(events)
        return events

    def _new_key(self, event: RawEvent, of_process: bool) -> ThreadKey | None:
        """The numbers of a process and a thread in the merged file; None where they stay."""
        pid, tid = event.get("pid"), None if of_process else event.get("tid")
        new_pid, new_tid = pid, tid
        if pid.__class__ is str and pid:
            new_pid = f"{pid} ({self._label})"  # Spans, Traces and the like: one of each for every file
        elif pid.__class__ is int:
            new_pid = self._numbers.pid(pid)
        if pid is not None and pid != "":
            self.pids.setdefault(new_pid)
        if tid.__class__ is int and not self._on_device(pid, event):
            new_tid = self._numbers.thread(tid)
        return None if (new_pid, new_tid) == (pid, tid) else (new_pid, new_tid)

    def _on_device(self, pid: JSONScalar, event: RawEvent) -> bool:
        """Whether a thread is a stream of a device, by its first event."""
        category = event.get("cat")
        if (category.__class__ is str and category in DEVICE_CATEGORIES) or pid in self._devices:
            return True
        args = event.get("args")
        name = args.get("name") if args.__class__ is dict else None
        return event.get("ph") == "M" and name.__class__ is str and name.startswith("stream")

    def _rename(self, event: RawEvent, old_pid: JSONScalar) -> None:
        args, name, pid = event.get("args"), event.get("name"), event.get("pid")
        if args.__class__ is not dict:
            return
        if name == "process_name":
            args["name"] = f"{self._label}: {args.get('name', '')}"
            if pid.__class__ is int:
                self._named.add(pid)
        elif name == "process_labels":
            if str(args.get("labels")).startswith("GPU") and old_pid.__class__ is int:
                self._devices.add(old_pid)
            args["labels"] = f"{self._label} {args.get('labels', '')}".rstrip()
        elif name == "process_sort_index" and args.get("sort_index").__class__ is int:
            args["sort_index"] += self._place * _SORT_STEP

    def _move(self, events: list[RawEvent]) -> None:
        for event, time in zip(events, nanoseconds([event.get("ts") for event in events]).tolist()):
            if time != NONE and event["ts"].__class__ in (int, float):
                event["ts"] = microseconds(time + self._shift)

    def missing_names(self) -> list[RawEvent]:
        """Names for the processes that have none in the file."""
        return [
            {"ph": "M", "name": "process_name", "ts": 0, "pid": pid, "tid": 0, "args": {"name": self._label}}
            for pid in self.pids
            if pid.__class__ is int and pid not in self._named
        ]
