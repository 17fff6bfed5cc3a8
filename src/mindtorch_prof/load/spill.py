"""Spill folders: a folder that `mindtorch_prof.spill_file` wrote in; the Trace of everything up to the last whole chunk out.

The process that wrote it may have been killed at any moment, may have ended by an error, or may still be running: the health of the trace
says how it ended and what is missing.
"""

from __future__ import annotations

import glob
import mmap
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from ..arrays import IntArray
from ..inputs import Inputs
from ..sealing.logs import Logs
from ..sealing.raw import RANGES, VARIANTS, KeyEntry, RawRecording, RecordingCost, TensorTables
from ..sealing.seal import seal
from ..sealing.unfinished import end_open
from ..settings import Settings
from ..spill_file import HEAD, MAGIC, SEGMENT_SUFFIX, SUFFIX, VERSION
from ..synthetic_rows import SyntheticOp, event_keys
from ..trace import Health, ParameterOwner, Trace
from .errors import BrokenTraceError, NotATraceError
from .native import loads, unpacked, unpacked_inputs
from .torch_view import with_children

if sys.platform != "win32":
    import fcntl

FINISHED = "finished"  # how a recording ended that was stopped


def is_spill(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds the segments of one recording."""
    return os.path.isdir(path) and bool(_segments(path))


def spill_folders(folder: str | os.PathLike[str]) -> list[str]:
    """The recordings in a folder, in the order in which they began; the folder itself if it is one."""
    if is_spill(folder):
        return [os.fspath(folder)]
    inside = glob.glob(os.path.join(glob.escape(os.fspath(folder)), f"*{SUFFIX}"))
    return sorted(filter(is_spill, inside), key=_in_order)


def _in_order(path: str) -> tuple[str, int, int]:
    stamp, _, rest = os.path.basename(path).removesuffix(SUFFIX).partition("_")
    pid, _, number = rest.partition("_")
    return stamp, int(pid) if pid.isdigit() else 0, int(number) if number.isdigit() else 0


def _segments(folder: str | os.PathLike[str]) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(os.fspath(folder)), f"[0-9]*{SEGMENT_SUFFIX}")))


# ---------------------------------------------------------------------------------------------------- chunks


class Chunk(NamedTuple):
    """One chunk: its header, and its blocks by log."""

    header: dict[str, Any]
    blocks: list[tuple[tuple[str, int], IntArray]]


class SpilledChunks:
    """The whole chunks of a recording. Blocks are mapped from the files, not read. until: the number of a segment, and how many bytes of it
    count; what comes after that is left out."""

    def __init__(self, folder: str | os.PathLike[str], until: tuple[int, int] | None = None) -> None:
        self.folder, self._until = os.fspath(folder), until
        self.count = 0
        self.damage = ""  # what came after the last whole chunk

    def __iter__(self) -> Iterator[Chunk]:
        self.count, self.damage = 0, ""
        segments = _segments(self.folder)
        if self._until is not None:
            segments = segments[: self._until[0]]
        for place, path in enumerate(segments):
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if self._until is not None and place + 1 == self._until[0]:
                    size = min(size, self._until[1])
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
            at = 0
            while at < size:
                chunk, end = _chunk_at(content, at, size)
                if chunk is None:
                    left = size - at + sum(os.path.getsize(each) for each in segments[place + 1 :])
                    self.damage = f"{left:,} bytes after its last whole chunk are left out"
                    return
                self.count += 1
                yield chunk
                at = end


def _chunk_at(content: mmap.mmap | bytes, at: int, size: int) -> tuple[Chunk | None, int]:
    """The chunk that begins here, and where it ends; None: there is no whole one."""
    if size - at < HEAD.size:
        return None, at
    magic, checksum, n_header, n_integers = HEAD.unpack_from(content, at)
    begin, end = at + HEAD.size, at + HEAD.size + n_header + n_integers
    if magic != MAGIC or end > size:
        return None, at
    view = memoryview(content)[begin:end]
    if zlib.crc32(view) != checksum:
        return None, at
    header = cast("dict[str, Any]", loads(bytes(view[:n_header])))
    integers = np.frombuffer(view[n_header:], np.int64)
    blocks: list[tuple[tuple[str, int], IntArray]] = []
    place = 0
    for kind, thread, count in header["logs"]:
        blocks.append(((kind, thread), integers[place : place + count]))
        place += count
    return Chunk(header, blocks), end


# ---------------------------------------------------------------------------------------------------- tables


class _Functions:
    """The functions of a recording, by number."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int, int, bool, list[int] | None, list[int] | None]] = []

    def names(self) -> tuple[tuple[str, ...], IntArray]:
        """The names, and the modules' numbers."""
        return tuple([each[0] for each in self.entries]), np.array(
            [each[1] for each in self.entries], np.int64
        )

    def kinds(self) -> IntArray:
        """The kinds."""
        return np.array([each[2] for each in self.entries], np.int8)

    def are_c_functions(self) -> np.ndarray:
        """Whether each is a function written in C."""
        return np.array([each[3] for each in self.entries], bool)

    def lines_of(self, number: int) -> tuple[IntArray, IntArray] | None:
        """Where lines begin, and those lines."""
        *_, begins, lines = self.entries[number]
        return None if begins is None else (np.array(begins, np.int64), np.array(lines, np.int64))


class _Inputs:
    """The inputs of a recording, and those that torch shows for calls by its own code."""

    def __init__(self) -> None:
        self.inputs: list[Inputs] = []
        self._depends: list[bool] = []
        self._variants: list[Inputs] = []
        self._known: dict[tuple[int, str, int], int] = {}

    def add(self, tables: dict[str, Any]) -> None:
        """Add what a chunk has."""
        self.inputs += map(unpacked_inputs, tables.get("inputs", ()))
        self._depends += tables.get("depends", ())
        self._variants += map(unpacked_inputs, tables.get("variants", ()))
        for inputs, caller, callers_inputs, shown in tables.get("callers", ()):
            self._known[inputs, caller, callers_inputs] = shown

    def depends_on_caller(self) -> Sequence[bool]:
        """By number: whether the caller matters."""
        return self._depends

    def shown_for(self, inputs: int, caller: str, callers_inputs: int) -> int:
        """The number of the inputs that are shown. A combination that the process had no time to note is shown as a call by the user."""
        return self._known.get((inputs, caller, callers_inputs), inputs)

    def variants(self) -> Sequence[Inputs]:
        """The inputs that are shown for calls by torch's own code only."""
        return self._variants


class _Tables:
    """Everything that the headers of chunks say."""

    def __init__(self) -> None:
        self.keys: dict[int, KeyEntry] = {}
        self.inputs = _Inputs()
        self.flops: dict[int, int] = {}
        self.functions = _Functions()
        self.children: dict[tuple[str, str, int], list[SyntheticOp]] = {}
        self.owners: list[ParameterOwner] = []
        self.modules: dict[str, int] = {}
        self.links: list[int] = []
        self.addresses: dict[int, int] = {}
        self.threads: dict[int, tuple[int, str]] = {}
        self.facts: dict[str, Any] = {}  # the last value of each
        self.open: dict[int, IntArray] = {}  # by thread: the rows of ranges that were open at the last chunk

    def add(self, header: dict[str, Any]) -> None:
        """Add what is new in a chunk."""
        self.keys.update((key, KeyEntry(*entry)) for key, *entry in header.get("keys", ()))
        self.inputs.add(header)
        self.flops.update(header.get("flops", ()))
        self.functions.entries += map(tuple, header.get("functions", ()))
        for name, overload, inputs, ops in header.get("children", ()):
            self.children[name, overload, inputs] = [_synthetic_op(op) for op in ops]
        self.owners += cast("list[ParameterOwner]", [unpacked(each) for each in header.get("owners", ())])
        self.modules.update(header.get("modules", {}))
        self.links += header.get("links", ())
        self.addresses.update(header.get("addresses", ()))
        self.threads.update((ident, (native, name)) for ident, native, name in header.get("threads", ()))
        self.facts.update(header.get("facts", {}))
        if "open" in header:
            self.open = {thread: np.array(rows, np.int64) for thread, rows in header["open"]}


def _synthetic_op(entry: list[Any]) -> SyntheticOp:
    name, overload, depth, inputs, allocates, sequenced = entry
    return SyntheticOp(
        name, overload, depth, None if inputs is None else unpacked_inputs(inputs), allocates, sequenced
    )


# ---------------------------------------------------------------------------------------------------- recordings


def spilled_logs(folder: str | os.PathLike[str], until: tuple[int, int] | None = None) -> Logs:
    """All blocks of a recording. until: as for `SpilledChunks`."""
    logs = Logs()
    for chunk in SpilledChunks(folder, until):
        _add_blocks(logs, chunk)
    return logs


def _add_blocks(logs: Logs, chunk: Chunk) -> None:
    for key, block in chunk.blocks:
        logs.blocks.setdefault(key, []).append(block)
    logs.natives.update((thread, native) for thread, native in chunk.header.get("natives", ()))


def read_spill(folder: str | os.PathLike[str]) -> Trace:
    """The trace of a recording, with the ops that torch shows inside others."""
    name = os.fspath(folder)
    chunks, tables, logs = SpilledChunks(folder), _Tables(), Logs()
    is_running = _is_running(folder)
    try:
        for chunk in chunks:
            tables.add(chunk.header)
            _add_blocks(logs, chunk)
        if "version" not in tables.facts:
            raise NotATraceError(
                f"{name}: a spill folder without a whole chunk: nothing was recorded before it ended"
            )
        if tables.facts["version"] > VERSION:
            raise NotATraceError(
                f"{name}: written in version {tables.facts['version']} of its format, of which this package knows {VERSION}; "
                "install a later one"
            )
        recorded = seal(_raw_recording(tables, logs, _ending(tables.facts, chunks, is_running), name))
        return _shown(recorded, tables)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, NotATraceError):
            raise
        raise BrokenTraceError(f"{name}: damaged ({type(error).__name__}: {error})") from error


