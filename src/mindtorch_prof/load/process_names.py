"""Names of processes and threads: metadata events of a Chrome trace in, dicts out. Events are not kept: a file may repeat them without end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ..json_types import JSONScalar, JSONValue
from .json_slices import RawEvent

ThreadKey: TypeAlias = "tuple[JSONScalar, JSONScalar]"  # (pid, tid) as the file has them


class ProcessNames:
    """What metadata events say; of several for one thread or process the last one counts."""

    def __init__(self) -> None:
        self.threads: dict[ThreadKey, str] = {}
        self.processes: dict[JSONScalar, str] = {}
        self.labels: dict[JSONScalar, str] = {}  # of processes

    def add(self, events: Iterable[RawEvent]) -> None:
        """Take the names out of metadata events."""
        for event in events:
            args, pid, tid = event.get("args"), event.get("pid"), event.get("tid")
            if not isinstance(args, dict) or isinstance(pid, (list, dict)) or isinstance(tid, (list, dict)):
                continue
            name, pid = event.get("name"), plain_key(pid)
            if name == "thread_name":
                self.threads[pid, tid] = str(args.get("name", "")).strip()
            elif name == "process_name":
                self.processes[pid] = str(args.get("name", "")).strip()
            elif name == "process_labels":
                self.labels[pid] = str(args.get("labels", "")).strip()


def thread_number(tid: JSONValue) -> int | None:
    """A process's or thread's number, also where it is written as text; None: it has a name."""
    if isinstance(tid, bool):
        return None
    if isinstance(tid, int):
        return tid
    if isinstance(tid, str) and tid.isascii() and tid.isdecimal() and len(tid) < 19:
        return int(tid)
    return None


def plain_key(pid: JSONScalar) -> JSONScalar:
    """A process's number, or its name if it has none."""
    number = thread_number(pid)
    return pid if number is None else number
