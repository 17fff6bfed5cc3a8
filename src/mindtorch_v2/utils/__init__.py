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
        "weak",
    )
)


def __getattr__(name: str) -> ModuleType:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})


def set_module(obj: Any, mod: str) -> None:
    """Set the module in which the object claims to be defined, for nicer printing."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
