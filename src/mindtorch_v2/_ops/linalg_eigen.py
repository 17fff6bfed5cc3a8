"""Eigenvalues and singular values of (batches of) matrices, by NumPy's LAPACK, with their derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, return_types
from .._dispatch import composite, op
from .._dtype import BY_NUM
from ._children import UNKNOWN, Child, child
from ._namespace import functions as F
from .linalg import linalg_solve
from .linalg_kernels import (
    LinAlgError,
    all_children,
    check_child,
    check_matrix,
    columns,
    copied_by_columns,
    described,
    error_codes,
    mh,
    svd,
    workspace,
)


@op(
    'aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    expose="no",
    returns=return_types.linalg_eigh,
    node="LinalgEighBackward0",
)
def _linalg_eigh(A: np.ndarray, UPLO: str, compute_v: bool) -> Any:
    check_matrix(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    try:
        if not compute_v:
            return np.linalg.eigvalsh(A, UPLO.upper()), np.empty(0, A.dtype)
        values, vectors = np.linalg.eigh(A, UPLO.upper())
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues."
        ) from None
    return values, columns(vectors)


_linalg_eigh.children(
    lambda A, UPLO, compute_v: [
        child("aten::copy_", A, A),
        error_codes(A),
        workspace(),
        workspace(),
        check_child(A, "linalg.eigh"),
    ]
)


@_linalg_eigh.backward("A")
def _(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    gl, gv = grads
    V, L = eigenvectors, eigenvalues
    Vh = mh(V)
    if gv is None:
        return (F.matmul(F.mul(V, F.unsqueeze(gl, -2)), Vh),)
    inner = F.matmul(Vh, gv)
    F.diagonal(inner, 0, -2, -1)
    inner = F.mul(F.sub(inner, mh(inner)), 0.5)
    gaps = F.sub(F.unsqueeze(L, -2), F.unsqueeze(L, -1))
    inner = _over_gaps(inner, gaps)
    if gl is not None:
        inner = _with_diagonal(inner, gl)
    return (F.matmul(V, F.matmul(inner, mh(V))),)


def _over_gaps(x: Any, gaps: Any) -> Any:
    """x / gaps, with the diagonal of `gaps` taken as one."""
    if _dispatch.grad_state.enabled:
        ones = F.diag_embed(F.ones_like(F.diagonal(gaps, 0, -2, -1)))
        return x / (gaps + ones)
    F.fill_(F.diagonal(gaps, 0, -2, -1), 1)
    return F.div_(x, gaps)


def _with_diagonal(x: Any, values: Any) -> Any:
    """x, whose diagonal is zero, with `values` on the diagonal."""
    if _dispatch.grad_state.enabled or x.dtype.is_complex:
        return x + F.diag_embed(values.to(x.dtype))
    F.copy_(F.diagonal(x, 0, -2, -1), values)
    return x


@composite(
    'aten::linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)', expose="no"
)
def linalg_eigh(self: Any, UPLO: str) -> Any:
    return return_types.linalg_eigh(tuple(_linalg_eigh(self, UPLO, True)))


@composite('aten::linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', expose="no")
def linalg_eigvalsh(self: Any, UPLO: str) -> Any:
    return _linalg_eigh(self, UPLO, _dispatch.grad_state.enabled and self._rg)[0]


@op(
    "aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    expose="no",
    returns=return_types.linalg_eig,
)
def linalg_eig(self: np.ndarray) -> Any:
    check_matrix(self, "linalg.eig")
    kind = BY_NUM[self.dtype.num].to_complex()._np
    if not np.isfinite(self).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    values, vectors = np.linalg.eig(self)
    return values.astype(kind), columns(vectors.astype(kind))


@linalg_eig.children
def _(self: Any) -> list[Child]:
    truths = described(self, lambda shape: shape, "bool")
    is_finite = [
        child("aten::abs", self),
        child("aten::ne.Scalar", self, math.inf),
        child("aten::eq.Tensor", self, self),
        child("aten::mul.Tensor", truths, truths),
    ]
    return [
        *all_children("aten::isfinite", self, children=is_finite),
        *eigenvalue_children(self),
        check_child(self, "torch.linalg.eig", (1,)),
    ]


def eigenvalue_children(A: Any) -> list[Child]:
    """Whether all eigenvalues of real matrices are real, by the imaginary parts that LAPACK gives."""
    if A is not UNKNOWN and "complex" in A.type:
        return []
    return all_children("aten::eq.Scalar", described(A, lambda shape: shape[:-1]), 0.0)


@linalg_eig.backward("self")
def _(grads: Any, eigenvalues: Any, eigenvectors: Any, self_dtype: Any) -> Any:
    gl, gv = grads
    V, L = eigenvectors, eigenvalues
    if gv is None:
        Vh = mh(V)
        gradient = linalg_solve(mh(V), F.mul(F.unsqueeze(gl, -1), Vh))
        return (gradient if self_dtype.is_complex else F.real(gradient),)
    inner = F.diag_embed(gl) if gl is not None else None
    vg = F.matmul(mh(V), gv)
    real_part = F.real(F.diagonal(vg, 0, -2, -1)).to(V.dtype)
    corrected = vg - F.matmul(F.matmul(mh(V), V), F.diag_embed(real_part))
    gaps = F.conj(L.unsqueeze(-2) - L.unsqueeze(-1))
    gaps = gaps + F.diag_embed(F.full_like(L, 1.0))
    off = F.ones_like(gaps) - F.eye(L.shape[-1], dtype=V.dtype)
    part = corrected / gaps * off
    inner = part if inner is None else inner + part
    gradient = linalg_solve(mh(V), F.matmul(inner, mh(V)))
    return (gradient if self_dtype.is_complex else F.real(gradient),)


def _empty_svd(A: np.ndarray, full_matrices: bool) -> tuple[np.ndarray, ...]:
    """The decomposition of no elements: identities, whose vectors belong to no singular value."""
    m, n = A.shape[-2:]
    k, batch = min(m, n), A.shape[:-2]
    u = np.zeros((*batch, m, m if full_matrices else k), A.dtype)
    vh = np.zeros((*batch, n if full_matrices else k, n), A.dtype)
    for vectors in (u, vh):
        if vectors.size:
            vectors[...] = np.eye(vectors.shape[-1], dtype=A.dtype)
    return columns(u), np.empty((*batch, k), A.real.dtype), columns(vh)


@op(
    "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    expose="no",
    returns=return_types.linalg_svd,
    node="LinalgSvdBackward0",
)
def _linalg_svd(A: np.ndarray, full_matrices: bool, compute_uv: bool, driver: Any) -> Any:
    check_matrix(A, "linalg.svd", square=False)
    if not A.size and compute_uv:
        return _empty_svd(A, full_matrices)
    if not compute_uv:
        none = np.empty(0, A.dtype)
        return none, svd(A, compute_uv=False), none
    u, s, vh = svd(A, full_matrices)
    return columns(u), s, columns(vh)


_linalg_svd.children(
    lambda A, full_matrices, compute_uv, driver: [
        error_codes(A),
        *copied_by_columns(A),
        check_child(A, "linalg.svd"),
    ]
)


@_linalg_svd.backward("A")
def _(grads: Any, A: Any, U: Any, S: Any, Vh: Any, full_matrices: bool, compute_uv: bool) -> Any:
    gu, gs, gvh = grads
    if not compute_uv:
        U, _, Vh = _linalg_svd(A, False, True)
        gu = gvh = None
    elif full_matrices:
        k = S.shape[-1]
        U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
        gu = None if gu is None else gu.narrow(-1, 0, k)
        gvh = None if gvh is None else gvh.narrow(-2, 0, k)
    return (_svd_grad(U, S, Vh, gu, gs, gvh),)


def _svd_grad(U: Any, S: Any, Vh: Any, gu: Any, gs: Any, gvh: Any) -> Any:
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    if gs is not None and U.dtype.is_complex:
        gs = gs.to(U.dtype)
    if gu is None and gvh is None:
        if m >= n:
            return F.matmul(U, F.mul(F.unsqueeze(gs, -1), Vh))
        return F.matmul(F.mul(U, F.unsqueeze(gs, -2)), Vh)
    left = _skew(F.matmul(mh(U), gu)) if gu is not None else None
    right = _skew(F.matmul(Vh, mh(gvh))) if gvh is not None else None
    squares = F.mul(S, S)
    gaps = F.sub(F.unsqueeze(squares, -2), F.unsqueeze(squares, -1))
    if _dispatch.grad_state.enabled:
        gaps = gaps + F.diag_embed(F.ones_like(S))
    else:
        F.fill_(F.diagonal(gaps, 0, -2, -1), 1)
    inner = None
    if right is not None:
        inner = F.mul(F.unsqueeze(S, -1), right)
    if left is not None:
        part = F.mul(left, F.unsqueeze(S, -2))
        inner = part if inner is None else F.add(part, inner)
    inner = F.div(inner, gaps)
    if U.dtype.is_complex:
        inner = F.add(inner, F.diag_embed(F.div(_phases(left, right), S)))
    if gs is not None:
        inner = F.add(inner, F.diag_embed(gs))
    if m > k and gu is not None:
        product = F.matmul(U, inner)
        scaled = F.div(gu, F.unsqueeze(S, -2))
        projection = F.matmul(U, F.matmul(mh(U), scaled))
        return (
            F.matmul(F.sub(F.add(product, scaled), projection), Vh)
            if n <= k or gvh is None
            else _wider(F.sub(F.add(product, scaled), projection), U, S, Vh, gvh)
        )
    if n > k and gvh is not None:
        product = F.matmul(inner, Vh)
        scaled = F.div(gvh, F.unsqueeze(S, -1))
        projection = F.matmul(F.matmul(scaled, mh(Vh)), Vh)
        return F.matmul(U, F.sub(F.add(product, scaled), projection))
    return F.matmul(F.matmul(U, inner), Vh) if m >= n else F.matmul(U, F.matmul(inner, Vh))


def _phases(left: Any, right: Any) -> Any:
    """A quarter of the diagonals' difference: the phases of U and V turn against each other."""
    parts = [F.diagonal(x, 0, -2, -1) for x in (left, right) if x is not None]
    if left is None:
        return parts[0] * -0.25
    return (parts[0] - parts[1]) * 0.25 if right is not None else parts[0] * 0.25


def _wider(left: Any, U: Any, S: Any, Vh: Any, gvh: Any) -> Any:
    outside = F.div(gvh, F.unsqueeze(S, -1))
    outside = F.sub(outside, F.matmul(F.matmul(outside, mh(Vh)), Vh))
    return F.add(F.matmul(left, Vh), F.matmul(U, outside))


def _skew(x: Any) -> Any:
    return F.sub(x, mh(x))


@composite(
    "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    expose="no",
)
def linalg_svd(A: Any, full_matrices: bool, driver: Any) -> Any:
    return _linalg_svd(A, full_matrices, True, driver=driver)


@composite("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", expose="no")
def linalg_svdvals(A: Any, driver: Any) -> Any:
    return _linalg_svd(A, False, _dispatch.grad_state.enabled and A._rg, driver=driver)[1]
