"""assert_close: compares two nested values in NumPy and raises AssertionError with torch's text if they
differ.

The values are walked together down to their leaves; each leaf is a `None`, a boolean, a number or a tensor,
with one comparison function per type.
"""

from __future__ import annotations

import cmath
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mindtorch_v2 as torch

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

# dtype name -> (rtol, atol); other dtypes must be equal
_TOLERANCES = {
    "torch.float16": (1e-3, 1e-5),
    "torch.bfloat16": (1.6e-2, 1e-5),
    "torch.float32": (1.3e-6, 1e-5),
    "torch.float64": (1e-7, 1e-7),
    "torch.complex64": (1.3e-6, 1e-5),
    "torch.complex128": (1e-7, 1e-7),
}
_ALLCLOSE_TOLERANCES = {
    "torch.float16": (1e-3, 1e-3),
    "torch.float32": (1e-4, 1e-5),
    "torch.float64": (1e-5, 1e-8),
}
_NUMBERS = (int, float, complex, np.number)
_KeyPath = tuple[Any, ...]  # the keys that lead to a value


class _Mismatch(Exception):
    """The difference at one leaf."""


@dataclass(frozen=True)
class _Options:
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        """rtol and atol for a comparison between these dtypes."""
        if self.rtol is None or self.atol is None:
            return default_tolerances(*dtypes)
        return self.rtol, self.atol


def default_tolerances(*inputs: Any) -> tuple[float, float]:
    """The widest default (rtol, atol) of some dtypes or tensors."""
    dtypes = [getattr(i, "dtype", i) for i in inputs]
    pairs = [_TOLERANCES.get(str(d), (0.0, 0.0)) for d in dtypes]
    return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


# ---------------------------------------------------------------------------------------------- error texts


def _allowed(tolerance: float, equal: bool) -> str:
    return "" if equal else f" (up to {tolerance} allowed)"


