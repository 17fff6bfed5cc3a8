"""Runs case functions: a torch-like package and a module of cases in, the lines each case shows out.

A case is a function `case(torch, show)`. What it shows, raises and warns becomes text in which the package's
own name is written `torch`, so a recording of torch and a run of this package can be compared line by line.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
import warnings
from collections.abc import Callable
from typing import Any


class Show:
    """Collects the lines of one case."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.lines: list[str] = []

    def __call__(self, *things: Any) -> None:
        self.lines.append(self._plain(" ".join(str(thing) for thing in things)))

    def raises(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Shows the error of a call, or what it returned."""
        try:
            result = call(*args, **kwargs)
        except Exception as error:
            self(f"{type(error).__name__}: {error}")
        else:
            self("returned", result)

    def warns(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Shows the warnings of a call and gives back its result."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(*args, **kwargs)
        for warning in caught:
            self(f"{warning.category.__name__}: {warning.message}")
        return result

    def _plain(self, text: str) -> str:
        text = text.replace(self.package, "torch") if self.package != "torch" else text
        return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\(Triggered internally at [^)]*\)", "", text))


def cases(module: types.ModuleType) -> dict[str, Callable[..., None]]:
    """The public functions a case module defines itself, by name."""
    found = inspect.getmembers(module, inspect.isfunction)
    return {name: f for name, f in found if f.__module__ == module.__name__ and not name.startswith("_")}


def run(case: Callable[..., None], package: str) -> list[str]:
    """The lines one case shows with a package."""
    torch = importlib.import_module(package)
    show = Show(package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            case(torch, show)
        except Exception as error:
            show(f"ended by {type(error).__name__}: {error}")
    return show.lines
