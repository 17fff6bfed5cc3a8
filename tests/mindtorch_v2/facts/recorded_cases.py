"""Case functions and what torch showed for them: names of case modules in, pairs for pytest and comparisons out."""

from __future__ import annotations

import functools
import importlib

import fact_files
from case_runner import cases, run
from python_texts import agree, as_recorded


@functools.cache
def facts(module: str) -> dict[str, list[str]]:
    """What torch showed, by case."""
    return fact_files.read(f"{module}.json")


def recorded(*modules: str) -> list[tuple[str, str]]:
    """(module, case) of each case that was recorded."""
    return [(module, case) for module in modules for case in facts(module)]


def show(module: str, case: str, package: str = "mindtorch_v2") -> list[str]:
    """The lines that one case shows now, in the words of the Python that the facts were recorded with."""
    return [as_recorded(line) for line in run(cases(importlib.import_module(module))[case], package)]


def differing(module: str, package: str) -> list[str]:
    """The cases that show something else with `package` than what was recorded."""
    return [case for case, lines in facts(module).items() if show(module, case, package) != lines]


def program(module: str, package: str = "mindtorch_v2", *only: str) -> str:
    """A program that prints, as JSON, the lines of `only` these cases, or of all: for cases that change their process for good."""
    return f"""
        import json, sys
        from recorded_cases import facts, show
        lines = {{case: show({module!r}, case, {package!r}) for case in {list(only)} or facts({module!r})}}
        print(json.dumps(lines), file=sys.__stdout__)
    """


def check(module: str, case: str) -> None:
    """Fail where a case shows something else than torch showed."""
    shown, recorded = show(module, case), facts(module)[case]
    wrong = [pair for pair in zip(shown, recorded) if not agree(*pair)]
    assert wrong == []
    assert len(shown) == len(recorded)
