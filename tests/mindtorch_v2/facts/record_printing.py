"""Record how torch prints random tensors: `python record_printing.py`, with torch, writes printing.json.gz.

The tensors are made of integers and powers of two, exact on every machine, so the file holds only texts.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "printing.json.gz"
COUNT = 900
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SPECIAL = (0.0, -0.0, float("nan"), float("inf"), -float("inf"))
EDGES = (1.0, 1000.0, 1001.0, 1e8, 1e8 + 1, 99999999.0, 1e-4, 0.0001001, 1e-5, 0.5, 0.1, 100.0, -2.5)


def _shape(r: random.Random) -> tuple[int, ...]:
    kind = r.random()
    if kind < 0.1:
        return ()
    if kind < 0.16:
        return tuple(r.choice((0, 1, 2)) for _ in range(r.randint(1, 3)))
    if kind < 0.6:
        return (r.choice((1, 2, 3, 5, 10, 20)),)
    if kind < 0.64:
        return (r.choice((1000, 1001)),)
    if kind < 0.85:
        return (r.choice((1, 2, 3)), r.choice((1, 2, 7)))
    if kind < 0.88:
        return (r.choice((7, 50)), r.choice((5, 300)))
    return tuple(r.choice((1, 2, 3)) for _ in range(r.randint(3, 4)))


def _floats(r: random.Random, n: int) -> np.ndarray:
    kind = r.randint(0, 5)
    if kind == 0:
        values = [r.randint(-(1 << 20), 1 << 20) * 2.0**-18 for _ in range(n)]
    elif kind == 1:
        power = r.randint(-60, 40)
        values = [r.randint(-(1 << 20), 1 << 20) * 2.0**power for _ in range(n)]
    elif kind == 2:
        values = [r.randint(-1000, 1000) * 2.0 ** r.randint(-30, 30) for _ in range(n)]
    elif kind == 3:
        top = r.choice((2, 10, 2000, 10**9))
        values = [float(r.randint(-top, top)) for _ in range(n)]
    elif kind == 4:
        values = [r.choice(EDGES) for _ in range(n)]
    else:
        values = [r.choice((*SPECIAL, 1.0, 2.5)) for _ in range(n)]
    if r.random() < 0.3:
        values = [r.choice(SPECIAL) if r.random() < 0.2 else v for v in values]
    return np.array(values, np.float64)


def _options(r: random.Random) -> dict[str, Any]:
    if r.random() < 0.6:
        return {}
    return {
        "precision": r.choice((None, 0, 1, 2, 6, 10)),
        "threshold": r.choice((None, 0, 5, 50)),
        "edgeitems": r.choice((None, 0, 1, 2, 4)),
        "linewidth": r.choice((None, 10, 20, 37, 60, 79, 81, 120)),
        "profile": r.choice((None, None, "short", "default")),
        "sci_mode": r.choice((None, None, True, False)),
    }


def tensors(torch: Any) -> Iterator[tuple[Any, dict[str, Any], str]]:
    """The tensors, the print options and the default dtype of each case, made with `torch`."""
    r = random.Random(2013)
    for _ in range(COUNT):
        shape, options, kind = _shape(r), _options(r), r.random()
        n = int(np.prod(shape))
        if kind < 0.6:
            array: np.ndarray = _floats(r, n)
            dtype = r.choice(FLOATS)
        elif kind < 0.75:
            array = np.empty(n, np.complex128)
            array.real, array.imag = _floats(r, n), _floats(r, n)
            dtype = r.choice(("complex64", "complex128"))
        elif kind < 0.82:
            array = np.array([r.random() < 0.5 for _ in range(n)], np.bool_)
            dtype = "bool"
        else:
            dtype = r.choice(INTEGERS)
            limits = np.iinfo(dtype)
            top = min(r.choice((2, 10, 300, 10**6, 1 << 62)), int(limits.max))
            low = max(-top, int(limits.min)) if r.random() < 0.5 else 0
            array = np.array([r.randint(low, top) for _ in range(n)], np.int64)
        with np.errstate(all="ignore"):
            tensor = torch.from_numpy(array.reshape(shape)).to(getattr(torch, dtype))
        default = "float64" if r.random() < 0.1 else "float32"
        yield tensor, options, default


def texts(torch: Any) -> list[str]:
    """What `torch` prints for each case."""
    shown = []
    for tensor, options, default in tensors(torch):
        torch.set_default_dtype(getattr(torch, default))
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        shown.append(repr(tensor))
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(profile="default")
    return shown


def main() -> None:
    """Write the texts."""
    import torch

    with FILE.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write(json.dumps(texts(torch)).encode())
    print(f"{COUNT} tensors, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
