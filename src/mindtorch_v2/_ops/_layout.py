"""Memory layouts: arrays in, arrays laid out as torch does out. No tensors here."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .. import _tensor_slots
from .._dtype import NP_FLOAT8, channels_last, channels_last_3d, contiguous_format, preserve_format
from . import _core
from ._half_precision import compiled_cast
from ._warn import warn_once

_CHANNELS_LAST = {
    channels_last: (4, (0, 2, 3, 1), (0, 3, 1, 2)),
    channels_last_3d: (5, (0, 2, 3, 4, 1), (0, 4, 1, 2, 3)),
}


def dense_order(shape: tuple, *operands: tuple) -> list[int]:
    """Dimensions from outermost to innermost in memory, by the first operand that tells two of them apart.

    A broadcast (zero) stride decides nothing: the dimension keeps its position.
    """
    order = list(range(len(shape) - 1, -1, -1))  # innermost first
    for i in range(1, len(order)):
        place = i
        for j in range(i - 1, -1, -1):
            swap = _compare(shape, operands, order[j], order[place])
            if swap > 0:
                order[j], order[place] = order[place], order[j]
                place = j
            elif swap < 0:
                break
    return order[::-1]


def _compare(shape: tuple, operands: tuple, a: int, b: int) -> int:
    for strides in operands:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return 1 if strides[a] > strides[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0


def dense_steps(shape: tuple, order: list[int] | tuple[int, ...]) -> tuple[int, ...]:
    """The steps, in elements, of memory whose dimensions lie from outermost to innermost as `order` says."""
    steps, step = [0] * len(shape), 1
    for d in reversed(order):
        steps[d] = step
        step *= shape[d]
    return tuple(steps)


def empty_strided(shape: tuple, steps: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Uninitialised dense memory with these steps, in elements."""
    dtype = np.dtype(dtype)
    memory = np.empty(math.prod(shape), dtype)
    return strided(memory, shape, [step * dtype.itemsize for step in steps])


