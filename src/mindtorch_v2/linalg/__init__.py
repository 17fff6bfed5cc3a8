"""torch.linalg: the public names of the decompositions, solvers and norms in `_ops`."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from .. import _dispatch, return_types
from .._ops import functions as F
from .._ops import linalg as _ops
from .._ops.einsum import multi_dot as _multi_dot
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


def _out(made: Any, out: Any) -> Any:
    if out is None:
        return made
    if isinstance(made, tuple):
        for target, value in zip(out, made):
            _dispatch.give_out(target, value._array)
    else:
        _dispatch.give_out(out, made._array)
    return out


def inv(A: Any, *, out: Any = None) -> Any:
    """The inverse."""
    return _out(_ops.linalg_inv(A), out)


def inv_ex(A: Any, *, check_errors: bool = False, out: Any = None) -> Any:
    """The inverse, and where it failed."""
    return _out(_ops.linalg_inv_ex(A, check_errors=check_errors), out)


def det(A: Any, *, out: Any = None) -> Any:
    """The determinant."""
    return _out(_ops.linalg_det(A), out)


def slogdet(A: Any, *, out: Any = None) -> Any:
    """The sign and the logarithm of the absolute determinant."""
    sign, log, *_ = _ops._linalg_slogdet(A)
    return _out(return_types.linalg_slogdet((sign, log)), out)


def solve(A: Any, B: Any, *, left: bool = True, out: Any = None) -> Any:
    """X with AX = B (or XA = B)."""
    return _out(_ops.linalg_solve(A, B, left=left), out)


def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """X with AX = B, and where it failed."""
    return _out(_ops.linalg_solve_ex(A, B, left=left, check_errors=check_errors), out)


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Any:
    """X with AX = B for a triangular A."""
    return _out(_ops.linalg_solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular), out)


def cholesky(A: Any, *, upper: bool = False, out: Any = None) -> Any:
    """L with A = L L^H."""
    return _out(_ops.linalg_cholesky(A, upper=upper), out)


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """L with A = L L^H, and where it failed."""
    return _out(_ops.linalg_cholesky_ex(A, upper=upper, check_errors=check_errors), out)


def qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Q and R with A = QR."""
    return _out(_ops.linalg_qr(A, mode), out)


def eigh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix."""
    return _out(_ops._linalg_eigh(A, UPLO), out)


def eigvalsh(A: Any, UPLO: str = "L", *, out: Any = None) -> Any:
    """Eigenvalues of a Hermitian matrix."""
    return _out(_ops._linalg_eigh(A, UPLO)[0], out)


def eig(A: Any, *, out: Any = None) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    return _out(_ops.linalg_eig(A), out)


def eigvals(A: Any, *, out: Any = None) -> Any:
    """Eigenvalues, complex."""
    return _out(_ops.linalg_eig(A)[0], out)


def svd(A: Any, full_matrices: bool = True, *, driver: Any = None, out: Any = None) -> Any:
    """U, S and Vh with A = U diag(S) Vh."""
    return _out(_ops.linalg_svd(A, full_matrices), out)


def svdvals(A: Any, *, driver: Any = None, out: Any = None) -> Any:
    """Singular values."""
    return _out(_ops.svdvals(A), out)


def lu_factor(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """The compact LU factorisation."""
    lu_, pivots, info = _ops.linalg_lu_factor_ex(A, pivot=pivot)
    if bool(info._array.any()):
        raise RuntimeError(
            "torch.linalg.lu_factor: U has a zero on the diagonal; the factorisation is complete but cannot be used to solve"
        )
    return _out(return_types.linalg_lu_factor((lu_, pivots)), out)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """The compact LU factorisation, and where it failed."""
    return _out(_ops.linalg_lu_factor_ex(A, pivot=pivot, check_errors=check_errors), out)


def lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """P, L and U with A = PLU."""
    lu_, pivots, _ = _ops.linalg_lu_factor_ex(A, pivot=pivot)
    return _out(return_types.linalg_lu(_ops.lu_unpack(lu_, pivots)), out)


def lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False, out: Any = None
) -> Any:
    """X with AX = B from A's LU factorisation."""
    P, L, U = _ops.lu_unpack(LU, pivots)
    A = F.matmul(P, F.matmul(L, U))
    return solve(_ops.mh(A) if adjoint else A, B, left=left, out=out)


