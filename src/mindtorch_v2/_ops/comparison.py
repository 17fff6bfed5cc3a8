"""Comparisons, logic and bits: results that no gradient flows through."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import composite, function, op
from .._dtype import BY_NUM, INTEGRAL_NUMS
from . import _shown
from ._namespace import functions as F


def _comparison(name: str, ufunc: Any, aliases: tuple[str, ...], operators: tuple[str, ...]) -> Any:
    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        return ufunc(self, other, out)

    def ordered(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.kind == "c":
            raise _dispatch.not_implemented(f"{name}_cpu", self)
        return ufunc(self, other, out)

    compare = op(
        f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote="compare",
        inplace=True,
        out=True,
        nondifferentiable=True,
        operators=operators,
    )(ordered if operators else kernel)

    for alias in aliases:
        function(alias)(compare)
        function(alias + "_", expose="method")(compare.inplace)
    return compare


eq = _comparison("eq", np.equal, (), ())
ne = _comparison("ne", np.not_equal, ("not_equal",), ())
lt = _comparison("lt", np.less, ("less",), ("__lt__",))
le = _comparison("le", np.less_equal, ("less_equal",), ("__le__",))
gt = _comparison("gt", np.greater, ("greater",), ("__gt__",))
ge = _comparison("ge", np.greater_equal, ("greater_equal",), ("__ge__",))


@function("__eq__", expose="method")
def _eq(self: Any, other: Any) -> Any:
    """Element by element; False for what is no tensor and no number."""
    if other.__class__ in _dispatch.NUMBERS or isinstance(other, _dispatch.Tensor):
        return eq(self, other)
    return NotImplemented


@function("__ne__", expose="method")
def _ne(self: Any, other: Any) -> Any:
    """Element by element; True for what is no tensor and no number."""
    if other.__class__ in _dispatch.NUMBERS or isinstance(other, _dispatch.Tensor):
        return ne(self, other)
    return NotImplemented


_BIT_KERNELS = {"bitwise_left_shift": "lshift_cpu", "bitwise_right_shift": "rshift_cpu"}


def _bitwise(name: str, ufunc: Any, operators: tuple[str, ...], inplace_operators: tuple[str, ...]) -> Any:
    shifts = name in _BIT_KERNELS

    @op(
        f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote="same",
        inplace=True,
        out=True,
        nondifferentiable=True,
        operators=operators,
        inplace_operators=inplace_operators,
    )
    def bits(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.num not in INTEGRAL_NUMS or (shifts and self.dtype.kind == "b"):
            raise _dispatch.not_implemented(_BIT_KERNELS.get(name, f"{name}_cpu"), self)
        return ufunc(self, other, out)

    return bits


def _bit_operator(name: str, bits: Any) -> None:
    """`x & y`: torch shows the operator as an op of its own around the bitwise one."""

    @composite(f"aten::{name}.Tensor(Tensor self, Tensor other) -> Tensor", expose="no")
    def shown(self: Any, other: Any) -> Any:
        return bits(self, other)

    direct = bits.op.operator

    def operator(self: Any, other: Any) -> Any:
        if _dispatch.recorder is None:
            return direct(self, other)
        if other.__class__ not in _dispatch.NUMBERS and not isinstance(other, _dispatch.Tensor):
            return NotImplemented
        return shown(self, other)

    operator.__name__ = name
    function(name, expose="method")(operator)


for _name, _ufunc, _short in (
    ("bitwise_and", np.bitwise_and, "and"),
    ("bitwise_or", np.bitwise_or, "or"),
    ("bitwise_xor", np.bitwise_xor, "xor"),
):
    _bit_operator(f"__{_short}__", _bitwise(_name, _ufunc, (f"__r{_short}__",), (f"__i{_short}__",)))
_bitwise("bitwise_left_shift", np.left_shift, ("__lshift__",), ("__ilshift__",))
_bitwise("bitwise_right_shift", np.right_shift, ("__rshift__",), ("__irshift__",))


@function("__rlshift__", expose="method")
def _rlshift(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return F.bitwise_left_shift(F.tensor(other), self)


@function("__rrshift__", expose="method")
def _rrshift(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return F.bitwise_right_shift(F.tensor(other), self)


@op("aten::bitwise_not(Tensor self) -> Tensor", inplace=True, out=True, nondifferentiable=True)
def bitwise_not(self: Any, out: Any = None) -> Any:
    if self.dtype.num not in INTEGRAL_NUMS:
        raise _dispatch.not_implemented("bitwise_not_cpu", self)
    return np.invert(self, out)


@function("__invert__", expose="method")
def _invert(self: Any) -> Any:
    if self.dtype._rank > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


def _logical(name: str, ufunc: Any) -> Any:
    @op(f"aten::{name}(Tensor self, Tensor other) -> Tensor", inplace=True, out=True, nondifferentiable=True)
    def logic(self: Any, other: Any) -> Any:
        return ufunc(self, other)

    into = _shown.writer(
        f"aten::{name}.out(Tensor self, Tensor other, *, Tensor out) -> Tensor(a!)", ufunc
    )

    @logic.recorded
    def _(self: Any, other: Any) -> Any:
        _shown.empty_buffer(_dtype.bool_)
        return _shown.kernel_of(logic, self, other)

    logic.inplace.recorded(lambda self, other: into(self, other, self))
    return logic


_logical("logical_and", np.logical_and)
_logical("logical_or", np.logical_or)
_logical("logical_xor", np.logical_xor)


@op("aten::logical_not(Tensor self) -> Tensor", inplace=True, out=True, nondifferentiable=True)
def logical_not(self: Any) -> Any:
    return np.logical_not(self)


_logical_not_into = _shown.writer(
    "aten::logical_not.out(Tensor self, *, Tensor out) -> Tensor(a!)", np.logical_not
)


@logical_not.recorded
def _(self: Any) -> Any:
    _shown.empty_buffer(_dtype.bool_)
    return _shown.kernel_of(logical_not, self)


logical_not.inplace.recorded(lambda self: _logical_not_into(self, self))


def _test(name: str, kernel: Any) -> Any:
    return op(
        f"aten::{name}(Tensor self) -> Tensor",
        nondifferentiable=True,
        out=name in ("isposinf", "isneginf", "signbit"),
    )(kernel)


def _floating_only(ufunc: Any) -> Any:
    def kernel(self: np.ndarray) -> np.ndarray:
        return np.zeros(self.shape, bool) if self.dtype.num in INTEGRAL_NUMS else ufunc(self)

    return kernel


def _real_only(name: str, kernel: Any) -> Any:
    def checked(self: np.ndarray) -> np.ndarray:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return kernel(self)

    return checked


def _signbit(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return (self < 0) if self.dtype.num in INTEGRAL_NUMS else np.signbit(self)


_test("isnan", _floating_only(np.isnan)).recorded(lambda self: ne(self, self))
_test("isinf", _floating_only(np.isinf))
_test("isposinf", _real_only("isposinf", lambda self: self == np.inf))
_test("isneginf", _real_only("isneginf", lambda self: self == -np.inf))
_is_finite = _test(
    "isfinite",
    lambda self: np.ones(self.shape, bool) if self.dtype.num in INTEGRAL_NUMS else np.isfinite(self),
)


def _shown_finite(self: Any) -> Any:
    if self.dtype._rank != 2:
        return _shown.kernel_of(_is_finite, self)
    return F.mul(eq(self, self), ne(F.abs(self), np.inf))


_is_finite.recorded(_shown_finite)
_test("isreal", lambda self: np.isreal(self))
_test("signbit", _signbit)


@op(
    "aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    nondifferentiable=True,
)
def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    if self.dtype != other.dtype:
        raise RuntimeError(f"{BY_NUM[self.dtype.num]._abbr} did not match {BY_NUM[other.dtype.num]._abbr}")
    if rtol < 0 or atol < 0:
        which, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{which} must be greater than or equal to zero, but got {value}")
    if self.dtype.num in INTEGRAL_NUMS:
        self, other = self.astype(np.float64), other.astype(np.float64)
    return np.isclose(self, other, rtol, atol, equal_nan)


@composite(
    "aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool"
)
def allclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(F.all(isclose(self, other, rtol, atol, equal_nan)).item())


@op("aten::equal(Tensor self, Tensor other) -> bool", nondifferentiable=True)
def equal(self: Any, other: Any) -> bool:
    return bool(np.array_equal(self, other))


@op("aten::is_same_size(Tensor self, Tensor other) -> bool", nondifferentiable=True)
def is_same_size(self: Any, other: Any) -> bool:
    return self.shape == other.shape


@equal.recorded
def _(self: Any, other: Any) -> bool:
    is_same_size(self, other)
    return bool(np.array_equal(self._array, other._array))


@op(
    "aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    nondifferentiable=True,
    expose="no",
)
def isin_op(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    return np.isin(elements, test_elements, assume_unique, invert)


@function(expose="function")
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Any = None
) -> Any:
    """Which elements are among the test elements."""

    def as_tensor(value: Any) -> Any:
        return value if isinstance(value, _dispatch.Tensor) else F.tensor(value)

    return isin_op(as_tensor(elements), as_tensor(test_elements), assume_unique=assume_unique, invert=invert)
