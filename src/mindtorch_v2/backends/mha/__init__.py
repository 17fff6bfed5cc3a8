"""torch.backends.mha: whether attention may take a fused path in evaluation. There is only one path here."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled: bool = True


def get_fastpath_enabled() -> bool:
    """Whether the fused path may be taken."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow the fused path, or not."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