def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """The compact LDL factorisation (by SciPy's sytrf), and where it failed."""
    import numpy as np
    from scipy.linalg import lapack

    array = A._array
    flat = array.reshape(-1, *array.shape[-2:])
    name = "hetrf" if hermitian and array.dtype.kind == "c" else "sytrf"
    factor = lapack.get_lapack_funcs(name, (flat,))
    made, pivots, info = (
        np.empty(flat.shape, array.dtype),
        np.empty(flat.shape[:2], np.int32),
        np.zeros(len(flat), np.int32),
    )
    for i, matrix in enumerate(flat):
        made[i], found, info[i] = factor(matrix, lower=1)
        pivots[i] = np.where(found >= 0, found + 1, found)
        made[i] = np.tril(made[i])
    shape = array.shape[:-2]
    result = (made.reshape(array.shape), pivots.reshape(*shape, -1), info.reshape(shape))
    return _out(return_types.linalg_ldl_factor_ex(tuple(_dispatch.wrap(r) for r in result)), out)


def ldl_factor(A: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """The compact LDL factorisation."""
    ld, pivots, _ = ldl_factor_ex(A, hermitian=hermitian)
    return _out(return_types.linalg_ldl_factor((ld, pivots)), out)


def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """X with AX = B from A's LDL factorisation."""
    import numpy as np
    from scipy.linalg import lapack

    flat = LD._array.reshape(-1, *LD._array.shape[-2:])
    rights = np.broadcast_to(B._array, (*LD._array.shape[:-2], *B._array.shape[-2:])).reshape(
        -1, *B._array.shape[-2:]
    )
    swaps = pivots._array.reshape(-1, pivots.shape[-1])
    solver = lapack.get_lapack_funcs("sytrs", (flat,))
    made = [solver(m, np.where(p > 0, p - 1, p), b, lower=1)[0] for m, p, b in zip(flat, swaps, rights)]
    return _out(
        _dispatch.wrap(np.array(made, LD._array.dtype).reshape(*LD._array.shape[:-2], *B._array.shape[-2:])),
        out,
    )


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False, out: Any = None) -> Any:
    """The pseudo-inverse."""
    if A.shape[-1] == 0 or A.shape[-2] == 0:
        return torch.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype)
    u, s, vh = _ops.linalg_svd(A, False)
    tolerance = _tolerance(A, s, atol, rtol)
    large = s > tolerance.unsqueeze(-1)
    inverse = F.where(
        large, F.reciprocal(F.where(large, s, F.ones((), dtype=s.dtype))), F.zeros((), dtype=s.dtype)
    )
    return _out(F.matmul(_ops.mh(vh) * inverse.unsqueeze(-2), _ops.mh(u)), out)


def _tolerance(A: Any, s: Any, atol: Any, rtol: Any) -> Any:
    eps = torch.finfo(A.dtype).eps
    absolute = 0.0 if atol is None else atol
    relative = (
        (max(A.shape[-2:]) * eps if atol is None or not _positive(atol) else 0.0) if rtol is None else rtol
    )
    top = F.amax(s, -1) if s.shape[-1] else F.zeros(s.shape[:-1], dtype=s.dtype)
    return F.maximum(top.detach() * relative, F.zeros_like(top) + absolute)


def _positive(value: Any) -> bool:
    return bool((value > 0).any()) if isinstance(value, torch.Tensor) else value > 0


def matrix_rank(
    A: Any, tol: Any = None, *, atol: Any = None, rtol: Any = None, hermitian: bool = False, out: Any = None
) -> Any:
    """How many singular values are not negligible."""
    with torch.no_grad():
        s = _ops.svdvals(A) if not hermitian else F.abs(eigvalsh(A))
        tolerance = _tolerance(A, s, tol if tol is not None else atol, rtol)
        return _out((s > tolerance.unsqueeze(-1)).sum(-1), out)


