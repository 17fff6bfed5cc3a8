"""Analyses as methods of a loaded trace: `load("t.json.gz").summary()`. A recording in; an answer out that prints, shows in notebooks and
converts (see `analysis.answers`). The work is that of `analysis` and `export`; nothing is printed here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ..analysis.answers import (
        AdviceAnswer,
        CheckAnswer,
        DiffAnswer,
        DoctorAnswer,
        QueryAnswer,
        ReportFile,
        SummaryAnswer,
    )
    from ..analysis.baseline import Baseline
    from ..analysis.device_answer import DeviceAnswer
    from ..analysis.recording import Recording
    from ..torch_api.results import Results

    OtherRecording: TypeAlias = "str | os.PathLike[str] | Recording"


class LibraryCalls:
    """What the commands of the same names tell, as objects."""

    _results: Results

    def summary(self, *, top: int = 10) -> SummaryAnswer:
        """Where the time went, per step and per category, and what looks wrong; `top`: rows of each table."""
        from ..analysis.answers import SummaryAnswer
        from ..analysis.summary import summary

        return SummaryAnswer(summary(self, top=top))

    def doctor(self) -> DoctorAnswer:
        """What is missing, inconsistent or damaged in the trace."""
        from ..analysis.answers import DoctorAnswer
        from ..analysis.doctor import doctor

        return DoctorAnswer(doctor(self), _file(self))

    def advise(self, least_share: float = 0.02) -> AdviceAnswer:
        """Suggested changes that save time, each with evidence, the time at stake and the next step. Those that save less than
        `least_share` of the recording are left out."""
        from ..analysis.advice import advise
        from ..analysis.answers import AdviceAnswer

        return AdviceAnswer(advise(self, least_share), _file(self))

    def device(self, *, top: int = 10) -> DeviceAnswer:
        """What each device did with its time, per step and stream, and why it was idle; top: rows of each table, 0: all."""
        from ..analysis.device_answer import DeviceAnswer

        return DeviceAnswer(self._results.trace, top)

    def diff(
        self,
        other: OtherRecording,
        by: Sequence[str] = ("op",),
        *,
        per: str = "auto",
        threshold: float = 0.05,
        min_us: float = 1.0,
    ) -> DiffAnswer:
        """What changed from this trace to another one: a file, a loaded trace or a stopped profile.

        - `by`: what rows are grouped by: some of `op`, `shape`, `stack`, `module`
        - `per`: what values are normalised by: `step`, `call`, `total`, or `auto`: by step if both traces have steps
        - `threshold`, `min_us`: smaller changes in time, as a share and in microseconds, are ignored
        """
        from ..analysis.answers import DiffAnswer
        from ..analysis.diff import diff

        second = _opened(other)
        comparison = diff(self, second, by, per=per, threshold=threshold, min_us=min_us)
        return DiffAnswer(comparison, _file(self), _file(second))

    def check(
        self,
        baseline: OtherRecording | Baseline,
        *,
        max_regression: float = 0.05,
        tolerance: float = 0.0,
        min_us: float = 50.0,
        exact: bool = False,
    ) -> CheckAnswer:
        """Whether anything got worse than a baseline: a file of `check --write-baseline`, a trace file, a loaded trace or a stopped profile.

        - `max_regression`: by which share a time may grow
        - `tolerance`: by which share a counter may grow
        - `min_us`: rows that take less time are not checked
        - `exact`: a counter that decreases fails as well
        """
        from ..analysis.answers import CheckAnswer
        from ..analysis.baseline import Baseline, is_baseline, read_baseline
        from ..analysis.check import check

        if isinstance(baseline, Baseline):
            base: Baseline | list[Recording] = baseline
        elif isinstance(baseline, (str, os.PathLike)) and is_baseline(baseline):
            base = read_baseline(baseline)
        else:
            base = [_opened(baseline)]
        report = check(
            [self], base, max_regression=max_regression, tolerance=tolerance, min_us=min_us, exact=exact
        )
        return CheckAnswer(report)

    def report(self, path: str | os.PathLike[str], other: OtherRecording | None = None) -> ReportFile:
        """Write the HTML report; `other`: a second trace to compare with."""
        from ..analysis.answers import ReportFile
        from ..export.html import export_html

        export_html(self, path, None if other is None else _opened(other))
        return ReportFile(path)

    def query(self, sql: str, *, allow_files: bool = False) -> QueryAnswer:
        """The result of one SQL statement over the tables events, averages, steps, memory, device and figures (needs duckdb).

        allow_files: it may read and write files; otherwise it can only read the tables.
        """
        from ..analysis.answers import QueryAnswer
        from ..analysis.query import query

        return QueryAnswer(query(self, sql, allow_files=allow_files))


def _opened(other: OtherRecording) -> Recording:
    from . import from_torch, is_torch_profile, load

    if isinstance(other, (str, os.PathLike)):
        return load(other)
    return from_torch(other) if is_torch_profile(other) else other


def _file(recording: Recording) -> str:
    from ..analysis.recording import as_results

    return as_results(recording).trace.settings.source_name
