"""The cores of the recorder that are here, and choosing one for a test."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_v2.profiler.record import core, python_core

compiled = None if core.core is python_core else core.core
CORES = [python_core] if compiled is None else [python_core, compiled]


def use(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """Record with this core until the test ends."""
    for name in ("Core", "allocation_id", "alive"):
        monkeypatch.setattr(core, name, getattr(module, name))
    monkeypatch.setattr(core, "core", module)
    module.load_library()
