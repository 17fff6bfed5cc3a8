"""torch._VF: the functions of torch, without those that torch.functional writes in Python."""  # noqa: N999

from __future__ import annotations

from typing import Any

from . import _C


def __getattr__(name: str) -> Any:
    return getattr(_C._VariableFunctions, name)


def __dir__() -> list[str]:
    return sorted(vars(_C._VariableFunctions))
