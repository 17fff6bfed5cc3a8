"""Expressions in, what they give out: shape, strides, dtype, grad_fn, values, or the error. Runs with torch and with this package.

A row file has lines `# setup` and, below each, expressions that are evaluated after it, each in a world of its own. A line
`statements; R expression` runs the statements first.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def rows(name: str) -> list[tuple[str, str]]:
    """The (setup, line) pairs of a row file."""
    setup, found = "", []
    for line in (HERE / f"{name}_rows.txt").read_text().splitlines():
        if line.startswith("#"):
            setup = line[1:].strip()
        elif line.strip():
            found.append((setup, line))
    return found


def described(torch: Any, value: Any) -> Any:
    """What is compared of a result."""
    if isinstance(value, torch.Tensor):
        flat = value.detach()
        flat = flat.to(torch.complex128) if flat.is_complex() else flat.double()
        shape = list(value.shape)
        return {
            "shape": shape,
            # where a dimension has one element or none, its stride has no meaning
            "stride": [s if n > 1 and value.numel() else 0 for n, s in zip(shape, value.stride())],
            "dtype": str(value.dtype),
            "grad_fn": None if value.grad_fn is None else type(value.grad_fn).__name__,
            "view": value._is_view(),
            "values": str(flat.reshape(-1).tolist()),
        }
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return [described(torch, v) for v in value]
    return str(value)


def run(torch: Any, setup: str, line: str) -> Any:
    """Evaluate one row."""
    space: dict[str, Any] = {"torch": torch, "np": np}
    *statements, last = line.split(";")
    expression = last.strip().removeprefix("R ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(setup, space)
        try:
            for statement in statements:
                exec(statement.strip(), space)
            return described(torch, eval(expression, space))
        except Exception as error:
            return {"error": type(error).__name__, "message": str(error)}
