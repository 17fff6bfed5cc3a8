"""What a core makes of a trace file: its bytes in, all that `load` gives or raises out, as plain values."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from mindtorch_prof import core, load
from mindtorch_prof.inputs import Inputs
from mindtorch_prof.load import byte_source, open_trace
from mindtorch_prof.load.errors import TraceError

CORES = ("python", "c")
_SCALARS = frozenset({str, bytes, int, float, bool, type(None)})


class Unexpected(NamedTuple):
    """An error other than those that say what is wrong with a file."""

    name: str
    text: str


@contextmanager
def running(name: str, chunk: int | None = None) -> Iterator[None]:
    """Choose the core, and how many bytes are read at a time."""
    before, os.environ[core.VARIABLE] = os.environ.get(core.VARIABLE), name
    try:
        with patch.object(byte_source, "CHUNK", chunk or byte_source.CHUNK):
            yield
    finally:
        if before is None:
            del os.environ[core.VARIABLE]
        else:
            os.environ[core.VARIABLE] = before


def outcome(name: str, data: bytes, chunk: int | None = None, **options: Any) -> Any:
    """What a core makes of bytes: all that a Loaded holds, or the type and text of the error."""
    with running(name, chunk):
        try:
            loaded = load(io.BytesIO(data), **options)
        except TraceError as error:
            return type(error).__name__, str(error)
        except (ValueError, TypeError, OverflowError, ArithmeticError, LookupError, RecursionError) as error:
            return Unexpected(type(error).__name__, str(error))
    return {**plain(loaded.trace), "Loaded": (loaded._python_functions, loaded._forward_stacks)}


def difference(data: bytes, chunk: int | None = None, **options: Any) -> str | None:
    """Where the two cores differ in what they make of bytes, or what `load` must not raise; None: nowhere."""
    expected, actual = (outcome(name, data, chunk, **options) for name in CORES)
    is_unexpected = isinstance(expected, Unexpected) or isinstance(actual, Unexpected)
    if expected == actual and not is_unexpected:
        return None
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        return f"python: {str(expected)[:300]}\nc: {str(actual)[:300]}"
    return "\n".join(
        f"{key}:\n  python: {str(value)[:1500]}\n  c:      {str(actual.get(key))[:1500]}"
        for key, value in expected.items()
        if value != actual.get(key)
    )


def plain(value: Any) -> Any:
    """A value whose parts are compared with their types: columns with theirs, tables entry by entry."""
    if value.__class__ in _SCALARS:
        return repr(value)
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if isinstance(value, Inputs):
        return value.concrete, value.types, value.strides, value.dims
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return [(repr(key), plain(item)) for key, item in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(item) for item in value]
    return repr(value)


def was_taken(data: bytes) -> int:
    """How many events the compiled reader added by itself or handed on by category, not slice by slice."""
    taken = 0
    make = open_trace.compiled_reader

    def counting(collector: Any) -> Any:
        reader = make(collector)
        assert reader is not None
        take = reader.take

        def count(text: bytes, end: int) -> int | None:
            nonlocal taken
            number = take(text, end)
            taken += number or 0
            return number

        reader.take = count
        return reader

    with running("c"), patch.object(open_trace, "compiled_reader", counting):
        load(io.BytesIO(data))
    return taken
