"""Schedules as data: loops under a profiler, run the same way with torch and here."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

ACTIONS = ("NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE")
# torch 2.13 crashes where warming up follows recording that was not saved
CRASHES = [
    actions
    for n in (1, 2, 3)
    for actions in itertools.product(ACTIONS, repeat=n)
    if any(pair == ("RECORD", "WARMUP") for pair in itertools.pairwise(actions))
]


def make_cases() -> list[dict[str, Any]]:
    """All cases: arguments of `schedule`, or the actions of a schedule of one's own."""
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    values = itertools.product((0, 1, 2), (0, 1), (1, 2, 3), (0, 1, 2), (0, 2), (0, 1))
    cases: list[dict[str, Any]] = [{"schedule": dict(zip(names, v))} for v in values]
    for n in (1, 2, 3):
        cases += [{"actions": a} for a in itertools.product(ACTIONS, repeat=n) if a not in CRASHES]
    return cases


def outcome(torch: Any, case: dict[str, Any]) -> list[Any]:
    """What a loop sees: actions, calls of the handler with step and events, what is left at the end, and warnings."""
    profiler, x = torch.profiler, torch.ones(2)
    calls: list[Any] = []
    seen: list[str] = []

    def names(prof: Any) -> Any:
        try:
            return sorted(e.name for e in prof.events())
        except AssertionError as error:
            return str(error)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if "schedule" in case:
            schedule, steps = profiler.schedule(**case["schedule"]), 9
        else:
            actions = [getattr(profiler.ProfilerAction, name) for name in case["actions"]]
            schedule, steps = (lambda step: actions[min(step, len(actions) - 1)]), len(actions) - 1
        with profiler.profile(
            schedule=schedule,
            on_trace_ready=lambda p: calls.append([p.step_num, p.current_action.name, names(p)]),
        ) as prof:
            seen.append(prof.current_action.name)
            for _ in range(steps):
                x + x
                prof.step()
                seen.append(prof.current_action.name)
            x + x
        left = names(prof)
    # torch says once in a process that events are cleared; that nothing was recorded it does not say
    unsaid = ("Profiler clears events", "nothing was recorded")
    texts = sorted({text for w in caught if not any(part in (text := str(w.message)) for part in unsaid)})
    return [seen, calls, prof.step_num, left, texts]
