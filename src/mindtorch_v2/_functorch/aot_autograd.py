"""The convention by which compiled functions of torch are called: all arguments in one list, which is emptied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["make_boxed_func"]


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list], Any]:
    """A function of one list of arguments, marked as such."""

    def boxed(args: list) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