def empty_as(array: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Uninitialised memory as `preserve_format` lays it out: `array`'s order of dimensions, dense."""
    dtype = dtype or array.dtype
    if array.flags.c_contiguous or array.ndim < 2:
        return np.empty(array.shape, dtype)
    if is_dense(array):
        return empty_strided(array.shape, tuple([step // array.itemsize for step in array.strides]), dtype)
    return empty_strided(
        array.shape, dense_steps(array.shape, dense_order(array.shape, array.strides)), dtype
    )


def pointwise_steps(shape: tuple, operands: tuple) -> tuple[int, ...]:
    """The steps, in elements, of a result of this shape which is computed element by element, as torch's TensorIterator chooses them.

    operands: arrays, or None for a number. The first one that tells two dimensions apart decides which of them lies outside.
    """
    arrays = [array for array in operands if array is not None]
    if all([array is not None and array.shape == shape for array in operands]):
        channels = dense_steps(shape, (0, 2, 3, 1)) if len(shape) == 4 else None
        if channels and all([_has_steps(array, channels) for array in arrays]):
            return channels
        own = [tuple([step // array.itemsize for step in array.strides]) for array in arrays]
        if own.count(own[0]) == len(own) and is_dense(arrays[0]):
            return own[0]
    return dense_steps(shape, dense_order(shape, *[_broadcast_strides(array, shape) for array in arrays]))


def _has_steps(array: np.ndarray, steps: tuple[int, ...]) -> bool:
    return all(
        [n == 1 or s == step * array.itemsize for n, s, step in zip(array.shape, array.strides, steps)]
    )


def _broadcast_strides(array: np.ndarray, shape: tuple) -> tuple[int, ...]:
    """The strides of an operand along the dimensions of the result: 0 where it is repeated."""
    skipped = len(shape) - array.ndim
    steps = [s if n == wanted else 0 for n, wanted, s in zip(array.shape, shape[skipped:], array.strides)]
    return (0,) * skipped + tuple(steps)


def _broadcasts(shape: tuple, wanted: tuple) -> bool:
    return len(shape) <= len(wanted) and all([n in (1, m) for n, m in zip(shape[::-1], wanted[::-1])])


def _laid_out(result: Any, *operands: Any) -> Any:
    """A pointwise result in memory ordered as torch orders it: the array itself where it is, as for contiguous operands."""
    arrays = [value for value in (result, *operands) if isinstance(value, np.ndarray)]
    if (
        all([array.flags.c_contiguous for array in arrays])
        or type(result) is not np.ndarray
        or not result.size
    ):
        return result
    if len(arrays) == 1 or not all([_broadcasts(array.shape, result.shape) for array in arrays[1:]]):
        return result
    steps = pointwise_steps(
        result.shape, tuple([value if isinstance(value, np.ndarray) else None for value in operands])
    )
    if result.strides == tuple([step * result.itemsize for step in steps]):
        return result
    if _has_steps(result, steps):
        if result.flags.c_contiguous:
            return result
        return strided(result, result.shape, [step * result.itemsize for step in steps])
    out = empty_strided(result.shape, steps, result.dtype)
    if not copy_across(out, result):
        out[...] = result
    return out


laid_out = _tensor_slots.laid_out or _laid_out

_LARGE = 1 << 15  # bytes
_TILE = 16  # columns: a cache line of float32


def _innermost(array: np.ndarray) -> int:
    """The dimension whose neighbours are closest in memory; -1 if there are no two elements, or some are repeated."""
    steps = [(step, d) for d, (n, step) in enumerate(zip(array.shape, array.strides)) if n != 1]
    return min(steps, key=lambda pair: pair[0])[1] if steps and min(steps)[0] > 0 else -1


def _cross(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one shape and many elements have different innermost dimensions: one pass cannot follow both memories."""
    if a.nbytes < _LARGE or a.ndim < 2 or a.shape != b.shape:
        return False
    first, second = _innermost(a), _innermost(b)
    return first >= 0 and second >= 0 and first != second


def _unlike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two operands have to be converted before a kernel takes them: to one dtype, or to one order in memory."""
    return a.dtype is not b.dtype or (a.strides != b.strides and _cross(a, b))


unlike = _tensor_slots.unlike or _unlike


def _copy_across(to: np.ndarray, source: np.ndarray) -> bool:
    """Copy in strips between memories of different order; False if this is not such a copy, which NumPy does as well."""
    if to.dtype is not source.dtype or not _cross(to, source) or np.may_share_memory(to, source):
        return False
    columns = _innermost(to)
    if to.strides[columns] != to.itemsize or source.strides[_innermost(source)] != source.itemsize:
        return False
    to, source = to.swapaxes(columns, -1), source.swapaxes(columns, -1)
    for j in range(0, to.shape[-1], _TILE):
        to[..., j : j + _TILE] = source[..., j : j + _TILE]
    return True


copy_across = _tensor_slots.copy_across or _copy_across


def ordered_alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`b`, or a copy in the order of `a`'s memory where a pass over both would jump in one: the copy in tiles and a pass in order
    take a third of the time."""
    if a.strides == b.strides or not _cross(a, b):
        return b
    out = empty_strided(a.shape, dense_steps(a.shape, dense_order(a.shape, a.strides)), b.dtype)
    store(out, b)
    return out


def empty_in(array: np.ndarray, memory_format: Any, dtype: Any = None) -> np.ndarray:
    """Uninitialised memory of `array`'s shape in a memory format."""
    if memory_format is None or memory_format is preserve_format:
        return empty_as(array, dtype)
    dtype = dtype or array.dtype
    if memory_format is contiguous_format:
        return np.empty(array.shape, dtype)
    rank, order, back = _CHANNELS_LAST[memory_format]
    if array.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format._name} format")
    return np.empty([array.shape[d] for d in order], dtype).transpose(back)


def copied(array: np.ndarray, memory_format: Any = None) -> np.ndarray:
    """A copy with memory of its own, laid out as torch's clone lays it out."""
    if array.flags.c_contiguous and (
        memory_format is None or memory_format is contiguous_format or memory_format is preserve_format
    ):
        return array.copy()
    if memory_format is contiguous_format:
        return contiguous_copy(array)
    out = empty_in(array, memory_format)
    np.copyto(out, array)
    return out


def writable(array: np.ndarray) -> np.ndarray:
    """`array`, or a writable view of the same memory where an expanded tensor's is marked read-only."""
    if array.flags.writeable:
        return array
    array = array.view()
    array.setflags(write=True)
    return array


def expanded_target(array: np.ndarray, name: str, example: str) -> np.ndarray:
    """An expanded tensor's memory, for the ops that torch still lets write there with a warning."""
    if any(step == 0 and n > 1 for step, n in zip(array.strides, array.shape)):
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing "
            f"this operation. This also applies to advanced indexing e.g. {example}",
            UserWarning,
            stacklevel=5,
        )
    return writable(array)


def contiguous_copy(array: np.ndarray) -> np.ndarray:
    """A C-contiguous copy."""
    out = np.empty(array.shape, array.dtype)
    store(out, array)
    return out


def cast(array: np.ndarray, dtype: Any) -> np.ndarray:
    """The values in another dtype, dense, in the same order; complex to real drops the imaginary part."""
    kind = array.dtype.kind
    if array.dtype.kind == "W" and dtype.kind not in "cW":  # NumPy knows no way from complex32
        array = array.astype(np.complex64)
    if dtype.itemsize == 1 and dtype in NP_FLOAT8:
        return to_float8(array, dtype)
    fused = compiled_cast(array, dtype)
    if fused is not None:
        return fused
    if array.flags.c_contiguous and (
        kind not in "cf" or (dtype.kind == kind and dtype.itemsize >= array.itemsize)
    ):
        return array.astype(dtype, "C")
    out = empty_as(array, dtype)
    store(out, array)
    return out


def strided(array: np.ndarray, shape: Any, strides: Any) -> np.ndarray:
    """A view with other strides."""
    fused = _core.strided(array, tuple(shape), tuple(strides))
    if fused is not None:
        return fused
    if array.dtype.kind != "W":
        return np.lib.stride_tricks.as_strided(array, shape, strides)
    words = np.lib.stride_tricks.as_strided(array.view(np.uint32), shape, strides)
    return words.view(array.dtype)  # NumPy's function does not know complex32


_COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"


def store(out: np.ndarray, array: np.ndarray) -> None:
    """Copy `array` into `out`, whatever their dtypes, converting as C casts do."""
    source, target = array.dtype, out.dtype
    if source is target:
        if not copy_across(out, array):
            np.copyto(out, array)
        return
    if target.itemsize == 1 and target in NP_FLOAT8:
        np.copyto(out, to_float8(array, target))
        return
    if source.kind in "cW" and target.kind not in "cbW":  # W: complex32
        warn_once(_COMPLEX_TO_REAL, 5)
        array = array.real if source.kind == "c" else array.astype(np.complex64).real
    if source.kind == "W" and target.kind == "b":
        array = array.astype(np.complex64)
    if source.kind in "cf" and (target.kind in "iu" or target.itemsize < source.itemsize):
        with np.errstate(invalid="ignore", over="ignore", under="ignore"):
            np.copyto(out, array, casting="unsafe")
    else:
        np.copyto(out, array, casting="unsafe")


def to_float8(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The values in an 8-bit floating type, rounded from float32 as torch does: e4m3fn saturates, NaN has all bits set."""
    if array.dtype == dtype:
        return array.copy()
    if array.dtype.kind in "cW":
        array = array.astype(np.complex64).real
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        values = array.astype(np.float32)
        if dtype == NP_FLOAT8[0]:
            return np.clip(values, -448.0, 448.0).astype(dtype)
        if dtype == NP_FLOAT8[-1]:
            return _to_exponents(values).view(dtype)
        result = values.astype(dtype)
    if dtype == NP_FLOAT8[1]:
        result.view(np.uint8)[np.isnan(values)] |= 0x7F
    return result


def _to_exponents(values: np.ndarray) -> np.ndarray:
    """The exponents of magnitudes, rounded to the nearest power of two, a tie to the larger one; 255 for infinity and NaN."""
    bits = values.view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    mantissa = bits & 0x7FFFFF
    rounded = exponent + ((mantissa > 0x400000) | ((mantissa == 0x400000) & (exponent > 0)))
    return np.where(exponent == 255, 255, rounded).astype(np.uint8)


def is_dense(array: np.ndarray) -> bool:
    """Whether an array fills its memory without gaps or repeats, in whatever order of dims."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    expected = array.itemsize
    for step, n in sorted(zip(array.strides, array.shape)):
        if n != 1:
            if step != expected:
                return False
            expected *= n
    return True


def is_channels_last(array: np.ndarray) -> bool:
    """Whether a 4-d or 5-d array lies in memory with its channels innermost, and only so."""
    if array.ndim not in (4, 5) or array.flags.c_contiguous:
        return False
    order = (0, 2, 3, 1) if array.ndim == 4 else (0, 2, 3, 4, 1)
    return bool(array.transpose(order).flags.c_contiguous)
