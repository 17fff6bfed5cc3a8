"""Recordings: a stopped profile, a loaded trace, Results or a Trace in; its Results out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from ..synthetic_rows import as_recorded
from ..trace import Trace

if TYPE_CHECKING:
    from ..torch_api.results import Results


class HasResults(Protocol):
    """A loaded trace, or a profile of `torch.autograd.profiler`; None: not stopped."""

    @property
    def _results(self) -> Results | None: ...


class HasProfiler(Protocol):
    """A profile of `torch.profiler`; None: not started."""

    @property
    def profiler(self) -> HasResults | None: ...


Recording: TypeAlias = "Trace | Results | HasResults | HasProfiler"


def recorded_results(source: Recording) -> Results:
    """The Results of a recording without its synthetic events: for analyses that judge what ran."""
    results = as_results(source)
    return as_results(as_recorded(results.trace)) if results.trace.n_synthetic else results


def listed_results(source: Recording) -> Results:
    """The Results that the lists and tables of a recording are made of: with Python calls among the events where these show them."""
    listed = getattr(source, "_listed_results", None)
    results = listed() if callable(listed) else None
    return as_results(source) if results is None else results


def as_results(source: Recording) -> Results:
    """The Results of a recording; a TypeError for a profile that was not stopped, and for anything else."""
    from ..torch_api.results import Results  # commands import this module before they have read a file

    if isinstance(source, Trace):
        return Results(source)
    if isinstance(source, Results):
        return source
    results = getattr(source, "_results", None)
    if results is None:
        results = getattr(getattr(source, "profiler", None), "_results", None)
    if not isinstance(results, Results):
        raise TypeError(
            f"a {type(source).__name__} has no recording; expected a stopped profile, a loaded trace or a Trace"
        )
    return results
