"""Decompositions and solvers of (batches of) matrices, by NumPy's and SciPy's LAPACK, with derivatives from matrix calculus."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _dispatch, _op_errors, return_types
from .._dispatch import OPS, composite, op, wrap
from .._dtype import BY_NUM
from . import _dims
from ._children import UNKNOWN, Child, child, tensor
from ._half_precision import in_float32
from ._namespace import functions as F
from .linalg_kernels import (  # noqa: F401  (LinAlgError is torch.linalg's)
    LinAlgError,
    all_children,
    blas,
    check,
    check_child,
    check_matrix,
    columns,
    described,
    factor_child,
    is_vector_case,
    lapack,
    lu_arrays,
    lu_solve_arrays,
    lu_solve_child,
    lu_solve_children,
    mh,
    pivots_of,
    turned,
    value_error,
    workspace,
)
from .pointwise import conj

_INT32, _INT64 = 3, 4  # torch's numbers


# ---------------------------------------------------------------------------------------------------- inverse, determinant, solve


@op(
    "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    expose="no",
    returns=return_types.linalg_inv_ex,
)
def linalg_inv_ex(A: np.ndarray, check_errors: bool) -> Any:
    check_matrix(A, "linalg.inv")
    try:
        inverse, info = np.linalg.inv(np.swapaxes(A, -1, -2)), np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:  # singular: LAPACK divides by zero
        LU, pivots, info = lu_arrays(A)
        if check_errors:
            raise value_error("linalg.inv", info, info.ndim == 0) from None
        return lu_solve_arrays(LU, pivots, np.eye(A.shape[-1], dtype=A.dtype), True, False), info
    return np.swapaxes(inverse, -1, -2), info


def _inv_grad(g: Any, inverse: Any) -> Any:
    product = F.matmul(mh(inverse), g)
    return F.neg(F.matmul(product, mh(inverse)))


linalg_inv_ex.derivative(A=_inv_grad)


@linalg_inv_ex.children
def _(A: Any, check_errors: Any) -> list[Child]:
    """The solution of AX = I, written over I."""
    info, none = described(A, lambda shape: shape[:-2], "int"), described(A, lambda _: (0,))
    arguments = (A, A, True, check_errors, A)
    pivots, diagonal = pivots_of(A), described(A, lambda shape: shape[:-1])
    outputs = [
        child("aten::new_empty", A, (0,), *dtype, children=[child("aten::empty.memory_format", (0,))])
        for dtype in ((), (_INT32,))
    ]
    steps = [
        *[child("aten::as_strided_", x, x.shape, None) for x in (A, pivots)],
        factor_child(A),
        lu_solve_child(A, A, True, in_place=True),
    ]
    solve = child("aten::_linalg_solve_ex.result", *arguments, none, none, info, children=steps)
    return [
        child("aten::zero_", A, children=()),
        child("aten::diagonal", A, 0, -2, -1),
        child("aten::fill_.Scalar", diagonal, 1.0),
        child("aten::linalg_solve_ex.out", *arguments, info, children=[*outputs, solve]),
    ]


@composite("aten::linalg_inv(Tensor A) -> Tensor", expose="no")
def linalg_inv(A: Any) -> Any:
    inverse, info = linalg_inv_ex(A, check_errors=False)
    check(info, "linalg.inv", A.ndim == 2)
    return inverse


@op(
    "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    expose="no",
    node="LinalgDetBackward0",
    outputs=1,
)
def _linalg_det(A: np.ndarray) -> Any:
    check_matrix(A, "linalg.det")
    return np.asarray(np.linalg.det(A)), np.empty(0, A.dtype), np.empty(0, np.int32)


@_linalg_det.children
def _(A: Any) -> list[Child]:
    diagonal = described(A, lambda shape: shape[:-1])
    product = described(A, lambda shape: shape[:-2])
    return [
        *_factor_children(A),
        child("aten::prod.dim_int", diagonal, -1),
        *_swap_children(A),
        child("aten::mul.out", product, described(A, lambda shape: shape[:-2], "long int"), product),
    ]


def _factor_children(A: Any) -> list[Child]:
    """The LU factorisation of transposed matrices, and its diagonal."""
    return [
        child("aten::empty.memory_format", (0,), _INT32, 0),
        turned("aten::mH", A),
        factor_child(A, sized=False),
        child("aten::diagonal", A, 0, -2, -1),
    ]


def _swap_children(A: Any) -> list[Child]:
    """The sign that the swaps of rows give: 1 - 2 (number of swaps mod 2)."""
    pivots, sign = pivots_of(A), described(A, lambda shape: shape[:-2], "long int")
    return [
        child("aten::arange.start", 1, A.shape[-1] + 1, _INT32, 0),
        child("aten::ne.Tensor", described(A, lambda shape: shape[-1:], "int"), pivots),
        child("aten::sum.dim_IntList", described(pivots, lambda shape: shape, "bool"), (-1,), False, _INT64),
        child("aten::fmod_.Scalar", sign, 2),
        child("aten::mul_.Scalar", sign, -2),
        child("aten::add_.Scalar", sign, 1),
    ]


@_linalg_det.backward("A")
def _(g: Any, A: Any, result: Any) -> Any:
    singular = bool((result._array == 0).any())
    if singular or _dispatch.grad_state.enabled:
        return (_det_grad_by_cofactors(g, A, result),)
    return (_over_adjoint(F.mul(g, _conj(result)), A, True),)


def _over_adjoint(g: Any, A: Any, guarded: bool) -> Any:
    """g A^-H, from the LU factors of A^H; `guarded`: a zero pivot is replaced by a very small number."""
    lu, swaps, _ = lu_arrays(np.conj(np.swapaxes(A._array, -1, -2)))
    LU, pivots = wrap(lu), wrap(swaps)
    # a diagonal matrix is its own transpose; by columns is what LAPACK takes
    scaled = OPS["mT"].entry(F.diag_embed(OPS["expand_as"].entry(F.unsqueeze(g, -1), pivots)))
    if guarded:
        tiny = float(np.finfo(lu.dtype).eps)
        LU = F.add(LU, F.diag_embed(F.where(F.diagonal(LU, 0, -2, -1) == 0.0, tiny, 0.0)))
    return linalg_lu_solve(LU, pivots, scaled)


def _conj(x: Any) -> Any:
    return F.conj(x) if x.dtype.is_complex else x


def _det_grad_by_cofactors(g: Any, A: Any, det: Any) -> Any:
    """The gradient by cofactors from a singular value decomposition: correct for singular matrices too."""
    if not bool((det._array == 0).any()):
        return (g * F.conj(linalg_det(A))).unsqueeze(-1).unsqueeze(-1) * mh(linalg_inv(A))
    u, s, vh = F.linalg_svd(A)
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
    outputs=2,
)
def _linalg_slogdet(A: np.ndarray) -> Any:
    check_matrix(A, "linalg.slogdet")
    sign, log = np.linalg.slogdet(A)
    return np.asarray(sign, A.dtype), np.asarray(log), np.empty(0, A.dtype), np.empty(0, np.int32)


@_linalg_slogdet.children
def _(A: Any) -> list[Child]:
    diagonal = described(A, lambda shape: shape[:-1])
    product = described(A, lambda shape: shape[:-2])
    return [
        *_factor_children(A),
        *_swap_children(A),
        child("aten::sgn", diagonal),
        child("aten::prod.dim_int", diagonal, -1),
        child("aten::mul.out", product, product, product),
        child("aten::abs", diagonal),
        child("aten::log_", diagonal),
        child("aten::sum.IntList_out", diagonal, (-1,), False, None, product),
    ]


@_linalg_slogdet.backward("A")
def _(grads: Any, A: Any, sign: Any) -> Any:
    g = grads[1]
    if A.dtype.is_complex and grads[0] is not None:  # a real sign is constant
        turn = F.complex(F.zeros_like(sign.real), F.neg(F.imag(F.mul(F.conj(grads[0]), sign))))
        g = turn if g is None else F.add(turn, g)
    if g is None:
        return (None,)
    if _dispatch.grad_state.enabled:
        return (g.unsqueeze(-1).unsqueeze(-1) * mh(linalg_inv(A)),)
    return (_over_adjoint(g, A, False),)


@composite("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", expose="no")
def linalg_slogdet(A: Any) -> Any:
    sign, log, *_ = _linalg_slogdet(A)
    return sign, log


@op(
    "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, "
    "Tensor info)",
    expose="no",
    node="LinalgSolveExBackward0",
    outputs=1,
)
def _linalg_solve_ex(A: np.ndarray, B: np.ndarray, left: bool, check_errors: bool) -> Any:
    vector = check_solve(A, B, left)
    info = np.zeros(A.shape[:-2], np.int32)
    a = A if left else np.swapaxes(A, -1, -2)
    b = B[..., None] if vector else B if left else np.swapaxes(B, -1, -2)
    try:
        solution = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:  # singular: LAPACK divides by zero
        LU, pivots, info = lu_arrays(a)
        if check_errors:
            raise value_error("linalg.solve", info, A.ndim == 2) from None
        solution = lu_solve_arrays(LU, pivots, b, True, False)
    solution = (
        np.ascontiguousarray(solution[..., 0])
        if vector
        else columns(solution)
        if left
        else np.swapaxes(columns(solution), -1, -2)
    )
    return solution, np.empty(0, A.dtype), np.empty(0, np.int32), info


def check_solve(A: np.ndarray, B: np.ndarray, left: bool) -> bool:
    """Raise torch's errors for bad arguments; return whether the right-hand side is a vector."""
    check_matrix(A, "linalg.solve")
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {BY_NUM[A.dtype.num]._abbr} and B of type "
            f"{BY_NUM[B.dtype.num]._abbr} instead"
        )
    vector = is_vector_case(A.shape, B.shape)
    if not vector:
        _check_right_side(A, B.shape[-2:], left)
    elif B.shape[-1] != A.shape[-1]:
        _check_right_side(A, (B.shape[-1], 1), left)
    return vector


