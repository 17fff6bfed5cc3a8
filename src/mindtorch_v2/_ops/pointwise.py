"""Element by element: arithmetic of two tensors, or of a tensor and a number."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from mindtorch_prof.flops import elementwise_flops
from mindtorch_prof.inputs import TensorInput

from .. import _dispatch, _op_errors
from .._deprecated_signatures import call as call_with_factors
from .._dispatch import function, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS, Default, preserve_format
from . import _core
from ._children import UNKNOWN, child
from ._namespace import functions as F
from ._overlap import multiplied_into, scaled_into
from ._where import where


def flops_of_self(self: Any, *_: Any) -> int:
    """Flops of add and mul."""
    return elementwise_flops(self.numel())


def _scaled(other: Any, alpha: Any, self: np.ndarray) -> Any:
    """alpha * other in self's dtype."""
    if self.dtype.num in INTEGRAL_NUMS and not isinstance(alpha, (int, np.integer)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and self.dtype.kind not in "cW":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if self.dtype.kind == "b":
        return np.logical_and(other, alpha)
    scaled = np.multiply(other, alpha)
    return scaled if scaled.dtype is self.dtype else scaled.astype(self.dtype)


def wide(array: Any) -> Any:
    """Half or bfloat16 as float32: torch's kernels work in it and round once, at the end."""
    return np.asarray(array).astype(np.float32)


def rounded(result: Any, dtype: np.dtype, out: Any) -> Any:
    if out is None:
        return result.astype(dtype)
    np.copyto(out, result, casting="unsafe")
    return out


@op(
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote="same",
    inplace="aten::add_.Tensor",
    out=True,
    operators=("__add__", "__radd__"),
    inplace_operators=("__iadd__",),
    expose="no",
    flops=flops_of_self,
)
def add_tensor(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
    if alpha != 1:
        if self.dtype in LOW_FLOATS:
            return rounded(wide(self) + wide(other) * float(self.dtype.type(alpha)), self.dtype, out)
        fused = _core.add_scaled(self, other, alpha, out)
        if fused is not None:
            return fused
        other = _scaled(other, alpha, self)
    return np.add(self, other, out)


add_tensor.derivative(self=lambda g: g, other=lambda g, alpha: g if alpha == 1 else g * conj(alpha))


@op(
    "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    promote="same",
    inplace="aten::sub_.Tensor",
    out=True,
    operators=("__sub__",),
    inplace_operators=("__isub__",),
    expose="no",
)
def sub_tensor(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
    if self.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
            if np.asarray(other).dtype.kind == "b"
            else "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    if alpha != 1:
        if self.dtype in LOW_FLOATS:
            return rounded(wide(self) - wide(other) * float(self.dtype.type(alpha)), self.dtype, out)
        other = _scaled(other, alpha, self)
    return np.subtract(self, other, out)


sub_tensor.derivative(self=lambda g: g, other=lambda g, alpha: -g if alpha == 1 else -g * conj(alpha))
add_tensor.op.inplace.kernel = scaled_into(np.add, add_tensor.op.kernel)
sub_tensor.op.inplace.kernel = scaled_into(np.subtract, sub_tensor.op.kernel)


@op(
    "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    on="tensors",
    expose="no",
)
def rsub_tensor(self: Any, other: Any, alpha: Any) -> Any:
    return F.sub(other, self, alpha=alpha)


rsub_tensor.derivative(self=lambda g, alpha: -g if alpha == 1 else -g * conj(alpha), other=lambda g: g)


@op(
    "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise=True,
    expose="no",
    node="RsubBackward1",
)
def rsub_scalar(self: Any, other: Any, alpha: Any) -> Any:
    if self.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    array, number = _dispatch.promote_number(self, other)
    if alpha != 1:
        array = np.multiply(array, alpha)
    return np.subtract(number, array)


rsub_scalar.derivative(self=lambda g, alpha: -g if alpha == 1 else -g * conj(alpha))


def _as_zero_dim(value: Any, like: Any) -> Any:
    """A Python number as the 0-dim tensor that torch boxes it in."""
    array = np.asarray(value)
    if array.dtype == np.float64:
        array = array.astype(Default.np if like.dtype._rank < 2 else like._array.dtype)
    return _dispatch.wrap(array)


def _boxed(number: Any) -> Any:
    """A described Python number as the 0-dim tensor that torch boxes it in."""
    if number is UNKNOWN:
        return UNKNOWN
    return TensorInput((), (), "double" if isinstance(number, float) else "long int")


rsub_scalar.children(
    lambda self, other, alpha: [child("aten::sub.Tensor", _boxed(other), self, alpha, allocates=True)]
)


@op(
    "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
    promote="same",
    inplace="aten::mul_.Tensor",
    out=True,
    operators=("__mul__", "__rmul__"),
    inplace_operators=("__imul__",),
    flops=flops_of_self,
)
def mul(self: Any, other: Any, out: Any = None) -> Any:
    if other.__class__ is np.float32 and self.dtype in LOW_FLOATS:
        return rounded(np.multiply(wide(self), other), self.dtype, out)
    return np.multiply(self, other, out)


mul.op.inplace.kernel = multiplied_into(np.multiply, mul.op.kernel)


def conj(value: Any) -> Any:
    """The conjugate of a complex tensor or number; anything real as it is."""
    if isinstance(value, _dispatch.Tensor):
        return F.conj(value) if value._array.dtype.kind in "cW" else value
    return value.conjugate() if isinstance(value, complex) else value


def times_conj(g: Any, value: Any) -> Any:
    """g times the conjugate of a value."""
    if isinstance(value, _dispatch.Tensor):
        if value._array.dtype.kind not in "cW":
            return g * value
        return g * F.conj(value)
    return g * conj(value)


mul.derivative(self=lambda g, other: times_conj(g, other), other=lambda g, self: times_conj(g, self))


@op(
    "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
    promote="float",
    inplace="aten::div_.Tensor",
    out=True,
    operators=("__truediv__",),
    inplace_operators=("__itruediv__",),
    expose="no",
)
def div_tensor(self: Any, other: Any, out: Any = None) -> Any:
    if other.__class__ is np.float32 and self.dtype in LOW_FLOATS:
        return rounded(np.true_divide(wide(self), other), self.dtype, out)
    return np.true_divide(self, other, out)


div_tensor.op.inplace.kernel = multiplied_into(np.true_divide, div_tensor.op.kernel)
div_tensor.derivative(
    self=lambda g, other: g / conj(other),
    other=lambda g, self, other: _divisor_grad(g, self, other),
)


def _divisor_grad(g: Any, self: Any, other: Any) -> Any:
    quotient = conj(
        (self / other) / other
    )  # before the other factor, as in torch: its node has the lower number
    return -g * quotient


def _check_divisor(kernel: str, self: Any, other: Any) -> None:
    if self.dtype.num in INTEGRAL_NUMS:
        if self.dtype.kind == "b":
            raise _op_errors.not_implemented(kernel, self)
        if np.any(np.equal(other, 0)):
            raise RuntimeError("ZeroDivisionError")


def _divided(self: Any, other: Any, floor: bool) -> Any:
    """Remainders, or quotients rounded down, of float32 arrays by the compiled loop, which takes an eighth of NumPy's time."""
    if self.__class__ is not np.ndarray or self.dtype.char != "f" or not self.ndim:
        return None
    return _core.remainder(
        self, np.asarray(other, np.float32 if other.__class__ in (int, float) else None), floor
    )


def _floored(self: Any, other: Any) -> Any:
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("div_floor_cpu", self)
    if self.dtype.num in INTEGRAL_NUMS:
        _check_divisor("div_floor_cpu", self, other)
        return np.floor_divide(self, other)
    fused = _divided(self, other, True)
    if fused is not None:
        return fused
    with np.errstate(all="ignore"):
        quotient = np.floor_divide(self, other)
        return where(np.equal(other, 0), np.true_divide(self, other), quotient).astype(self.dtype, copy=False)


def _truncated(self: Any, other: Any) -> Any:
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("div_trunc_cpu", self)
    if self.dtype.num in INTEGRAL_NUMS:
        _check_divisor("div_trunc_cpu", self, other)
        quotient = np.floor_divide(self, other)
        remainder = self - quotient * other
        return (quotient + ((remainder != 0) & ((self < 0) != (np.asarray(other) < 0)))).astype(self.dtype)
    return np.trunc(np.true_divide(self, other))


@op(
    "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    promote="same",
    inplace="aten::div_.Tensor_mode",
    expose="no",
    node="DivBackward2",
)
def div_mode(self: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        if self.dtype.num in INTEGRAL_NUMS:
            self = self.astype(Default.np)
        return np.true_divide(self, other)
    if rounding_mode == "floor":
        return _floored(self, other)
    if rounding_mode == "trunc":
        return _truncated(self, other)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


div_mode.derivative(
    self=lambda g, other, rounding_mode: g / other if rounding_mode is None else F.zeros_like(g),
    other=lambda g, self, other, rounding_mode: (
        _divisor_grad(g, self, other) if rounding_mode is None else F.zeros_like(g)
    ),
)


@op(
    "aten::floor_divide(Tensor self, Tensor other) -> Tensor",
    promote="same",
    inplace="aten::floor_divide_",
    out=True,
    node="NotImplemented",
    operators=("__floordiv__",),
    inplace_operators=("__ifloordiv__",),
)
def floor_divide(self: Any, other: Any) -> Any:
    return _floored(self, other)


def _no_gradient(g: Any) -> Any:
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


floor_divide.derivative(self=_no_gradient, other=_no_gradient)


def _declare_remainder(aten_name: str, inplace: str, ufunc: Any, rounding_mode: str) -> tuple[Any, Any]:
    """The remainder of a division by a tensor and by a number: two overloads whose nodes have different names."""
    name = aten_name.removeprefix("aten::")

    def remainders(self: Any, other: Any) -> Any:
        fused = _divided(self, other, False) if rounding_mode == "floor" else None
        return ufunc(self, other) if fused is None else fused

    @op(
        f"{aten_name}.Tensor(Tensor self, Tensor other) -> Tensor",
        promote="same",
        inplace=f"{inplace}.Tensor",
        out=True,
        expose="no",
        node=f"{name.capitalize()}Backward1",
    )
    def by_tensor(self: Any, other: Any) -> Any:
        _check_divisor(f"{name}_cpu", self, other)
        return remainders(self, other)

    by_tensor.derivative(
        self=lambda g: g, other=lambda g, self, other: -g * F.div(self, other, rounding_mode=rounding_mode)
    )

    @op(
        f"{aten_name}.Scalar(Tensor self, Scalar other) -> Tensor",
        pointwise=True,
        inplace=f"{inplace}.Scalar",
        out=True,
        expose="no",
    )
    def by_number(self: Any, other: Any) -> Any:
        self, other = _dispatch.promote_number(self, other)
        if self.dtype.kind in "cW":
            raise _op_errors.not_implemented(f"{name}_cpu", self)
        _check_divisor(f"{name}_cpu", self, other)
        return remainders(self, other)

    by_number.derivative(self=lambda g: g)

    def front(input: Any, other: Any, *, out: Any = None) -> Any:
        numeric = other.__class__ in _dispatch.NUMBERS and isinstance(input, _dispatch.Tensor)
        return (by_number if numeric else by_tensor)(input, other, out=out)

    def front_inplace(input: Any, other: Any) -> Any:
        return (by_number if other.__class__ in _dispatch.NUMBERS else by_tensor).inplace(input, other)

    front.__name__, front_inplace.__name__ = name, name + "_"
    front.__doc__ = f"What is left of a division with a quotient rounded by {rounding_mode}."
    function(name)(front)
    function(name + "_", expose="method")(front_inplace)
    return front, front_inplace


remainder, remainder_ = _declare_remainder("aten::remainder", "aten::remainder_", np.remainder, "floor")
_declare_remainder("aten::fmod", "aten::fmod_", np.fmod, "trunc")


@function("__mod__", expose="method")
def _mod(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS and not isinstance(other, _dispatch.Tensor):
        return NotImplemented
    return remainder(self, other)


function("__imod__", expose="method")(remainder_)


# ---------------------------------------------------------------------------------------------------- functions with several overloads


def _front_with_alpha(name: str, tensors: Any) -> None:
    def front(input: Any, other: Any, *more: Any, alpha: Any = 1, out: Any = None) -> Any:
        if more:
            return call_with_factors(
                front, name, ("input", "other"), (input, other, *more), alpha=alpha, out=out
            )
        if alpha == 1 and out is None:
            return tensors(input, other)
        return tensors(input, other, alpha=alpha, out=out)

    front.__name__ = name
    front.__doc__ = f"`input` {name} `alpha * other`, element by element."
    function(name)(front)
    function(name + "_", expose="both")(tensors.inplace)


_front_with_alpha("add", add_tensor)
_front_with_alpha("sub", sub_tensor)
F_SUB = _dispatch.FUNCTIONS["sub"]
function("subtract")(F_SUB)
function("subtract_", expose="method")(sub_tensor.inplace)
function("multiply")(mul)
function("multiply_", expose="method")(mul.inplace)


@function()
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Division; `rounding_mode` "floor" or "trunc" rounds the quotient."""
    if rounding_mode is None:
        return div_tensor(input, other) if out is None else div_tensor(input, other, out=out)
    quotient = div_mode(input, other, rounding_mode=rounding_mode)
    return _dispatch.into_out(quotient, out)


@function(expose="method")
def div_(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """In-place division."""
    if rounding_mode is None:
        return div_tensor.inplace(input, other)
    return div_mode.inplace(input, other, rounding_mode=rounding_mode)


for _name in ("divide", "true_divide"):
    function(_name)(div)
    function(_name + "_", expose="method")(div_)


@function()
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """`other - alpha * input`."""
    if not isinstance(input, _dispatch.Tensor):
        raise _op_errors.no_overload("rsub", input, other)
    if isinstance(other, _dispatch.Tensor):
        return rsub_tensor(input, other, alpha=alpha)
    return rsub_scalar(input, other, alpha)


# ---------------------------------------------------------------------------------------------------- reflected operators


@function("__rsub__", expose="method")
def _rsub(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return rsub_scalar(self, other, 1)


@function("__rtruediv__", expose="method")
def _rtruediv(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS and not isinstance(other, _dispatch.Tensor):
        return NotImplemented
    return self.reciprocal() * other


function("__rdiv__", expose="method")(_rtruediv)
function("__div__", expose="method")(_dispatch.METHODS["__truediv__"])
function("__idiv__", expose="method")(_dispatch.METHODS["__itruediv__"])


@function("__rfloordiv__", expose="method")
def _rfloordiv(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return floor_divide(_as_zero_dim(other, self), self)


@function("__rmod__", expose="method")
def _rmod(self: Any, other: Any) -> Any:
    if other.__class__ not in _dispatch.NUMBERS:
        return NotImplemented
    return remainder(_as_zero_dim(other, self), self)


def one_minus(tensor: Any, one: float = 1) -> Any:
    """`one - tensor` by the ops of torch's C++ operator: a new tensor is filled and then subtracted from."""
    empty_like = _dispatch.OPS["empty_like"].entry
    return F.sub_(F.fill_(empty_like(tensor, memory_format=preserve_format), one), tensor)


def one_over(tensor: Any) -> Any:
    """`1 / tensor` by the ops of torch's C++ operator, likewise."""
    empty_like = _dispatch.OPS["empty_like"].entry
    return F.div_(F.fill_(empty_like(tensor, memory_format=preserve_format), 1), tensor)


# ---------------------------------------------------------------------------------------------------- other functions of two


def floats_only(kernel: str, array: np.ndarray) -> None:
    if array.dtype.num in INTEGRAL_NUMS:
        raise _op_errors.not_implemented(kernel, array)


@op(
    "aten::atan2(Tensor self, Tensor other) -> Tensor",
    promote="float",
    numbers=False,
    inplace="aten::atan2_",
    out=True,
)
def atan2(self: Any, other: Any, out: Any = None) -> Any:
    return np.arctan2(self, other, out)


def _inverse_square(self: Any, other: Any) -> Any:
    """1 / (self² + other²), and 0 at the origin, where an angle has no derivative."""
    square = self * self + other * other
    return F.masked_fill(F.reciprocal(square), square == 0, 0)


atan2.derivative(
    self=lambda g, self, other: g * (other * _inverse_square(self, other)),
    other=lambda g, self, other: g * (-self * _inverse_square(self, other)),
)
function("arctan2")(atan2)
function("arctan2_", expose="method")(atan2.inplace)


@op(
    "aten::hypot(Tensor self, Tensor other) -> Tensor",
    promote="same",
    numbers=False,
    inplace="aten::hypot_",
    out=True,
)
def hypot(self: Any, other: Any, out: Any = None) -> Any:
    floats_only("hypot_cpu", self)
    return np.hypot(self, other, out)


hypot.derivative(self=lambda g, self, out: g * self / out, other=lambda g, other, out: g * other / out)


@op(
    "aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    promote="float",
    inplace="aten::copysign_.Tensor",
    out=True,
)
def copysign(self: Any, other: Any, out: Any = None) -> Any:
    return np.copysign(self, other, out)


copysign.derivative(
    self=lambda g, self, out: g * F.masked_fill_(out / self, self == 0, 0),
    other=lambda g, other_shape: F.zeros(other_shape, dtype=g.dtype),
)


@op(
    "aten::nextafter(Tensor self, Tensor other) -> Tensor",
    promote="same",
    numbers=False,
    inplace="aten::nextafter_",
    out=True,
)
def nextafter(self: Any, other: Any, out: Any = None) -> Any:
    floats_only("nextafter_cpu", self)
    return np.nextafter(self, other, out)


nextafter.derivative(
    self=lambda g, self, other: g * F.ne(self, other), other=lambda g: _dispatch.FUNCTIONS["zeros_like"](g)
)


@op(
    "aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
    promote="float",
    numbers=False,
    inplace="aten::ldexp_.Tensor",
    out=True,
)
def ldexp(self: Any, other: Any) -> Any:
    return np.multiply(self, np.exp2(other, dtype=self.dtype))


ldexp.derivative(
    self=lambda g, other: g * conj(F.exp2(other.to(g.dtype))),
    other=lambda g, out: g * conj(out) * 0.6931471805599453,
)


@op("aten::logaddexp(Tensor self, Tensor other) -> Tensor", promote="same", numbers=False, out=True)
def logaddexp(self: Any, other: Any) -> Any:
    floats_only("logaddexp_cpu", self)
    if self.dtype.kind in "cW":
        first = self.real >= other.real
        top, low = where(first, self, other), where(first, other, self)
        return top + np.log1p(np.exp(low - top))
    return np.logaddexp(self, other)


logaddexp.derivative(
    self=lambda g, self, other: g / conj(add_scalar(F.exp(other - self), 1)),
    other=lambda g, self, other: g / conj(add_scalar(F.exp(self - other), 1)),
)


@op("aten::logaddexp2(Tensor self, Tensor other) -> Tensor", promote="same", numbers=False, out=True)
def logaddexp2(self: Any, other: Any) -> Any:
    floats_only("logaddexp2_cpu", self)
    return np.logaddexp2(self, other)


logaddexp2.derivative(
    self=lambda g, self, other: g / add_scalar(F.pow(2, other - self), 1),
    other=lambda g, self, other: g / add_scalar(F.pow(2, self - other), 1),
)


# The Scalar overloads: composite ops call them as torch's do, and their autograd nodes have their own suffixes.


@op(
    "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise=True,
    inplace="aten::mul_.Scalar",
    expose="no",
    node="MulBackward1",
    flops=flops_of_self,
)
def mul_scalar(self: Any, other: Any) -> Any:
    return np.multiply(*_dispatch.promote_number(self, other))


mul_scalar.derivative(self=lambda g, other: mul_scalar(g, conj(other)))


def _multiply_in_place(self: Any, other: Any, out: Any = None) -> Any:
    array, number = _dispatch.promote_factor(self, other)
    if array is not self:
        result, wanted = (BY_NUM[x.dtype.num]._abbr for x in (array, self))
        raise RuntimeError(f"result type {result} can't be cast to the desired output type {wanted}")
    return mul.op.kernel(array, number, out)


mul_scalar.op.inplace.kernel = _multiply_in_place


@op(
    "aten::mul.out(Tensor self, Tensor other, *, Tensor out) -> Tensor(a!)",
    expose="no",
    on="tensors",
    nondifferentiable=True,
    flops=flops_of_self,
)
def mul_into(self: Any, other: Any, out: Any) -> Any:
    out._array[...] = self._array * getattr(other, "_array", other)  # `other` may be a number
    return out


mul_scalar.inplace.children(lambda self, other: [child("aten::mul.out", _boxed(other), self, self)])


@op(
    "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
    pointwise=True,
    inplace="aten::div_.Scalar",
    expose="no",
    node="DivBackward1",
)
def div_scalar(self: Any, other: Any) -> Any:
    return np.true_divide(
        *_dispatch.promote_number(
            self if self.dtype.num not in INTEGRAL_NUMS else self.astype(Default.np), other
        )
    )


div_scalar.derivative(self=lambda g, other: div_scalar(g, conj(other)))


@op(
    "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise=True,
    inplace="aten::add_.Scalar",
    expose="no",
    node="AddBackward1",
    flops=flops_of_self,
)
def add_scalar(self: Any, other: Any, alpha: Any) -> Any:
    return np.add(*_dispatch.promote_number(self, other * alpha))


add_scalar.derivative(self=lambda g: g)


@op(
    "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    pointwise=True,
    inplace="aten::sub_.Scalar",
    expose="no",
    node="SubBackward1",
)
def sub_scalar(self: Any, other: Any, alpha: Any) -> Any:
    return np.subtract(*_dispatch.promote_number(self, other * alpha))


sub_scalar.derivative(self=lambda g: g)


def _extreme(aten_name: str, ufunc: Any, better: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self, Tensor other) -> Tensor", promote="same", numbers=False, out=True)
    def extreme(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.kind in "cW":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return ufunc(self, other, out=out)

    def gradient(mine: str, theirs: str) -> Any:
        def rule(g: Any, self: Any, other: Any) -> Any:
            # no gradient where the other operand was chosen
            wins = F.lt if (better == "gt") == (mine == "self") else F.gt
            if not isinstance(self if mine == "self" else other, _dispatch.Tensor):
                return None
            half = div_scalar(g, 2)
            shared = F.where(self == other, half, g)
            return F.masked_fill_(shared, wins(self, other), 0)

        return rule

    extreme.derivative(self=gradient("self", "other"), other=gradient("other", "self"))
    return extreme


maximum = _extreme("aten::maximum", np.maximum, "gt")
minimum = _extreme("aten::minimum", np.minimum, "lt")


def _extreme_ignoring_nan(aten_name: str, ufunc: Any, compare: str) -> Any:
    name = aten_name.removeprefix("aten::")

    @op(f"{aten_name}(Tensor self, Tensor other) -> Tensor", promote="same", numbers=False, out=True)
    def extreme(self: Any, other: Any, out: Any = None) -> Any:
        if self.dtype.kind in "cW":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return ufunc(self, other, out)

    def mask(self: Any, other: Any) -> Any:
        return F.logical_or(getattr(F, compare)(self, other), F.isnan(other))

    extreme.derivative(
        self=lambda g, self, other: F.masked_fill(g, F.logical_not(mask(self, other)), 0),
        other=lambda g, self, other: F.masked_fill(g, mask(self, other), 0),
    )
    return extreme


fmax = _extreme_ignoring_nan("aten::fmax", np.fmax, "ge")
fmin = _extreme_ignoring_nan("aten::fmin", np.fmin, "le")


@op(
    "aten::gcd(Tensor self, Tensor other) -> Tensor",
    promote="same",
    numbers=False,
    inplace="aten::gcd_",
    out=True,
    nondifferentiable=True,
)
def gcd(self: Any, other: Any) -> Any:
    return np.gcd(self, other)


@op(
    "aten::lcm(Tensor self, Tensor other) -> Tensor",
    promote="same",
    numbers=False,
    inplace="aten::lcm_",
    out=True,
    nondifferentiable=True,
)
def lcm(self: Any, other: Any) -> Any:
    return np.abs(np.lcm(self, other))  # NumPy's is negative for some negative operands


@op(
    "aten::heaviside(Tensor self, Tensor values) -> Tensor",
    pointwise=True,
    inplace="aten::heaviside_",
    out=True,
)
def heaviside(self: Any, values: Any) -> Any:
    if self.dtype.kind in "cW" or values.dtype.kind in "cW":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return where(self == 0, values, (self > 0).astype(self.dtype))


def _no_heaviside_gradient(g: Any) -> NoReturn:
    raise RuntimeError("derivative for aten::heaviside is not implemented")


heaviside.derivative(self=_no_heaviside_gradient, values=_no_heaviside_gradient)


@op(
    "aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    promote="float",
    inplace="aten::xlogy_.Tensor",
    out=True,
)
def xlogy_tensor(self: Any, other: Any) -> Any:
    if self.dtype.kind in "cW":
        raise _op_errors.not_implemented("xlogy_cpu", self)
    product = (self * np.log(other)).astype(self.dtype, copy=False)
    return where((self == 0) & ~np.isnan(np.asarray(other)), np.zeros((), product.dtype), product)


xlogy_tensor.derivative(
    self=lambda g, self, other: F.masked_fill(
        F.xlogy(g, other), F.bitwise_and(self == 0.0, other <= 0.0), 0.0
    ),
    other=lambda g, self, other: g * self / other,
)


@function()
def xlogy(input: Any, other: Any, *, out: Any = None) -> Any:
    """`input * log(other)`, 0 where `input` is 0."""
    if not isinstance(input, _dispatch.Tensor):
        if not isinstance(other, _dispatch.Tensor):
            raise _op_errors.no_overload("xlogy", input, other)
        input = _as_zero_dim(input, other)
    return xlogy_tensor(input, other, out=out)
