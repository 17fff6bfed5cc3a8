"""torch.linalg: the public names of the decompositions, solvers and norms in `_ops`."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _dispatch, return_types
from .._dispatch import copied_into_out, into_out
from .._ops import functions as F
from .._ops import linalg as _ops
from .._ops import linalg_composite as _more
from .._ops import linalg_eigen as _eigen
from .._ops.linalg import LinAlgError

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


def inv(A: Any, *, out: Any = None) -> Any:
    """The inverse."""
    return into_out(_ops.linalg_inv(A), out)


def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """The inverse, and where it failed."""
    return into_out(_ops.linalg_inv_ex(A, check_errors=check_errors), out)


def det(A: Any, *, out: Any = None) -> Any:
    """The determinant."""
    return into_out(_ops.linalg_det(A), out)


def slogdet(A: Any, *, out: Any = None) -> Any:
    """The sign and the logarithm of the absolute determinant."""
    return into_out(return_types.linalg_slogdet(tuple(_ops.linalg_slogdet(A))), out)


def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """X with AX = B (or XA = B)."""
    return into_out(_ops.linalg_solve(A, B, left=left), out)


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """X with AX = B, and where it failed."""
    return into_out(_ops.linalg_solve_ex(A, B, left=left, check_errors=check_errors), out)


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """X with AX = B for a triangular A."""
    return into_out(
        _ops.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular), out
    )


def cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """L with A = L L^H."""
    return into_out(_ops.linalg_cholesky(A, upper=upper), out)


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """L with A = L L^H, and where it failed."""
    return into_out(_ops.linalg_cholesky_ex(A, upper=upper, check_errors=check_errors), out)


def qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q and R with A = QR."""
    return into_out(_ops.linalg_qr(A, mode), out)


def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return into_out(_eigen.linalg_eigh(A, UPLO), out)


def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues of a Hermitian matrix."""
    return into_out(_eigen.linalg_eigvalsh(A, UPLO), out)


def eig(A: Any, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    return into_out(_eigen.linalg_eig(A), out)


def eigvals(A: Any, *, out: Any = None) -> Any:
    """Eigenvalues, complex."""
    return copied_into_out(_more.linalg_eigvals(A), out)


def svd(A: Any, full_matrices: bool = True, *, driver: Any = None, out: Any = None) -> Any:
    """U, S and Vh with A = U diag(S) Vh."""
    return into_out(_eigen.linalg_svd(A, full_matrices), out)


def svdvals(A: Any, *, driver: Any = None, out: Any = None) -> Any:
    """Singular values."""
    return into_out(_eigen.linalg_svdvals(A, driver=driver), out)


def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """The compact LU factorisation."""
    return into_out(_ops.linalg_lu_factor(A, pivot=pivot), out)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """The compact LU factorisation, and where it failed."""
    return into_out(_ops.linalg_lu_factor_ex(A, pivot=pivot, check_errors=check_errors), out)


def lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U with A = PLU."""
    return into_out(_ops.linalg_lu(A, pivot=pivot), out)


def lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None
) -> Any:
    """X with AX = B from A's LU factorisation."""
    return into_out(_ops.linalg_lu_solve(LU, pivots, B, left=left, adjoint=adjoint), out)


def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """The compact LDL factorisation, and where it failed."""
    return into_out(_more.linalg_ldl_factor_ex(A, hermitian=hermitian, check_errors=check_errors), out)


def ldl_factor(A: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """The compact LDL factorisation."""
    return into_out(_more.linalg_ldl_factor(A, hermitian=hermitian), out)


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """X with AX = B from A's LDL factorisation."""
    return into_out(_more.linalg_ldl_solve(LD, pivots, B, hermitian=hermitian), out)


def _are_tensors(*bounds: Any) -> bool:
    return any(isinstance(bound, torch.Tensor) for bound in bounds)


def _as_tensors(*bounds: Any) -> list[Any]:
    return [
        b if b is None or isinstance(b, torch.Tensor) else torch.tensor(b, dtype=torch.float64)
        for b in bounds
    ]


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False, out: Any = None) -> Any:
    """The pseudo-inverse."""
    if _are_tensors(atol, rtol):
        atol, rtol = _as_tensors(atol, rtol)
        return into_out(_more.pinv_tensors(A, atol=atol, rtol=rtol, hermitian=hermitian), out)
    return into_out(_more.pinv_floats(A, atol=atol, rtol=rtol, hermitian=hermitian), out)


def matrix_rank(
    A: Any, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False, out: Any = None
) -> Any:
    """The number of singular values that are not negligible."""
    if tol is not None:
        atol, rtol = tol, 0.0
    if _are_tensors(atol, rtol):
        atol, rtol = _as_tensors(atol, rtol)
        return into_out(_more.rank_tensors(A, atol=atol, rtol=rtol, hermitian=hermitian), out)
    return into_out(_more.rank_floats(A, atol=atol, rtol=rtol, hermitian=hermitian), out)


def cond(A: Any, p: Any = None, *, out: Any = None) -> Any:
    """The condition number."""
    return copied_into_out(_more.cond_named(A, p) if isinstance(p, str) else _more.linalg_cond(A, p), out)


def matrix_norm(
    A: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """A norm of matrices."""
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    return copied_into_out(_ops.linalg_matrix_norm(A, ord, tuple(dim), keepdim, dtype=dtype), out)


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Any:
    """A norm of vectors."""
    return into_out(F.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype), out)


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Any:
    """A vector or matrix norm, depending on `ord` and `dim`."""
    made = _more.norm_named if isinstance(ord, str) else _more.linalg_norm
    return copied_into_out(made(A, ord, _dispatch.ints(dim), keepdim, dtype=dtype), out)


def matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """The n-th power of a matrix."""
    return copied_into_out(_more.linalg_matrix_power(A, n), out)


def matrix_exp(A: Any) -> Any:
    """The exponential of a matrix."""
    return _ops.linalg_matrix_exp(A)


def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The matrix product."""
    return into_out(_more.linalg_matmul(input, other), out)


def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the cheapest order."""
    return into_out(_more.linalg_multi_dot(list(tensors)), out)


def cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The cross product of three-dimensional vectors."""
    return into_out(_ops.linalg_cross(input, other, dim=dim), out)


def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The dot product along a dimension."""
    return into_out(_more.linalg_vecdot(x, y, dim=dim), out)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Diagonals of matrices."""
    return _more.linalg_diagonal(A, offset=offset, dim1=dim1, dim2=dim2)


def vander(x: Any, *, N: int | None = None) -> Any:
    """Powers of a vector's elements as columns."""
    return _more.linalg_vander(x, N=N)


def tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse for tensordot."""
    return copied_into_out(_more.linalg_tensorinv(A, ind), out)


def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """X with tensordot(A, X) = B."""
    return copied_into_out(_more.linalg_tensorsolve(A, B, dims), out)


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None, out: Any = None) -> Any:
    """The X that minimises the norm of AX - B."""
    return into_out(_more.linalg_lstsq(A, B, rcond, driver=driver), out)


def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """The first columns of a product of Householder reflections."""
    return into_out(_more.linalg_householder_product(A, tau), out)
