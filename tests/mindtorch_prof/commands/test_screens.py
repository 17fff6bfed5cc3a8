"""Screens: what commands print fits terminals of any width, and is what the files in `screens` hold."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from mindtorch_prof import cli
from mindtorch_prof.text_width import text_width

_PATH = Path(__file__).parent / "screens" / "write_screens.py"


def _screens() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_screens", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screens = _screens()
CASES = [(name, width) for name in screens.SCREENS for width in screens.WIDTHS]
HINT = "run tests/mindtorch_prof/commands/screens/write_screens.py and look at the difference"


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[None]:
    with screens.folder_of_traces():
        yield


def needs(name: str) -> None:
    if name == "query":
        pytest.importorskip("duckdb", reason="runs with the extra `sql`")


@pytest.mark.parametrize(("name", "width"), CASES)
def test_a_screen_is_as_it_was(name: str, width: int) -> None:
    needs(name)
    assert screens.screen(name, width) == screens.path_of(name, width).read_text(encoding="utf-8"), HINT


@pytest.mark.parametrize("width", [60, 72, 80, 93, 100, 140, 200])
@pytest.mark.parametrize("name", [name for name in screens.SCREENS if name not in screens.DATA])
def test_no_line_is_wider_than_the_screen(name: str, width: int) -> None:
    needs(name)
    lines = screens.screen(name, width).splitlines()
    too_wide = [line for line in lines if text_width(line) > width]
    # a path or name without a blank cannot be broken
    assert [line for line in too_wide if len(line.split()) > 1] == []


@pytest.mark.parametrize(("name", "width"), CASES)
def test_no_number_is_cut_and_no_word_is_stacked(name: str, width: int) -> None:
    needs(name)
    text = screens.screen(name, width)
    for line in text.splitlines():
        for word in re.findall(r"[\d.,+-]+…", line):  # the last number of a list that was cut is whole
            assert re.search(re.escape(word[:-1]) + r"(?!\d)", screens.screen(name, 600))
    assert not re.search(r"(^\s*\S\s*\n){4}", text, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["show_stats", "show_by_step", "tree", "diff", "ranks", "check", "diff_by_kernel"]
)
def test_what_is_left_out_is_said_and_wide_has_it(name: str) -> None:
    narrow, widest = screens.screen(name, 60), screens.screen(name, 400)
    (titles,) = re.findall(r"not shown: (.*?);", " ".join(narrow.split()))
    assert "--wide" in narrow
    assert "not shown" not in widest
    flat = " ".join(widest.split())
    assert titles
    for title in titles.split(", "):
        assert title in flat


def test_wide_shows_everything_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(screens.SCREENS, "wide", "diff h100.json.gz h100_later.json.gz --by kernel --wide")
    text = screens.screen("wide", 60)
    assert "not shown" not in text
    assert "at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<" in text


def test_every_command_has_a_screen() -> None:
    shown = {words.split()[0] for words in screens.SCREENS.values()}
    # run prints times of the machine; recover takes a folder that a program spilled, and prints one sentence
    assert set(cli._COMMANDS) - {"run", "recover"} <= shown
