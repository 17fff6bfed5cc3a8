"""The native file: a path in, the Trace that `mindtorch_prof.native_file` wrote out. Columns are mapped into memory, not read."""

from __future__ import annotations

import dataclasses
import io
import json
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import BinaryIO, NamedTuple, TypeGuard, TypeVar, cast, overload

import numpy as np
import orjson

from ..arrays import IntArray
from ..inputs import Argument, IndexList, Inputs, TensorInput, TensorList
from ..json_types import JSONValue
from ..native_file import CLASSES, FORMAT, HEADER, VERSION
from ..trace import DEVICE_PART, RUNTIME, Trace
from .byte_source import PathOrFile
from .declared_types import check_fields
from .errors import BrokenTraceError, NotATraceError, TraceError

_Entry = TypeVar("_Entry")
SHOWN = ("python_functions", "forward_stacks")  # how events are listed: arguments of `Loaded`
MAGIC = b"PK\x03\x04"


class NativeFile(NamedTuple):
    """What a native file holds."""

    trace: Trace
    shown: dict[str, bool]  # how its events are listed
    made_from: dict[str, object]  # what identifies the file that it was read from


def is_native(file: PathOrFile) -> TypeGuard[str | bytes | os.PathLike[str] | os.PathLike[bytes]]:
    """Whether a file is a zip archive; only paths are: columns are mapped from a file."""
    if not isinstance(file, (str, bytes, os.PathLike)) or not os.path.isfile(file):
        return False
    with open(file, "rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def read_native(path: str) -> NativeFile:
    """Read a native file; NotATraceError for another archive, BrokenTraceError for a damaged one."""
    with open(path, "rb") as file:
        return read_native_from(file, path)


def read_native_from(file: BinaryIO, path: str, *, whole: bool = False) -> NativeFile:
    """Read an open native file. whole: also compare the checksums of all its parts, which reads it from its beginning to its end."""
    try:
        with zipfile.ZipFile(file) as archive:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            members = {each.filename: _place(each, mapped, path) for each in archive.infolist()}
            if whole:
                _check_sums(archive.infolist(), members, mapped, path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        if isinstance(error, TraceError):
            raise
        raise BrokenTraceError(
            f"{path}: a damaged archive ({error}); expected a trace that save() wrote"
        ) from error
    if HEADER not in members:
        raise NotATraceError(
            f"{path}: a zip archive, but not a trace that save() wrote; traces in it have to be unpacked first"
        )
    reader = _Reader(path, mapped, members)
    try:
        header = _Header.of(loads(reader.bytes_of(HEADER)))
        if header is None:
            raise NotATraceError(
                f"{path}: a zip archive, but not a trace that save() wrote; traces in it have to be unpacked first"
            )
        if header.version > VERSION:
            raise NotATraceError(
                f"{path}: written in version {header.version} of its format, of which this package knows {VERSION}; "
                "install a later one"
            )
        trace = reader.value(header.trace)
        if isinstance(trace, Trace):
            _check(trace)
    except NotATraceError:
        raise
    except Exception as error:  # also whatever NumPy's parser of headers raises
        raise BrokenTraceError(f"{path}: damaged ({type(error).__name__}: {error})") from error
    if not isinstance(trace, Trace):
        raise BrokenTraceError(f"{path}: damaged (its header describes no trace)")
    return NativeFile(trace, header.shown, header.made_from)


def _check_sums(
    infos: Sequence[zipfile.ZipInfo], places: dict[str, tuple[int, int]], mapped: mmap.mmap, path: str
) -> None:
    with memoryview(mapped) as content:
        for info in infos:
            begin, size = places[info.filename]
            if zlib.crc32(content[begin : begin + size]) != info.CRC:
                raise BrokenTraceError(
                    f"{path}: damaged (the checksum of its part {info.filename} is another)"
                )


def _check(trace: Trace) -> None:
    """Raise ValueError where values are of other types than the classes say, columns that belong together have other lengths, hold numbers
    of rows, texts and kinds that do not exist, or events are not in order."""
    check_fields(trace)
    frames, device, counters, ids = trace.frames, trace.device, trace.counters, trace.tensor_ids
    for part, count in (
        (trace, len(trace.name)),
        (frames, len(frames.name)),
        (device, len(device.name)),
        (trace.memory, len(trace.memory)),
        (counters, len(counters.name)),
    ):
        for each in dataclasses.fields(part):
            column = getattr(part, each.name)
            if isinstance(column, np.ndarray) and len(column) != count:
                raise ValueError(f"{each.name} has {len(column):,} rows, expected {count:,}")
    extra = trace.extra if trace.extra is not None else np.empty(0, np.int64)
    for title, column, least, size in (
        ("name", trace.name, 0, len(trace.names)),
        ("kind", trace.kind, 0, RUNTIME + 1),
        ("inputs", trace.inputs, -1, len(trace.input_table)),
        ("stack", trace.stack, -1, len(trace.stacks)),
        ("extra", extra, -1, len(trace.extra_table)),
        ("frames.name", frames.name, 0, len(frames.names)),
        ("frames.parent", frames.parent, -1, len(frames)),
        ("device.name", device.name, 0, len(device.names)),
        ("device.kind", device.kind, 0, DEVICE_PART + 1),
        ("device.op", device.op, -1, len(trace)),
        ("device.launch", device.launch, -1, len(trace)),
        ("device.extra", device.extra, -1, len(device.extra_table)),
        ("counters.name", counters.name, 0, len(counters.names)),
        ("tensor_ids.first", ids.first, -1, len(ids.tensor) + 1),
        ("tensor_ids.frame", ids.frame, -1, len(ids.owners)),
    ):
        if len(column) and not (least <= int(column.min()) and int(column.max()) < size):
            raise ValueError(f"{title} refers to what is not in the file")
    if (trace.end_ns < trace.start_ns).any():
        raise ValueError("an event ends before it begins")
    if ((trace.start_ns[1:] < trace.start_ns[:-1]) & (trace.thread[1:] == trace.thread[:-1])).any():
        raise ValueError("the events of a thread are not in the order of their starts")
    if len(frames) and (frames.start_ns[frames.parent] > frames.start_ns)[frames.parent >= 0].any():
        raise ValueError("a Python call begins before its caller")


class _Header(NamedTuple):
    version: int
    shown: dict[str, bool]
    made_from: dict[str, object]
    trace: dict[str, object]

    @staticmethod
    def of(value: JSONValue) -> _Header | None:
        """The header of a file; None: it is another program's."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            return None
        version, shown, made_from, trace = (value[name] for name in _Header._fields)
        if not (
            isinstance(version, int)
            and isinstance(shown, dict)
            and isinstance(made_from, dict)
            and isinstance(trace, dict)
        ):
            raise ValueError("the header has parts of other types")
        flags = {name: bool(flag) for name, flag in shown.items() if name in SHOWN}
        return _Header(version, flags, {**made_from}, {**trace})


def _place(member: zipfile.ZipInfo, mapped: mmap.mmap, path: str) -> tuple[int, int]:
    """Where the data of a member begins, and how many bytes it has."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise NotATraceError(f"{path}: a compressed archive; expected a trace that save() wrote")
    if 0 <= member.header_offset <= len(mapped) - 30:
        name_length, extra_length = struct.unpack_from("<HH", mapped, member.header_offset + 26)
        begin = member.header_offset + 30 + name_length + extra_length
        if begin + member.file_size <= len(mapped):
            return begin, member.file_size
    raise BrokenTraceError(f"{path}: damaged (its part {member.filename} is not inside the file)")


class _Reader:
    def __init__(self, path: str, mapped: mmap.mmap, members: dict[str, tuple[int, int]]) -> None:
        self._path, self._mapped, self._members = path, mapped, members

    def bytes_of(self, name: str) -> bytes:
        begin, size = self._members[name]
        return self._mapped[begin : begin + size]

    def value(self, described: dict[str, object]) -> object:
        """The object that `_Members.described` described."""
        if "column" in described:
            return self._column(str(described["column"]))
        if "table" in described:
            return self._table(str(described["table"]))
        if "value" in described:
            return unpacked(described["value"])
        fields = cast("dict[str, dict[str, object]]", described["fields"])
        kind = CLASSES[str(described["class"])]
        known = {each.name for each in dataclasses.fields(kind)}  # a later version may have more
        return kind(**{name: self.value(part) for name, part in fields.items() if name in known})

    def _column(self, name: str) -> np.ndarray:
        begin, size = self._members[name + ".npy"]
        head = io.BytesIO(self._mapped[begin : begin + min(size, 1024)])
        if np.lib.format.read_magic(head) != (1, 0):
            raise ValueError(f"{name} is no column")
        shape, _, dtype = np.lib.format.read_array_header_1_0(head)
        if dtype.kind not in "bif":
            raise ValueError(f"{name} holds {dtype}, expected numbers")
        count = int(np.prod(shape, dtype=object))
        if head.tell() + count * dtype.itemsize != size:
            raise ValueError(f"{name} has {size} bytes, which do not fit its shape {shape}")
        return np.frombuffer(self._mapped, dtype, count, begin + head.tell()).reshape(shape)

    def _table(self, name: str) -> Sequence[object]:
        begin, size = self._members[name + ".jsonl"]
        ends = self._column(name + ".ends")
        if len(ends) and (int(ends[-1]) != size or (np.diff(ends) < 0).any() or int(ends[0]) < 0):
            raise ValueError(f"the entries of {name} do not fit its size")
        texts = Texts(self._mapped, begin, ends, f"{self._path}: damaged (an entry of {name} cannot be read)")
        field = name.rpartition(".")[2]
        if field == "input_table":
            return tuple([_PackedInputs(texts, row) for row in range(len(texts))])
        if field == "extra_table":
            return Table(texts, cast("Callable[[JSONValue], object]", lambda entry: entry))
        if field == "stacks":
            return Table(texts, unpacked)
        return tuple([unpacked(texts[row]) for row in range(len(texts))])


class Texts:
    """JSON texts one after the other in a mapped file."""

    def __init__(self, mapped: mmap.mmap, begin: int, ends: IntArray, problem: str) -> None:
        self._mapped, self._begin, self._ends, self._problem = mapped, begin, ends, problem

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> JSONValue:
        start = int(self._ends[row - 1]) if row else 0
        return loads(self._mapped[self._begin + start : self._begin + int(self._ends[row])])

    def parsed(self, row: int, entry: Callable[[JSONValue], _Entry]) -> _Entry:
        """The object that a text describes; a BrokenTraceError if it describes none."""
        try:
            return entry(self[row])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BrokenTraceError(self._problem) from error


class Table(Sequence[_Entry]):
    """A table whose entries are parsed when they are looked at."""

    def __init__(self, texts: Texts, entry: Callable[[JSONValue], _Entry], rows: range | None = None) -> None:
        self._texts, self._entry = texts, entry
        self._rows = range(len(texts)) if rows is None else rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Table[_Entry]: ...
    def __getitem__(self, index: int | slice) -> _Entry | Table[_Entry]:
        if isinstance(index, slice):
            return Table(self._texts, self._entry, self._rows[index])
        return self._texts.parsed(self._rows[index], self._entry)


class _PackedInputs(Inputs):
    """Inputs that are parsed when they are looked at."""

    def __init__(self, texts: Texts, row: int) -> None:
        self._texts, self._row = texts, row

    @cached_property
    def _parsed(self) -> Inputs:
        return self._texts.parsed(self._row, unpacked_inputs)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self._parsed.arguments

    def __getattribute__(self, name: str) -> object:
        if name in _OF_PARSED:
            return getattr(self._parsed, name)
        return super().__getattribute__(name)


_OF_PARSED = frozenset(
    (
        "concrete",
        "types",
        "strides",
        "dims",
        "values",
        "shapes",
        "tensors",
        "tensor_slots",
        "keywords",
        "_text",
    )
)


# ---------------------------------------------------------------------------------------------------- values


def loads(text: bytes) -> JSONValue:
    """Parse JSON. Python's own decoder takes what orjson does not: half surrogate pairs and large integers."""
    try:
        value: JSONValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = json.loads(text)
    return value


def unpacked_inputs(entry: object) -> Inputs:
    """The inputs that `packed_inputs` packed."""
    if not isinstance(entry, dict):
        raise TypeError("inputs that are no object")
    if "json" in entry:
        return Inputs.from_json(orjson.dumps(entry["json"]))
    arguments = cast("tuple[Argument, ...]", unpacked(entry["arguments"]))
    slots = cast("tuple[int, ...]", unpacked(entry["slots"]))
    return Inputs(arguments, slots, cast("dict[str, object]", unpacked(entry["keywords"])))


def unpacked(value: object) -> object:
    """The value that `packed` packed."""
    if isinstance(value, list):
        return [unpacked(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "dict":
        return {unpacked(key): unpacked(each) for key, each in content}
    if tag == "float":
        return float(content)
    if tag == "complex":
        return complex(content)
    items = [unpacked(each) for each in content]
    if tag == "class":
        return CLASSES[str(items[0])](*items[1:])
    if tag == "tensor":
        return TensorInput(*items)  # type: ignore[arg-type]
    return {"tuple": tuple, "tensors": TensorList, "indices": IndexList}[tag](items)
