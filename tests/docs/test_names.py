"""Documentation: the modules, functions and files that it names exist."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
DOTTED = re.compile(r"\bmindtorch_(?:prof|v2)(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"\bfrom (mindtorch_(?:prof|v2)(?:\.\w+)*) import ([\w, ]+)")
FILE = re.compile(r"\b(?:src/|tests/)?mindtorch_(?:prof|v2)/(?:\w+/)*(?:\w+\.\w+)?(?![\w<])")


def names(page: Path) -> set[str]:
    """The dotted names in a page, also of what its code imports."""
    text = page.read_text()
    imported = {
        f"{module}.{name.split()[0]}" for module, names in IMPORT.findall(text) for name in names.split(",")
    }
    return {*DOTTED.findall(text), *imported}


def files(page: Path) -> set[str]:
    """The paths in a page that lead into a package or its tests."""
    return set(FILE.findall(page.read_text()))


def resolve(name: str) -> object:
    """What a dotted name stands for: a module, or an attribute of one."""
    parts = name.split(".")
    value: object = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            # a package has a module and a function of one name: `mindtorch_prof.load.load`
            module = sys.modules.get(".".join(parts[: place - 1]))
            value = getattr(module, part, None) or importlib.import_module(".".join(parts[:place]))
    return value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_names_in_a_page_can_be_imported(page: Path) -> None:
    missing = []
    for name in sorted(names(page)):
        try:
            resolve(name)
        except ImportError as error:
            if "pip install" not in str(error):  # a module for a framework that is not installed here
                missing.append(f"{name}: {error}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_source_files_that_a_page_names_exist(page: Path) -> None:
    paths = {path if path.startswith(("src/", "tests/")) else f"src/{path}" for path in files(page)}
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_pages_name_modules_and_files() -> None:
    # otherwise the tests above check nothing
    assert "mindtorch_prof.analysis.query.connect" in names(ROOT / "docs" / "commands" / "query.md")
    assert "mindtorch_prof/export/chrome.py" in files(ROOT / "CONTRIBUTING.md")
