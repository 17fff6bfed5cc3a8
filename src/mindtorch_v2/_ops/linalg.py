"""Decompositions and solvers of (batches of) matrices, by NumPy's and SciPy's LAPACK, with derivatives from matrix calculus."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, return_types
from .._dispatch import composite, op
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS
from ._namespace import functions as F
from .pointwise import conj


class LinAlgError(RuntimeError):
    """A matrix that an algorithm cannot handle, such as a singular one."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def _check_matrix(a: np.ndarray, name: str, square: bool = True) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if square and a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if a.dtype.num in INTEGRAL_NUMS:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {BY_NUM[a.dtype.num]._abbr}"
        )
    if a.dtype in LOW_FLOATS:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {BY_NUM[a.dtype.num]._abbr}")


def mh(x: Any) -> Any:
    """The conjugate transpose."""
    turned = x.transpose(-2, -1)
    return F.conj(turned) if x.dtype.is_complex else turned


def _batch_text(info: np.ndarray) -> str:
    if info.ndim == 0:
        return ""
    return f"(Batch element {int(np.flatnonzero(info.reshape(-1))[0])}): "


# ---------------------------------------------------------------------------------------------------- inverse, determinant, solve


def _singular(a: np.ndarray) -> np.ndarray:
    """Per matrix: 0, or the (1-based) place of a zero pivot."""
    from scipy.linalg import lapack

    flat = a.reshape(-1, *a.shape[-2:])
    factor = lapack.get_lapack_funcs("getrf", (flat,)) if len(flat) else None
    info = np.array([factor(m)[2] for m in flat], np.int32) if factor is not None else np.zeros(0, np.int32)
    return np.maximum(info, 0).reshape(a.shape[:-2])


@op(
    "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    expose="no",
    returns=return_types.linalg_inv_ex,
)
def linalg_inv_ex(A: np.ndarray, check_errors: bool) -> Any:
    _check_matrix(A, "linalg.inv")
    try:
        made, info = np.linalg.inv(A), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = _singular(A)
        if check_errors:
            raise LinAlgError(
                f"linalg.inv: {_batch_text(info)}The diagonal element {int(info.max())} is zero, the inversion could not be completed because the "
                "input matrix is singular."
            ) from None
        made = np.full(A.shape, np.nan, A.dtype)
        for place in np.ndindex(*A.shape[:-2]):
            if not info[place]:
                made[place] = np.linalg.inv(A[place])
    return made, info


linalg_inv_ex.derivative(A=lambda g, inverse: -F.matmul(mh(inverse), F.matmul(g, mh(inverse))))


@composite("aten::linalg_inv(Tensor A) -> Tensor", expose="no")
def linalg_inv(A: Any) -> Any:
    return linalg_inv_ex(A, check_errors=True)[0]


@op(
    "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    expose="no",
    node="LinalgDetBackward0",
)
def _linalg_det(A: np.ndarray) -> Any:
    _check_matrix(A, "linalg.det")
    none = np.empty(0, A.dtype)
    return np.asarray(np.linalg.det(A)), none, none


@_linalg_det.backward("A")
def _(grads: Any, A: Any, result0: Any) -> Any:
    g = grads[0]
    det = result0
    if bool((det._array == 0).any()) or _dispatch.grad_state.enabled:
        return (_det_grad_by_cofactors(g, A, det),)
    scale = (g * F.conj(det)).unsqueeze(-1).unsqueeze(-1)
    return (scale * mh(linalg_inv(A)),)


def _det_grad_by_cofactors(g: Any, A: Any, det: Any) -> Any:
    """Cofactors from a singular value decomposition: right also for singular matrices."""
    if not bool((det._array == 0).any()):
        return (g * F.conj(linalg_det(A))).unsqueeze(-1).unsqueeze(-1) * mh(linalg_inv(A))
    u, s, vh = linalg_svd(A)
    n = s.shape[-1]
    others = [F.cat([s.narrow(-1, 0, i), s.narrow(-1, i + 1, n - i - 1)], -1).prod(-1) for i in range(n)]
    sign = linalg_det(u) * linalg_det(vh)
    inner = (g * F.conj(sign)).unsqueeze(-1) * F.stack(others, -1)
    return F.matmul(u * inner.unsqueeze(-2), vh)


@composite("aten::linalg_det(Tensor A) -> Tensor", expose="no")
def linalg_det(A: Any) -> Any:
    return _linalg_det(A)[0]


@op(
    "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    expose="no",
    node="LinalgSlogdetBackward0",
)
def _linalg_slogdet(A: np.ndarray) -> Any:
    _check_matrix(A, "linalg.slogdet")
    sign, log = np.linalg.slogdet(A)
    none = np.empty(0, A.dtype)
    return np.asarray(sign, A.dtype), np.asarray(log), none, none


