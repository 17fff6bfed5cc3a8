"""What several tests of the library rely on: each core of the recorder, and keepers that take rows often."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_v2.profiler.record import core, keeper, python_core


@pytest.fixture(params=["c", "python"])
def each_core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    chosen = python_core if request.param == "python" else core.core
    if request.param == "c" and core.core is python_core:
        pytest.skip("the compiled core is not built")
    monkeypatch.setattr(core, "core", chosen)
    for name in ("Core", "allocation_id", "alive"):
        monkeypatch.setattr(core, name, getattr(chosen, name))
    return chosen


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken often, and callers are looked for in few rows."""
    monkeypatch.setattr(keeper, "PERIOD_S", 0.002)
