"""Advice: a recording in; suggestions out, each with evidence, the time at stake and the next step.

Rules work on the columns of a Trace, recorded or loaded. A rule reports only waste that the trace itself shows: each suggestion has the
events that show it. Rules that need what the trace does not have (inputs, Python calls, device work) report nothing. No two rules count the
same idle time of a device. The time at stake is the most that a change can save.
"""

from __future__ import annotations

from collections.abc import Callable

from .device_advice import DEVICE_RULES
from .host_advice import HOST_RULES
from .recorded_program import Advice, Evidence, RecordedProgram
from .recording import Recording, recorded_results

__all__ = ["LEAST_SHARE", "RULES", "Advice", "Evidence", "advise"]

LEAST_SHARE = 0.02  # of the recording's time: smaller savings are not worth a change
RULES: tuple[Callable[[RecordedProgram], list[Advice]], ...] = (*HOST_RULES, *DEVICE_RULES)


def advise(source: Recording, least_share: float = LEAST_SHARE) -> list[Advice]:
    """Suggested changes of the recorded program, largest saving first; none below `least_share` of the recording."""
    program = RecordedProgram(recorded_results(source))
    if not len(program.trace):
        return []
    suggestions = [advice for rule in RULES for advice in rule(program) if advice.share >= least_share]
    return sorted(suggestions, key=lambda advice: -advice.at_stake_us)
