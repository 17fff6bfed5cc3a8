"""torch.jit._state: whether TorchScript is enabled. It never compiles here; the setting is kept for programs that read it."""

from __future__ import annotations

import os

__all__ = ["disable", "enable"]


class EnabledProxy:
    """The setting `PYTORCH_JIT`, as torch reads it: enabled unless the variable is "0"."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("PYTORCH_JIT", "1") not in ("0", "")

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()
_script_classes: dict[type, object] = {}  # classes that were compiled: none


def disable() -> None:
    """Clear the setting."""
    _enabled.enabled = False


def enable() -> None:
    """Set it."""
    _enabled.enabled = True
