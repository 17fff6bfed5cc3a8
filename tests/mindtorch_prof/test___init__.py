"""The package itself: one import has all that a user needs."""

from __future__ import annotations

import sys

import pytest
from trace_builder import make_trace

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


def test_a_profile_of_real_torch_is_read_by_from_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    kineto = type("_KinetoProfile", (), {"__module__": "torch.profiler.profiler"})
    theirs = type("MyProfile", (type("profile", (kineto,), {}),), {})()
    ours = mindtorch_prof.recording(make_trace(("aten::add", 0, 10)))
    for module in (mindtorch_prof, mindtorch_prof.load.__globals__["__name__"]):
        monkeypatch.setattr(
            sys.modules[module] if isinstance(module, str) else module, "from_torch", lambda prof: ours
        )
    assert mindtorch_prof.recording(theirs) is ours
    assert not ours.diff(theirs)


def test_one_import_has_all_that_a_user_needs() -> None:
    for name in mindtorch_prof.__all__:
        assert getattr(mindtorch_prof, name) is not None
        assert name in dir(mindtorch_prof)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mindtorch_prof.nothing  # noqa: B018
