"""Window functions: a length in, the window's values out. In float32 or the requested dtype, as torch computes them."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from scipy import special

from .. import _dispatch, _dtype
from .._dispatch import function, op
from . import factories_out
from ._namespace import functions as F
from .shape import as_own

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


_OPTIONS = (
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
)


def _declare(aten_name: str, values: Any, more: tuple[str, str] | None = None) -> Any:
    """Declare the overloads of a window; the result computes one of them.

    values: a function of further arguments that gives a function of (places, how many places). more: the name of the overload that
    takes these arguments, and their schema.
    """
    name = aten_name.removeprefix("aten::")

    def declare(text: str, body: Any) -> Any:
        return op(text + _OPTIONS, expose="no", on="tensors", nondifferentiable=True)(body)

    plain = declare(
        f"{aten_name}(int window_length, ",
        lambda window_length, dtype, *_: _build(window_length, True, values(), dtype),
    )
    chosen = declare(
        f"{aten_name}.periodic(int window_length, bool periodic, ",
        lambda window_length, periodic, dtype, *_: _build(window_length, periodic, values(), dtype),
    )
    if more is not None:
        overload, schema = more
        shaped = declare(
            f"{aten_name}.{overload}(int window_length, bool periodic, {schema}, ",
            lambda window_length, periodic, *arguments: _build(
                window_length, periodic, values(*arguments[:-4]), arguments[-4]
            ),
        )

    def window(
        length: Any, periodic: bool, shape: tuple, dtype: Any, layout: Any, requires_grad: bool
    ) -> Any:
        """shape: further arguments, if one of them is not its default."""
        _check(name, length, dtype, layout)
        n = operator.index(length)
        if n < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
        if shape:
            tensor = shaped(n, periodic, *shape, dtype=dtype)
        else:
            tensor = plain(n, dtype=dtype) if periodic else chosen(n, False, dtype=dtype)
        if requires_grad:
            tensor.requires_grad = True
        return tensor

    return window


def _check(name: str, length: Any, dtype: Any, layout: Any) -> None:
    if not hasattr(length, "__index__"):
        raise TypeError(
            f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}"
        )
    if layout is not None and layout is not _dtype.strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {_options(dtype, 'Sparse')}")
    kind = dtype or _dtype.Default.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {_options(dtype)}")


def _build(n: int, periodic: bool, values: Any, dtype: Any) -> Any:
    dtype = dtype or _dtype.Default.dtype
    if n <= 1:
        window = F.empty((n,), dtype=dtype)
        return F.fill_(window, 1.0) if n else window
    total = n + 1 if periodic else n
    tensor = values(total, dtype)
    if periodic:
        tensor = as_own(tensor.narrow(0, 0, n))
    return tensor


def _places(total: int, dtype: Any) -> Any:
    """0, 1, 2 ..., to be changed in place."""
    places = F.empty((0,), dtype=dtype)
    factories_out.arange_step(0, total, 1, result=places)
    return places


@function(expose="function")
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hann window: a raised cosine."""
    return _hann(window_length, periodic, (), dtype, layout, requires_grad)


def _scaled(places: Any, factor: float) -> Any:
    return _dispatch.OPS["mul_.Scalar"].entry(places, factor)


def _raised(alpha: float, beta: float) -> Any:
    def values(total: int, dtype: Any) -> Any:
        angles = _scaled(_places(total, dtype), math.pi * 2 / (total - 1))
        return _scaled(F.cos_(angles), -beta).add_(alpha)

    return values


_hann = _declare("aten::hann_window", lambda: _raised(0.5, 0.5))
_hamming = _declare(
    "aten::hamming_window",
    lambda alpha=0.54, beta=0.46: _raised(alpha, beta),
    ("periodic_alpha_beta", "float alpha, float beta"),
)


@function(expose="function")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hamming window: a cosine on a pedestal."""
    shape = () if (alpha, beta) == (0.54, 0.46) else (alpha, beta)
    return _hamming(window_length, periodic, shape, dtype, layout, requires_grad)


def _blackman_values(total: int, dtype: Any) -> Any:
    places = _scaled(_places(total, dtype), math.pi / (total - 1))
    return _scaled(places.mul(4).cos_(), 0.08) - _scaled(places.mul(2).cos_(), 0.5) + 0.42


@function(expose="function")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Blackman window: a sum of two cosines."""
    return _blackman(window_length, periodic, (), dtype, layout, requires_grad)


_blackman = _declare("aten::blackman_window", lambda: _blackman_values)


def _bartlett_values(total: int, dtype: Any) -> Any:
    places = _scaled(_places(total, dtype), 2 / (total - 1))
    half = (total - 1) // 2 + 1
    _scaled(places.narrow(0, half, total - half), -1).add_(2)
    return places


_bartlett = _declare("aten::bartlett_window", lambda: _bartlett_values)


@function(expose="function")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Bartlett window: a triangle."""
    return _bartlett(window_length, periodic, (), dtype, layout, requires_grad)


@function(expose="function")
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Kaiser window: a ratio of Bessel functions with shape `beta`."""
    return _kaiser(window_length, periodic, () if beta == 12.0 else (beta,), dtype, layout, requires_grad)


def _kaiser_values(beta: float = 12.0) -> Any:
    def values(total: int, dtype: Any) -> Any:
        places = F.arange(total, dtype=dtype)
        x = places._array.astype(np.float64) * (2 * beta / (total - 1)) - beta
        window = F.empty(places.shape, dtype=dtype)
        window._array[...] = special.i0(np.sqrt(np.maximum(beta * beta - x * x, 0))) / special.i0(beta)
        return window

    return values


_kaiser = _declare("aten::kaiser_window", _kaiser_values, ("beta", "float beta"))
