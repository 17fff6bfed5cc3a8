"""torch.ao.nn.quantized: the modules that work on floating tensors too."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.nn import Identity, Module

__all__ = ["FloatFunctional"]


class FloatFunctional(Module):
    """Arithmetic as a module, so that observers can watch its results."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Any) -> Any:
        """Raises: the methods are to be called."""
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Any, y: Any) -> Any:
        """x + y."""
        return self.activation_post_process(torch.add(x, y))

    def add_scalar(self, x: Any, y: float) -> Any:
        """x + y of a number."""
        return torch.add(x, y)

    def mul(self, x: Any, y: Any) -> Any:
        """x * y."""
        return self.activation_post_process(torch.mul(x, y))

    def mul_scalar(self, x: Any, y: float) -> Any:
        """x * y of a number."""
        return torch.mul(x, y)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Tensors joined."""
        return self.activation_post_process(torch.cat(x, dim=dim))

    def add_relu(self, x: Any, y: Any) -> Any:
        """The positive part of x + y."""
        return self.activation_post_process(torch.nn.functional.relu(torch.add(x, y)))

    def matmul(self, x: Any, y: Any) -> Any:
        """The matrix product."""
        return self.activation_post_process(torch.matmul(x, y))
