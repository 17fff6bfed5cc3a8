"""Comparisons, logical and bitwise ops: none of them is differentiable; gradients of tensors that they overwrite are zero."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import _dispatch, _dtype, _op_errors
from .._dispatch import OPS, composite, function, op
from .._dtype import INTEGRAL_NUMS
from ._children import child
from ._namespace import functions as F


def _comparison(
    aten_name: str, inplace: str, ufunc: Any, aliases: tuple[str, ...], operators: tuple[str, ...]
) -> Any:
    name = aten_name.removeprefix("aten::")

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        return ufunc(self, other, out)

    def ordered(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name}_cpu", self)
        return ufunc(self, other, out)

    compare = op(
        f"{aten_name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote="compare",
        inplace=f"{inplace}.Tensor",
        out=True,
        nondifferentiable=True,
        operators=operators,
    )(ordered if operators else kernel)
    # of the in-place form: what was in the tensor before has no influence any more
    compare.derivative(self=lambda g: F.zeros_like(g), other=lambda g: F.zeros_like(g))

    for alias in aliases:
        function(alias)(compare)
        function(alias + "_", expose="method")(compare.inplace)
    return compare


eq = _comparison("aten::eq", "aten::eq_", np.equal, (), ())
ne = _comparison("aten::ne", "aten::ne_", np.not_equal, ("not_equal",), ())
lt = _comparison("aten::lt", "aten::lt_", np.less, ("less",), ("__lt__",))
le = _comparison("aten::le", "aten::le_", np.less_equal, ("less_equal",), ("__le__",))
gt = _comparison("aten::gt", "aten::gt_", np.greater, ("greater",), ("__gt__",))
ge = _comparison("aten::ge", "aten::ge_", np.greater_equal, ("greater_equal",), ("__ge__",))


@function("__eq__", expose="method")
def _eq(self: Any, other: Any) -> Any:
    """Compare element by element; False if `other` is neither a tensor nor a number."""
    if other.__class__ in _dispatch.NUMBERS or isinstance(other, _dispatch.Tensor):
        return eq(self, other)
    return NotImplemented


@function("__ne__", expose="method")
def _ne(self: Any, other: Any) -> Any:
    """Compare element by element; True if `other` is neither a tensor nor a number."""
    if other.__class__ in _dispatch.NUMBERS or isinstance(other, _dispatch.Tensor):
        return ne(self, other)
    return NotImplemented


_BIT_KERNELS = {"bitwise_left_shift": "lshift_cpu", "bitwise_right_shift": "rshift_cpu"}


def _bitwise(aten_name: str, inplace: str, ufunc: Any, operators: tuple[str, ...] = ()) -> Any:
    name = aten_name.removeprefix("aten::")
    shifts = name in _BIT_KERNELS

    @op(
        f"{aten_name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote="same",
        inplace=f"{inplace}.Tensor",
        out=True,
        nondifferentiable=True,
        operators=operators,
    )
    def bits(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.num not in INTEGRAL_NUMS or (shifts and self.dtype.kind == "b"):
            raise _op_errors.not_implemented(_BIT_KERNELS.get(name, f"{name}_cpu"), self)
        return ufunc(self, other, out)

    return bits


def _bit_operator(aten_name: str, text: str, body: Any, declare: Any = composite) -> Any:
    """`x & y`: an op of its own, around the bitwise op or in its place. `text`: the schema after the overload's name, with a gap for
    the type of the second operand."""
    name = aten_name.removeprefix("aten::")
    tensors = declare(f"{aten_name}.Tensor{text.format('Tensor')}", expose="no")(body)
    numbers = declare(f"{aten_name}.Scalar{text.format('Scalar')}", expose="no")(body)

    def operator(self: Any, other: Any) -> Any:
        if not isinstance(self, _dispatch.Tensor):
            _dispatch.not_a_method(tensors.op, self)
        if isinstance(other, _dispatch.Tensor):
            return tensors(self, other)
        return numbers(self, other) if other.__class__ in _dispatch.NUMBERS else NotImplemented

    operator.__name__ = name
    function(name, expose="method")(operator)
    return tensors


_NEW = "(Tensor self, {} other) -> Tensor"
_WRITTEN = "(Tensor(a!) self, {} other) -> Tensor(a!)"


def _bit_operators(aten_name: str, inplace: str, bits: Any) -> Any:
    """Declare `&` and `&=` around the bitwise op; returns the latter."""
    _bit_operator(aten_name, _NEW, bits)
    return _bit_operator(inplace, _WRITTEN, bits.inplace)


def _shift_operators(aten_name: str, inplace: str, bits: Any) -> None:
    """Declare `<<` and `<<=` in the place of the bitwise op."""
    declare = partial(op, on="tensors", nondifferentiable=True)
    _bit_operator(aten_name, _NEW, lambda self, other: bits.op.run(self, other), declare)
    _bit_operator(inplace, _WRITTEN, lambda self, other: bits.inplace.op.run(self, other), declare)


_iand = _bit_operators(
    "aten::__and__",
    "aten::__iand__",
    _bitwise("aten::bitwise_and", "aten::bitwise_and_", np.bitwise_and, ("__rand__",)),
)
_ior = _bit_operators(
    "aten::__or__",
    "aten::__ior__",
    _bitwise("aten::bitwise_or", "aten::bitwise_or_", np.bitwise_or, ("__ror__",)),
)
_bit_operators(
    "aten::__xor__",
    "aten::__ixor__",
    _bitwise("aten::bitwise_xor", "aten::bitwise_xor_", np.bitwise_xor, ("__rxor__",)),
)
_shift_operators(
    "aten::__lshift__",
    "aten::__ilshift__",
    _bitwise("aten::bitwise_left_shift", "aten::bitwise_left_shift_", np.left_shift),
)
_shift_operators(
    "aten::__rshift__",
    "aten::__irshift__",
    _bitwise("aten::bitwise_right_shift", "aten::bitwise_right_shift_", np.right_shift),
)


@function("__rlshift__", expose="method")
def _rlshift(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return F.bitwise_left_shift(other, self)


@function("__rrshift__", expose="method")
def _rrshift(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return F.bitwise_right_shift(other, self)


@op(
    "aten::bitwise_not(Tensor self) -> Tensor",
    pointwise=True,
    inplace="aten::bitwise_not_",
    out=True,
    nondifferentiable=True,
)
def bitwise_not(self: Any, out: Any = None) -> Any:
    if self.dtype.num not in INTEGRAL_NUMS:
        raise _op_errors.not_implemented("bitwise_not_cpu", self)
    return np.invert(self, out)


@function("__invert__", expose="method")
def _invert(self: Any) -> Any:
    if self.dtype._rank > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


def _logical(aten_name: str, inplace: str, ufunc: Any) -> Any:
    @op(
        f"{aten_name}(Tensor self, Tensor other) -> Tensor",
        pointwise=True,
        inplace=inplace,
        out=True,
        nondifferentiable=True,
    )
    def logic(self: Any, other: Any) -> Any:
        return ufunc(self, other)

    logic.inplace.children(lambda self, other: [child(f"{aten_name}.out", self, other, self)])


_logical("aten::logical_and", "aten::logical_and_", np.logical_and)
_logical("aten::logical_or", "aten::logical_or_", np.logical_or)
_logical("aten::logical_xor", "aten::logical_xor_", np.logical_xor)


@op(
    "aten::logical_not(Tensor self) -> Tensor",
    pointwise=True,
    inplace="aten::logical_not_",
    out=True,
    nondifferentiable=True,
)
def logical_not(self: Any) -> Any:
    return np.logical_not(self)


logical_not.inplace.children(lambda self: [child("aten::logical_not.out", self, self)])


def _test(aten_name: str, kernel: Any, out: bool = False) -> Any:
    return op(f"{aten_name}(Tensor self) -> Tensor", pointwise=True, nondifferentiable=True, out=out)(kernel)


def _floating_only(ufunc: Any) -> Any:
    def kernel(self: np.ndarray) -> np.ndarray:
        return np.zeros(self.shape, bool) if self.dtype.num in INTEGRAL_NUMS else ufunc(self)

    return kernel


def _real_only(name: str, kernel: Any) -> Any:
    def checked(self: np.ndarray) -> np.ndarray:
        if self.dtype.kind in "cW":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return kernel(self)

    return checked


def _signbit(self: np.ndarray) -> np.ndarray:
    if self.dtype.kind in "cW":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return (self < 0) if self.dtype.num in INTEGRAL_NUMS else np.signbit(self)


_test("aten::isnan", _floating_only(np.isnan)).children(
    lambda self: [child("aten::ne.Tensor", self, self, allocates=True)]
)


@op("aten::isinf(Tensor self) -> Tensor", on="tensors", nondifferentiable=True)
def isinf(self: Any) -> Any:
    rank = self.dtype._rank
    if rank < 2:
        return _filled_like(self, "zeros_like")
    if rank == 2:
        return eq(F.abs(self), np.inf)
    return _ior(isinf(F.real(self)), isinf(F.imag(self)))


def _check_tensors(entry: Any, *arguments: Any) -> None:
    if not all(isinstance(value, _dispatch.Tensor) for value in arguments):
        _op_errors.bad_argument(entry.op, arguments)


def _filled_like(self: Any, name: str) -> Any:
    return OPS[name].entry(self, dtype=_dtype.bool_, memory_format=_dtype.preserve_format)


_test("aten::isposinf", _real_only("isposinf", lambda self: self == np.inf), out=True)
_test("aten::isneginf", _real_only("isneginf", lambda self: self == -np.inf), out=True)


@composite("aten::isfinite(Tensor self) -> Tensor")
def isfinite(self: Any) -> Any:
    _check_tensors(isfinite, self)
    if self.dtype._rank < 2:
        return _filled_like(self, "ones_like")
    if self.dtype._rank == 3:
        return _iand(isfinite(F.real(self)), isfinite(F.imag(self)))
    below = ne(F.abs(self), np.inf)
    return F.mul(eq(self, self), below)


_test("aten::isreal", lambda self: np.isreal(self.astype(np.complex64) if self.dtype.kind == "W" else self))
_test("aten::signbit", _signbit, out=True)


def _check_close(one: Any, two: Any, rtol: float, atol: float) -> None:
    if one is not two:
        raise RuntimeError(f"{one._abbr} did not match {two._abbr}")
    if rtol < 0 or atol < 0:
        which, value = ("rtol", rtol) if rtol < 0 else ("atol", atol)
        raise RuntimeError(f"{which} must be greater than or equal to zero, but got {value}")


@composite(
    "aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor"
)
def isclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    _check_tensors(isclose, self, other)
    _check_close(self.dtype, other.dtype, rtol, atol)
    close = eq(self, other)
    if equal_nan and self.dtype._rank >= 2:
        close = _ior(close, _iand(F.isnan(self), F.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    wide = other.to(_dtype.Default.dtype) if self.dtype._rank < 2 else other
    if self.dtype._rank == 0:
        self = self.to(_dtype.Default.dtype)
    allowed = F.add(F.abs(F.mul(wide, rtol)), atol)
    actual = F.abs(F.sub(self, wide))
    return _ior(close, _iand(isfinite(actual), F.le(actual, allowed)))


@op(
    "aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    on="tensors",
    nondifferentiable=True,
)
def allclose(self: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> bool:
    return bool(F.all(isclose(self, other, rtol, atol, equal_nan)).item())


@op("aten::equal(Tensor self, Tensor other) -> bool", nondifferentiable=True)
def equal(self: Any, other: Any) -> bool:
    return bool(np.array_equal(self, other))


@op("aten::is_same_size(Tensor self, Tensor other) -> bool", nondifferentiable=True)
def is_same_size(self: Any, other: Any) -> bool:
    return self.shape == other.shape


equal.children(lambda self, other: [child("aten::is_same_size", self, other)])


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

    found = isin_op(as_tensor(elements), as_tensor(test_elements), assume_unique=assume_unique, invert=invert)
    return _dispatch.into_out(found, out)
