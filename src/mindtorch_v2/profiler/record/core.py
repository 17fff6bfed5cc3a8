"""Which core records: the compiled `_core`, or the plain `python_core`, which is its definition. Nothing else asks."""

from __future__ import annotations

from typing import Any

from mindtorch_prof.core import compiled

from . import python_core

core: Any = compiled("mindtorch_v2.profiler.record._core") or python_core

NAME: str = core.NAME
Core: Any = core.Core
allocation_id, alive = core.allocation_id, core.alive
