"""torch.distributed._composable_state: what `fully_shard` and its kind attach to modules. Here none of them does."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def _get_module_state(module: Any) -> None:
    """The state of a sharded module: no module is one."""
