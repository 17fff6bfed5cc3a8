"""What several tests of the library rely on: each core of the recorder, and keepers that take rows often."""

from __future__ import annotations

from typing import Any

import pytest
from recording_cores import CORES, use

from mindtorch_v2.profiler.record import keeper


@pytest.fixture(params=CORES, ids=lambda module: module.NAME)
def each_core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    use(monkeypatch, request.param)
    return request.param


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken often, and callers are looked for in few rows."""
    monkeypatch.setattr(keeper, "PERIOD_S", 0.002)
