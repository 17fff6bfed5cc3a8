"""Helpers of the distributions: broadcasting and conversion of parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import mindtorch_v2 as torch

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Tensors and numbers as tensors of one shape; numbers take dtype and device of the first tensor."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if not all(isinstance(value, (torch.Tensor, Number)) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    if len(tensors) != len(values):
        options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
        if tensors:
            options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
        values = tuple(
            value if isinstance(value, torch.Tensor) else torch.tensor(value, **options) for value in values
        )
    return torch.broadcast_tensors(*values)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Any:
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds (binary) or from log probabilities up to a constant (last dimension)."""
    return torch.sigmoid(logits) if is_binary else torch.nn.functional.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities moved away from 0 and 1 by the dtype's epsilon."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log odds (binary) or log probabilities from probabilities."""
    clamped = clamp_probs(probs)
    if is_binary:
        return torch.log(clamped) - torch.log1p(-clamped)
    return torch.log(clamped)


class lazy_property:
    """An attribute computed on first access, with gradients enabled, and then stored in the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangle of matrices, row by row, as vectors."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    mask = torch.tril(torch.ones(n, n, dtype=torch.bool, device=mat.device), diagonal=diag)
    return mat[..., mask]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Lower triangular matrices from vectors of their elements, row by row."""
    length = vec.shape[-1]
    size = next(n for n in itertools.count(1) if _triangle(n, diag) >= length)
    if _triangle(size, diag) != length:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    matrix = torch.zeros(vec.shape[:-1] + (size, size), dtype=vec.dtype, device=vec.device)
    mask = torch.tril(torch.ones(size, size, dtype=torch.bool, device=vec.device), diagonal=diag)
    matrix[..., mask] = vec
    return matrix


def _triangle(n: int, diag: int) -> int:
    """The number of elements on and below a diagonal of an n x n matrix."""
    return sum(max(0, min(n, row + diag + 1)) for row in range(n))