@composite(
    "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    expose="no",
)
def linalg_solve_ex(A: Any, B: Any, left: bool, check_errors: bool) -> Any:
    result, _, _, info = _linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return return_types.linalg_solve_ex((result, info))


def _check_right_side(A: np.ndarray, shape: tuple, left: bool) -> None:
    if shape[0 if left else 1] != A.shape[-1]:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{'x'.join(map(str, shape))})"
        )


@_linalg_solve_ex.children
def _(A: Any, B: Any, left: Any, check_errors: Any) -> list[Child]:
    if B is not UNKNOWN and is_vector_case(A.shape, B.shape):
        B = described(B, lambda shape: (*shape, 1))
    return [factor_child(A), lu_solve_child(A, B, left)]


@_linalg_solve_ex.backward("A", "B")
def _(g: Any, A: Any, B_shape: Any, result: Any, left: bool, needs: Any) -> Any:
    vector = is_vector_case(A._array.shape, B_shape)
    right = F.unsqueeze(g, -1) if vector else g
    if _dispatch.grad_state.enabled:
        gb = _linalg_solve_ex(mh(A), right, left=left)[0]
    else:
        LU, pivots, _ = lu_arrays(A._array)
        gb = linalg_lu_solve(wrap(LU), wrap(pivots), right, left=left, adjoint=True)
    ga = None
    if needs[0]:
        solution = F.unsqueeze(result, -1) if vector else result
        ga = F.neg(F.matmul(gb, mh(solution)) if left else F.matmul(mh(solution), gb))
    return ga, (F.squeeze(gb, -1) if vector else gb) if needs[1] else None


