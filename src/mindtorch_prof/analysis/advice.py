"""Advice: a recording in; suggestions out, each with evidence, the time at stake and the next step.

Rules work on the columns of a Trace, recorded or loaded. A rule reports only waste that the trace itself shows: each suggestion has the
events that show it. Rules that need what the trace does not have (inputs, Python calls, device work) report nothing.

The time at stake is the most that a change can save. Every nanosecond of the recording is charged to one finding at most, the most specific one:
the times of all findings together are never longer than the recording. Of work on a device only as much is at stake as the critical path of the
typical step would get shorter without it: what runs beside the path saves nothing. (Where every Python call was recorded, which slows the host, it is
as much as would be saved with a host that is never late, if that is more.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .critical_path import CriticalPath
from .device_advice import DEVICE_RULES
from .device_breakdown import work_without_op
from .figures import device_label
from .graph_capture import launches_graphs
from .host_advice import HOST_RULES
from .idle_advice import IDLE_RULES
from .intervals import Intervals, covered, union
from .recorded_program import Advice, Evidence, Finding, RecordedProgram
from .recording import Recording, as_results, recorded_results

if TYPE_CHECKING:
    from ..torch_api.results import Results

__all__ = ["LEAST_SHARE", "RULES", "Advice", "Evidence", "Review", "advise", "review"]

LEAST_SHARE = 0.02  # of the recording's time: smaller savings are not worth a change
# in the order in which time is charged to findings
RULES: tuple[Callable[[RecordedProgram], list[Finding]], ...] = (*HOST_RULES, *IDLE_RULES, *DEVICE_RULES)

_MUCH_WITHOUT_OP = 0.1  # of a device's work: from here on it is said that findings about ops do not cover it


@dataclass(frozen=True)
class Review:
    """What is to be said about a recording."""

    suggestions: list[Advice]  # the largest saving first
    notes: list[str]  # what decided the length of the typical step, and what the suggestions cannot cover


def advise(source: Recording, least_share: float = LEAST_SHARE) -> list[Advice]:
    """Suggested changes of the recorded program, largest saving first; none below `least_share` of the recording."""
    return _suggestions(RecordedProgram(_judged(source)), least_share)


def _judged(source: Recording) -> Results:
    """The Results that rules look at: without synthetic events, which took no time; of a device's recording these are the ops of a graph's
    capture, which have kernels."""
    results = as_results(source)
    return results if results.trace.device.works.any() else recorded_results(results)


def review(source: Recording, least_share: float = LEAST_SHARE) -> Review:
    """Suggestions, and notes about what they rest on."""
    program = RecordedProgram(_judged(source))
    return Review(_suggestions(program, least_share), _notes(program))


def _suggestions(program: RecordedProgram, least_share: float) -> list[Advice]:
    if not len(program.trace) and program.device is None:
        return []
    # one after the other: a rule leaves out the time that was charged before
    advice = [_charged(program, finding, least_share) for rule in RULES for finding in rule(program)]
    suggestions = [each for each in advice if each.share >= least_share and each.at_stake_us]
    return sorted(suggestions, key=lambda advice: -advice.at_stake_us)


# ---------------------------------------------------------------------------------------------------- the time at stake


def _charged(program: RecordedProgram, finding: Finding, least_share: float) -> Advice:
    """A finding with the time that those before it have left. The path is not asked about one that is too small anyway."""
    times = union(*(np.clip(np.concatenate(column), *program.span) for column in zip(*finding.times)))
    own = program.charged.charge(times)
    charged = int((own[1] - own[0]).sum())
    step_us = without_us = None
    path = program.path if finding.work is not None and charged > least_share * program.length_ns else None
    if path is not None and finding.work is not None:
        # the path is that of the recording without synthetic events, which have other rows
        calls = finding.calls if path.results.trace is program.trace else None
        step_us, without_us = path.length_us, path.after_change(finding.work, finding.kept, calls, times=own)
        charged = int(charged * _share_on_path(program, path, finding, own, step_us - without_us))
    return Advice(
        finding.code,
        finding.message,
        finding.advice,
        finding.count,
        charged / 1000,
        charged / program.length_ns,
        finding.evidence,
        step_us,
        without_us,
    )


def _share_on_path(
    program: RecordedProgram, path: CriticalPath, finding: Finding, times: Intervals, saved_us: float
) -> float:
    """Which share of the times of a finding in the step of a path would be saved; 1 where the step has no such times."""
    window = np.array([path.graph.window.start_ns]), np.array([path.graph.end_ns])
    in_step = int(covered(times, *window)[0])
    if not in_step or finding.work is None:
        return 1.0
    if len(program.trace.frames):
        # recording Python calls slows the host: a host that is never late might save more
        nothing = np.empty(0, np.int64)
        before = path.after_change(nothing, with_host=False)
        saved_us = max(
            saved_us, before - path.after_change(finding.work, finding.kept, times=times, with_host=False)
        )
    return min(1.0, saved_us * 1000 / in_step)


# ---------------------------------------------------------------------------------------------------- notes


def _notes(program: RecordedProgram) -> list[str]:
    """What decided the length of the step; how much of the device's work no op is known for."""
    path = program.path
    if path is None or program.device is None:
        return []
    notes = []
    if path.length_us:
        kinds = sorted(path.by_kind.items(), key=lambda item: -item[1])
        parts = ", ".join(
            f"{kind} {time / path.length_us:.0%}" for kind, time in kinds if time >= 0.005 * path.length_us
        )
        notes.append(f"the critical path of {path.window}: {parts} (`mindtorch-prof critical-path`)")
    device, rows = program.trace.device, program.device.rows
    length = (device.end_ns - device.start_ns)[rows]
    without_op = int(length[work_without_op(program.trace)[rows]].sum())
    share = without_op / max(int(length.sum()), 1)
    if share >= _MUCH_WITHOUT_OP:
        label = device_label(program.trace, program.device.number)
        text = f"{share:.0%} of the work of {label} belongs to no op of the trace: findings about ops do not cover it"
        if launches_graphs(program.trace):
            text += "; it replays graphs: give a trace of their capture with --capture"
        notes.append(text)
    return notes