def _scalar_text(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    equal = rtol == atol == 0
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else float("inf")
    return (
        f"Scalars are not {'equal' if equal else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, equal)}\n"
        f"Relative difference: {relative}{_allowed(rtol, equal)}"
    )


def _greatest(difference: np.ndarray) -> tuple[Any, tuple[int, ...]]:
    at = np.unravel_index(int(np.argmax(difference)), difference.shape)
    value = difference[at]
    plain = value.item() if difference.dtype.kind in "iufc" else float(value)
    return plain, tuple(int(i) for i in at)


def _tensor_text(
    actual: np.ndarray, expected: np.ndarray, matches: np.ndarray, rtol: float, atol: float, name: str
) -> str:
    equal = rtol == atol == 0
    count, total = int((~matches).sum()), matches.size
    with np.errstate(all="ignore"):
        difference = np.abs(actual - expected)
        difference[matches] = 0
        size = np.abs(expected)
        if difference.dtype.kind in "iu":
            relative = difference.astype(np.float32) / size.astype(np.float32)
        else:
            relative = difference / size
        relative[matches] = 0
    greatest, at = _greatest(difference)
    greatest_relative, relative_at = _greatest(relative)
    return (
        f"{name} are not {'equal' if equal else 'close'}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {greatest} at index {at}{_allowed(atol, equal)}\n"
        f"Greatest relative difference: {greatest_relative} at index {relative_at}{_allowed(rtol, equal)}"
    )


# ---------------------------------------------------------------------------------------------- leaves


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if isinstance(actual, np.generic):
        actual = actual.item()
    if isinstance(expected, np.generic):
        expected = expected.item()
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(_number_dtype(actual), _number_dtype(expected))
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(_scalar_text(actual, expected, rtol, atol))


def _number_dtype(value: Any) -> str:
    return {int: "torch.int64", float: "torch.float64", complex: "torch.complex128"}[type(value)]


def _check_attributes(actual: Any, expected: Any, options: _Options) -> None:
    compared = [
        (True, "shape", actual.shape, expected.shape),
        (options.check_layout, "layout", actual.layout, expected.layout),
        (options.check_device, "device", actual.device, expected.device),
        (options.check_dtype, "dtype", actual.dtype, expected.dtype),
    ]
    if options.check_stride and not actual.is_sparse and not expected.is_sparse:
        compared.append((True, "stride()", actual.stride(), expected.stride()))
    for checked, name, left, right in compared:
        if checked and left != right:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {left} != {right}.")


def _compare_tensors(actual: Any, expected: Any, options: _Options) -> None:
    _check_attributes(actual, expected, options)
    if actual.device.type == "meta" or expected.device.type == "meta":
        return
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    if actual.is_sparse and expected.is_sparse:
        _compare_sparse(actual, expected, rtol, atol, options.equal_nan)
        return
    left, right = (t.to_dense() if t.is_sparse else t for t in (actual, expected))
    _compare_arrays(left._array, right._array, rtol, atol, options.equal_nan, "Tensor-likes")


def _compare_sparse(actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    actual, expected = actual.detach(), expected.detach()
    left, right = actual._nnz(), expected._nnz()
    if left != right:
        raise _Mismatch(
            f"The number of specified values in sparse COO tensors does not match: {left} != {right}"
        )
    _compare_arrays(actual._indices()._array, expected._indices()._array, 0, 0, False, "Sparse COO indices")
    _compare_arrays(
        actual._values()._array, expected._values()._array, rtol, atol, equal_nan, "Sparse COO values"
    )


def _common(actual: np.ndarray, expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in the dtype in which they are compared; integers and booleans in int64."""
    if actual.dtype != expected.dtype:
        kinds = (torch._dtype.from_numpy_dtype(a.dtype) for a in (actual, expected))
        wide = torch.promote_types(*kinds)._np
        actual, expected = actual.astype(wide), expected.astype(wide)
    if actual.dtype.kind in "biu" and actual.dtype != np.uint64:
        actual, expected = actual.astype(np.int64), expected.astype(np.int64)
    return actual, expected


def _is_close(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool
) -> np.ndarray:
    """torch.isclose: equal, or a finite difference within atol + rtol * |expected|."""
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    with np.errstate(all="ignore"):
        close = np.asarray(actual == expected)
        if equal_nan:
            close |= np.isnan(actual) & np.isnan(expected)
        if rtol == atol == 0:
            return close
        size = np.abs(expected)
        error = np.abs(actual - expected)
        if size.dtype.kind in "iu":
            allowed = atol + rtol * size.astype(np.float64)
        else:
            allowed = size.dtype.type(atol) + np.abs(size * size.dtype.type(rtol))
        return close | (np.isfinite(error) & (error <= allowed))


def _compare_arrays(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool, name: str
) -> None:
    first, second = actual, expected
    actual, expected = _common(actual, expected)
    matches = _is_close(actual, expected, rtol, atol, equal_nan)
    if matches.all():
        return
    if not actual.ndim:
        left, right = (a.item() if a.dtype.kind in "biufc" else float(a) for a in (first, second))
        raise _Mismatch(_scalar_text(left, right, rtol, atol))
    raise _Mismatch(_tensor_text(actual, expected, matches, rtol, atol, name))


def _as_tensors(actual: Any, expected: Any, options: _Options) -> tuple[Any, Any] | None:
    """Both as tensors, if they are tensors or of a type that can be converted."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not options.allow_subclasses and type(actual) is not type(expected):
        return None
    if isinstance(actual, torch.Tensor):
        return actual, expected
    if not hasattr(actual, "__array__"):
        return None
    try:
        return torch.as_tensor(actual), torch.as_tensor(expected)
    except (TypeError, ValueError, RuntimeError):
        return None


def _compare_none(actual: Any, expected: Any, options: _Options) -> None:
    if actual is not expected:
        raise _Mismatch(f"None mismatch: {actual} is not {expected}")


def _compare_booleans(actual: Any, expected: Any, options: _Options) -> None:
    if bool(actual) is not bool(expected):
        raise _Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")


@dataclass(frozen=True)
class _Leaf:
    """Two values, their comparison function, and the keys that lead to them."""

    actual: Any
    expected: Any
    compare: Callable[[Any, Any, _Options], None]
    path: _KeyPath


def _leaf(actual: Any, expected: Any, options: _Options, path: _KeyPath) -> _Leaf:
    booleans = [isinstance(v, (bool, np.bool_)) for v in (actual, expected)]
    if actual is None or expected is None:
        return _Leaf(actual, expected, _compare_none, path)
    if all(booleans):
        return _Leaf(actual, expected, _compare_booleans, path)
    if not any(booleans) and isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
        return _Leaf(actual, expected, _compare_numbers, path)
    tensors = _as_tensors(actual, expected, options)
    if tensors is None:
        types = f"{_type_text(actual)} and {_type_text(expected)}"
        text = f"No comparison pair was able to handle inputs of type {types}."
        raise TypeError(_located(text, path))
    return _Leaf(*tensors, _compare_tensors, path)


def _type_text(value: Any) -> str:
    return str(type(value)).replace("<class 'mindtorch_v2", "<class 'torch")


# ---------------------------------------------------------------------------------------------- the walk


def _pairs(actual: Any, expected: Any, path: _KeyPath) -> Iterator[tuple[Any, Any, _KeyPath]]:
    """The leaves of both values in pairs, with the keys that lead to them."""
    text = (str, bytes)
    if (
        isinstance(actual, Sequence)
        and isinstance(expected, Sequence)
        and not isinstance(actual, text)
        and not isinstance(expected, text)
    ):
        if len(actual) != len(expected):
            message = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _Mismatch(_located(message, path))
        for i, (left, right) in enumerate(zip(actual, expected)):
            yield from _pairs(left, right, (*path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _check_keys(actual, expected, path)
        for key in _in_order(list(actual)):
            yield from _pairs(actual[key], expected[key], (*path, key))
    else:
        yield actual, expected, path


def _in_order(keys: list[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:  # keys of different types
        return keys


def _check_keys(actual: Any, expected: Any, path: _KeyPath) -> None:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        wrong = "The keys of the mappings do not match:"
        if missing:
            wrong += f"\nMissing keys in the actual mapping: {_in_order(list(missing))}"
        if additional:
            wrong += f"\nAdditional keys in the actual mapping: {_in_order(list(additional))}"
        raise _Mismatch(_located(wrong, path))


def _located(text: str, path: _KeyPath) -> str:
    if not path:
        return text
    return f"{text}\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}"


def _first_mismatch(actual: Any, expected: Any, options: _Options) -> str | None:
    try:
        leaves = [_leaf(left, right, options, path) for left, right, path in _pairs(actual, expected, ())]
    except _Mismatch as wrong:
        return str(wrong)
    for leaf in leaves:
        try:
            leaf.compare(leaf.actual, leaf.expected, options)
        except _Mismatch as wrong:
            return _located(str(wrong), leaf.path)
    return None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless two tensors, numbers or nested containers of them are close."""
    if (rtol is None) is not (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    options = _Options(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride
    )
    wrong = _first_mismatch(actual, expected, options)
    if wrong is None:
        return
    if isinstance(msg, str):
        wrong = msg
    elif callable(msg):
        wrong = msg(wrong)
    raise AssertionError(wrong)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older form of `assert_close`, with larger tolerances and no check of dtype and device."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    left, right = (v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in (actual, expected))
    if rtol is None and atol is None:
        pairs = [_ALLCLOSE_TOLERANCES.get(str(t.dtype), (0.0, 0.0)) for t in (left, right)]
        rtol, atol = max(r for r, _ in pairs), max(a for _, a in pairs)
    assert_close(
        left,
        right,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
