"""Values of options: text in, a value or an error of one sentence out. For several sub-commands."""

from __future__ import annotations

import argparse
import re
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


def path_to_write(text: str) -> str:
    """A file to write; - is standard output."""
    return "/dev/stdout" if text == "-" else text


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def memory_size(text: str) -> int:
    """A number of bytes: 500MB, 2G, 1000000."""
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ")) if match else 0
    if not 0 < size < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; expected something like 500MB or 2GB")
    return size


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
