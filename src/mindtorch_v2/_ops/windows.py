"""Window functions: a length in, the window's values out. In float32 or the asked dtype, as torch computes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import function
from ._namespace import functions as F

_C_NAMES = {
    "int64": "long int",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}


def _options(dtype: Any, layout: str = "Strided (default)") -> str:
    name = "float (default)" if dtype is None else _C_NAMES.get(dtype._name, dtype._name)
    return (
        f"TensorOptions(dtype={name}, device=cpu, layout={layout}, requires_grad=false (default), pinned_memory=false, "
        "memory_format=(nullopt))"
    )


def _window(
    name: str, length: Any, periodic: bool, values: Any, dtype: Any, layout: Any, requires_grad: bool
) -> Any:
    if not hasattr(length, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}"
        )
    if layout is not None and layout is not _dtype.strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {_options(dtype, 'Sparse')}")
    kind = dtype or _dtype.Default.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {_options(dtype)}")
    n = length.__index__()
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if n <= 1:
        tensor = F.ones((n,), dtype=kind)
    else:
        total = n + 1 if periodic else n
        tensor = values(F.arange(total, dtype=kind), total)
        if periodic:
            tensor = tensor.narrow(0, 0, n)
            tensor._base = None  # no view of anything the caller has
    if requires_grad:
        tensor.requires_grad = True
    return tensor


@function(expose="function")
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hann window: a raised cosine."""
    return _window("hann_window", window_length, periodic, _raised(0.5, 0.5), dtype, layout, requires_grad)


def _raised(alpha: float, beta: float) -> Any:
    def values(places: Any, total: int) -> Any:
        return places.mul_(math.pi * 2 / (total - 1)).cos_().mul_(-beta).add_(alpha)

    return values


@function(expose="function")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hamming window: a cosine on a pedestal."""
    return _window(
        "hamming_window", window_length, periodic, _raised(alpha, beta), dtype, layout, requires_grad
    )


def _blackman(places: Any, total: int) -> Any:
    places.mul_(math.pi / (total - 1))
    return places.mul(4).cos_().mul_(0.08) - places.mul(2).cos_().mul_(0.5) + 0.42


@function(expose="function")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Blackman window: a sum of two cosines."""
    return _window("blackman_window", window_length, periodic, _blackman, dtype, layout, requires_grad)


def _bartlett(places: Any, total: int) -> Any:
    places.mul_(2 / (total - 1))
    half = (total - 1) // 2 + 1
    places.narrow(0, half, total - half).mul_(-1).add_(2)
    return places


@function(expose="function")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Bartlett window: a triangle."""
    return _window("bartlett_window", window_length, periodic, _bartlett, dtype, layout, requires_grad)


@function(expose="function")
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Kaiser window: a ratio of Bessel functions with shape `beta`."""

    def values(places: Any, total: int) -> Any:
        from scipy import special

        x = places._array.astype(np.float64) * (2 * beta / (total - 1)) - beta
        made = special.i0(np.sqrt(np.maximum(beta * beta - x * x, 0))) / special.i0(beta)
        return _dispatch.wrap(made.astype(places._array.dtype))

    return _window("kaiser_window", window_length, periodic, values, dtype, layout, requires_grad)
