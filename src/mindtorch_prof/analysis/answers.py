"""Answers of library calls: the result of an analysis in; one object out that prints as text, shows as HTML in notebooks, and converts to
plain values and data frames.

Every answer has `to_dict()`, `to_pandas()`, a readable `str()` and `_repr_html_()`; what is special to one, such as the rows of a
comparison, are its attributes.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from ..kernel_names import short_names
from ..number_formats import format_memory, format_time
from ..text_escaping import html_text, terminal_text
from .columns import COLUMNS, formatted
from .diff import Diff, as_dict
from .sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

    from .advice import Advice
    from .check import CheckReport
    from .doctor import Finding
    from .summary import Summary

Row = Mapping[str, object]
_UNITS = {"share": "share", "at_stake_us": "us", "count": "count", "before": "", "after": "", "limit": ""}
_TITLES = {
    "code": "Code",
    "severity": "Severity",
    "message": "Finding",
    "advice": "Next step",
    "at_stake_us": "At stake",
    "share": "Share",
    "count": "Count",
    "where": "First at",
    "status": "Change",
    "op": "Name",
    "a": "A",
    "b": "B",
    "delta": "B - A",
    "relative": "Relative",
    "metric": "Metric",
    "name": "Name",
}
_NAME_WIDTH = 60


class Answer(ABC):
    """The result of an analysis."""

    title: str

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """As plain values, with stable keys; times in microseconds."""

    @abstractmethod
    def _rows(self) -> list[dict[str, object]]:
        """What a data frame of it holds: one dict per row."""

    @abstractmethod
    def _lines(self) -> list[str]:
        """What stands above the table."""

    @abstractmethod
    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """The table for people: titles, and the texts of each row."""

    def to_pandas(self) -> pd.DataFrame:
        """A data frame (needs pandas), one row per finding or group."""
        from ..torch_api.event_list import _optional

        rows = self._rows()
        return _optional("pandas").DataFrame(rows, columns=None if rows else list(self._keys()))

    def _keys(self) -> Sequence[str]:
        """The columns of a data frame without rows."""
        return ()

    def __str__(self) -> str:
        return "\n".join(map(terminal_text, self._text()))

    def _text(self) -> list[str]:
        head, rows = self._cells()
        return [self.title, *self._lines(), *([""] if rows else []), *aligned(head, rows)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    def _repr_html_(self) -> str:
        """For notebooks: names of a trace are text, never markup."""
        head, rows = self._cells()
        lines = "".join(f"<p>{html_text(line)}</p>" for line in self._lines() if line)
        return f"<div><b>{html_text(self.title)}</b>{lines}{html_table(head, rows)}</div>"


class SummaryAnswer(Answer):
    """A summary; its parts are read like those of a dict: `answer["times"]["span_us"]`."""

    def __init__(self, data: Summary) -> None:
        self.data = data
        self.title = f"Summary of {data['file'] or 'a recording'}"

    def __getitem__(self, key: str) -> object:
        return self.data[key]  # type: ignore[literal-required]  # keys are those of Summary

    def to_dict(self) -> dict[str, object]:
        """The summary, as `mindtorch-prof summary --format json` prints it."""
        return dict(self.data)

    def _rows(self) -> list[dict[str, object]]:
        return [
            {"part": part, "name": row[key], **{k: v for k, v in row.items() if k != key}}
            for part, key, rows in (
                ("categories", "category", self.data["categories"]),
                ("ops", "name", self.data["ops"]),
                ("kernels", "name", self.data["kernels"]),
                ("modules", "module", self.data["modules"]),
            )
            for row in rows
        ]

    def _lines(self) -> list[str]:
        times, wrong = self.data["times"], self.data["looks_wrong"]
        busy = f"CPU busy {times['cpu_busy_share']:.1%}"
        if "device_busy_share" in times:
            busy += f", device busy {times['device_busy_share']:.1%} of its {format_time(times['device_span_us'])}"
        return [
            f"span {format_time(times['span_us'])}; {busy}",
            *(
                f"{part['label']} memory: peak {format_memory(part['peak_bytes'])}"
                for part in (self.data["memory"] or {"devices": []})["devices"]
            ),
            *(f"looks wrong: {text}" for text in wrong),
            *(f"health: {finding['message']}" for finding in self.data["health"]),
        ]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        keys = ["part", "name", "count", "self_cpu_time_total", "self_device_time_total"]
        rows = self._rows()
        if not any(row.get("self_device_time_total") for row in rows):
            keys.pop()
        return titles(keys), texts(rows, keys)

    def _text(self) -> list[str]:
        from .summary import summary_text

        return summary_text(self.data).splitlines()


class DoctorAnswer(Answer, Sequence["Finding"]):
    """What is missing or inconsistent: a sequence of findings; `healthy` if none is an error or a warning."""

    def __init__(self, findings: Sequence[Finding], file: str = "") -> None:
        self.findings = tuple(findings)
        self.healthy = all(finding.severity == "info" for finding in findings)
        self.title = f"{file or 'The recording'}: " + (
            "complete and consistent" if self.healthy else "see the findings"
        )

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def to_dict(self) -> dict[str, object]:
        """`healthy`, and `findings` as dicts."""
        return {"healthy": self.healthy, "findings": self._rows()}

    def _keys(self) -> Sequence[str]:
        return ("code", "severity", "count", "message", "where")

    def _rows(self) -> list[dict[str, object]]:
        return [finding.to_dict() for finding in self.findings]

    def _lines(self) -> list[str]:
        return []

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        keys = ["severity", "message", "where", "code"]
        return titles(keys), texts(self._rows(), keys)


class AdviceAnswer(Answer, Sequence["Advice"]):
    """Suggested changes: a sequence of Advice, the largest time at stake first."""

    def __init__(self, suggestions: Sequence[Advice], file: str = "") -> None:
        self.suggestions = tuple(suggestions)
        count = len(self.suggestions)
        what = {0: "no suggestions", 1: "1 suggestion"}.get(count, f"{count:,} suggestions")
        self.title = f"{file or 'The recording'}: {what}"

    @overload
    def __getitem__(self, index: int) -> Advice: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Advice]: ...
    def __getitem__(self, index: int | slice) -> Advice | Sequence[Advice]:
        return self.suggestions[index]

    def __len__(self) -> int:
        return len(self.suggestions)

    def to_dict(self) -> dict[str, object]:
        """`suggestions` as dicts, with their evidence."""
        return {"suggestions": [advice.to_dict() for advice in self.suggestions]}

    def _rows(self) -> list[dict[str, object]]:
        return [{k: v for k, v in advice.to_dict().items() if k != "evidence"} for advice in self.suggestions]

    def _lines(self) -> list[str]:
        return []

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        keys = ["share", "at_stake_us", "message", "advice", "code"]
        return titles(keys), texts(self._rows(), keys)

    def _keys(self) -> Sequence[str]:
        return ("code", "message", "advice", "count", "at_stake_us", "share")

    def _text(self) -> list[str]:
        lines = [line for advice in self.suggestions for line in (*advice_lines(advice), "")]
        return [*lines, self.title]


def advice_lines(advice: Advice) -> list[str]:
    """A suggestion as lines of text: the finding, the next step and the evidence, whose kernels have short names."""
    lines = [
        f"up to {advice.share:.0%} ({format_time(advice.at_stake_us)}): {advice.message} [{advice.code}]"
    ]
    if advice.step_us is not None and advice.step_without_us is not None:
        before, after = format_time(advice.step_us), format_time(advice.step_without_us)
        lines.append(f"  critical path: {before}, without it {after}")
    lines.append(f"  next step: {advice.advice}")
    names = short_names([row["name"] for row in advice.evidence], _NAME_WIDTH)
    for row, name in zip(advice.evidence, names):
        where = f"  {row['where']}" if row["where"] else ""
        lines.append(f"  {format_time(row['total_us']):>10}  {row['count']:>6,} x  {name}{where}")
    return lines


class DiffAnswer(Answer):
    """A comparison; `comparison` is the `Diff` with all rows, `findings` are those that differ by more than noise."""

    def __init__(self, comparison: Diff, a: str = "", b: str = "") -> None:
        self.comparison = comparison
        self.findings = comparison.findings
        count = len(self.findings)
        what = {0: "no differences", 1: "1 difference"}.get(count, f"{count:,} differences")
        self.title = f"{a or 'A'} -> {b or 'B'}: {what}"

    def __bool__(self) -> bool:
        """Whether anything differs by more than noise."""
        return bool(self.comparison)

    def to_dict(self) -> dict[str, object]:
        """Totals, notes and the rows that differ."""
        comparison = self.comparison
        return {
            "by": list(comparison.by),
            "per": comparison.per,
            "steps": list(comparison.steps),
            "noise_floor": None if math.isnan(comparison.floor) else comparison.floor,
            "shift": comparison.shift,
            "total": {name: {"a": c.a, "b": c.b, "delta": c.delta} for name, c in comparison.total.items()},
            "notes": list(comparison.notes),
            "findings": self._rows(),
        }

    def _keys(self) -> Sequence[str]:
        rows = self.comparison.rows
        return list(as_dict(rows[0], self.comparison)) if rows else ()

    def _rows(self) -> list[dict[str, object]]:
        return [as_dict(row, self.comparison) for row in self.findings]

    def _lines(self) -> list[str]:
        parts = []
        for name, title, text in (
            ("step", "step", format_time),
            ("self_cpu", "self CPU", format_time),
            ("self_device", "self device", format_time),
            ("peak_memory", "peak memory", lambda nbytes: format_memory(int(nbytes))),
        ):
            change = self.comparison.total.get(name)
            if change is not None and (change.a or change.b):
                share = "new" if change.relative is None else f"{change.relative:+.1%}"
                parts.append(f"{title} {text(change.a)} -> {text(change.b)} ({share})")
        per = f"per {self.comparison.per}" if self.comparison.per != "total" else "in total"
        return [
            f"{per}: {', '.join(parts)}" if parts else "nothing was recorded",
            *map("note: {}".format, self.comparison.notes),
        ]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        rows: list[dict[str, object]] = []
        for row in self.findings:
            time = row.time
            relative = "new" if time.relative is None else f"{time.relative:+.1%}"
            rows.append(
                {
                    "status": row.status,
                    "name": row.name,
                    "a": format_time(time.a),
                    "b": format_time(time.b),
                    "delta": formatted(time.delta, "us"),
                    "relative": relative,
                }
            )
        keys = ["status", "name", "a", "b", "delta", "relative"]
        return titles(keys), texts(rows, keys)


class CheckAnswer(Answer):
    """The result of a check against a baseline: true if nothing got worse; `failures` say what did."""

    def __init__(self, report: CheckReport) -> None:
        self.report = report
        self.failures = report.failures
        self.title = (
            f"FAILED: {len(self.failures):,} above the baseline"
            if self.failures
            else "ok: nothing above the baseline"
        )

    def __bool__(self) -> bool:
        return bool(self.report)

    def to_dict(self) -> dict[str, object]:
        """Whether it is ok, what was checked, and the findings."""
        report = self.report
        return {
            "ok": bool(report),
            "failures": len(report.failures),
            "checked": report.checked,
            "skipped": report.skipped,
            "noise_floor": None if math.isnan(report.floor) else report.floor,
            "shift": report.shift,
            "notes": list(report.notes),
            "findings": self._rows(),
        }

    def _keys(self) -> Sequence[str]:
        return ("verdict", "metric", "name", "before", "after", "change", "limit", "noise", "p", "detail")

    def _rows(self) -> list[dict[str, object]]:
        return [{key: getattr(finding, key) for key in self._keys()} for finding in self.report.findings]

    def _lines(self) -> list[str]:
        skipped = [f"not checked: {metric} ({why})" for metric, why in self.report.skipped.items()]
        return [*skipped, *(f"note: {note}" for note in self.report.notes)]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        return ["Above the baseline"], [[finding.sentence()] for finding in self.failures]


class ReportFile(Answer):
    """The HTML report that was written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self.title = f"The report is in {self.path}"

    def __fspath__(self) -> str:
        return self.path

    def to_dict(self) -> dict[str, object]:
        """The path and the size."""
        return {"path": self.path, "bytes": os.path.getsize(self.path)}

    def _rows(self) -> list[dict[str, object]]:
        return [self.to_dict()]

    def _lines(self) -> list[str]:
        return []

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        return [], []

    def _repr_html_(self) -> str:
        from pathlib import Path

        return f'<a href="{html_text(Path(self.path).as_uri())}" target="_blank">{html_text(self.path)}</a>'