@composite("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", expose="no")
def linalg_solve(A: Any, B: Any, left: bool) -> Any:
    solution, info = linalg_solve_ex(A, B, left=left, check_errors=False)
    check(info, "torch.linalg.solve", A.ndim == 2)
    return solution


@op(
    "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    expose="no",
)
def linalg_solve_triangular(
    self: np.ndarray, B: np.ndarray, upper: bool, left: bool, unitriangular: bool
) -> Any:
    check_matrix(self, "linalg.solve_triangular")
    if B.ndim < 2:
        raise RuntimeError("linalg.solve_triangular: The input tensor B must have at least 2 dimensions.")
    if B.shape[-2 if left else -1] != self.shape[-1]:
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({self.shape[-2]}x{self.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )
    if self.dtype.kind == "W":
        raise _op_errors.not_implemented("triangular_solve", self)
    if self.dtype != B.dtype:
        self, B = _dispatch.promote_pair(self, B)
    solve = functools.partial(
        blas("trsm", self.dtype), 1.0, side=not left, lower=not upper, diag=unitriangular
    )
    if self.ndim == B.ndim == 2 and B.size:
        return solve(self, B)
    batch = np.broadcast_shapes(self.shape[:-2], B.shape[:-2])
    turned = np.empty((*batch, B.shape[-1], B.shape[-2]), B.dtype)
    if turned.size:
        matrices = _dims.rows(np.broadcast_to(self, (*batch, *self.shape[-2:])), 2)
        rights = _dims.rows(np.broadcast_to(B, (*batch, *B.shape[-2:])), 2)
        for solution, matrix, right in zip(_dims.rows(turned, 2), matrices, rights):
            solution[...] = solve(matrix, right).T
    return turned.swapaxes(-1, -2)


@linalg_solve_triangular.backward("self", "B")
def _(g: Any, self: Any, out: Any, upper: bool, left: bool, unitriangular: bool, needs: Any) -> Any:
    gb = linalg_solve_triangular(mh(self), g, upper=not upper, left=left, unitriangular=unitriangular)
    ga = None
    if needs[0]:
        ga = F.neg(F.matmul(gb, mh(out)) if left else F.matmul(mh(out), gb))
        shift = 1 if unitriangular else 0
        ga = F.triu(ga, shift) if upper else F.tril(ga, -shift)
    return ga, gb if needs[1] else None


# ---------------------------------------------------------------------------------------------------- Cholesky, QR


@op(
    "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    expose="no",
    returns=return_types.linalg_cholesky_ex,
)
def linalg_cholesky_ex(self: np.ndarray, upper: bool, check_errors: bool) -> Any:
    check_matrix(self, "linalg.cholesky")
    turned = np.swapaxes(self, -1, -2)
    try:
        factor = np.linalg.cholesky(turned, upper=not upper)  # of the transpose: column-major without a copy
    except np.linalg.LinAlgError:
        factor, info = _unfinished_cholesky(self, upper)
        if check_errors:
            raise value_error("linalg.cholesky", info, info.ndim == 0) from None
        return factor, info
    return np.swapaxes(factor, -1, -2), np.zeros(self.shape[:-2], np.int32)


def _unfinished_cholesky(A: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """Factors as far as LAPACK gets, and per matrix the order of the minor that is not positive definite, or 0."""
    factor = np.array(np.swapaxes(A, -1, -2), order="C")
    info = np.zeros(A.shape[:-2], np.int32)
    factorise = lapack("potrf", A.dtype)
    for i in np.ndindex(*info.shape):
        _, info[i] = factorise(factor[i].T, lower=not upper, clean=True, overwrite_a=True)
    return np.swapaxes(factor, -1, -2), info


def _cholesky_grad(g: Any, L: Any, upper: bool) -> Any:
    low = mh(L) if upper else L
    gl = mh(g) if upper else g
    phi = F.matmul(mh(low), gl)
    phi = F.mul(F.add(F.tril(phi), mh(F.tril(phi, -1))), 0.5)
    solved = linalg_solve_triangular(mh(low), phi, upper=True, left=True)
    return linalg_solve_triangular(low, solved, upper=False, left=False)


linalg_cholesky_ex.derivative(self=lambda g, L, upper: _cholesky_grad(g, L, upper))
linalg_cholesky_ex.children(
    lambda self, upper, check_errors: [child("aten::triu.out" if upper else "aten::tril.out", self, 0, self)]
)


@composite("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", expose="no")
def linalg_cholesky(self: Any, upper: bool) -> Any:
    factor, info = linalg_cholesky_ex(self, upper=upper, check_errors=False)
    check(info, "linalg.cholesky", self.ndim == 2)
    return factor


@op(
    "aten::linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
    expose="no",
    returns=return_types.linalg_qr,
)
def linalg_qr(A: np.ndarray, mode: str) -> Any:
    check_matrix(A, "linalg.qr", square=False)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return np.empty(0, A.dtype), columns(np.linalg.qr(A, "r"))
    q, r = np.linalg.qr(A, mode)
    return columns(q), columns(r)


@linalg_qr.children
def _(A: Any, mode: Any) -> list[Child]:
    """R is the upper triangle of what LAPACK leaves: written in place where R is as large as that, to an output otherwise."""
    *batch, m, n = A.shape
    R = tensor((*batch, m if mode == "complete" else min(m, n), n), A)
    reflectors = child(
        "aten::new_empty", A, (*batch, min(m, n)), children=[child("aten::empty.memory_format", None)]
    )
    before = [reflectors, child("aten::copy_", tensor(A.shape, A), A), workspace()]
    if mode != "r" and (m < n or (mode == "complete" and m > n)):
        return [*before, child("aten::triu_", R), workspace()]
    part = child("aten::slice.Tensor", tensor(A.shape, A), -2, 0, R.shape[-2])
    return [*before, part, child("aten::triu.out", R, 0, R), workspace()]


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
    return (_qr_grad(Q, R, gq, gr),)


def _qr_grad(Q: Any, R: Any, gq: Any, gr: Any) -> Any:
    middle = F.matmul(mh(Q), gq) if gq is not None else None
    if gr is not None:
        part = F.matmul(gr, mh(R))
        middle = part if middle is None else F.sub(part, middle)
    else:
        middle = F.neg(middle)
    if Q.shape[-2] >= R.shape[-1]:
        right = F.matmul(Q, _both_triangles(middle))
        if gq is not None:
            right = F.add(right, gq)
        return linalg_solve_triangular(mh(R), right, upper=False, left=False)
    n = R.shape[-2]
    turned = F.neg(middle)
    lower = F.tril(F.sub(turned, mh(turned)), 0 if turned.dtype.is_complex else -1)
    if turned.dtype.is_complex:
        lower = lower - 0.5 * F.diag_embed(F.diagonal(lower, 0, -2, -1))
    gradient = F.matmul(Q, lower)
    gradient = linalg_solve_triangular(mh(R.narrow(-1, 0, n)), gradient, upper=False, left=False)
    zeros = OPS["new_zeros"].entry(gradient, (*gradient.shape[:-1], R.shape[-1] - n))
    gradient = F.cat([gradient, zeros], -1)
    return gradient if gr is None else F.add(gradient, F.matmul(Q, gr))


def _both_triangles(x: Any) -> Any:
    """The Hermitian matrix with the upper triangle of x."""
    upper = F.triu(x)
    hermitian = F.add(upper, mh(upper))
    diagonal = F.diagonal(hermitian, 0, -2, -1)
    if _dispatch.grad_state.enabled:
        return hermitian - 0.5 * F.diag_embed(diagonal)
    OPS["mul_.Scalar"].entry(F.real(diagonal), 0.5)
    return hermitian


# ---------------------------------------------------------------------------------------------------- LU


@op(
    "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    expose="no",
    returns=return_types.linalg_lu_factor_ex,
)
def linalg_lu_factor_ex(A: np.ndarray, pivot: bool, check_errors: bool) -> Any:
    if A.ndim < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    check_matrix(A, "torch.linalg.lu_factor", square=False)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return lu_arrays(A)


@linalg_lu_factor_ex.backward("A")
def _(g: Any, LU: Any, pivots: Any) -> Any:
    P, L, U = lu_unpack(LU, pivots)
    k = min(LU.shape[-2:])
    return (_lu_grad(g.narrow(-1, 0, k), g.narrow(-2, 0, k), P, L, U),)


def _lu_grad(gl: Any, gu: Any, P: Any, L: Any, U: Any) -> Any:
    if L.shape[-2] != U.shape[-1]:
        return _rectangular_lu_grad(gl, gu, P, L, U)
    lower = F.tril(F.matmul(mh(L), gl), -1) if gl is not None else None
    upper = F.triu(F.matmul(gu, mh(U))) if gu is not None else None
    inner = upper if lower is None else lower if upper is None else F.add(lower, upper)
    gradient = linalg_solve_triangular(mh(L), inner, upper=True, left=True, unitriangular=True)
    gradient = linalg_solve_triangular(mh(U), gradient, upper=False, left=False)
    return F.matmul(P, gradient)


def _rectangular_lu_grad(gl: Any, gu: Any, P: Any, L: Any, U: Any) -> Any:
    """The same where A has more rows or more columns: those beyond the square are a product with one of the square's factors."""
    rows, width = L.shape[-2], U.shape[-1]
    k = min(rows, width)
    gl = F.zeros_like(L) if gl is None else gl
    gu = F.zeros_like(U) if gu is None else gu
    square_l, square_u = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    lower = F.matmul(mh(square_l), gl.narrow(-2, 0, k))
    upper = F.matmul(gu.narrow(-1, 0, k), mh(square_u))
    if rows > k:
        below = gl.narrow(-2, k, rows - k)
        upper = F.sub(upper, F.matmul(mh(L.narrow(-2, k, rows - k)), below))
        rest = linalg_solve_triangular(mh(square_u), below, upper=False, left=False)
    else:
        beside = gu.narrow(-1, k, width - k)
        lower = F.sub(lower, F.matmul(beside, mh(U.narrow(-1, k, width - k))))
        rest = linalg_solve_triangular(mh(square_l), beside, upper=True, left=True, unitriangular=True)
    inner = F.add(F.tril(lower, -1), F.triu(upper))
    gradient = linalg_solve_triangular(mh(square_l), inner, upper=True, left=True, unitriangular=True)
    gradient = linalg_solve_triangular(mh(square_u), gradient, upper=False, left=False)
    return F.matmul(P, F.cat([gradient, rest], -2 if rows > k else -1))


@composite("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", expose="no")
def linalg_lu_factor(A: Any, pivot: bool) -> Any:
    LU, pivots, info = linalg_lu_factor_ex(A, pivot=pivot, check_errors=False)
    check(info, "torch.linalg.lu_factor", A.ndim == 2)
    return return_types.linalg_lu_factor((LU, pivots))


@op(
    "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    expose="function",
    returns=return_types.lu_unpack,
    outputs=3,
)
def lu_unpack(LU_data: np.ndarray, LU_pivots: np.ndarray, unpack_data: bool, unpack_pivots: bool) -> Any:
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = np.empty(0, LU_data.dtype)
    if unpack_data:
        rows, columns = np.arange(m)[:, None], np.arange(n)
        zero, one = LU_data.dtype.type(0), LU_data.dtype.type(1)
        L = np.ascontiguousarray(np.where(rows > columns[:k], LU_data[..., :k], zero))
        np.einsum("...ii->...i", L[..., :k, :])[...] = one
        U = np.ascontiguousarray(np.where(rows[:k] > columns, zero, LU_data[..., :k, :]))
    if unpack_pivots:
        if LU_pivots.shape != (*LU_data.shape[:-2], k):
            raise RuntimeError(
                f"lu_unpack: Expected LU_pivots of shape {[*LU_data.shape[:-2], k]}, got {list(LU_pivots.shape)}"
            )
        if np.count_nonzero((LU_pivots < 1) | (LU_pivots > m)):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                "Did you properly pass the result of lu_factor?"
            )
        P = permutation(LU_pivots, m, LU_data.dtype)
    return P, L, U


def permutation(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    """The matrix that undoes the swaps of a factorisation."""
    swaps = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    matrices = np.zeros((len(swaps), m, m), dtype)
    for matrix, row in zip(matrices, swaps.tolist()):
        order = list(range(m))
        for j, s in enumerate(row):
            order[j], order[s - 1] = order[s - 1], order[j]
        matrix[order, range(m)] = 1
    return matrices.reshape(*pivots.shape[:-1], m, m)


@lu_unpack.children
def _unpack_children(LU: Any, pivots: Any, unpack_data: Any, unpack_pivots: Any) -> list[Child]:
    P, L, U = _unpacked(LU)
    children = []
    if unpack_data:
        children += [child("aten::tril.out", L, -1, L), child("aten::triu.out", U, 0, U)]
    if unpack_pivots:
        order = described(LU, lambda shape: (*shape[:-2], 1, shape[-2]), "long int")
        children += [
            child("aten::arange", LU.shape[-2]),
            child("aten::scatter_.value", P, -2, order, 1.0),
        ]
    return children


def _unpacked(LU: Any) -> list[Any]:
    """P, L and U of described factors."""
    return [
        described(LU, lambda shape: (*shape[:-1], shape[-2])),
        described(LU, lambda shape: (*shape[:-1], min(shape[-2:]))),
        described(LU, lambda shape: (*shape[:-2], min(shape[-2:]), shape[-1])),
    ]


@lu_unpack.backward("LU_data")
def _(grads: Any, LU_data_shape: Any) -> Any:
    _, gl, gu = grads
    m, n = LU_data_shape[-2:]
    if gl is None and gu is None:
        return (None,)
    lower = F.tril(gl, -1) if gl is not None else None
    upper = F.triu(gu) if gu is not None else None
    if lower is not None and n > m:
        lower = F.constant_pad_nd(lower, (0, n - m), 0)
    if upper is not None and m > n:
        upper = F.constant_pad_nd(upper, (0, 0, 0, m - n), 0)
    return (upper if lower is None else lower if upper is None else F.add(lower, upper),)


@op(
    "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    expose="no",
    returns=return_types.linalg_lu,
    outputs=3,
)
def linalg_lu(A: np.ndarray, pivot: bool) -> Any:
    check_matrix(A, "torch.linalg.lu", square=False)
    if not pivot:
        raise RuntimeError("linalg.lu: LU without pivoting is not implemented on the CPU")
    lu, pivots, _ = lu_arrays(A)
    return lu_unpack.op.kernel(lu, pivots, True, True)


@linalg_lu.children
def _(A: Any, pivot: Any) -> list[Child]:
    arguments = (A, pivots_of(A), True, True)
    unpack = child("aten::lu_unpack.out", *arguments, *_unpacked(A), children=_unpack_children(*arguments))
    return [factor_child(A, pivot), unpack]


@linalg_lu.backward("A")
def _(grads: Any, P: Any, L: Any, U: Any) -> Any:
    _, gl, gu = grads
    if gl is None and gu is None:
        return (None,)
    return (_lu_grad(gl, gu, P, L, U),)


@op(
    "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    expose="no",
)
def linalg_lu_solve(LU: np.ndarray, pivots: np.ndarray, B: np.ndarray, left: bool, adjoint: bool) -> Any:
    check_matrix(LU, "torch.linalg.lu_solve")
    if pivots.shape[-1:] != LU.shape[-1:]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"
        )
    for bound, is_met in (
        ("greater or equal to 1", pivots >= 1),
        (
            "smaller or equal to LU.size(-2)",
            pivots <= LU.shape[-2],
        ),
    ):
        if not is_met.all():  # LAPACK would read and write beyond its arrays
            raise RuntimeError(
                f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
            )
    return lu_solve_arrays(LU, pivots, B, left, adjoint)


linalg_lu_solve.children(lambda LU, pivots, B, left, adjoint: lu_solve_children(LU, pivots, B, B))


@linalg_lu_solve.backward("LU", "B")
def _(g: Any, LU: Any, pivots: Any, out: Any, left: bool, adjoint: bool, needs: Any) -> Any:
    gb = linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint) if needs[1] else None
    if not needs[0]:
        return None, gb
    if left and not adjoint:
        _, L, U = lu_unpack(LU, pivots, True, False)
        inner = F.neg(F.matmul(g, mh(out)))
        upper = linalg_solve_triangular(mh(U), inner, upper=False)
        lower = linalg_solve_triangular(mh(L), F.matmul(upper, mh(U)), upper=True, unitriangular=True)
        return F.add(F.tril(lower, -1), F.triu(upper)), gb
    P, L, U = lu_unpack(LU, pivots)
    if gb is None:
        gb = linalg_lu_solve(LU, pivots, g, left=left, adjoint=not adjoint)
    first, second = (gb, out) if adjoint != left else (out, gb)
    ga = -F.matmul(first, mh(second)) if left else -F.matmul(mh(first), second)
    ga = F.matmul(mh(P), ga)
    return F.add(F.tril(F.matmul(ga, mh(U)), -1), F.triu(F.matmul(mh(L), ga))), gb if needs[1] else None