@_linalg_slogdet.backward("A")
def _(grads: Any, A: Any) -> Any:
    g = grads[1]
    return (None if g is None else g.unsqueeze(-1).unsqueeze(-1) * mh(linalg_inv(A)),)


@op(
    "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    expose="no",
    returns=return_types.linalg_solve_ex,
    node="LinalgSolveExBackward0",
)
def linalg_solve_ex(A: np.ndarray, B: np.ndarray, left: bool, check_errors: bool) -> Any:
    _check_matrix(A, "linalg.solve")
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {BY_NUM[A.dtype.num]._abbr} and B of type "
            f"{BY_NUM[B.dtype.num]._abbr} instead"
        )
    vector = _is_vector_case(A, B)
    if not vector:
        _check_right_side(A, B.shape[-2:], left)
    elif B.shape[-1] != A.shape[-1]:
        _check_right_side(A, (B.shape[-1], 1), left)
    info = np.zeros(A.shape[:-2], np.int32)
    a = A if left else np.swapaxes(A, -1, -2)
    b = B[..., None] if vector else B if left else np.swapaxes(B, -1, -2)
    try:
        made = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        info = _singular(A)
        if check_errors:
            raise LinAlgError(
                f"torch.linalg.solve: {_batch_text(info)}The solver failed because the input matrix is singular."
            ) from None
        made = np.full(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], np.nan, A.dtype)
    made = made[..., 0] if vector else made if left else np.swapaxes(made, -1, -2)
    return np.ascontiguousarray(made), info


def _check_right_side(A: np.ndarray, shape: tuple, left: bool) -> None:
    if shape[0 if left else 1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{'x'.join(map(str, shape))})"
        )


def _is_vector_case(a: Any, b: Any) -> bool:
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


@linalg_solve_ex.backward("A", "B")
def _(grads: Any, A: Any, B: Any, result0: Any, left: bool, needs: Any) -> Any:
    g = grads[0]
    vector = _is_vector_case(A, B)
    if vector:
        gb = linalg_solve_ex(mh(A), g.unsqueeze(-1), left=left)[0].squeeze(-1)
        ga = -F.matmul(gb.unsqueeze(-1), F.conj(result0).unsqueeze(-2))
    else:
        gb = linalg_solve_ex(mh(A), g, left=left)[0]
        ga = -F.matmul(gb, mh(result0)) if left else -F.matmul(mh(result0), gb)
    return (ga if needs[0] else None), (gb if needs[1] else None)


@composite("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", expose="no")
def linalg_solve(A: Any, B: Any, left: bool) -> Any:
    return linalg_solve_ex(A, B, left=left, check_errors=True)[0]


@op(
    "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    expose="no",
)
def linalg_solve_triangular(
    self: np.ndarray, B: np.ndarray, upper: bool, left: bool, unitriangular: bool
) -> Any:
    a = np.triu(self) if upper else np.tril(self)
    if unitriangular:
        n = a.shape[-1]
        a = a.copy()
        a[..., range(n), range(n)] = 1
    if left:
        return np.linalg.solve(a, B)
    return np.ascontiguousarray(
        np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(B, -1, -2)), -1, -2)
    )


@linalg_solve_triangular.backward("self", "B")
def _(g: Any, self: Any, out: Any, upper: bool, left: bool, unitriangular: bool, needs: Any) -> Any:
    gb = linalg_solve_triangular(mh(self), g, upper=not upper, left=left, unitriangular=unitriangular)
    ga = None
    if needs[0]:
        ga = -F.matmul(gb, mh(out)) if left else -F.matmul(mh(out), gb)
        shift = 1 if unitriangular else 0
        ga = F.triu(ga, shift) if upper else F.tril(ga, -shift)
    return ga, gb


# ---------------------------------------------------------------------------------------------------- Cholesky, QR


@op(
    "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    expose="no",
    returns=return_types.linalg_cholesky_ex,
)
def linalg_cholesky_ex(self: np.ndarray, upper: bool, check_errors: bool) -> Any:
    _check_matrix(self, "linalg.cholesky")
    a = np.tril(np.conj(np.swapaxes(self, -1, -2))) if upper else self
    info = np.zeros(self.shape[:-2], np.int32)
    try:
        made = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        info = _cholesky_info(a)
        if check_errors:
            raise LinAlgError(
                f"linalg.cholesky: {_batch_text(info)}The factorization could not be completed because the input is not positive-definite (the "
                f"leading minor of order {int(info.reshape(-1)[np.flatnonzero(info)[0]]) if info.ndim else int(info)} is not positive-definite)."
            ) from None
        made = np.tril(a).copy()
    return np.ascontiguousarray(np.conj(np.swapaxes(made, -1, -2))) if upper else made, info


