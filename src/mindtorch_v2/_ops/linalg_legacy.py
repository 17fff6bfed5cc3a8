"""torch's older names for linear algebra (torch.inverse, torch.svd, Tensor.det ...): one line each to torch.linalg's functions."""

from __future__ import annotations

import importlib
from typing import Any

from .. import _op_errors
from .._dispatch import composite, function, into_out
from . import linalg as ops
from . import linalg_composite
from ._namespace import functions as F
from ._warn import warn_once


def _linalg(name: str) -> Any:
    return getattr(importlib.import_module("mindtorch_v2.linalg"), name)


@function()
def slogdet(input: Any, *, out: Any = None) -> Any:
    """The sign and the logarithm of the absolute determinant."""
    return into_out(linalg_composite.slogdet(input), out)


@function()
def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """L with A = L L^H."""
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
        "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\n"
        "should be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will produce equivalent results for all valid "
        "(symmetric positive definite) inputs."
    )
    return into_out(linalg_composite.cholesky_op(input, upper), out)


@function()
def cholesky_solve(input: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """X with AX = input, from A's Cholesky factor."""
    return into_out(linalg_composite.cholesky_solve(input, L, upper), out)


@function()
def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Q and R with A = QR."""
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
        "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return into_out(linalg_composite.qr(input, some), out)


@function()
def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with A = U diag(S) V^H."""
    return into_out(linalg_composite.svd(input, some, compute_uv), out)


@function()
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """X with AX = input, from A's LU factorisation."""
    return into_out(ops.lu_solve(input, LU_data, LU_pivots), out)


@function()
def lu(input: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The compact LU factorisation."""
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future "
        "PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    factors = linalg_composite.lu_with_info(input, pivot, not get_infos)
    return into_out(factors if get_infos else factors[:2], out)


@function()
def triangular_solve(
    input: Any,
    A: Any,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """X with AX = input for a triangular A."""
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future PyTorch "
        "release.\ntorch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\n"
        "X = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
    )
    return into_out(linalg_composite.triangular_solve(input, A, upper, transpose, unitriangular), out)


@function()
def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed from torch: raises an error that names the replacement."""
    raise RuntimeError(
        "This function was deprecated since version 1.9 and is now removed. `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`."
    )


@function()
def cross(input: Any, other: Any, dim: Any = None, *, out: Any = None) -> Any:
    """The cross product of vectors of three."""
    _op_errors.refuse_numbers("cross", input=input, other=other)
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use "
            "torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release."
        )
        if 3 not in input.shape:
            raise RuntimeError("no dimension of size 3 in input")
    return into_out(_cross(input, other, dim), out)


@composite("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor", expose="no")
def _cross(self: Any, other: Any, dim: Any) -> Any:
    where = tuple(self.shape).index(3) if dim is None else dim
    return _linalg("cross")(self, other, dim=where)


@function()
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """The first columns of a product of Householder reflections."""
    return _linalg("householder_product")(input, input2, out=out)


@function()
def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False, *, out: Any = None
) -> Any:
    """A product with the matrix of Householder reflections."""
    shape, other_shape, tau_shape = tuple(input.shape), tuple(other.shape), tuple(tau.shape)
    if len(shape) < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if len(other_shape) < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    side = -2 if left else -1
    m, width = shape[-2:]
    if other_shape[side] != m:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    count = min(m, width)
    if not tau_shape or tau_shape[-1] != count:
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if width > m:
        input = input.narrow(-1, 0, count)
    elif width < m:
        input = F.cat([input, F.zeros((*shape[:-1], m - width), dtype=input.dtype)], -1)
    q = _linalg("householder_product")(input, tau)
    q = ops.mh(q) if transpose else q
    return into_out(F.matmul(q, other) if left else F.matmul(other, q), out)