def _is_running(folder: str | os.PathLike[str]) -> bool:
    """Whether the process that writes the recording still does: it holds a lock on the last segment."""
    segments = _segments(folder)
    if sys.platform == "win32" or not segments:
        return False
    try:
        with open(segments[-1], "rb+") as last:
            fcntl.lockf(last, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # not ours to write, or a file system without locks
        return False
    return False


def _ending(facts: dict[str, Any], chunks: SpilledChunks, is_running: bool) -> tuple[str, ...]:
    """Notes on how the recording ended and on what is missing; none if it was stopped."""
    notes = list(facts.get("notes", ()))
    ended = facts.get("ended")
    if ended is None and is_running:
        notes.append("the recording is still under way: this is what was written until now")
    elif ended is None:
        last_s = facts["period_s"]
        notes.append(
            "the recording was not stopped: the process was killed, crashed or called os._exit; what was recorded after the last "
            f"chunk, about {last_s:g} s, is missing"
        )
    elif ended != FINISHED:
        notes.append(f"the recording ended early: {ended}")
    if facts.get("unwritten"):
        notes.append(f"{facts['unwritten']:,} events could not be written: {facts.get('write_error', '')}")
    if chunks.damage:
        notes.append(chunks.damage)
    return tuple(notes)


def _raw_recording(tables: _Tables, logs: Logs, notes: tuple[str, ...], name: str) -> RawRecording:
    facts = tables.facts
    settings = cast("Settings", unpacked(facts["settings"]))
    columns = tuple(facts["columns"])
    last = _last_time(logs, len(columns), facts["begun_ns"])
    ended = facts.get("ended_ns") or last
    n_unfinished = facts.get("unfinished", 0)
    if not facts.get("ended_ns"):
        n_unfinished += end_open(logs, tables.open, len(columns), ended)
    cost = facts.get("cost")
    return RawRecording(
        columns=columns,
        logs=logs,
        main_thread=facts["main_thread"],
        n_ops=1 + max([key for key in tables.keys if key < RANGES], default=-1),
        key_entry=tables.keys.__getitem__,
        inputs=tables.inputs.inputs,
        input_rules=tables.inputs if settings.record_shapes else None,
        flops=tables.flops,
        functions=tables.functions if "calls" in columns else None,
        tensor_tables=_tensor_tables(tables),
        settings=replace(settings, source=name),
        origin_ns=facts["origin_ns"],
        window_ns=(facts["begun_ns"], ended),
        health=Health(
            dropped=facts.get("unwritten", 0),
            unfinished=n_unfinished,
            notes=notes,
            remarks=tuple(facts.get("remarks", ())),
        ),
        cost=None if cost is None else RecordingCost(*cost),
        of_modules=tuple(
            [cast("tuple[int, int, bool]", tuple(each)) for each in facts.get("of_modules", ())]
        ),
        thread_names=tables.threads,
    )


def _tensor_tables(tables: _Tables) -> TensorTables | None:
    facts = tables.facts
    if facts.get("first_id") is None:
        return None
    return TensorTables(
        facts["first_id"],
        np.array(tables.links, np.int64).reshape(-1, 2),
        tables.addresses,
        tables.owners,
        tables.modules,
        np.array(facts.get("alive", ()), np.int64).reshape(-1, 3),
    )


def _last_time(logs: Logs, width: int, begun_ns: int) -> int:
    """When the last event ended."""
    times = [begun_ns]
    for (kind, _), block in logs:
        column, n_columns = {"rows": (2, width), "calls": (1, 2), "memory": (0, 4)}.get(kind, (0, 0))
        if n_columns and block.size:
            times.append(int(block.reshape(-1, n_columns)[:, column].max()))
    return max(times)


def _shown(trace: Trace, tables: _Tables) -> Trace:
    """The trace with the ops that torch shows inside others."""
    n_inputs = len(tables.inputs.inputs)
    owners = {key[:2] for key in tables.children}
    has_children = np.array([key in owners for key in zip(trace.names, trace.overloads)], bool)
    contents = {}
    for name, index in event_keys(trace, has_children):
        number = index if index < n_inputs else VARIANTS + index - n_inputs
        ops = tables.children.get((trace.names[name], trace.overloads[name], number))
        if ops:
            contents[name, index] = ops
    return with_children(trace, contents)


__all__ = ["FINISHED", "SpilledChunks", "is_spill", "read_spill", "spill_folders", "spilled_logs"]
