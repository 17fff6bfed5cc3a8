"""Damaged and hostile traces of every format: a random generator in, a file or folder out.

`KINDS` lists them. "kineto" takes pieces of real trace files, "generated" makes up programs of random shape;
"ascend text", "ascend db", "nsys" and "native" start from small captures of these formats. Fields are
dropped, exchanged, or replaced by values of other types and sizes, and a few files have changed bytes.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import captures

from mindtorch_prof import load

NUMBERS = (0, 1, -1, 2**31, 2**53, 2**63, -(2**63), 10**25, 1.5, -0.0, 1e300, float("nan"), float("inf"))
TEXTS = (
    "", "x", "1", "0x10", "ProfilerStep#1", "ProfilerStep#99999999999999999999", "ProfilerStep#-1",
    "aten::add", "\x1b[31m\x07\x00", "\u202e\u200b\u2028", "=1+1", "::error::x", "a" * 5000, "\ud800",
)  # fmt: skip
OTHERS = (None, True, False, [], [1], [[[]]], ["x", None], {}, {"a": 1}, {"ph": "X"})
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, *OTHERS)

Maker: TypeAlias = "Callable[[random.Random, Path, Path], Path]"  # generator, real traces, where to write


@cache
def sources(folder: Path) -> list[dict[str, Any]]:
    """Real traces as documents, with the events of each."""
    documents = []
    for path in sorted(folder.rglob("*.json*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if len(data) > 24 << 20 or not (b'"ph"' in data[:100_000] or b'"traceEvents"' in data[:100_000]):
            continue
        document = json.loads(data)
        documents.append(document if isinstance(document, dict) else {"traceEvents": document})
    return documents


# ------------------------------------------------------------ Chrome traces


def kineto(random_: random.Random, real: Path, folder: Path) -> Path:
    """A piece of a real trace with some changes."""
    return _written(random_, damaged(random_, random_.choice(sources(real))), folder)


def damaged(random_: random.Random, source: dict[str, Any]) -> Any:
    """A piece of a trace with some changes."""
    events = source["traceEvents"]
    count = random_.choice((1, 3, 10, 50, 50, 300, 1000))
    first = random_.randrange(max(1, len(events) - count))
    piece = [event for event in events[:2000] if isinstance(event, dict) and event.get("ph") == "M"][:40]
    piece = json.loads(json.dumps(piece + events[first : first + count]))
    document = {key: value for key, value in source.items() if key != "traceEvents"}
    document = json.loads(json.dumps(document))
    for _ in range(random_.choice((0, 1, 2, 5, 20, 100))):
        change(random_, piece)
    for _ in range(random_.choice((0, 0, 1, 3))):
        change_object(random_, document)
    if random_.random() < 0.1:  # only some categories
        category = random_.choice(sorted({str(e.get("cat")) for e in piece if isinstance(e, dict)}) or [""])
        keeps = random_.random() < 0.5
        piece = [e for e in piece if isinstance(e, dict) and (str(e.get("cat")) == category) == keeps]
    return {**document, "traceEvents": piece} if random_.random() < 0.9 else piece


def change(random_: random.Random, events: list[Any]) -> None:
    """Change one event of a list: drop, repeat, insert, or change one of its fields."""
    if not events:
        return
    place = random_.randrange(len(events))
    kind = random_.randrange(12)
    if kind == 0:
        events[place] = deepcopy(random_.choice(VALUES))
    elif kind == 1:
        events.append(json.loads(json.dumps(events[place])))
    elif kind == 2:
        events.insert(place, {"ph": random_.choice("XBEiCMsfabne"), "name": "x", "ts": 0, "pid": 0, "tid": 0})
    elif isinstance(events[place], dict):
        arguments = events[place].get("args")
        if kind < 7 and isinstance(arguments, dict):
            change_object(random_, arguments)
        elif kind == 7:
            events[place]["dur"] = random_.choice((-5, 0, 1e12, 10**18))
        elif kind == 8:
            events[place]["ts"] = random_.choice((-1e9, 0, 1e15, "12.5", 2**62))
        else:
            change_object(random_, events[place])


def change_object(random_: random.Random, fields: dict[str, Any]) -> None:
    """Drop or replace one value of an object."""
    if not fields:
        return
    key = random_.choice(list(fields))
    kind = random_.randrange(4)
    if kind == 0:
        del fields[key]
    elif kind == 1:
        fields[key] = deepcopy(random_.choice(list(fields.values())))
    elif kind == 2 and isinstance(fields[key], (int, float)):
        fields[key] = fields[key] + random_.choice((-1, 1, 1000, -1000))
    else:
        fields[key] = deepcopy(random_.choice(VALUES))


_NAMES = (
    "aten::mm", "aten::add", "aten::linear", "AddmmBackward0",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "Optimizer.step#SGD.step", "forward", "nccl:all_reduce", "record_param_comms", "cudaLaunchKernel",
    "cudaMemcpyAsync", "cudaGraphLaunch", "cudaStreamSynchronize", "void gemm<float>(int)", "Memcpy HtoD",
    "Memset", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "a.py(3): f", "nn.Module: Linear_0",
    "<built-in method run>",
)  # fmt: skip
_CATEGORIES = (
    "cpu_op", "cpu_op", "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver",
    "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "overhead", "Trace",
    "unknown",
)  # fmt: skip


def generated(random_: random.Random, real: Path, folder: Path) -> Path:
    """A made-up program: nested or crossing events of all kinds on some processes, threads and streams."""
    threads = [(random_.choice((1, 1, 2, "a")), number) for number in range(random_.choice((1, 2, 5)))]
    events: list[Any] = []
    shape = random_.choice(("nested", "crossing", "deep", "steps"))
    for number in range(random_.choice((0, 1, 2, 5, 20, 80, 300))):
        pid, tid = random_.choice(threads)
        category = random_.choice(_CATEGORIES)
        start, length = _place(random_, shape, number)
        name = random_.choice(_NAMES) if random_.random() < 0.9 else random_.choice(TEXTS)
        if category == "user_annotation" and random_.random() < 0.7:
            name = f"ProfilerStep#{random_.choice((0, 1, 2, 3, number, 10**18))}"
        event: dict[str, Any] = {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": start,
            "dur": length,
        }
        event["args"] = _arguments(random_, category, number)
        events.append(event)
        if random_.random() < 0.05:
            events.append(
                {
                    "ph": "i",
                    "s": "t",
                    "name": "[memory]",
                    "pid": pid,
                    "tid": tid,
                    "ts": start,
                    "cat": "cpu_instant_event",
                    "args": _memory(random_),
                }
            )
        if random_.random() < 0.05:
            events.append(
                {
                    "ph": random_.choice("sf"),
                    "id": random_.randrange(9),
                    "name": "ac2g",
                    "cat": random_.choice(("ac2g", "fwdbwd")),
                    "pid": pid,
                    "tid": tid,
                    "ts": start,
                }
            )
    for _ in range(random_.choice((0, 0, 1, 3, 10))):
        change(random_, events)
    document: dict[str, Any] = {"schemaVersion": 1, "traceEvents": events}
    if random_.random() < 0.5:
        document["deviceProperties"] = [
            {"id": 0, "name": "NVIDIA H100", "numSms": 132, "totalGlobalMem": 1 << 36}
        ]
        document["distributedInfo"] = {"backend": "nccl", "rank": random_.randrange(4), "world_size": 4}
        document["baseTimeNanoseconds"] = random_.choice((0, 1_700_000_000_000_000_000, -5, "x"))
    for _ in range(random_.choice((0, 0, 0, 1))):
        change_object(random_, document)
    return _written(random_, document, folder)


def _place(random_: random.Random, shape: str, number: int) -> tuple[float, float]:
    """Start and length of an event, in microseconds."""
    if shape == "deep":
        return 10.0 + number, max(1000.0 - 2 * number, 0)
    if shape == "steps":
        return 100.0 * (number % 10) + random_.randrange(50), float(random_.choice((0, 5, 50, 100)))
    start = random_.random() * 1000
    return start, random_.random() * random_.choice((1, 10, 300)) if shape == "nested" else random_.choice(
        (0, 1e3)
    )


def _arguments(random_: random.Random, category: str, number: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"External id": random_.randrange(40), "correlation": random_.randrange(40)}
    if category == "cpu_op":
        fields |= {
            "Input Dims": [[2, 3], [3, 4]],
            "Input type": ["float", "float"],
            "Sequence number": number % 7,
            "Fwd thread id": random_.choice((0, 1)),
            "Record function id": number,
            "Ev Idx": number,
        }
    elif category == "python_function":
        fields |= {
            "Python id": random_.randrange(30),
            "Python parent id": random_.randrange(-1, 30),
            "Python module id": random_.randrange(3),
        }
    elif category in {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"}:
        fields |= {
            "device": random_.choice((0, 1)),
            "stream": random_.choice((7, 20)),
            "grid": [1, 2, 3],
            "block": [32, 1, 1],
            "bytes": 1 << random_.randrange(40),
            "memory bandwidth (GB/s)": 1.5,
            "graph id": random_.randrange(2),
            "Collective name": "allreduce",
            "In msg nelems": 5,
            "Group size": 2,
            "dtype": "Float",
            "Process Group Name": "0",
            "wait_on_stream": 7,
            "wait_on_cuda_event_record_corr_id": random_.randrange(40),
        }
    for _ in range(random_.choice((0, 0, 0, 1, 3))):
        change_object(random_, fields)
    return fields


def _memory(random_: random.Random) -> dict[str, Any]:
    return {
        "Total Reserved": 1 << 20,
        "Total Allocated": random_.randrange(1 << 20),
        "Addr": random_.randrange(9),
        "Bytes": random_.choice((-64, 64, 512, 2**62)),
        "Device Id": random_.choice((-1, 0)),
        "Device Type": random_.choice((0, 1)),
    }


def _written(random_: random.Random, document: Any, folder: Path) -> Path:
    """A document as a file; some end early, have changed bytes, or are packed."""
    data = json.dumps(document).encode()
    if random_.random() < 0.1:
        data = _with_changed_bytes(random_, data)
    packed = random_.random() < 0.1
    path = folder / ("trace.json.gz" if packed else "trace.json")
    data = gzip.compress(data, 1) if packed else data
    path.write_bytes(_with_changed_bytes(random_, data) if packed and random_.random() < 0.2 else data)
    return path


def _with_changed_bytes(random_: random.Random, data: bytes) -> bytes:
    """The same with some bytes changed, left out or repeated, or without its end."""
    changed = bytearray(data)
    for _ in range(random_.choice((1, 1, 3, 20))):
        if not changed:
            break
        place = random_.randrange(len(changed))
        kind = random_.randrange(4)
        if kind == 0:
            changed[place] = random_.randrange(256)
        elif kind == 1:
            del changed[place : place + random_.choice((1, 8, 200))]
        elif kind == 2:
            changed[place:place] = changed[place : place + random_.choice((1, 8, 200))]
        else:
            changed[place] ^= 1 << random_.randrange(8)
    return bytes(changed[: random_.randrange(len(changed) + 1)] if random_.random() < 0.3 else changed)


# ------------------------------------------------------------ captures


def ascend_text(random_: random.Random, real: Path, folder: Path) -> Path:
    """An Ascend capture in text form: events, CSV files and JSON files with changes."""
    capture = captures.text_capture(folder / "a_ascend_pt")
    for path in sorted(capture.rglob("*")):
        if path.is_file() and random_.random() < 0.5:
            _change_text_file(random_, path)
    return capture


def _change_text_file(random_: random.Random, path: Path) -> None:
    data = path.read_bytes()
    if path.suffix == ".json" and random_.random() < 0.8:
        document = json.loads(data)
        for _ in range(random_.choice((1, 2, 10))):
            if isinstance(document, list):
                change(random_, document)
            elif isinstance(document, dict):
                change_object(random_, document)
        path.write_text(json.dumps(document))
    elif path.suffix == ".csv" and random_.random() < 0.8:
        rows = list(csv.reader(io.StringIO(data.decode())))
        for _ in range(random_.choice((1, 2, 10))):
            row = random_.choice(rows)
            if row:
                row[random_.randrange(len(row))] = str(random_.choice(VALUES))
        with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as out:
            csv.writer(out).writerows(rows)
    elif random_.random() < 0.1:
        path.unlink()
    else:
        path.write_bytes(_with_changed_bytes(random_, data))


def ascend_db(random_: random.Random, real: Path, folder: Path) -> Path:
    """An Ascend capture in a database whose rows and tables have changes."""
    databases = (
        sorted((real / "ascend").rglob("ascend_pytorch_profiler_*.db")) if random_.random() < 0.2 else []
    )
    if databases:
        capture = folder / "b_ascend_pt"
        shutil.copytree(databases[0].parents[1], capture)
    else:
        capture = captures.db_capture(folder / "a_ascend_pt")
    for path in sorted(capture.rglob("*.db")):
        _change_database(random_, path)
    for path in sorted(capture.rglob("*.json")):
        if random_.random() < 0.2:
            _change_text_file(random_, path)
    return capture


def nsys(random_: random.Random, real: Path, folder: Path) -> Path:
    """An export of nsys whose rows and tables have changes."""
    path = captures.nsys_export(folder / "a.sqlite")
    _change_database(random_, path)
    return path


def _change_database(random_: random.Random, path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(random_.choice((1, 2, 5, 20))):
            table = random_.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            if columns:
                _change_table(random_, connection, table, random_.choice(columns))
        connection.commit()
    except sqlite3.Error:
        connection.rollback()  # a column of which an index needs distinct values
    finally:
        connection.close()
    if random_.random() < 0.1:
        path.write_bytes(_with_changed_bytes(random_, path.read_bytes()))


def _change_table(random_: random.Random, connection: sqlite3.Connection, table: str, column: str) -> None:
    kind = random_.randrange(10)
    if kind == 0:
        connection.execute(f'DROP TABLE "{table}"')
    elif kind == 1:
        connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "x{random_.randrange(99)}"')
    elif kind == 2:
        connection.execute(f'DELETE FROM "{table}" WHERE rowid % 2')
    elif kind == 3:
        connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 5')
    else:
        value = random_.choice((*NUMBERS, *TEXTS[:-1], None, b"\xff\x00"))
        value = float(value) if isinstance(value, int) and abs(value) >= 2**63 else value
        where = random_.choice(("", " WHERE rowid % 3 = 0", " WHERE rowid = 1"))
        connection.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', (value,))


# ------------------------------------------------------------ native files


def native(random_: random.Random, real: Path, folder: Path) -> Path:
    """A native file with changed bytes, members or header."""
    plain = folder / "plain.json"
    plain.write_text(json.dumps(damaged(random_, random_.choice(sources(real)))))
    path = folder / "trace.mtrace"
    try:
        load(plain).save(path)
    except ValueError:  # no trace any more
        return plain
    if random_.random() < 0.5:
        path.write_bytes(_with_changed_bytes(random_, path.read_bytes()))
        return path
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(random_.choice((1, 1, 3))):
        name = random_.choice([*members, "header.json"])
        document = _parsed(members.get(name)) if name.endswith(".json") else None
        if document is not None and random_.random() < 0.8:
            _change_somewhere(random_, document)
            members[name] = json.dumps(document).encode()
        elif random_.random() < 0.2:
            members.pop(name, None)
        else:
            members[name] = _with_changed_bytes(random_, members.get(name, b""))
    with zipfile.ZipFile(
        path, "w", random_.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _parsed(text: bytes | None) -> Any:
    """The value of JSON; None where it is none any more."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def _change_somewhere(random_: random.Random, document: Any) -> None:
    """Change a value at any depth."""
    while isinstance(document, dict) and document:
        inner = [value for value in document.values() if isinstance(value, dict) and value]
        if not inner or random_.random() < 0.25:
            change_object(random_, document)
            return
        document = random_.choice(inner)


def ranks(random_: random.Random, real: Path, folder: Path) -> Path:
    """A folder with the traces of several ranks, damaged ones among them."""
    job = folder / "job"
    job.mkdir()
    for rank in range(random_.choice((1, 2, 2, 3))):
        inner = job / f"rank{rank}"
        inner.mkdir()
        path = random_.choice((kineto, generated))(random_, real, inner)
        os.replace(path, job / f"rank{rank}.{path.name}")
        inner.rmdir()
    return job


KINDS: dict[str, Maker] = {
    "kineto": kineto,
    "generated": generated,
    "ascend text": ascend_text,
    "ascend db": ascend_db,
    "nsys": nsys,
    "native": native,
    "ranks": ranks,
}
