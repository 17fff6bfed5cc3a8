"""Text tables: columns of texts in, lines out that fit a screen; without a width, lines that hold everything.

On a screen names are the last to shrink: titles are wrapped first, then texts are cut, then columns are left out, the least important
first, and only then names are shortened further. Numbers are never cut. The caller says which columns were left out. Does not use traces.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from .kernel_names import short_names
from .text_width import cut_list, text_width

GAP = 2  # blanks between columns
_LEAST_NAME = 24  # characters that a name keeps as long as another column can be left out
_LEAST_TEXT = 16  # the same of other texts
_LEAST = 8  # of names and texts if no column can be left out

_everything: ContextVar[bool] = ContextVar("_everything", default=False)


@dataclass(frozen=True)
class TextColumn:
    """One column: its title and cells, and what may happen to it on a narrow screen."""

    title: str
    cells: Sequence[str]
    kind: str = "text"  # "number": right-aligned, never cut; "name": the last to shrink; "text": cut
    importance: float = 0.0  # columns with the least are left out first; of equal ones the rightmost

    @property
    def right(self) -> bool:
        return self.kind == "number"


@dataclass(frozen=True)
class Layout:
    """The lines of a table, and the titles of the columns that did not fit."""

    head: list[str]
    rows: list[str]
    left_out: list[str]
    shortened: bool  # whether names or texts are not shown in full


# ---------------------------------------------------------------------------------------------------- the screen


def screen_width() -> int | None:
    """The width to fit text into: that of the terminal; None if standard output is none, or within `show_everything`."""
    if _everything.get() or not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, 20)


@contextmanager
def show_everything(everything: bool = True) -> Iterator[None]:
    """Print tables and texts at full width in this context, as into a pipe (`--wide`)."""
    token = _everything.set(everything)
    try:
        yield
    finally:
        _everything.reset(token)


def emphasized(line: str) -> str:
    """A line in bold, where the terminal can show that and the user has not declined (NO_COLOR)."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return line
    return f"\x1b[1m{line}\x1b[0m"


def wrapped(text: str, width: int | None, hanging: int = 2) -> str:
    """Text whose lines are broken between words where they are wider than the screen; further lines are indented."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrapped_line(line, width, hanging))


def _wrapped_line(line: str, width: int, hanging: int) -> list[str]:
    if text_width(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + hanging)
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
        tabsize=1,
    ) or [line]


# ---------------------------------------------------------------------------------------------------- tables


def layout(columns: Sequence[TextColumn], width: int | None) -> Layout:
    """The lines of a table. width: of the screen; None: nothing is cut or left out."""
    if width is None:
        widths = [_natural(column, column.cells) for column in columns]
        return _lines(columns, [list(column.cells) for column in columns], widths, [], False)
    short = [
        _short_names(column.cells, None) if column.kind == "name" else list(column.cells)
        for column in columns
    ]
    kept = _kept(columns, short, width)
    shown = [columns[i] for i in kept]
    widths = _widths(shown, [short[i] for i in kept], width)
    cells = [
        list(column.cells)
        if column.kind == "number"
        else _short_names(column.cells, w)
        if column.kind == "name"
        else [cut_list(text, w) for text in column.cells]
        for column, w in zip(shown, widths)
    ]
    left_out = [column.title for i, column in enumerate(columns) if i not in kept]
    shortened = any(list(column.cells) != texts for column, texts in zip(shown, cells))
    return _lines(shown, cells, widths, left_out, shortened)


def _natural(column: TextColumn, cells: Sequence[str]) -> int:
    return max([text_width(column.title), *map(text_width, cells)])


def _least(column: TextColumn, cells: Sequence[str]) -> int:
    """The width below which a column would rather be left out."""
    longest_word = max(map(text_width, column.title.split()), default=0)
    content = max(map(text_width, cells), default=0)
    if column.kind == "text":
        content = min(content, _LEAST_TEXT)
    return max(longest_word, content)


def _wanted_name(natural: int, width: int) -> int:
    return min(natural, max(_LEAST_NAME, width * 2 // 5))


def _kept(columns: Sequence[TextColumn], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Which columns fit beside the names."""
    needs = [
        _wanted_name(_natural(column, texts), width) if column.kind == "name" else _least(column, texts)
        for column, texts in zip(columns, cells)
    ]
    kept = list(range(len(columns)))
    while sum(needs[i] for i in kept) + GAP * (len(kept) - 1) > width:
        others = [i for i in kept if columns[i].kind != "name"]
        if len(others) <= 1:
            break
        numbers = [i for i in others if columns[i].kind == "number"]
        others = [i for i in others if numbers != [i]]  # a name without a number says nothing
        kept.remove(min(others, key=lambda i: (columns[i].importance, -i)))
    return kept


def _widths(columns: Sequence[TextColumn], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """The widths of columns that fit: names get what is left first, then titles that would have to wrap, then texts."""
    natural = [_natural(column, texts) for column, texts in zip(columns, cells)]
    widths = [
        _wanted_name(natural[i], width) if column.kind == "name" else _least(column, cells[i])
        for i, column in enumerate(columns)
    ]
    free = width - sum(widths) - GAP * (len(widths) - 1)
    for kind in ("name", "number", "text"):
        for i, column in enumerate(columns):
            if column.kind == kind and free > 0:
                more = natural[i] - widths[i]
                more = min(free, more) if kind != "number" else more if more <= free else 0
                widths[i] += more
                free -= more
    for i, column in enumerate(columns):  # no column can be left out: names and texts get what remains
        if free < 0 and column.kind != "number":
            less = min(-free, max(widths[i] - _LEAST, 0))
            widths[i] -= less
            free += less
    return widths


def _short_names(names: Sequence[str], width: int | None) -> list[str]:
    """Names as a column shows them. Indented names (of trees) keep their indentation, up to half of the width."""
    bare = [name.lstrip(" ") for name in names]
    if list(names) == bare:
        return short_names(names, width)
    indents = [len(name) - len(text) for name, text in zip(names, bare)]
    if width is not None:
        indents = [min(indent, max(width // 2, width - _LEAST_NAME)) for indent in indents]
    result = [""] * len(names)
    for indent in sorted(set(indents)):
        rows = [row for row, each in enumerate(indents) if each == indent]
        short = short_names([bare[row] for row in rows], None if width is None else width - indent)
        for row, text in zip(rows, short):
            result[row] = " " * indent + text
    return result


def _lines(
    columns: Sequence[TextColumn],
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    left_out: list[str],
    shortened: bool,
) -> Layout:
    titles = [_wrapped_title(column.title, width) for column, width in zip(columns, widths)]
    height = max(map(len, titles), default=0)
    titles = [[""] * (height - len(title)) + title for title in titles]
    right = [column.right for column in columns]
    head = [_line(row, widths, right) for row in zip(*titles)]
    head.append(_line(["-" * width for width in widths], widths, right))
    return Layout(head, [_line(row, widths, right) for row in zip(*cells)], left_out, shortened)


def _wrapped_title(title: str, width: int) -> list[str]:
    if text_width(title) <= width:
        return [title]
    return textwrap.wrap(title, width, break_long_words=False, break_on_hyphens=False)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - text_width(text)) + text if r else text + " " * (width - text_width(text))
        for text, width, r in zip(cells, widths, right)
    ]
    return (" " * GAP).join(padded).rstrip()