@composite("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", expose="no")
def lu_solve(self: Any, LU_data: Any, LU_pivots: Any) -> Any:
    return linalg_lu_solve(LU_data, LU_pivots, self)


# ---------------------------------------------------------------------------------------------------- functions of matrices


@op("aten::linalg_matrix_exp(Tensor self) -> Tensor", expose="no")
@in_float32
def linalg_matrix_exp(self: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm

    check_matrix(self, "linalg.matrix_exp")
    double = np.complex128 if self.dtype.kind in "cW" else np.float64
    return expm(self.astype(double, copy=False)).astype(self.dtype, copy=False) if self.size else self.copy()


def _matrix_exp_grad(g: Any, self: Any) -> Any:
    """The upper right block of the exponential of [[A^H, g], [0, A^H]]."""
    n = self.shape[-1]
    adjoint = mh(self)
    top = F.cat([adjoint, g], -1)
    bottom = F.cat([F.zeros_like(adjoint), adjoint], -1)
    exponential = linalg_matrix_exp(F.cat([top, bottom], -2))
    return exponential.narrow(-2, 0, n).narrow(-1, n, n)


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
        order = [d for d in range(self.ndim) if d not in (first, second)] + [first, second]
        values = F.linalg_svdvals(self.permute(order))
        norm = (
            F.sum(values, -1, keepdim)
            if ord == "nuc"
            else (F.amax if ord == 2 else F.amin)(values, -1, keepdim)
        )
        if keepdim:
            back = [order.index(d) for d in range(self.ndim)]
            norm = F.unsqueeze(norm, -1).permute(back)
        return norm
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) == math.inf:
        first, second = second, first
    sums = F.linalg_vector_norm(self, 1, first, keepdim)
    if not keepdim and first < second:
        second -= 1
    return (F.amax if ord > 0 else F.amin)(sums, second, keepdim)


