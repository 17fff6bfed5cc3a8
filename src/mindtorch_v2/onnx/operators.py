"""Shapes and reshapes that an exporter can trace; here they are the plain ones."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


def shape_as_tensor(x: Any) -> Any:
    """The shape of a tensor as an integer tensor."""
    return torch._shape_as_tensor(x)


def reshape_from_tensor_shape(x: Any, shape: Any) -> Any:
    """A tensor reshaped to the shape that a tensor holds."""
    return x.reshape(shape.tolist())
