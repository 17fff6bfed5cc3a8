"""Packing: named arrays and JSON values in, bytes out; and back. The same values always give the same bytes.

A length, a JSON header, then the arrays one after the other, all of it compressed. Integers are written in the smallest type that holds
them, as times and counts of a file are mostly small.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
import orjson

from ..arrays import IntArray
from ..json_types import JSONObject, JSONValue

_LEVEL = 6  # of zlib


class PackingError(ValueError):
    """Bytes that `packed` did not write, or not all of them."""


def packed(values: Mapping[str, JSONValue], arrays: Mapping[str, IntArray]) -> bytes:
    """The bytes of values and of arrays of integers."""
    smallest = {name: _smallest(array) for name, array in sorted(arrays.items())}
    header = {
        "values": dict(values),
        "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in smallest.items()],
    }
    text = orjson.dumps(header, option=orjson.OPT_SORT_KEYS)
    body = b"".join([len(text).to_bytes(8, "little"), text, *(a.tobytes() for a in smallest.values())])
    return zlib.compress(body, _LEVEL)


def unpacked(data: bytes) -> tuple[JSONObject, dict[str, IntArray]]:
    """The values and the arrays (int64) of `packed`."""
    try:
        body = zlib.decompress(data)
        end = 8 + int.from_bytes(body[:8], "little")
        header = orjson.loads(body[8:end])
        arrays: dict[str, IntArray] = {}
        for name, dtype, shape in header["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(body, np.dtype(dtype), count, end)
            arrays[name] = array.reshape(shape).astype(np.int64)
            end += array.nbytes
        values: JSONObject = header["values"]
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise PackingError(f"not a packed sketch: {error}") from error
    return values, arrays


def _smallest(array: IntArray) -> IntArray:
    """The same integers, little-endian, in the smallest signed type."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for name in ("<i1", "<i2", "<i4"):
        limits = np.iinfo(name)
        if limits.min <= low and high <= limits.max:
            return np.ascontiguousarray(array, np.dtype(name))
    return np.ascontiguousarray(array, np.dtype("<i8"))