# ---------------------------------------------------------------------------------------------------- products


_SMALL = 1024  # elements: up to so many, four gathered copies take less time than fifteen views
_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def _check_cross(self: np.ndarray, other: np.ndarray, dim: int) -> None:
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = _dims.one(dim, self.ndim)
    sizes = [x.shape[d] if x.ndim else 1 for x in (self, other)]
    if sizes != [3, 3]:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}"
        )


@op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", expose="no")
def linalg_cross(self: np.ndarray, other: np.ndarray, dim: int) -> np.ndarray:
    _check_cross(self, other, dim)
    if self.dtype != other.dtype:
        expected, actual = (BY_NUM[x.dtype.num]._abbr for x in (self, other))
        raise RuntimeError(f"expected scalar type {expected} but found {actual}")
    if self.dtype.kind == "b":
        raise _op_errors.not_implemented("cross", self)
    if self.size <= _SMALL:
        first, second = self.take(_NEXT, dim), self.take(_LAST, dim)
        return first * other.take(_LAST, dim) - second * other.take(_NEXT, dim)
    shape = self.shape if self.shape == other.shape else np.broadcast(self, other).shape
    product = np.empty(shape, self.dtype)
    x, y, z = self.swapaxes(0, dim)
    u, v, w = other.swapaxes(0, dim)
    parts = product.swapaxes(0, dim)
    np.subtract(y * w, z * v, parts[0, ...])
    np.subtract(z * u, x * w, parts[1, ...])
    np.subtract(x * v, y * u, parts[2, ...])
    return product


linalg_cross.derivative(
    self=lambda g, other, dim: linalg_cross(conj(other), g, dim=dim),
    other=lambda g, self, dim: linalg_cross(g, conj(self), dim=dim),
)
