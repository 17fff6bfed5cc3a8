"""Parameters to one flat vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import mindtorch_v2 as torch

from ..._typename import typename


def parameters_to_vector(parameters: Iterable[torch.Tensor]) -> torch.Tensor:
    """All parameters flattened into one vector."""
    return torch.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec: torch.Tensor, parameters: Iterable[torch.Tensor]) -> None:
    """Make each parameter's data a view of its part of the vector."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for param in parameters:
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
