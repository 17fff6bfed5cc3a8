"""torch.backends.quantized: the engine of quantized kernels. There are none."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["engine", "supported_engines"]


class _QuantizedModule(ModuleType):
    """The module, whose `engine` refuses to be set."""

    supported_engines = ("none",)

    @property
    def engine(self) -> str:
        """The engine in use: none."""
        return "none"

    @engine.setter
    def engine(self, name: Any) -> None:
        if name != "none":
            raise RuntimeError(f"quantized engine {name} is not supported")


sys.modules[__name__].__class__ = _QuantizedModule
