"""Window functions: a length in, the window's values out. In float32 or the asked dtype, as torch computes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import function

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
        made = np.ones(n, kind._np)
    else:
        work = np.float32 if kind._np in _dtype.LOW_FLOATS else kind._np
        total = n + 1 if periodic else n
        made = values(np.arange(total, dtype=work), total)[:n].astype(kind._np)
    tensor = _dispatch.wrap(np.ascontiguousarray(made))
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _scaled(places: np.ndarray, factor: float) -> np.ndarray:
    return places * places.dtype.type(factor)


@function(expose="function")
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hann window: a raised cosine."""
    return _window("hann_window", window_length, periodic, _raised(0.5, 0.5), dtype, layout, requires_grad)


def _raised(alpha: float, beta: float) -> Any:
    def values(places: np.ndarray, total: int) -> np.ndarray:
        return np.cos(_scaled(places, 2 * math.pi / (total - 1))) * places.dtype.type(
            -beta
        ) + places.dtype.type(alpha)

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


def _blackman(places: np.ndarray, total: int) -> np.ndarray:
    kind = places.dtype.type
    angle = _scaled(places, math.pi / (total - 1))
    return np.cos(angle * kind(4)) * kind(0.08) - np.cos(angle * kind(2)) * kind(0.5) + kind(0.42)


@function(expose="function")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Blackman window: a sum of two cosines."""
    return _window("blackman_window", window_length, periodic, _blackman, dtype, layout, requires_grad)


def _bartlett(places: np.ndarray, total: int) -> np.ndarray:
    made = _scaled(places, 2 / (total - 1))
    half = (total - 1) // 2 + 1
    made[half:] = made[half:] * -1 + 2
    return made


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

    def values(places: np.ndarray, total: int) -> np.ndarray:
        from scipy import special

        x = places.astype(np.float64) * (2 * beta / (total - 1)) - beta
        return special.i0(np.sqrt(np.maximum(beta * beta - x * x, 0))) / special.i0(beta)

    return _window("kaiser_window", window_length, periodic, values, dtype, layout, requires_grad)
