"""torch.utils: helpers around tensors. Each part is imported on first access."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = ["set_module"]

_PARTS = frozenset(
    (
        "_contextlib",
        "_python_dispatch",
        "_pytree",
        "benchmark",
        "checkpoint",
        "collect_env",
        "cpp_extension",
        "data",
        "dlpack",
        "flop_counter",
        "hooks",
        "model_zoo",
        "module_tracker",
        "tensorboard",
    )
)


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange everything of two tensors, so that each name refers to the other's content. Tensors with weak references are refused."""
    import weakref

    from .._tensor import Tensor
    from .._tensor_slots import DEFAULTS

    if not isinstance(t1, Tensor) or not isinstance(t2, Tensor):
        raise TypeError(f"swap_tensors expects two tensors, got {type(t1).__name__} and {type(t2).__name__}")
    for number, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefcount(tensor):
            raise RuntimeError(f"Cannot swap {number} because it has weakref associated with it")
        if tensor._views or tensor._base is not None or tensor._accumulator is not None:
            raise RuntimeError(
                f"Cannot swap {number}: it is a view, has views, or is part of a graph that is alive"
            )
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in ("_array", *DEFAULTS):
        mine, theirs = (getattr(tensor, name, _UNSET) for tensor in (t1, t2))
        for tensor, value in ((t1, theirs), (t2, mine)):
            if value is not _UNSET:
                setattr(tensor, name, value)
            elif hasattr(tensor, name):
                delattr(tensor, name)


_UNSET = object()


def set_module(obj: Any, mod: str) -> None:
    """Set the module in which the object claims to be defined, for nicer printing."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
