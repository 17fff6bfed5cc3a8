"""torch._C, where programs reach for it: the classes that torch defines there, and its tables of functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import _dispatch
from .._device import device as device
from .._dtype import dtype as dtype
from .._dtype import layout as layout
from .._dtype import memory_format as memory_format
from .._random import Generator as Generator
from .._size import Size as Size
from .._tensor import Tensor

TensorBase = Tensor
_VariableFunctions: Any = SimpleNamespace(**_dispatch.FUNCTIONS)

__all__ = ["Generator", "Size", "TensorBase", "device", "dtype", "layout", "memory_format"]


def __getattr__(name: str) -> Any:
    if name in ("_autograd", "_nn", "_profiler"):
        from importlib import import_module

        return import_module("." + name, __name__)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")