class QueryAnswer(Answer, Mapping[str, object]):
    """The result of an SQL statement: columns by name, as of a Sheet; `sheet` has further methods."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.title = f"{sheet.n_rows:,} rows"

    def __getitem__(self, name: str) -> object:
        return self.sheet[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sheet)

    def __len__(self) -> int:
        return len(self.sheet)

    def rows(self) -> list[dict[str, object]]:
        """One dict per row."""
        return self.sheet.rows()

    def to_dict(self) -> dict[str, object]:
        """One list per column."""
        return dict(self.sheet.to_dict())

    def _rows(self) -> list[dict[str, object]]:
        return self.sheet.rows()

    def to_pandas(self) -> pd.DataFrame:
        """A data frame (needs pandas)."""
        return self.sheet.to_pandas()

    def _lines(self) -> list[str]:
        return []

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        keys = list(self.sheet)
        return titles(keys), texts(self.sheet.head(200).rows(), keys)


# ---------------------------------------------------------------------------------------------------- text and HTML


def titles(keys: Sequence[str]) -> list[str]:
    """The titles of columns."""
    return [_TITLES.get(key) or (COLUMNS[key].title if key in COLUMNS else key) for key in keys]


def texts(rows: Sequence[Row], keys: Sequence[str]) -> list[list[str]]:
    """The cells of rows as text, in the units of their columns; numbers are never cut."""

    def text(row: Row, key: str) -> str:
        unit = _UNITS.get(key, COLUMNS[key].unit if key in COLUMNS else "")
        return formatted(row.get(key), unit)

    return [[text(row, key) for key in keys] for row in rows]


def shortened(name: str) -> str:
    """A name that fits a line."""
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 3] + "..."


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines of text: names are cut, columns are two spaces apart, those of numbers to the right."""
    if not rows:
        return []
    cells = [[shortened(text) for text in row] if len(row) > 1 else list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells)]
    right = [all(text[:1] in "+-0123456789" for text in column if text) for column in zip(*cells)]
    lines = []
    for row in [head, ["-" * width for width in widths], *cells]:
        parts = [text.rjust(w) if r else text.ljust(w) for text, w, r in zip(row, widths, right)]
        lines.append("  ".join(parts).rstrip())
    return lines


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML without scripts; every text is escaped."""
    if not rows:
        return ""
    titles_html = "".join(f"<th>{html_text(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{html_text(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{titles_html}</tr></thead><tbody>{body}</tbody></table>"