def _cholesky_info(a: np.ndarray) -> np.ndarray:
    from scipy.linalg import lapack

    flat = a.reshape(-1, *a.shape[-2:])
    factor = lapack.get_lapack_funcs("potrf", (flat,))
    return np.array([factor(m, lower=1)[1] for m in flat], np.int32).reshape(a.shape[:-2])


def _cholesky_grad(g: Any, L: Any, upper: bool) -> Any:
    low = mh(L) if upper else L
    gl = mh(g) if upper else g
    phi = F.tril(F.matmul(mh(low), gl))
    phi = phi - 0.5 * F.diag_embed(F.diagonal(phi, 0, -2, -1))
    half = linalg_solve_triangular(mh(low), phi, upper=True, left=True)
    made = linalg_solve_triangular(low, half, upper=False, left=False)
    return 0.5 * (made + mh(made))


linalg_cholesky_ex.derivative(self=lambda g, L, upper: _cholesky_grad(g, L, upper))


@composite("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", expose="no")
def linalg_cholesky(self: Any, upper: bool) -> Any:
    return linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]


@op(
    "aten::linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    expose="no",
    returns=return_types.linalg_qr,
)
def linalg_qr(A: np.ndarray, mode: str) -> Any:
    _check_matrix(A, "linalg.qr", square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return np.empty(0, A.dtype), np.linalg.qr(A, "r")
    q, r = np.linalg.qr(A, mode)
    return q, r


@linalg_qr.backward("A")
def _(grads: Any, A: Any, Q: Any, R: Any, mode: str) -> Any:
    gq, gr = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    rows, columns = A.shape[-2], A.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    if rows < columns:
        return (_wide_qr_grad(A, Q, R, gq, gr),)
    return (_tall_qr_grad(Q, R, gq, gr),)


def _tall_qr_grad(Q: Any, R: Any, gq: Any, gr: Any) -> Any:
    middle = None
    if gr is not None:
        middle = F.matmul(R, mh(gr))
    if gq is not None:
        part = F.matmul(mh(gq), Q)
        middle = -part if middle is None else middle - part
    half = F.tril(middle)
    sym = half + mh(F.tril(middle, -1))
    right = F.matmul(Q, sym)
    if gq is not None:
        right = right + gq
    return linalg_solve_triangular(mh(R), right, upper=False, left=False)


def _wide_qr_grad(A: Any, Q: Any, R: Any, gq: Any, gr: Any) -> Any:
    """Split off the square part: A = [X Y], R = [U V] with V = Q^H Y."""
    n = A.shape[-2]
    Y, U = A.narrow(-1, n, A.shape[-1] - n), R.narrow(-1, 0, n)
    gu = None if gr is None else gr.narrow(-1, 0, n)
    gv = None if gr is None else gr.narrow(-1, n, A.shape[-1] - n)
    inner = gq
    if gv is not None:
        extra = F.matmul(Y, mh(gv))
        inner = extra if inner is None else inner + extra
    gx = _tall_qr_grad(Q, U, inner, gu)
    gy = F.matmul(Q, gv) if gv is not None else F.zeros_like(Y)
    return F.cat([gx, gy], -1)


# ---------------------------------------------------------------------------------------------------- eigenvalues, singular values


@op(
    'aten::_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    expose="no",
    returns=return_types.linalg_eigh,
    node="LinalgEighBackward0",
)
def _linalg_eigh(A: np.ndarray, UPLO: str, compute_v: bool) -> Any:
    _check_matrix(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values, vectors = np.linalg.eigh(A, UPLO.upper())
    return values, vectors


@_linalg_eigh.backward("A")
def _(grads: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    gl, gv = grads
    V, L = eigenvectors, eigenvalues
    inner = None
    if gv is not None:
        gaps = L.unsqueeze(-2) - L.unsqueeze(-1)
        gaps = gaps + F.diag_embed(F.full_like(L, math.inf))
        inner = F.matmul(mh(V), gv) / gaps
    if gl is not None:
        diagonal = F.diag_embed(gl.to(V.dtype))
        inner = diagonal if inner is None else inner + diagonal
    return (F.matmul(V, F.matmul(inner, mh(V))),)


@op(
    "aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    expose="no",
    returns=return_types.linalg_eig,
)
def linalg_eig(self: np.ndarray) -> Any:
    _check_matrix(self, "linalg.eig")
    kind = BY_NUM[self.dtype.num].to_complex()._np
    values, vectors = np.linalg.eig(self)
    return values.astype(kind), vectors.astype(kind)


@linalg_eig.backward("self")
def _(grads: Any, eigenvalues: Any, eigenvectors: Any, self_dtype: Any) -> Any:
    gl, gv = grads
    V, L = eigenvectors, eigenvalues
    inner = F.diag_embed(gl) if gl is not None else None
    if gv is not None:
        vg = F.matmul(mh(V), gv)
        real_part = F.real(F.diagonal(vg, 0, -2, -1)).to(V.dtype)
        corrected = vg - F.matmul(F.matmul(mh(V), V), F.diag_embed(real_part))
        gaps = F.conj(L.unsqueeze(-2) - L.unsqueeze(-1))
        gaps = gaps + F.diag_embed(F.full_like(L, 1.0))
        off = F.ones_like(gaps) - F.eye(L.shape[-1], dtype=V.dtype)
        part = corrected / gaps * off
        inner = part if inner is None else inner + part
    made = linalg_solve(mh(V), F.matmul(inner, mh(V)))
    return (made if self_dtype.is_complex else F.real(made),)


@op(
    "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    expose="no",
    returns=return_types.linalg_svd,
    node="LinalgSvdBackward0",
)
def _linalg_svd(A: np.ndarray, full_matrices: bool, compute_uv: bool, driver: Any) -> Any:
    _check_matrix(A, "linalg.svd", square=False)
    if not compute_uv:
        none = np.empty(0, A.dtype)
        return none, np.linalg.svd(A, compute_uv=False), none
    u, s, vh = np.linalg.svd(A, full_matrices)
    return u, s, vh


@_linalg_svd.backward("A")
def _(grads: Any, A: Any, U: Any, S: Any, Vh: Any, full_matrices: bool, compute_uv: bool) -> Any:
    gu, gs, gvh = grads
    if not compute_uv:
        U, _, Vh = _linalg_svd(A, False, True)
    k = S.shape[-1]
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    gu = None if gu is None or not compute_uv else gu.narrow(-1, 0, k)
    gvh = None if gvh is None or not compute_uv else gvh.narrow(-2, 0, k)
    if gu is None and gvh is None:
        return (F.matmul(U * gs.to(U.dtype).unsqueeze(-2), Vh),)
    gaps = (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1))
    gaps = gaps + F.diag_embed(F.full_like(S, math.inf))
    inner = F.zeros((*S.shape, k), dtype=U.dtype)

    def skew(x: Any) -> Any:
        return x - mh(x)

    if gu is not None:
        inner = inner + (skew(F.matmul(mh(U), gu)) / gaps) * S.unsqueeze(-2)
    if gvh is not None:
        inner = inner + S.unsqueeze(-1) * (skew(F.matmul(Vh, mh(gvh))) / gaps)
    if gs is not None:
        inner = inner + F.diag_embed(gs.to(U.dtype))
    made = F.matmul(U, F.matmul(inner, Vh))
    inverse = 1 / S
    if gu is not None and U.shape[-2] > k:
        rest = gu * inverse.unsqueeze(-2)
        made = made + F.matmul(rest - F.matmul(U, F.matmul(mh(U), rest)), Vh)
    if gvh is not None and Vh.shape[-1] > k:
        rest = gvh * inverse.unsqueeze(-1)
        made = made + F.matmul(U, rest - F.matmul(F.matmul(rest, mh(Vh)), Vh))
    return (made,)


@composite(
    "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    expose="no",
)
def linalg_svd(A: Any, full_matrices: bool, driver: Any) -> Any:
    return _linalg_svd(A, full_matrices, True, driver=driver)


# ---------------------------------------------------------------------------------------------------- LU


@op(
    "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    expose="no",
    returns=return_types.linalg_lu_factor_ex,
)
def linalg_lu_factor_ex(A: np.ndarray, pivot: bool, check_errors: bool) -> Any:
    from scipy.linalg import lapack

    _check_matrix(A, "torch.linalg.lu_factor", square=False)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    flat = A.reshape(-1, *A.shape[-2:])
    factor = lapack.get_lapack_funcs("getrf", (flat,))
    k = min(A.shape[-2:])
    lu, pivots, info = (
        np.empty(flat.shape, A.dtype),
        np.empty((len(flat), k), np.int32),
        np.zeros(len(flat), np.int32),
    )
    for i, matrix in enumerate(flat):
        lu[i], swaps, info[i] = factor(matrix)
        pivots[i] = swaps[:k] + 1
    return lu.reshape(A.shape), pivots.reshape(*A.shape[:-2], k), info.reshape(A.shape[:-2])


@linalg_lu_factor_ex.backward("A")
def _(grads: Any, LU: Any, pivots: Any) -> Any:
    n = LU.shape[-1]
    if LU.shape[-2] != n:
        raise RuntimeError("the derivative of linalg.lu_factor is implemented for square matrices only")
    P, L, U = lu_unpack(LU.detach() if not _dispatch.grad_state.enabled else LU, pivots)
    g = grads[0]
    gl, gu = F.tril(g, -1), F.triu(g)
    inner = F.tril(F.matmul(mh(L), gl), -1) + F.triu(F.matmul(gu, mh(U)))
    made = linalg_solve_triangular(mh(L), inner, upper=True, unitriangular=True)
    made = linalg_solve_triangular(mh(U), made, upper=False, left=False)
    return (F.matmul(P, made),)


def lu_unpack(LU: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple:
    """(P, L, U) from a compact factorisation."""
    m, n = LU.shape[-2], LU.shape[-1]
    k = min(m, n)
    none = F.empty(0, dtype=LU.dtype)
    P = L = U = none
    if unpack_data:
        L = F.tril(LU.narrow(-1, 0, k), -1) + F.eye(m, k, dtype=LU.dtype)
        U = F.triu(LU.narrow(-2, 0, k))
    if unpack_pivots:
        swaps = pivots._array.reshape(-1, pivots.shape[-1])
        made = np.zeros((len(swaps), m, m), LU._array.dtype)
        for i, row in enumerate(swaps):
            order = np.arange(m)
            for j, s in enumerate(row):
                order[[j, s - 1]] = order[[s - 1, j]]
            made[i, order, np.arange(m)] = 1
        P = _dispatch.wrap(made.reshape(*LU.shape[:-2], m, m))
    return P, L, U


# ---------------------------------------------------------------------------------------------------- functions of matrices


@op("aten::linalg_matrix_exp(Tensor self) -> Tensor", expose="no")
def linalg_matrix_exp(self: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm

    _check_matrix(self, "linalg.matrix_exp")
    return expm(self).astype(self.dtype) if self.size else self.copy()


def _matrix_exp_grad(g: Any, self: Any) -> Any:
    """The upper right block of the exponential of [[A^H, g], [0, A^H]]."""
    n = self.shape[-1]
    turned = mh(self)
    top = F.cat([turned, g], -1)
    bottom = F.cat([F.zeros_like(turned), turned], -1)
    made = linalg_matrix_exp(F.cat([top, bottom], -2))
    return made.narrow(-2, 0, n).narrow(-1, n, n)


linalg_matrix_exp.derivative(self=_matrix_exp_grad)


@composite(
    "aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
)
def linalg_matrix_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        self = self.to(dtype)
    first, second = (d % self.ndim for d in dim)
    if ord == "fro":
        return F.linalg_vector_norm(self, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        values = svdvals(F.movedim(self, (first, second), (-2, -1)))
        made = values.sum(-1) if ord == "nuc" else F.amax(values, -1) if ord == 2 else F.amin(values, -1)
        for d in sorted((first, second)) if keepdim else ():
            made = made.unsqueeze(d)
        return made
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) == math.inf:
        first, second = second, first
    sums = F.sum(F.abs(self), first, keepdim)
    if not keepdim and first < second:
        second -= 1
    return (F.amax if ord > 0 else F.amin)(sums, second, keepdim)


def svdvals(A: Any) -> Any:
    """Singular values."""
    return _linalg_svd(A, False, _dispatch.grad_state.enabled and A._rg)[1]


# ---------------------------------------------------------------------------------------------------- products


@op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", expose="no")
def linalg_cross(self: np.ndarray, other: np.ndarray, dim: int) -> np.ndarray:
    if self.dtype != other.dtype:
        expected, found = (BY_NUM[x.dtype.num]._abbr for x in (self, other))
        raise RuntimeError(f"expected scalar type {expected} but found {found}")
    if self.dtype.kind == "b":
        raise _dispatch.not_implemented("cross", self)
    a, b = (np.moveaxis(x, dim, 0) for x in np.broadcast_arrays(self, other))
    made = np.empty(np.broadcast_shapes(self.shape, other.shape), self.dtype)
    parts = np.moveaxis(made, dim, 0)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        np.subtract(a[i] * b[j], a[j] * b[i], parts[k])
    return made


linalg_cross.derivative(
    self=lambda g, other, dim: linalg_cross(conj(other).expand(g.shape), g, dim=dim),
    other=lambda g, self, dim: linalg_cross(g, conj(self).expand(g.shape), dim=dim),
)