def cond(A: Any, p: Any = None, *, out: Any = None) -> Any:
    """The condition number."""
    if p is None or p in (2, -2):
        s = _ops.svdvals(A)
        first, last = s.select(-1, 0), s.select(-1, -1)
        return _out(last / first if p == -2 else first / last, out)
    return _out(matrix_norm(A, p) * matrix_norm(_ops.linalg_inv_ex(A)[0], p), out)


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
    return _out(_ops.linalg_matrix_norm(A, ord, tuple(dim), keepdim, dtype=dtype), out)


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Any:
    """A norm of vectors."""
    return _out(F.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype), out)


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Any:
    """A vector or matrix norm, by what `ord` and `dim` say."""
    if dim is not None and not isinstance(dim, int) and len(dim) == 2 and ord is not None:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if dim is None and ord is not None and A.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if dim is None and ord is not None and (isinstance(ord, str) or A.ndim == 2):
        return matrix_norm(A, ord, (-2, -1), keepdim, dtype=dtype, out=out)
    if dim is None and ord is None:
        flat = A.reshape(-1) if not keepdim else A
        return vector_norm(flat, 2, None, keepdim, dtype=dtype, out=out)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def matrix_power(A: Any, n: int, *, out: Any = None) -> Any:
    """The n-th power of a matrix."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if n == 0:
        return _out(torch.eye(A.shape[-1], dtype=A.dtype).expand(A.shape).clone(), out)
    base, n = (inv(A), -n) if n < 0 else (A, n)
    made = None
    while n:
        if n & 1:
            made = base if made is None else F.matmul(made, base)
        n >>= 1
        if n:
            base = F.matmul(base, base)
    assert made is not None
    return _out(made if made is not A else A.clone(), out)


def matrix_exp(A: Any) -> Any:
    """The exponential of a matrix."""
    return _ops.linalg_matrix_exp(A)


def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The matrix product."""
    return torch.matmul(input, other, out=out)


def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the cheapest order."""
    matrices = list(tensors)
    if len(matrices) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(matrices)))
    first, last = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if first:
        matrices[0] = matrices[0].unsqueeze(0)
    if last:
        matrices[-1] = matrices[-1].unsqueeze(1)
    made = _multi_dot(matrices)
    if first:
        made = made.squeeze(0)
    if last:
        made = made.squeeze(-1)
    return _out(made, out)


def cross(input: Any, other: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The cross product of vectors of three."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    return _out(_ops.linalg_cross(input, other, dim=dim), out)


def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The dot product along a dimension."""
    return _out((F.conj(x) * y).sum(dim), out)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Diagonals of matrices."""
    return torch.diagonal(A, offset, dim1, dim2)


def vander(x: Any, N: int | None = None) -> Any:
    """Powers of a vector's elements as columns."""
    count = x.shape[-1] if N is None else N
    if count < 1:
        raise RuntimeError(f"N must be greater than 1. Got {count}")
    return torch.stack([torch.ones_like(x) if k == 0 else x**k for k in range(count)], -1)


def tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse for tensordot."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, second = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    rows, columns = math.prod(first), math.prod(second)
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return _out(inv(A.reshape(rows, columns)).reshape(*second, *first), out)


def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """X with tensordot(A, X) = B."""
    if dims is not None:
        A = torch.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    made = solve(A.reshape(B.numel(), -1), B.reshape(-1))
    return _out(made.reshape(shape), out)


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None, out: Any = None) -> Any:
    """The X that makes AX - B smallest."""
    m, n = A.shape[-2], A.shape[-1]
    vector = B.ndim == A.ndim - 1
    right = B.unsqueeze(-1) if vector else B
    solution = F.matmul(pinv(A, rtol=rcond), right)
    empty = torch.empty(0, dtype=A.dtype)
    residuals = empty
    rank = torch.empty(0, dtype=torch.int64)
    values = empty
    if driver not in ("gels", None):
        rank = matrix_rank(A, rtol=rcond)
        if driver in ("gelsd", "gelss"):
            values = _ops.svdvals(A)
    if m > n and (driver == "gels" or (driver in ("gelsd", "gelss") and bool((rank == n).all()))):
        difference = F.matmul(A, solution) - right
        residuals = (difference * F.conj(difference)).real.sum(-2)
    return return_types.linalg_lstsq((solution.squeeze(-1) if vector else solution, residuals, rank, values))


def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """The first columns of a product of Householder reflections."""
    m, n = A.shape[-2], A.shape[-1]
    made = torch.eye(m, dtype=A.dtype).expand(*A.shape[:-2], m, m)
    for i in range(tau.shape[-1] - 1, -1, -1):
        below = A.select(-1, i).narrow(-1, i + 1, m - i - 1)
        one = torch.ones((*A.shape[:-2], 1), dtype=A.dtype)
        v = torch.cat([torch.zeros((*A.shape[:-2], i), dtype=A.dtype), one, below], -1).unsqueeze(-1)
        made = made - tau.select(-1, i).unsqueeze(-1).unsqueeze(-1) * F.matmul(v, F.matmul(_ops.mh(v), made))
    return _out(made.narrow(-1, 0, n), out)
