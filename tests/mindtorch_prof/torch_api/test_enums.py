"""Enums of torch's profiler: its names and numbers."""

from __future__ import annotations

from enum import Enum
from types import ModuleType

import pytest

from mindtorch_prof.torch_api.enums import DeviceType, ProfilerActivity, RecordScope


def test_a_scope_can_be_used_as_a_number() -> None:
    assert [int(scope) for scope in (RecordScope.FUNCTION, RecordScope.USER_SCOPE)] == [0, 7]
    assert "abcdefgh"[RecordScope.USER_SCOPE] == "h"


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        (DeviceType, "autograd.DeviceType"),
        (ProfilerActivity, "profiler.ProfilerActivity"),
        (RecordScope, "_C._profiler.RecordScope"),
    ],
)
def test_members_are_torchs(ours: type[Enum], path: str, torch_reference: ModuleType) -> None:
    theirs = torch_reference
    for name in path.split("."):
        theirs = getattr(theirs, name)
    members = {name: int(value) for name, value in theirs.__members__.items()}
    assert {member.name: member.value for member in ours} == members
