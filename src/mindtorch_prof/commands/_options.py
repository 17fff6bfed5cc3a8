"""Values of options: text in, a value or an error of one sentence out. For several sub-commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence


def names(allowed: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """A type of options: some of the allowed names, separated by commas."""

    def read(text: str) -> tuple[str, ...]:
        parts = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        wrong = [name for name in parts if name not in allowed]
        if wrong or not parts:
            raise argparse.ArgumentTypeError(f"{(wrong or [text])[0]!r} is not one of {', '.join(allowed)}")
        return parts

    return read


def share(text: str) -> float:
    """A share: 5% or 0.05."""
    try:
        value = float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; expected something like 5% or 0.05")
    return value


def number(text: str) -> float:
    """A number, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return value
