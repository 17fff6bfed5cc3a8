"""The native file: a Trace in, a file with its columns as they are out; `mindtorch_prof.load.native` reads it.

A zip archive without compression: `header.json`, one `.npy` member per column, aligned so that it can be mapped into memory, and one
`.jsonl` member with its offsets per table of texts, each of which is parsed when it is looked at. Nothing in the file is code: a reader
builds the classes listed in `CLASSES` and plain values.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import IO

import numpy as np
import orjson

from .files import open_atomically
from .inputs import IndexList, Inputs, TensorInput, TensorList
from .settings import Settings
from .trace import Counters, Device, Frames, Health, Memory, ParameterOwner, TensorIds, Trace

FORMAT, VERSION = "mindtorch_prof trace", 1
HISTORY = ("1: the first version",)  # what each version changed
SUFFIX = ".mtrace"
HEADER = "header.json"
CLASSES: dict[str, type] = {
    each.__name__: each
    for each in (Trace, Memory, Frames, Device, Counters, TensorIds, ParameterOwner, Health, Settings)
}
# the fields with an entry per distinct name, input, stack ... : too many for the header
TABLES = frozenset({"names", "overloads", "input_table", "stacks", "extra_table", "of_modules", "owners"})
_ALIGNMENT = 64
_PADDING_ID = 0xD935  # of the extra field that other zip writers use for alignment


def write_native(
    trace: Trace,
    path: str | os.PathLike[str],
    shown: Mapping[str, bool] = MappingProxyType({}),
    made_from: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Write a trace. shown: how its events are listed; made_from: what identifies the file that it was read from."""
    with open_atomically(path) as out:
        write_native_to(out, trace, shown, made_from)


def write_native_to(
    out: IO[bytes], trace: Trace, shown: Mapping[str, bool], made_from: Mapping[str, object]
) -> None:
    """Write a trace to an open file."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        header = {
            "format": FORMAT,
            "version": VERSION,
            "history": HISTORY,
            "shown": dict(shown),
            "made_from": dict(made_from),
            "trace": _Members(archive).described(trace, ""),
        }
        _add(archive, HEADER, dumps(header))


class _Members:
    """Writes columns and tables into an archive, and describes the objects that hold them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def described(self, value: object, name: str) -> object:
        """A dataclass with its fields; a column or a table by the name of its member; other values packed."""
        if isinstance(value, np.ndarray):
            self._add_column(name, value)
            return {"column": name}
        if type(value).__name__ in CLASSES and dataclasses.is_dataclass(value):
            fields = {
                each.name: self._field(each.name, getattr(value, each.name), f"{name}{each.name}")
                for each in dataclasses.fields(value)
            }
            return {"class": type(value).__name__, "fields": fields}
        return {"value": packed(value)}

    def _field(self, field: str, value: object, name: str) -> object:
        if field not in TABLES:
            return self.described(value, name if isinstance(value, np.ndarray) else name + ".")
        assert isinstance(value, Iterable)
        self._add_table(name, map(_TABLE_ENTRIES.get(field, packed), value))
        return {"table": name}

    def _add_column(self, name: str, array: np.ndarray) -> None:
        member = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            member,
            {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape},
        )
        _add(self._archive, name + ".npy", member.getvalue(), np.ascontiguousarray(array))

    def _add_table(self, name: str, entries: Iterable[object]) -> None:
        texts = [dumps(entry) for entry in entries]
        self._add_column(name + ".ends", np.fromiter(accumulate(map(len, texts)), np.int64, len(texts)))
        _add(self._archive, name + ".jsonl", b"".join(texts))


def _add(archive: zipfile.ZipFile, name: str, content: bytes, array: np.ndarray | None = None) -> None:
    """Add a member whose data, or whose array after its header, begins at a multiple of the alignment."""
    member = zipfile.ZipInfo(name)  # dated 1980: equal traces give equal files
    size = len(content) + (0 if array is None else array.nbytes)
    file: IO[bytes] = archive.fp  # type: ignore[assignment]
    begins = file.tell() + 30 + len(name.encode()) + 4 + (len(content) if array is not None else 0)
    padding = -begins % _ALIGNMENT
    member.extra = struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
    member.file_size = size
    with archive.open(member, "w", force_zip64=size >= 1 << 31) as out:
        out.write(content)
        if array is not None and array.nbytes:
            out.write(array.data.cast("B"))


# ---------------------------------------------------------------------------------------------------- values


def dumps(value: object) -> bytes:
    """JSON. Python's own encoder takes what orjson does not: large integers and half surrogate pairs."""
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        return json.dumps(value, separators=(",", ":")).encode()


_AS_THEY_ARE = (type(None), bool, int, str)


def packed(value: object) -> object:
    """A plain value as JSON, with a tag around what JSON has no word for."""
    if type(value) in _AS_THEY_ARE or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is list:
        return [packed(each) for each in value]
    if isinstance(value, Mapping):
        return {"dict": [[packed(key), packed(each)] for key, each in value.items()]}
    if isinstance(value, float):
        return {"float": repr(float(value))}
    if isinstance(value, complex):
        return {"complex": repr(value)}
    if isinstance(value, TensorInput):
        return {"tensor": [packed(each) for each in value]}
    if isinstance(value, tuple):
        tag = "indices" if type(value) is IndexList else "tensors" if type(value) is TensorList else "tuple"
        return {tag: [packed(each) for each in value]}
    if isinstance(value, np.generic):
        return packed(value.item())
    if dataclasses.is_dataclass(value) and type(value).__name__ in CLASSES:
        parts = [packed(getattr(value, each.name)) for each in dataclasses.fields(value)]
        return {"class": [type(value).__name__, *parts]}
    raise TypeError(f"a trace that holds a {type(value).__name__} cannot be saved: expected plain data")


def packed_inputs(inputs: Inputs) -> object:
    """The inputs of an op as JSON."""
    text = getattr(inputs, "_text", None)
    if isinstance(text, bytes):  # as the file words them
        return {"json": orjson.loads(text)}
    return {
        "arguments": packed(inputs.arguments),
        "slots": packed(inputs.tensor_slots),
        "keywords": packed(inputs.keywords),
    }


def _as_json(value: object) -> object:
    return value if isinstance(value, dict) else dict(value) if isinstance(value, Mapping) else packed(value)


_TABLE_ENTRIES: dict[str, Callable[..., object]] = {"input_table": packed_inputs, "extra_table": _as_json}
