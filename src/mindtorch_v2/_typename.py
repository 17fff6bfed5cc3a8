"""The name of a value's type, as torch's messages write it: any value in, text out."""

from __future__ import annotations

from typing import Any

from ._tensor import Tensor


def typename(obj: Any, /) -> str:
    """`torch.FloatTensor` for a tensor, otherwise module and qualified name of the class."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None)
    name = getattr(kind, "__qualname__", kind.__name__)
    return name if module in (None, "builtins") else f"{module}.{name}"
