"""Special functions that torch has only in torch.special: Bessel functions, orthogonal polynomials, normal distribution, zeta.

Kernels are SciPy's, loaded at their first use. Those without a derivative have none in torch either.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._dispatch import composite, op
from .._dtype import BY_NUM, LOW_FLOATS
from .._tensor import Tensor
from . import _dims
from ._namespace import functions as F
from ._where import where


@functools.cache
def _by_scipy(name: str) -> Any:
    from scipy import special

    return getattr(special, name)


def _special(name: str, array: np.ndarray) -> np.ndarray:
    return _by_scipy(name)(array)


def _refuse_low(name: str, array: np.ndarray) -> None:
    if array.dtype in LOW_FLOATS or array.dtype.kind in "cW":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{BY_NUM[array.dtype.num]._abbr}'")


def _declare(
    aten_name: str,
    kernel: Any,
    derivative: Any = None,
    low: bool = False,
    argument: str = "self",
    node: str | None = None,
) -> Any:
    """An op of one tensor; `low`: half and bfloat16 are computed in float32, else they are refused."""
    name = aten_name.removeprefix("aten::").removeprefix("special_")

    def body(self: np.ndarray) -> np.ndarray:
        if self.dtype in LOW_FLOATS and low:
            return kernel(self.astype(np.float32)).astype(self.dtype)
        _refuse_low(name, self)
        return np.asarray(kernel(self)).astype(self.dtype, copy=False)

    schema = f"{aten_name}(Tensor {argument}) -> Tensor"
    entry = op(
        schema, promote="float", out=True, expose="no", nondifferentiable=derivative is None, node=node
    )(body)
    if derivative is not None:
        entry.derivative(**{argument: derivative})
    return entry


def _entr(x: np.ndarray) -> np.ndarray:
    return _special("entr", x)


def _spherical_j0(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    values = np.sin(wide) / wide
    if np.count_nonzero(np.isnan(values)):
        values = where(wide == 0, 1, where(np.isinf(wide), 0, values))
    return values


def _i1_grad(g: Any, self: Any, out: Any) -> Any:
    zero = self == 0
    return g * F.where(zero, 0.5, F.i0(self) - out / F.where(zero, 1.0, self))


def _i1e_grad(g: Any, self: Any, out: Any) -> Any:
    zero = self == 0
    safe = F.where(zero, 1.0, self)
    return g * F.where(zero, 0.5, special_i0e(safe) - out * (F.sgn(safe) + 1 / safe))


special_entr = _declare("aten::special_entr", _entr, lambda g, self: g * (-F.log(self) - 1), low=True)
special_erfcx = _declare(
    "aten::special_erfcx",
    lambda x: _special("erfcx", x),
    lambda g, self, out: (2 * self * out - 2 / math.sqrt(math.pi)) * g,
)
special_i0e = _declare(
    "aten::special_i0e",
    lambda x: _special("i0e", x),
    lambda g, self, out: g * (special_i1e(self) - F.sgn(self) * out),
    low=True,
    node="SpecialI0EBackward0",
)
special_i1 = _declare("aten::special_i1", lambda x: _special("i1", x), _i1_grad, low=True)
special_i1e: Any = _declare(
    "aten::special_i1e", lambda x: _special("i1e", x), _i1e_grad, low=True, node="SpecialI1EBackward0"
)
special_log_ndtr = _declare(
    "aten::special_log_ndtr",
    lambda x: _special("log_ndtr", x),
    lambda g, self: g / special_erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
)
special_ndtri = _declare(
    "aten::special_ndtri",
    lambda x: _special("ndtri", x),
    lambda g, out: g * math.sqrt(2 * math.pi) * F.exp(out.square() / 2),
)
special_airy_ai = _declare(
    "aten::special_airy_ai", lambda x: _special("airy", x.astype(np.float64))[0], None, argument="x"
)
special_spherical_bessel_j0 = _declare("aten::special_spherical_bessel_j0", _spherical_j0, None, argument="x")
for _aten_name, _scipy_name in (
    ("aten::special_bessel_j0", "j0"),
    ("aten::special_bessel_j1", "j1"),
    ("aten::special_bessel_y0", "y0"),
    ("aten::special_bessel_y1", "y1"),
    ("aten::special_modified_bessel_i0", "i0"),
    ("aten::special_modified_bessel_i1", "i1"),
    ("aten::special_modified_bessel_k0", "k0"),
    ("aten::special_modified_bessel_k1", "k1"),
    ("aten::special_scaled_modified_bessel_k0", "k0e"),
    ("aten::special_scaled_modified_bessel_k1", "k1e"),
):
    _declare(
        _aten_name,
        lambda x, name=_scipy_name: _special(name, x),
        argument="x" if "scaled" in _aten_name else "self",
    )


@composite("aten::special_ndtr(Tensor self) -> Tensor", expose="no")
def special_ndtr(self: Any) -> Any:
    x = self * math.sqrt(0.5)
    return F.erfc(-x).mul(0.5)


# ---------------------------------------------------------------------------------------------------- two arguments


@op(
    "aten::special_xlog1py(Tensor self, Tensor other) -> Tensor",
    promote="float",
    out=True,
    expose="no",
    node="SpecialXlog1PyBackward0",
)
def special_xlog1py(self: np.ndarray, other: np.ndarray) -> np.ndarray:
    from scipy import special

    kind = np.result_type(self) if isinstance(self, np.ndarray) else other.dtype
    a, b = np.asarray(self), np.asarray(other)
    if kind in LOW_FLOATS:
        a, b = a.astype(np.float32), b.astype(np.float32)
    return special.xlog1py(a, b).astype(kind)


def _log1p(number: Any, like: Any) -> Any:
    """log(1 + number) of a tensor or a Python number."""
    return F.log1p(number if isinstance(number, Tensor) else F.scalar_tensor(number, dtype=like.dtype))


special_xlog1py.derivative(
    self=lambda g, self, other: g * _log1p(other, g).masked_fill((self == 0) & (other <= -1), 0.0),
    other=lambda g, self, other: g * self / (other + 1),
)


@op("aten::special_zeta(Tensor self, Tensor other) -> Tensor", promote="float", out=True, expose="no")
def special_zeta(self: np.ndarray, other: np.ndarray) -> np.ndarray:
    from scipy import special

    kind = self.dtype
    _refuse_low("zeta", self)
    return special.zeta(self.astype(np.float64), np.asarray(other, np.float64)).astype(kind)


def _no_zeta(g: Any) -> Any:
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


special_zeta.derivative(
    self=_no_zeta, other=lambda g, self, other: g * -self * special_zeta(self + 1.0, other)
)


# ---------------------------------------------------------------------------------------------------- polynomials


_ZERO, _ONE = np.array(0), np.array(1)  # arrays take half the time of Python numbers


def _second_kind(sign: int) -> Any:
    """Chebyshev polynomials of the third (-1) and fourth (+1) kind by those of the second."""

    combine = np.add if sign > 0 else np.subtract

    def value(n: np.ndarray, x: np.ndarray) -> np.ndarray:
        second = _by_scipy("eval_chebyu")
        return combine(second(n, x), second(np.subtract(n, _ONE), x))  # 0 for degree -1

    return value


def _polynomial_of(name: str) -> Any:
    return lambda n, x: _by_scipy(name)(n, x)


# Name, value of the polynomials, whether they are shifted to [0, 1].
_POLYNOMIALS = (
    ("aten::special_chebyshev_polynomial_t", _polynomial_of("eval_chebyt"), False),
    ("aten::special_shifted_chebyshev_polynomial_t", _polynomial_of("eval_chebyt"), True),
    ("aten::special_chebyshev_polynomial_u", _polynomial_of("eval_chebyu"), False),
    ("aten::special_shifted_chebyshev_polynomial_u", _polynomial_of("eval_chebyu"), True),
    ("aten::special_chebyshev_polynomial_v", _second_kind(-1), False),
    ("aten::special_shifted_chebyshev_polynomial_v", _second_kind(-1), True),
    ("aten::special_chebyshev_polynomial_w", _second_kind(1), False),
    ("aten::special_shifted_chebyshev_polynomial_w", _second_kind(1), True),
    ("aten::special_hermite_polynomial_h", _polynomial_of("eval_hermite"), False),
    ("aten::special_hermite_polynomial_he", _polynomial_of("eval_hermitenorm"), False),
    ("aten::special_laguerre_polynomial_l", _polynomial_of("eval_laguerre"), False),
    ("aten::special_legendre_polynomial_p", _polynomial_of("eval_legendre"), False),
)


def _polynomial(aten_name: str, value: Any, shifted: bool) -> None:
    name = aten_name.removeprefix("aten::").removeprefix("special_")

    def body(x: np.ndarray, n: np.ndarray) -> np.ndarray:
        kind = x.dtype
        _refuse_low(name, x)
        degree = n.astype(np.int64) if n.__class__ is np.ndarray else np.asarray(n, np.int64)
        where = x.astype(np.float64)
        if shifted:
            where += where
            where -= _ONE
        if _dims.inside(degree, 0, 1 << 62):
            return value(degree, where).astype(kind)
        values = np.asarray(value(np.maximum(degree, _ZERO), where))
        np.copyto(values, _ZERO, where=np.less(degree, _ZERO))
        return values.astype(kind)

    op(
        f"{aten_name}(Tensor x, Tensor n) -> Tensor",
        promote="float",
        out=True,
        expose="no",
        nondifferentiable=True,
    )(body)


for _row in _POLYNOMIALS:
    _polynomial(*_row)
