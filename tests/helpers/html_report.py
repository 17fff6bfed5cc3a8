"""The HTML report for tests: a page in; its blocks of columns and values, as pack.py lays them out, out."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

# names that would run, or break the page, if they were not escaped
HOSTILE_NAMES = [
    "</script><script>document.title='bad'</script>",
    "<img src=x onerror=alert(1)>",
    "\"'`${alert(1)}--><!--",
    "\x1b[31mred\x1b[0m\x00",
    "\u202eright to left\u2066",
    "half a pair \ud800",
    "n" * 10_000,
]

_BLOCK = re.compile(
    rb'<script type="application/octet-stream" id="([a-z]+-\d(?:-recorded)?)">([A-Za-z0-9+/=]*)</script>'
)


def blocks(path: Path) -> dict[str, tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """By the name of each block: its values and its columns."""
    return {name.decode(): unpacked(data) for name, data in _BLOCK.findall(Path(path).read_bytes())}


def unpacked(text: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    raw = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + length])
    return header["values"], {
        name: _column(raw[4 + length :], **how) for name, how in header["columns"].items()
    }


def _column(raw: bytes, t: str, n: int, o: int, d: int = 0, s: int = 0) -> np.ndarray:
    dtype = np.dtype(f"<{t}")
    data = np.frombuffer(raw, np.uint8, n * dtype.itemsize, o)
    if s:
        data = np.ascontiguousarray(data.reshape(dtype.itemsize, n).T)
    column = data.reshape(-1).view(dtype)
    return np.cumsum(column, dtype=np.float64) if d else column
