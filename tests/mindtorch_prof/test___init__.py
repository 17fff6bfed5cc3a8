"""The package itself: one import has all that a user needs."""

from __future__ import annotations

import pytest

import mindtorch_prof
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def test_a_stopped_profile_has_the_same_calls() -> None:
    with profile() as prof:
        torch.ones(3) + 1
    recording = mindtorch_prof.recording(prof)
    assert recording.summary()["recorded"]["events"] > 0
    assert recording.doctor().healthy
    with pytest.raises(TypeError, match="has no recording"):
        mindtorch_prof.recording(object())  # type: ignore[arg-type]


def test_one_import_has_all_that_a_user_needs() -> None:
    for name in mindtorch_prof.__all__:
        assert getattr(mindtorch_prof, name) is not None
        assert name in dir(mindtorch_prof)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mindtorch_prof.nothing  # noqa: B018
