"""Two descriptions of a row's result in, the first difference out: numbers with the tolerance of their dtype, all else exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# relative to the numbers, and absolute; half and bfloat16: one step, where two libraries round a last bit differently
TOLERANCE = {
    "torch.float64": (1e-9, 1e-11),
    "torch.complex128": (1e-9, 1e-11),
    "torch.float32": (2e-5, 2e-6),
    "torch.complex64": (2e-5, 4e-6),
    "torch.float16": (1.01 * 2**-10, 1e-7),
    "torch.bfloat16": (1.01 * 2**-7, 1e-7),
}

# relative to the largest number: sums go in another order, low floats are rounded once
CLOSE = {
    "torch.float64": (5e-13, 5e-13),
    "torch.float32": (1e-6, 1e-6),
    "torch.complex64": (1e-6, 1e-6),
    "torch.float16": (1e-3, 1e-3),
    "torch.bfloat16": (8e-3, 8e-3),
}


def numbers(text: str) -> np.ndarray:
    """The list that `str` wrote."""
    return np.array(
        eval(text, {"nan": np.nan, "inf": np.inf, "nanj": complex(0, np.nan), "infj": complex(0, np.inf)})
    )


# Errors that list torch's overloads, or come from Python itself: their type is compared, not their text.
LOOSE = ("received an invalid combination of arguments", "positional argument")


def loosened(text: Any) -> Any:
    """An error's type alone where its text is not compared."""
    if isinstance(text, str) and "Error: " in text and any(part in text for part in LOOSE):
        return text.partition(":")[0]
    return text


def difference(
    fact: Any,
    ours: Any,
    where: str = "result",
    scaled: bool = False,
    tolerance: Mapping[str, tuple[float, float]] = TOLERANCE,
) -> str | None:
    """Where and how the second differs from the first; None if it does not.

    scaled: the tolerance is relative to the largest number, for results that are sums of products.
    tolerance: relative and absolute, by dtype.
    """
    if isinstance(fact, dict) and isinstance(ours, dict):
        if fact.keys() != ours.keys():
            return f"{where}: {fact} != {ours}"
        for key in fact:
            if key == "message" and any(part in fact[key] for part in LOOSE):
                continue
            if key != "values" and fact[key] != ours[key]:
                return f"{where}.{key}: torch {fact[key]!r}, here {ours[key]!r} ({ours.get('values', '')})"
        if "values" in fact and fact["values"] != ours["values"]:
            relative, absolute = tolerance.get(fact["dtype"], (0, 0))
            if scaled:
                sizes = np.abs(numbers(fact["values"]))
                absolute += relative * max(sizes[np.isfinite(sizes)], default=0)
            if not np.allclose(
                numbers(ours["values"]), numbers(fact["values"]), relative, absolute, equal_nan=True
            ):
                return f"{where}.values {fact['dtype']}: torch {fact['values']}, here {ours['values']}"
        return None
    if isinstance(fact, list) and isinstance(ours, list):
        if len(fact) != len(ours):
            return f"{where}: {len(fact)} parts in torch, here {len(ours)}"
        for number, (a, b) in enumerate(zip(fact, ours)):
            found = difference(a, b, f"{where}[{number}]", scaled, tolerance)
            if found:
                return found
        return None
    if fact == ours or loosened(fact) == str(ours).partition(":")[0]:
        return None
    try:
        if np.isclose(float(fact), float(ours), 1e-6, equal_nan=True):
            return None
    except (TypeError, ValueError):
        pass
    return f"{where}: torch {fact!r}, here {ours!r}"
