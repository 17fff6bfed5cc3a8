"""torch._vmap_internals: an older name of vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .func import vmap as _func_vmap

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """vmap; `func` may return None among tensors if None passes through."""
    return _func_vmap(func, in_dims, out_dims, randomness="different")


vmap = _vmap
