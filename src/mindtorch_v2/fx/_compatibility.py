"""torch.fx._compatibility: the decorator that marks which names of torch.fx stay as they are. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}
_T = TypeVar("_T")


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """A decorator that notes an object as compatible with earlier versions, or not."""

    def mark(obj: _T) -> _T:
        _MARKED_WITH_COMPATIBILITY.setdefault(obj)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(obj)
        return obj

    return mark
