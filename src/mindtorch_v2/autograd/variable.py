"""`Variable`: the old name of a tensor that takes part in autograd."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .._graph import grad_state
from .._tensor import Tensor

__all__ = ["VariableMeta", "Variable"]


class ImperativeEngine:
    """The engine in the form of old code: `Variable._execution_engine`."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call `callback()` when the running backward pass has ended."""
        if grad_state.run is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        grad_state.run.callbacks.append(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the running backward pass reaches all leaves."""
        return grad_state.run is None or grad_state.run.needed is None


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(data, requires_grad=False)`: a tensor on the same memory as `data`."""

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        tensor = data.detach()
        if requires_grad:
            tensor.requires_grad_(True)
        return tensor
