"""Window functions: a length in, the window's values out. In float32 or the requested dtype, as torch computes them."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import function, op
from ._namespace import functions as F
from .linalg_kernels import step

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
    aten_name: str, length: Any, periodic: bool, values: Any, dtype: Any, layout: Any, requires_grad: bool
) -> Any:
    name = aten_name.removeprefix("aten::")
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
    if _dispatch.recorder is None:
        tensor = _build(n, periodic, values, kind, False)
    else:
        plain, chosen = _shown_ops(aten_name)
        _pending.parts = values, kind
        tensor = plain(n, dtype=dtype) if periodic else chosen(n, False, dtype=dtype)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


def _build(n: int, periodic: bool, values: Any, kind: Any, shown: bool) -> Any:
    if n <= 1:
        return F.ones((n,), dtype=kind)
    total = n + 1 if periodic else n
    places = _counted(total, kind) if shown and not hasattr(values, "counts") else F.arange(total, dtype=kind)
    tensor = values(places, total)
    if periodic:
        tensor = tensor.narrow(0, 0, n)
        tensor._base = None  # not a view of a tensor that the caller has
    return tensor


_pending = threading.local()  # values and dtype of the next window that is recorded


@step("aten::arange.start_out(Scalar start, Scalar end, Scalar step, Tensor out) -> Tensor")
def _counted_late(start: Any, end: Any, step: Any, out: Any) -> Any:
    return _dispatch.wrap(np.arange(start, end, step).astype(out._array.dtype))


def _counted(total: int, kind: Any) -> Any:
    return _counted_late(0, total, 1, F.empty((0,), dtype=kind))


def _shown_ops(aten_name: str) -> Any:
    """The ops under which a profile shows a window, without and with the argument `periodic`."""
    ops = _SHOWN.get(aten_name)
    if ops is None:
        rest = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"

        def body(n: int, *arguments: Any) -> Any:
            values, kind = _pending.parts
            return _build(n, len(arguments) < 5, values, kind, True)

        ops = _SHOWN[aten_name] = (
            op(f"{aten_name}(int window_length, {rest}", expose="no", on="tensors", nondifferentiable=True)(
                body
            ),
            op(
                f"{aten_name}.periodic(int window_length, bool periodic, {rest}",
                expose="no",
                on="tensors",
                nondifferentiable=True,
            )(body),
        )
    return ops


_SHOWN: dict[str, Any] = {}


@function(expose="function")
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hann window: a raised cosine."""
    return _window(
        "aten::hann_window", window_length, periodic, _raised(0.5, 0.5), dtype, layout, requires_grad
    )


def _scaled(places: Any, factor: float) -> Any:
    return _dispatch.OPS["mul_.Scalar"].entry(places, factor)


def _raised(alpha: float, beta: float) -> Any:
    def values(places: Any, total: int) -> Any:
        return _scaled(F.cos_(_scaled(places, math.pi * 2 / (total - 1))), -beta).add_(alpha)

    return values


@function(expose="function")
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Hamming window: a cosine on a pedestal."""
    return _window(
        "aten::hamming_window", window_length, periodic, _raised(alpha, beta), dtype, layout, requires_grad
    )


def _blackman(places: Any, total: int) -> Any:
    _scaled(places, math.pi / (total - 1))
    return _scaled(places.mul(4).cos_(), 0.08) - _scaled(places.mul(2).cos_(), 0.5) + 0.42


@function(expose="function")
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Blackman window: a sum of two cosines."""
    return _window("aten::blackman_window", window_length, periodic, _blackman, dtype, layout, requires_grad)


def _bartlett(places: Any, total: int) -> Any:
    _scaled(places, 2 / (total - 1))
    half = (total - 1) // 2 + 1
    _scaled(places.narrow(0, half, total - half), -1).add_(2)
    return places


@function(expose="function")
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Bartlett window: a triangle."""
    return _window("aten::bartlett_window", window_length, periodic, _bartlett, dtype, layout, requires_grad)


@function(expose="function")
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The Kaiser window: a ratio of Bessel functions with shape `beta`."""

    def values(places: Any, total: int) -> Any:
        from scipy import special

        x = places._array.astype(np.float64) * (2 * beta / (total - 1)) - beta
        window = F.empty(places.shape, dtype=places.dtype)
        window._array[...] = special.i0(np.sqrt(np.maximum(beta * beta - x * x, 0))) / special.i0(beta)
        return window

    values.counts = True  # type: ignore[attr-defined]
    return _window("aten::kaiser_window", window_length, periodic, values, dtype, layout, requires_grad)
