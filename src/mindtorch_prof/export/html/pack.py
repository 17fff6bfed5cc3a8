"""Blocks of data for a page: named columns and JSON values in, text that is safe inside a <script> element out.

A block is deflated and written in base64: the length of a JSON header (uint32), the header, then the columns, each aligned to 8 bytes. For
each column the header has t, its type; n, its length; o, its offset after the header; d: 1 if it holds differences; and s: 1 if its bytes
are transposed (the first bytes of all numbers, then the second bytes ...), which deflates far better.
"""

from __future__ import annotations

import binascii
import json
import zlib
from collections.abc import Mapping

import numpy as np
import orjson

from ...arrays import Array

_LARGE = 1 << 20  # bytes; larger blocks are deflated faster, to a size about a tenth larger


class Block:
    """Named columns and JSON values."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self.values: Mapping[str, object] = values or {}
        self.columns: dict[str, tuple[Array, bool]] = {}

    def add(self, name: str, column: Array, *, rising: bool = False) -> None:
        """Add a column of integers or floats; with `rising`, it is stored as differences and becomes floats in the page."""
        self.columns[name] = (np.asarray(column), rising)

    def text(self) -> bytes:
        """The whole block, in base64."""
        described, parts, offset = {}, [], 0
        for name, (column, rising) in self.columns.items():
            described[name], data = _packed(column, rising, offset)
            padding = -len(data) % 8
            parts += [data, b"\0" * padding]
            offset += len(data) + padding
        header = dumps({"columns": described, "values": self.values})
        header += b" " * (-(4 + len(header)) % 8)
        raw = b"".join([len(header).to_bytes(4, "little"), header, *parts])
        return binascii.b2a_base64(zlib.compress(raw, 6 if len(raw) < _LARGE else 4), newline=False)


def dumps(value: object) -> bytes:
    """JSON of plain values and NumPy numbers; lone surrogates in strings are escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be put into a page")


def _packed(column: Array, rising: bool, offset: int) -> tuple[dict[str, str | int], bytes]:
    if rising:
        column = np.diff(column, prepend=column.dtype.type(0))
    column = column.astype(_type_for(column))
    kind = f"{column.dtype.kind}{column.dtype.itemsize}"
    if column.dtype.itemsize > 1:
        data = column.view(np.uint8).reshape(len(column), column.dtype.itemsize).T.tobytes()
    else:
        data = column.tobytes()
    described: dict[str, str | int] = {"t": kind, "n": len(column), "o": offset}
    if rising:
        described["d"] = 1
    if column.dtype.itemsize > 1:
        described["s"] = 1
    return described, data


def _type_for(column: Array) -> np.dtype[np.generic]:
    """The smallest type that the page can read: integers of more than 32 bits become floats, which are exact up to 2**53."""
    if column.dtype.kind == "f":
        return np.dtype("<f8")
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if low >= 0:
        for name in ("u1", "<u2", "<u4"):
            if high <= np.iinfo(name).max:
                return np.dtype(name)
    if low >= -(2**31) and high < 2**31:
        return np.dtype("<i4")
    return np.dtype("<f8")
