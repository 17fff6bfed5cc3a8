"""Profilers that a program starts itself are noticed before they start; torch's own method is put back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mindtorch_prof.live.other_profilers import Watch


def stand_in() -> Any:
    class profile:
        def _prepare_trace(self) -> None:
            log.append("prepared")

    log: list[str] = []
    return SimpleNamespace(autograd=SimpleNamespace(profiler=SimpleNamespace(profile=profile)), log=log)


def test_a_start_of_the_program_is_noticed_and_one_from_here_is_not() -> None:
    torch, watch = stand_in(), Watch()
    profile = torch.autograd.profiler.profile
    before = profile._prepare_trace
    with watch.watching(torch, lambda: torch.log.append("noticed")):
        with watch.calling_torch():
            profile()._prepare_trace()
        profile()._prepare_trace()
    assert torch.log == ["prepared", "noticed", "prepared"]
    assert profile._prepare_trace is before
