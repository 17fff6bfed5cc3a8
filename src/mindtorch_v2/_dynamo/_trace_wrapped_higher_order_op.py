"""TransformGetItemToIndex: lets index tensors without dimensions select elements, as a compiler's trace needs."""

from __future__ import annotations

from typing import Any

from ..overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """Mode in which `x[i]` with a tensor `i` without dimensions is an index op; it is one here in any case."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function."""
        return func(*args, **(kwargs or {}))
