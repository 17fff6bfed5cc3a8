"""torch's older names for linear algebra (torch.inverse, torch.svd, Tensor.det ...): one line each to torch.linalg's functions."""

from __future__ import annotations

import importlib
from typing import Any

from .. import _dispatch, return_types
from .._dispatch import function
from . import linalg as ops
from ._namespace import functions as F
from ._warn import warn_once


def _linalg(name: str) -> Any:
    return getattr(importlib.import_module("mindtorch_v2.linalg"), name)


def _forward(name: str, target: str, expose: str = "both") -> None:
    def forward(input: Any, *args: Any, **kwargs: Any) -> Any:
        return _linalg(target)(input, *args, **kwargs)

    forward.__name__ = name
    forward.__doc__ = f"torch.linalg.{target}."
    function(name, expose=expose)(forward)


for _name, _target in (
    ("inverse", "inv"),
    ("det", "det"),
    ("matrix_power", "matrix_power"),
    ("matrix_exp", "matrix_exp"),
):
    _forward(_name, _target)


@function()
def slogdet(input: Any, *, out: Any = None) -> Any:
    """The sign and the logarithm of the absolute determinant."""
    sign, log, *_ = ops._linalg_slogdet(input)
    return return_types.slogdet((sign, log))


@function()
def logdet(input: Any) -> Any:
    """The logarithm of the determinant; nan where it is negative."""
    sign, log, *_ = ops._linalg_slogdet(input)
    return F.where(sign < 0, F.full((), float("nan"), dtype=log.dtype), log)


@function()
def cholesky(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """L with A = L L^H."""
    return _linalg("cholesky")(input, upper=upper, out=out)


@function()
def cholesky_inverse(input: Any, upper: bool = False, *, out: Any = None) -> Any:
    """The inverse of the matrix whose Cholesky factor is given."""
    product = F.matmul(ops.mh(input), input) if upper else F.matmul(input, ops.mh(input))
    return _linalg("inv")(product, out=out)


@function()
def cholesky_solve(input: Any, L: Any, upper: bool = False, *, out: Any = None) -> Any:
    """X with AX = input, from A's Cholesky factor."""
    low = ops.mh(L) if upper else L
    half = ops.linalg_solve_triangular(low, input, upper=False)
    made = ops.linalg_solve_triangular(ops.mh(low), half, upper=True)
    if out is not None:
        _dispatch.give_out(out, made._array)
        return out
    return made


@function()
def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """Q and R with A = QR."""
    return return_types.qr(tuple(ops.linalg_qr(input, "reduced" if some else "complete")))


@function()
def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """U, S and V with A = U diag(S) V^H."""
    if not compute_uv:
        m, n = input.shape[-2], input.shape[-1]
        lead = tuple(input.shape[:-2])
        return return_types.svd(
            (
                F.zeros((*lead, m, m), dtype=input.dtype),
                ops.svdvals(input),
                F.zeros((*lead, n, n), dtype=input.dtype),
            )
        )
    u, s, vh = ops.linalg_svd(input, not some)
    return return_types.svd((u, s, ops.mh(vh)))


@function()
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse."""
    return _linalg("pinv")(input, rtol=rcond)


@function()
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """X with AX = input, from A's LU factorisation."""
    return _linalg("lu_solve")(LU_data, LU_pivots, input, out=out)


@function(expose="function")
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """P, L and U from a compact factorisation."""
    return return_types.lu_unpack(ops.lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots))


@function()
def lu(input: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The compact LU factorisation."""
    made = ops.linalg_lu_factor_ex(input, pivot=pivot)
    return tuple(made) if get_infos else (made[0], made[1])


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
    matrix = A.transpose(-2, -1) if transpose else A
    made = ops.linalg_solve_triangular(matrix, input, upper=upper != transpose, unitriangular=unitriangular)
    return return_types.triangular_solve((made, A.clone()))


@function()
def lstsq(input: Any, A: Any, *, out: Any = None) -> Any:
    """Removed from torch; says what to call."""
    raise RuntimeError(
        "This function was deprecated since version 1.9 and is now removed. `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`."
    )


@function()
def cross(input: Any, other: Any, dim: Any = None, *, out: Any = None) -> Any:
    """The cross product of vectors of three."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use "
            "torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release."
        )
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return _linalg("cross")(input, other, dim=dim, out=out)


@function()
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """The first columns of a product of Householder reflections."""
    return _linalg("householder_product")(input, input2, out=out)


@function()
def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False, *, out: Any = None
) -> Any:
    """A product with the matrix of Householder reflections."""
    m = input.shape[-2]
    wide = (
        F.cat([input, F.zeros((*input.shape[:-1], m - input.shape[-1]), dtype=input.dtype)], -1)
        if input.shape[-1] < m
        else input
    )
    q = _linalg("householder_product")(wide, tau)
    q = ops.mh(q) if transpose else q
    return F.matmul(q, other) if left else F.matmul(other, q)


@function()
def geqrf(input: Any, *, out: Any = None) -> Any:
    """The QR factorisation as LAPACK leaves it."""
    import numpy as np
    from scipy.linalg import lapack

    flat = input._array.reshape(-1, *input._array.shape[-2:])
    factor = lapack.get_lapack_funcs("geqrf", (flat,))
    parts = [factor(matrix)[:2] for matrix in flat]
    shape = input._array.shape
    a = np.array([p[0] for p in parts], input._array.dtype).reshape(shape)
    tau = np.array([p[1] for p in parts], input._array.dtype).reshape(*shape[:-2], -1)
    return return_types.geqrf((_dispatch.wrap(a), _dispatch.wrap(tau)))
