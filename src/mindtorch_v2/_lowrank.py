"""Decompositions of low rank by random projection: `svd_lowrank`, `pca_lowrank`. Matrices (dense or sparse) in, U, S, V out."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from . import _dtype

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def _matmul(A: Any, B: Any) -> Any:
    return torch.sparse.mm(A, B) if A.is_sparse else torch.matmul(A, B)


def get_approximate_basis(A: Any, q: int, niter: int | None = 2, M: Any = None) -> Any:
    """An orthonormal basis of `q` columns for the range of A (of A - M)."""
    dtype = A.dtype if A.dtype._rank >= 2 else _dtype.Default.dtype

    def product(X: Any) -> Any:
        return _matmul(A, X) if M is None else _matmul(A, X) - _matmul(M, X)

    def transposed(X: Any) -> Any:
        projected = _matmul(A.mH if not A.is_sparse else A.t(), X)
        return projected if M is None else projected - _matmul(M.mH, X)

    Q = torch.linalg.qr(product(torch.randn(A.shape[-1], q, dtype=dtype))).Q
    for _ in range(niter or 0):
        Q = torch.linalg.qr(transposed(Q)).Q
        Q = torch.linalg.qr(product(Q)).Q
    return Q


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """U, S, V with `U diag(S) V^H` close to A (to A - M), of rank `q`."""
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    if M is not None:
        M = M.broadcast_to(A.shape) if not M.is_sparse else M
    wide = m < n
    if wide:
        A = A.mH if not A.is_sparse else A.t()
        M = None if M is None else M.mH
    Q = get_approximate_basis(A, q, niter=niter, M=M)
    if A.is_sparse:
        B = _matmul(A.t(), Q).mH
    else:
        B = torch.matmul(Q.mH, A)
    if M is not None:
        B = B - torch.matmul(Q.mH, M)
    U, S, Vh = torch.linalg.svd(B, full_matrices=False)
    V = Vh.mH
    U = Q.matmul(U)
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """U, S, V of a principal component analysis of the rows of A."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not (0 <= q <= min(m, n)):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    if A.is_sparse:
        if A.ndim != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        means = torch.sparse.sum(A, dim=0).to_dense() / m
        return svd_lowrank(A, q, niter=niter, M=means.expand(m, n))
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True), q, niter=niter)
