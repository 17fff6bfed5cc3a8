"""torch.special: functions of mathematical physics and statistics, element by element."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _dispatch, _op_errors

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1",
    "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc", "softmax",
    "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip


def _set_name(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _unary(name: str, target: str | None = None) -> Any:
    """A function of one tensor: the op of that name, or another function of torch."""
    call = _dispatch.OPS["special_" + name].entry if target is None else _dispatch.FUNCTIONS[target]

    def function(input: Any, *, out: Any = None) -> Any:
        return call(input) if out is None else call(input, out=out)

    return _set_name(function, name, f"{name} of every element.")


def _with_number(name: str) -> Any:
    """A function of two arguments, either of which may be a number."""
    call = _dispatch.OPS["special_" + name].entry

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        if not isinstance(input, torch.Tensor):
            if not isinstance(other, torch.Tensor):
                raise _op_errors.no_overload("special_" + name, input, other)
            input = torch.tensor(input)
        return call(input, other) if out is None else call(input, other, out=out)

    return _set_name(function, name, f"{name} of two arguments, element by element.")


def _polynomial(name: str) -> Any:
    call = _dispatch.OPS["special_" + name].entry

    def function(input: Any, n: Any, *, out: Any = None) -> Any:
        if not isinstance(input, torch.Tensor):
            if not isinstance(n, torch.Tensor):
                raise _op_errors.no_overload("special_" + name, input, n)
            input = torch.tensor(input)
        return call(input, n) if out is None else call(input, n, out=out)

    return _set_name(function, name, f"The polynomial {name} of degree `n`.")


airy_ai, bessel_j0, bessel_j1 = _unary("airy_ai"), _unary("bessel_j0"), _unary("bessel_j1")
bessel_y0, bessel_y1 = _unary("bessel_y0"), _unary("bessel_y1")
modified_bessel_i0, modified_bessel_i1 = _unary("modified_bessel_i0"), _unary("modified_bessel_i1")
modified_bessel_k0, modified_bessel_k1 = _unary("modified_bessel_k0"), _unary("modified_bessel_k1")
scaled_modified_bessel_k0 = _unary("scaled_modified_bessel_k0")
scaled_modified_bessel_k1 = _unary("scaled_modified_bessel_k1")
spherical_bessel_j0 = _unary("spherical_bessel_j0")
entr, erfcx, ndtri, log_ndtr = _unary("entr"), _unary("erfcx"), _unary("ndtri"), _unary("log_ndtr")
i0, i0e, i1, i1e = _unary("i0", "i0"), _unary("i0e"), _unary("i1"), _unary("i1e")
digamma, psi, gammaln = _unary("digamma", "digamma"), _unary("psi", "digamma"), _unary("gammaln", "lgamma")
erf, erfc, erfinv = _unary("erf", "erf"), _unary("erfc", "erfc"), _unary("erfinv", "erfinv")
exp2, expm1, expit = _unary("exp2", "exp2"), _unary("expm1", "expm1"), _unary("expit", "sigmoid")
log1p, sinc = _unary("log1p", "log1p"), _unary("sinc", "sinc")
xlog1py, zeta = _with_number("xlog1py"), _with_number("zeta")
chebyshev_polynomial_t, chebyshev_polynomial_u = (
    _polynomial("chebyshev_polynomial_" + kind) for kind in "tu"
)
chebyshev_polynomial_v, chebyshev_polynomial_w = (
    _polynomial("chebyshev_polynomial_" + kind) for kind in "vw"
)
shifted_chebyshev_polynomial_t = _polynomial("shifted_chebyshev_polynomial_t")
shifted_chebyshev_polynomial_u = _polynomial("shifted_chebyshev_polynomial_u")
shifted_chebyshev_polynomial_v = _polynomial("shifted_chebyshev_polynomial_v")
shifted_chebyshev_polynomial_w = _polynomial("shifted_chebyshev_polynomial_w")
hermite_polynomial_h, hermite_polynomial_he = (
    _polynomial("hermite_polynomial_" + kind) for kind in ("h", "he")
)
laguerre_polynomial_l, legendre_polynomial_p = (
    _polynomial("laguerre_polynomial_l"), _polynomial("legendre_polynomial_p"),
)  # fmt: skip


def ndtr(input: Any, *, out: Any = None) -> Any:
    """The cumulative distribution function of the standard normal distribution."""
    return _dispatch.copied_into_out(_dispatch.OPS["special_ndtr"].entry(input), out)


def xlogy(input: Any, other: Any, *, out: Any = None) -> Any:
    """input * log(other), and 0 where input is 0."""
    return torch.xlogy(input, other) if out is None else torch.xlogy(input, other, out=out)


def _two_tensors(name: str, input: Any, other: Any) -> None:
    for place, (argument, value) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(value, torch.Tensor):
            raise TypeError(
                f"special_{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(value).__name__}"
            )


def gammainc(input: Any, other: Any, *, out: Any = None) -> Any:
    """The regularised lower incomplete gamma function."""
    _two_tensors("gammainc", input, other)
    return torch.igamma(input, other) if out is None else torch.igamma(input, other, out=out)


def gammaincc(input: Any, other: Any, *, out: Any = None) -> Any:
    """The regularised upper incomplete gamma function."""
    _two_tensors("gammaincc", input, other)
    return torch.igammac(input, other) if out is None else torch.igammac(input, other, out=out)


def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """The n-th derivative of digamma."""
    return _dispatch.into_out(torch.polygamma(n, input), out)


def multigammaln(input: Any, p: int, *, out: Any = None) -> Any:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    return _dispatch.into_out(torch.mvlgamma(input, p), out)


def logit(input: Any, eps: float | None = None, *, out: Any = None) -> Any:
    """The logarithm of the odds; with `eps`, elements are first clamped to [eps, 1 - eps]."""
    return _dispatch.into_out(torch.logit(input, eps), out)


def round(input: Any, *, decimals: int = 0, out: Any = None) -> Any:
    """The nearest integer, or the nearest number with `decimals` digits."""
    return _dispatch.into_out(torch.round(input, decimals=decimals), out)


def logsumexp(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """The logarithm of the sum of exponentials over `dim`."""
    return _dispatch.into_out(torch.logsumexp(input, dim, keepdim), out)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Exponentials that add up to 1 along `dim`."""
    return torch.softmax(input, dim, dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`."""
    return torch.log_softmax(input, dim, dtype=dtype)
