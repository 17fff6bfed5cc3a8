"""Text tables: names shrink last, numbers are never cut, and what does not fit is named."""

from __future__ import annotations

import io
import sys

import pytest

from mindtorch_prof.text_tables import TextColumn, layout, screen_width, show_everything, wrapped
from mindtorch_prof.text_width import text_width

NAMES = ["aten::convolution_backward", "aten::add_", "DistributedDataParallel.forward", "内核名称"]
TIMES = ["12.345ms", "1.234us", "123.456ms", "0.000us"]


def columns() -> list[TextColumn]:
    return [
        TextColumn("Name", NAMES, "name"),
        TextColumn("Input Shapes", ["[[32, 3, 224, 224], [64, 3, 7, 7]]"] * 4),
        *(TextColumn(f"Title of {i}", TIMES, "number") for i in range(6)),
        TextColumn("Noise", TIMES, "number", importance=-2),
        TextColumn("p", ["0.01"] * 4, "number", importance=-1),
    ]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 140, 200])
def test_a_table_fits_and_shows_all_digits(width: int) -> None:
    table = layout(columns(), width)
    assert max(map(text_width, [*table.head, *table.rows])) <= width
    for line, time in zip(table.rows, TIMES):
        assert line.split()[-1] in (time, "0.01")
    assert len(table.rows) == 4


@pytest.mark.parametrize("width", [60, 80, 100])
def test_names_are_whole_while_columns_are_left_out(width: int) -> None:
    wide = layout(columns(), 100)
    assert all(line.startswith(name) for line, name in zip(wide.rows, NAMES))
    table = layout(columns(), width)
    assert table.left_out
    assert table.rows[1].startswith("aten::add_ ")


def test_the_least_important_columns_are_left_out_first_then_the_rightmost() -> None:
    left_out = [layout(columns(), width).left_out for width in range(140, 50, -1)]
    order: list[str] = []
    for titles in left_out:
        order += [title for title in titles if title not in order]
    assert order[:3] == ["Noise", "p", "Title of 5"]


def test_titles_are_broken_between_words() -> None:
    table = layout(
        [TextColumn("Name", ["x" * 40], "name"), TextColumn("Slowest in steps", ["1"], "number")], 50
    )
    assert [line.split() for line in table.head[:-1]] == [["Slowest"], ["in"], ["Name", "steps"]]


def test_without_a_width_everything_is_shown() -> None:
    name = "void at::native::elementwise_kernel<4, at::native::FillFunctor<int> >(int)"
    table = layout([TextColumn("Name", [name], "name"), TextColumn("n", ["1"], "number")], None)
    assert table.rows == [f"{name}  1"]
    assert table.left_out == []


def test_trees_keep_their_indentation() -> None:
    names = ["root", "  child " + "a" * 60, "    grandchild"]
    table = layout([TextColumn("Event", names, "name"), TextColumn("n", ["1", "2", "3"], "number")], 40)
    assert [len(row) - len(row.lstrip()) for row in table.rows] == [0, 2, 4]


def test_sentences_are_broken_between_words_and_indented() -> None:
    text = "note: " + "word " * 30
    lines = wrapped(text, 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("  word") for line in lines[1:])
    assert wrapped(text, None) == text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "97")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert screen_width() is None
    monkeypatch.setattr(sys, "stdout", _Terminal())
    assert screen_width() == 97
    with show_everything():
        assert screen_width() is None
    assert screen_width() == 97
