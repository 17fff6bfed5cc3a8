"""Conversion of Python numbers to a dtype, with torch's errors for those that do not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dtype
from ._layout import to_float8

_C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float16": "c10::Half",
    "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "bool": "bool",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
_INFINITY = float("inf")
_LARGEST = {
    d._np.num: _dtype.finfo(d).max
    for d in (*_dtype.ALL, *_dtype.FLOAT8, *_dtype.HALF_COMPLEX)
    if d._rank >= 2
}


def _overflow(dtype: Any) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_C_NAMES[dtype.name]} without overflow")


def fitting(value: Any, dtype: np.dtype, boxed: bool = False) -> Any:
    """`value` ready to be stored in an array of `dtype`: truncated as C would, refused where it does not fit.

    boxed: as torch does it for a tensor of one element, where a float too large for a half becomes infinite.
    """
    kind = "c" if dtype.kind == "W" else dtype.kind  # W: complex32
    if kind == "b":
        return bool(value)
    if isinstance(value, complex) and kind not in "cW":
        if value.imag:
            raise _overflow(_dtype.NP_FLOAT64 if boxed and dtype in _dtype.LOW_FLOATS else dtype)
        value = value.real
    if kind in "iu":
        if value.__class__ is not int:
            if math.isnan(value) or value in (_INFINITY, -_INFINITY):
                raise _overflow(dtype)
            value = int(value)
        info = np.iinfo(dtype)
        if value > info.max or value < (info.min or -int(info.max)):
            raise _overflow(dtype)
        return value if value >= info.min else value + int(info.max) + 1
    largest = _LARGEST[dtype.num]
    size = abs(value) if kind not in "cW" else max(abs(value.real), abs(value.imag))
    if dtype in _dtype.NP_FLOAT8:
        return to_float8(np.float32(value), dtype)
    if size > largest and size != _INFINITY:
        if dtype not in _dtype.LOW_FLOATS or not boxed:
            raise _overflow(dtype)
        return _INFINITY if value > 0 else -_INFINITY
    return value
