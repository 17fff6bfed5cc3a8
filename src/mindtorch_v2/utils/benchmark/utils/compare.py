"""The table of measurements, with a row per sub-label and a column per description."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from . import common

__all__ = ["Colorize", "Compare"]

_BEST = "\033[92m\033[1m"
_GOOD = "\033[34m\033[1m"
_BAD = "\033[2m\033[91m"
_VERY_BAD = "\033[31m\033[1m"
_TERMINATE = "\033[0m\033[0m"
_SHADES = ((5.0, _VERY_BAD), (2.0, _BAD))  # ratio to the best time, lower bound
_TIE = 100e-9  # seconds: times closer than this count as equal to the best
_FINE_SHADES = ((1.01, _BEST), (1.1, _GOOD))  # ratio to the best time, upper bound


class Colorize(enum.Enum):
    """The cells among which the best one is highlighted."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


@dataclass(frozen=True)
class _Row:
    """The row of a measurement."""

    num_threads: int
    env: str | None
    name: str


def _digits(time: float, figures: int) -> int:
    """The number of digits after the point."""
    return max(0, figures - math.floor(math.log10(time)) - 1) if time > 0 else 0


class _Column:
    """The cells of one description, with the same width and number of digits."""

    def __init__(
        self, name: str, cells: dict[_Row, common.Measurement], scale: float, trim: bool, warn: bool
    ) -> None:
        self.name = name
        self.cells = cells
        self.scale = scale
        self.warn = warn
        values = {row: cell.median / scale for row, cell in cells.items()}
        if trim:
            figures = {row: cell.significant_figures for row, cell in cells.items()}
            values = {row: common.trim_sigfig(value, figures[row]) for row, value in values.items()}
            self.digits = min(_digits(value, figures[row]) for row, value in values.items())
        else:
            self.digits = 1
        self.values = values
        self.number_width = max(len(f"{value:.{self.digits}f}") for value in values.values())
        note_width = max(len(self.note(row)) for row in values)
        self.no_note = " " * 7 if note_width else ""  # as wide as " (! 5%)"
        self.width = max(len(name), self.number_width + note_width)

    def note(self, row: _Row) -> str:
        """The warning beside a number."""
        cell = self.cells[row]
        return f" (! {cell.iqr / cell.median * 100:.0f}%)" if self.warn and cell.has_warnings else ""

    def text(self, row: _Row) -> str:
        """The cell of a row."""
        if row not in self.values:
            return " " * self.width
        number = f"{self.values[row]:.{self.digits}f}".rjust(self.number_width)
        return (number + (self.note(row) or self.no_note)).center(self.width)


class _Table:
    """All measurements of one label."""

    def __init__(self, results: list[common.Measurement], colorize: Colorize, trim: bool, warn: bool) -> None:
        self.label = results[0].label or ""
        self.colorize = colorize
        self.warned = warn and any(result.has_warnings for result in results)
        self.unit, scale = common.select_unit(min(result.median for result in results))
        row_of = {id(result): _Row(result.num_threads, result.env, result.as_row_name) for result in results}
        self.rows = sorted(
            common.ordered_unique(row_of.values()), key=lambda row: (row.num_threads, row.env or "")
        )
        self.columns = [
            _Column(
                name or "",
                {row_of[id(result)]: result for result in results if result.description == name},
                scale,
                trim,
                warn,
            )
            for name in common.ordered_unique(result.description for result in results)
        ]

    def shade(self, row: _Row, column: _Column) -> str:
        """The colour of a cell, by its ratio to the best one of its row or column."""
        if self.colorize is Colorize.NONE or row not in column.cells:
            return ""
        if self.colorize is Colorize.ROWWISE:
            compared_medians = [other.cells[row].median for other in self.columns if row in other.cells]
        else:
            compared_medians = [
                cell.median for other, cell in column.cells.items() if other.num_threads == row.num_threads
            ]
        best, median = min(compared_medians), column.cells[row].median
        if median <= best + _TIE:
            return _BEST
        ratio = median / best
        for limit, shade in _SHADES:
            if ratio >= limit:
                return shade
        return next((shade for limit, shade in _FINE_SHADES if ratio <= limit), "")

    def cell(self, row: _Row, column: _Column) -> str:
        """The cell's text with its colour."""
        shade = self.shade(row, column)
        text = column.text(row)
        return shade + text + _TERMINATE if shade else text

    def render(self) -> str:
        """The table as text."""
        show_env = len({row.env for row in self.rows}) > 1
        env_width = max(len(f"({row.env or ''})") for row in self.rows) if show_env else 2
        name_width = max(len(row.name) for row in self.rows)
        heads = [" " * (4 + env_width + name_width)] + [
            column.name.center(column.width) for column in self.columns
        ]
        head = "  |  ".join(heads)
        lines = ["[" + f" {self.label} ".center(len(head) - 2, "-") + "]", head]
        before: Any = None
        for row in self.rows:
            if before is None or row.num_threads != before.num_threads:
                lines.append(f"{row.num_threads} threads: ".ljust(len(head), "-"))
                before = None
            env = f"({row.env})" if show_env and row.env and (before is None or before.env != row.env) else ""
            start = f"  {env.ljust(env_width)}  {row.name.ljust(name_width)}"
            lines.append("  |  ".join([start, *(self.cell(row, column) for column in self.columns)]))
            before = row
        lines += ["", f"Times are in {common.unit_to_english(self.unit)}s ({self.unit})."]
        if self.warned:
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])


class Compare:
    """A table of measurements: a part per label, a row per sub-label, a column per description."""

    def __init__(self, results: list[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        groups: dict[str | None, list[common.Measurement]] = {}
        for result in common.Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        tables = [
            _Table(group, self._colorize, self._trim_significant_figures, self._highlight_warnings)
            for group in groups.values()
        ]
        return "\n".join(table.render() for table in tables)

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only reliable digits."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the cells by their ratio to the best one of the column, or of the row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark measurements with a large spread."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))  # noqa: T201
