"""What torch shows inside the ops of linear algebra while something records: an op's arguments in, its result out. Copies, workspaces and
checks around LAPACK's work, which the op's own kernel does."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dtype
from .._dispatch import OPS, storage_of, wrap
from . import _shown, linalg, linalg_composite
from . import linalg_kernels as kernels
from ._namespace import functions as F
from ._shown import kernel_of
from .linalg_kernels import blank_columns, cloned_columns, mh, put, resized_columns


def _workspace(count: int, dtype: Any) -> None:
    """Memory that LAPACK asks for."""
    F.empty((count,), dtype=dtype)


def _no_info(batch: tuple) -> Any:
    return F.zeros(batch, dtype=_dtype.int32)


# ---------------------------------------------------------------------------------------------------- inverse, determinant, solve


@linalg.linalg_inv_ex.recorded
def _(A: Any, check_errors: bool) -> Any:
    linalg._check_matrix(A._array, "linalg.inv")
    inverse, info = blank_columns(A.shape, A._array.dtype), wrap(np.zeros(A.shape[:-2], np.int32))
    F.zero_(inverse)
    F.fill_(F.diagonal(inverse, 0, -2, -1), 1)
    kernels.solve_into(A, inverse, True, check_errors, inverse, info)
    return inverse, info


@linalg._linalg_solve_ex.recorded
def _(A: Any, B: Any, left: bool, check_errors: bool) -> Any:
    vector = linalg.check_solve(A._array, B._array, left)
    if hasattr(A, "_conjugate_of"):
        F.clone(A)
    right = F.unsqueeze(B, -1) if vector else B
    LU, pivots = blank_columns(A.shape, A._array.dtype), wrap(np.empty(A.shape[:-1], np.int32))
    info = wrap(np.zeros(A.shape[:-2], np.int32))
    kernels.lu_factor_into(A, True, check_errors, LU, pivots, info)
    batch = np.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    shape = (*batch, *right.shape[-2:])
    if vector:
        result = wrap(np.empty(shape[:-1], A._array.dtype))
        F.unsqueeze(result, -1)
        F.unsqueeze(B, -1)
        into = wrap(result._array[..., None])
    else:
        into = result = (
            blank_columns(shape, A._array.dtype) if left else wrap(np.empty(shape, A._array.dtype))
        )
    if info._array.any():
        put(into, np.full(shape, np.nan, A._array.dtype))
    else:
        kernels.lu_solve_into(LU, pivots, right, left, False, into)
    return result, LU, pivots, info


@linalg.linalg_lu_solve.recorded
def _(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
    made = kernel_of(linalg.linalg_lu_solve, LU, pivots, B, left, adjoint)
    values = made._array.copy("K")
    kernels.show_lu_solve(LU, pivots, B, left, made if left else wrap(np.empty(made.shape, LU._array.dtype)))
    return put(made, values)


def _sign_of_swaps(n: int, pivots: Any) -> Any:
    count = F.sum(F.ne(F.arange(1, n + 1, dtype=_dtype.int32), pivots), -1)
    return F.add_(OPS["mul_.Scalar"].entry(F.fmod_(count, 2), -2), 1)


def _factors_turned(A: Any) -> tuple[Any, Any]:
    LU, pivots = blank_columns(A.shape, A._array.dtype), wrap(np.empty(A.shape[:-1], np.int32))
    nothing = F.empty((0,), dtype=_dtype.int32)
    kernels.lu_factor_info(mh(A), True, False, LU, pivots, nothing)
    return LU, pivots


@linalg._linalg_det.recorded
def _(A: Any) -> Any:
    linalg._check_matrix(A._array, "linalg.det")
    LU, pivots = _factors_turned(A)
    diagonal = F.diagonal(LU, 0, -2, -1)
    product = F.prod(diagonal, -1)
    result = wrap(np.empty(A.shape[:-2], A._array.dtype))
    kernels.mul_into(product, _sign_of_swaps(A.shape[-1], pivots), result)
    return result, LU, pivots


@linalg._linalg_slogdet.recorded
def _(A: Any) -> Any:
    linalg._check_matrix(A._array, "linalg.slogdet")
    made = kernel_of(linalg._linalg_slogdet, A)
    LU, pivots = _factors_turned(A)
    diagonal = F.diagonal(LU, 0, -2, -1)
    sign = _sign_of_swaps(A.shape[-1], pivots)
    kernels.mul_into(F.prod(F.sgn(diagonal), -1), sign, made[0])
    kernels.sum_into(F.log_(F.abs(diagonal)), -1, False, None, made[1])
    return made[0], made[1], LU, pivots


@linalg.linalg_solve_triangular.recorded
def _(self: Any, B: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    made = kernel_of(linalg.linalg_solve_triangular, self, B, upper, left, unitriangular)
    out = F.empty((0,), dtype=self.dtype)
    batch = tuple(made.shape[:-2])
    if tuple(self.shape[:-2]) != batch:
        self = self.expand((*batch, *self.shape[-2:]))
    if tuple(B.shape[:-2]) != batch:
        B = B.expand((*batch, *B.shape[-2:]))
    F.transpose(self, -2, -1)
    F.transpose(B, -2, -1)
    result = resized_columns(out, tuple(made.shape))
    F.transpose(result, -2, -1)
    F.copy_(result, B)
    if kernels.in_columns(self):
        F.transpose(self, -2, -1)
    return put(result, made._array)


# ---------------------------------------------------------------------------------------------------- factors


@linalg.linalg_lu_factor_ex.recorded
def _(A: Any, pivot: bool, check_errors: bool) -> Any:
    made = kernel_of(linalg.linalg_lu_factor_ex, A, pivot, check_errors)
    F.copy_(made[0], A)
    return tuple(put(part, array) for part, array in zip(made, kernels.lu_arrays(A._array)))


def _unpack(LU: Any, pivots: Any, data: bool, places: bool, made: tuple) -> None:
    P, L, U = made
    m, k = LU.shape[-2], min(LU.shape[-2:])
    if data:
        kernels.tril_into(LU if LU.shape[-1] == k else LU.narrow(-1, 0, k), -1, L)
        F.fill_(F.diagonal(L, 0, -2, -1), 1)
        kernels.triu_into(LU if m == k else LU.narrow(-2, 0, k), 0, U)
    if places:
        F.arange(m).expand((*LU.shape[:-2], m))
        values = P._array.copy()
        order = wrap(values.argmax(-2))
        F.zero_(P)
        P.scatter_(-2, F.unsqueeze(order, -2), 1.0)


@linalg.lu_unpack.recorded
def _(LU_data: Any, LU_pivots: Any, unpack_data: bool, unpack_pivots: bool) -> Any:
    made = kernel_of(linalg.lu_unpack, LU_data, LU_pivots, unpack_data, unpack_pivots)
    _unpack(LU_data, LU_pivots, unpack_data, unpack_pivots, made)
    return made


@kernels.step(
    "aten::lu_unpack.out(Tensor LU_data, Tensor LU_pivots, bool unpack_data, bool unpack_pivots, Tensor P, Tensor L, Tensor U) -> Tensor(a!)"
)
def _unpack_into(LU: Any, pivots: Any, data: bool, places: bool, P: Any, L: Any, U: Any) -> Any:
    _unpack(LU, pivots, data, places, (P, L, U))
    return P


@kernels.step(
    "aten::linalg_lu_factor_ex.both(Tensor A, bool pivot, bool check_errors, Tensor LU, Tensor pivots, Tensor info) -> (Tensor, Tensor)"
)
def _factor_both(A: Any, pivot: bool, check_errors: bool, LU: Any, pivots: Any, info: Any) -> Any:
    lu, swaps, failed = kernels.lu_arrays(A._array)
    pivots, info = wrap(swaps), wrap(failed)
    for part in (pivots, info):
        if part.ndim:
            kernels.restrided(part)
    F.copy_(LU, A)
    if not kernels.in_columns(LU):
        F.copy_(LU, wrap(lu))
    put(LU, lu)
    return pivots, info


@linalg.linalg_lu.recorded
def _(A: Any, pivot: bool) -> Any:
    made = kernel_of(linalg.linalg_lu, A, pivot)
    first, second = F.empty((0,), dtype=_dtype.int32), F.empty((0,), dtype=_dtype.int32)
    m, n = A.shape[-2:]
    LU = blank_columns(A.shape, A._array.dtype) if m != n else wrap(np.empty(A.shape, A._array.dtype))
    pivots, _ = _factor_both(A, pivot, False, made[1] if m == n else LU, first, second)
    factors = wrap(kernels.lu_arrays(A._array)[0])
    _unpack_into(factors, pivots, True, True, *made)
    return made


@linalg.linalg_cholesky_ex.recorded
def _(self: Any, upper: bool, check_errors: bool) -> Any:
    made = kernel_of(linalg.linalg_cholesky_ex, self, upper, check_errors)
    array = made[0]._array.copy("K")
    (kernels.triu_into if upper else kernels.tril_into)(self, 0, made[0])
    return put(made[0], array), made[1]


@linalg_composite.cholesky_op.recorded
def _(self: Any, upper: bool) -> Any:
    made = kernel_of(linalg.linalg_cholesky_ex, self, upper, False)
    target = cloned_columns(self)
    info = F.empty(made[1].shape, dtype=_dtype.int32)
    put(info, made[1]._array)
    kernels.check(info, "cholesky", self.ndim == 2)
    (F.triu_ if upper else F.tril_)(target)
    return put(target, made[0]._array)


@linalg_composite._cholesky_solve_helper.recorded
def _(self: Any, A: Any, upper: bool) -> Any:
    made = kernel_of(linalg_composite._cholesky_solve_helper, self, A, upper)
    target = cloned_columns(self)
    cloned_columns(A)
    info = _no_info(tuple(self.shape[:-2]) or (1,))
    kernels.check(info, "cholesky_solve_cpu", self.ndim == 2)
    return put(target, made._array)


@linalg_composite.cholesky_inverse.recorded
def _(self: Any, upper: bool) -> Any:
    made = kernel_of(linalg_composite.cholesky_inverse, self, upper)
    out = F.empty((0,), dtype=self.dtype)
    info = _no_info(tuple(self.shape[:-2]) or (1,))
    _turned(self)
    target = resized_columns(out, tuple(self.shape))
    _turned(target)
    F.copy_(target, self)
    F.fill_(info, 0)
    kernels.check(info, "cholesky_inverse", self.ndim == 2)
    return put(target, made._array)


def _turned(tensor: Any) -> Any:
    return tensor.mT


def _geqrf_space(n: int) -> int:
    return n + 1 if n < 48 else 17 * (n + 1)


def _orgqr_space(n: int) -> int:
    return n + 1 if n < 32 else 16 * n + 1 if n <= 64 else 32 * n + 1


@linalg.linalg_qr.recorded
def _(A: Any, mode: str) -> Any:
    made = kernel_of(linalg.linalg_qr, A, mode)
    Q, R = made
    m, n = A.shape[-2:]
    k, kept = min(m, n), [part._array.copy("K") for part in made]
    A.new_empty((*A.shape[:-2], k))
    if mode == "r":
        factors = cloned_columns(A)
    elif (mode == "complete" and m > n) or m < n:
        factors = F.copy_(R, A)
    else:
        factors = F.copy_(Q, A)
    _workspace(_geqrf_space(n), A.dtype)
    if mode == "r" or factors is Q:
        kernels.triu_into(F.slice(factors, -2, 0, k), 0, R)
    else:
        F.copy_(
            F.slice(Q, -1, 0, k) if mode == "complete" and m > n else Q, F.slice(R, -1, 0, k) if m < n else R
        )
        F.triu_(R)
    if mode != "r":
        _workspace(_orgqr_space(Q.shape[-1]), A.dtype)
    return put(Q, kept[0]), put(R, kept[1])


# ---------------------------------------------------------------------------------------------------- eigenvalues, singular values


@linalg._linalg_eigh.recorded
def _(A: Any, UPLO: str, compute_v: bool) -> Any:
    values, vectors = kernel_of(linalg._linalg_eigh, A, UPLO, compute_v)
    n, real = A.shape[-1], A.dtype.to_real()
    if compute_v:
        kept = vectors._array.copy("K")
        F.copy_(vectors, A)
        put(vectors, kept)
    else:
        cloned_columns(A)
    info = _no_info(A.shape[:-2])
    _workspace(2 * n * n + 6 * n + 2 if compute_v else (3 if n < 16 else 22) * n + 1, real)
    _workspace(5 * n + 3 if compute_v else 1, _dtype.int32)
    kernels.check(info, "linalg.eigh", A.ndim == 2)
    return values, vectors


@linalg._linalg_svd.recorded
def _(A: Any, full_matrices: bool, compute_uv: bool, driver: Any) -> Any:
    made = kernel_of(linalg._linalg_svd, A, full_matrices, compute_uv, driver)
    info = _no_info(A.shape[:-2])
    cloned_columns(A)
    kernels.check(info, "linalg.svd", A.ndim == 2)
    return made


def _eigenvalue_space(n: int, vectors: bool) -> int:
    return (386 if vectors and n >= 16 else 34) * n + 1


def _eigen(A: Any, vectors: bool, outputs: tuple) -> None:
    """Room for both parts of the values, a copy in columns, LAPACK's work, and both parts put together."""
    n, real = A.shape[-1], A.dtype.to_real()
    batch = tuple(A.shape[:-2])
    parts = F.empty((2 * n * max(1, int(np.prod(batch))),), dtype=real)
    if vectors:
        F.empty((*batch, n, n), dtype=real).transpose_(-2, -1)
    _turned(A)
    copied = F.empty((*batch, n, n), dtype=real).transpose_(-2, -1)
    F.copy_(copied, A)
    _workspace(_eigenvalue_space(n, vectors), real)
    values = outputs[0]
    halves = [F.slice(parts, 0, 0, parts.numel() // 2), F.slice(parts, 0, parts.numel() // 2, parts.numel())]
    np.copyto(halves[0]._array, values._array.real.reshape(-1))
    np.copyto(halves[1]._array, values._array.imag.reshape(-1))
    if not F.all(F.eq(halves[1], 0.0)).item():
        _complex_into(*[half.reshape(values.shape) if batch else half for half in halves], values)
        return
    for output, part in zip(
        outputs, (halves[0]._array.reshape(values.shape), outputs[-1]._array.real.copy("K"))
    ):
        F.copy_(output, wrap(part))


@kernels.step("aten::complex.out(Tensor real, Tensor imag, Tensor out) -> Tensor(a!)")
def _complex_into(real: Any, imag: Any, out: Any) -> Any:
    return put(out, real._array + 1j * imag._array)


@linalg.linalg_eig.recorded
def _(self: Any) -> Any:
    made = kernel_of(linalg.linalg_eig, self)
    if self.dtype.is_complex:
        return made
    first, second = (F.empty((0,), dtype=part.dtype) for part in made)
    F.all(F.isfinite(self)).item()
    info = _no_info(tuple(self.shape[:-2]) or (1,))
    vectors = put(resized_columns(second, tuple(made[1].shape)), made[1]._array)
    values = put(_shown.given_size(first, tuple(made[0].shape)), made[0]._array)
    _eigen(self, True, (values, vectors))
    kernels.check(info, "torch.linalg.eig", self.ndim == 2)
    return values, vectors


@linalg_composite._linalg_eigvals.recorded
def _(self: Any) -> Any:
    made = kernel_of(linalg_composite._linalg_eigvals, self)
    if self.dtype.is_complex:
        return made
    first = F.empty((0,), dtype=made.dtype)
    info = _no_info(tuple(self.shape[:-2]) or (1,))
    F.empty((0,), dtype=made.dtype)
    values = put(_shown.given_size(first, tuple(made.shape)), made._array)
    _eigen(self, False, (values,))
    kernels.check(info, "torch.linalg.eigvals", self.ndim == 2)
    return values


@linalg.linalg_cross.recorded
def _(self: Any, other: Any, dim: int) -> Any:
    made = kernel_of(linalg.linalg_cross, self, other, dim)
    for tensor in (self, other):
        tensor.expand(made.shape)
    return made


# ---------------------------------------------------------------------------------------------------- least squares, reflections, LDL


def _least_squares_space(m: int, n: int, k: int, driver: str) -> int:
    return 4 * n + k if driver in ("gelsy", "gels") and m < 10 else 35 * n + 33


@linalg_composite.linalg_lstsq.recorded
def _(self: Any, b: Any, rcond: Any, driver: Any) -> Any:
    made = kernel_of(linalg_composite.linalg_lstsq, self, b, rcond, driver)
    driver = driver or "gelsy"
    m, n = self.shape[-2:]
    outputs = [F.empty((0,), dtype=part.dtype) for part in made]
    batch = tuple(self.shape[:-2])
    info = _no_info(batch or (1,))
    right = F.unsqueeze(b, -1) if b.ndim == self.ndim - 1 else b
    width = right.shape[-1]
    solution = resized_columns(outputs[0], (*batch, max(m, n), width))
    _turned(solution)
    F.copy_(solution.narrow(-2, 0, m), right)
    targets = [made[0]] + [
        put(_shown.given_size(out, tuple(part.shape)), part._array) if part._array.size else part
        for out, part in zip(outputs[1:], made[1:])
    ]
    copied = (
        F.empty_strided(tuple(self.shape), (*self._array.strides[:-2], 1, m), dtype=self.dtype)
        if not batch
        else None
    )
    if copied is not None:
        F.copy_(copied.narrow(-2, 0, m), self)
        if driver == "gelsy":
            F.empty((n,), dtype=_dtype.int32)
        _workspace(_least_squares_space(m, n, width, driver), self.dtype)
        for _ in range(2):
            F.arange(1).view((1,))
        stacks = copied.view((1, m, n)), solution.view((1, *solution.shape))
        for stack in stacks:
            F.select(stack, 0, 0)
    array = made[0]._array if made[0].ndim == right.ndim else made[0]._array[..., None]
    kept = solution.narrow(-2, 0, n)
    put(kept, array)
    result = _held(solution, tuple(made[0].shape), kept._array)
    kernels.check(info, "torch.linalg.lstsq", self.ndim == 2)
    return (result, *targets[1:])


@kernels.step(
    "aten::set_.rest(Tensor self, str source, int storage_offset, int[] size, int[] stride) -> Tensor(a!)"
)
def _set_to(self: Any, source: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return self


def _held(solution: Any, shape: tuple, array: np.ndarray) -> Any:
    """The rows of a longer solution that count."""
    if tuple(solution.shape) != shape:
        size = array.itemsize
        _set_to(solution, "Storage", 0, array.shape, tuple([s // size for s in array.strides]))
    held = wrap(array.reshape(shape))
    held._storage = storage_of(solution)
    return held


@linalg_composite.geqrf.recorded
def _(self: Any) -> Any:
    made = kernel_of(linalg_composite.geqrf, self)
    first, second = (F.empty((0,), dtype=self.dtype) for _ in range(2))
    sized = _shown.sized_as(first, _turned(self))
    factors = put(sized.transpose_(-2, -1), made[0]._array)
    tau = put(_shown.given_size(second, tuple(made[1].shape)), made[1]._array)
    _turned(factors)
    F.copy_(factors, self)
    _workspace(_geqrf_space(self.shape[-1]), self.dtype)
    return put(factors, made[0]._array), tau


@linalg_composite.linalg_householder_product.recorded
def _(input: Any, tau: Any) -> Any:
    made = kernel_of(linalg_composite.linalg_householder_product, input, tau)
    out = F.empty((0,), dtype=input.dtype)
    _turned(input)
    target = resized_columns(out, tuple(input.shape))
    _turned(target)
    F.copy_(target, input)
    _workspace(_orgqr_space(input.shape[-1]), input.dtype)
    return put(target, made._array)


@linalg_composite.linalg_ldl_factor_ex.recorded
def _(self: Any, hermitian: bool, check_errors: bool) -> Any:
    made = kernel_of(linalg_composite.linalg_ldl_factor_ex, self, hermitian, check_errors)
    kept = made[0]._array.copy("K")
    kernels.tril_into(self, 0, made[0])
    _workspace((1 if self.shape[-1] < 16 else 24) * self.shape[-1], self.dtype)
    return put(made[0], kept), *made[1:]


@linalg_composite.linalg_ldl_solve.recorded
def _(LD: Any, pivots: Any, B: Any, hermitian: bool) -> Any:
    made = kernel_of(linalg_composite.linalg_ldl_solve, LD, pivots, B, hermitian)
    kept = made._array.copy("K")
    _turned(LD)
    F.copy_(made, B)
    F.all(F.ge(F.abs(pivots), 1)).item()
    F.all(F.le(F.abs(pivots), LD.shape[-1])).item()
    OPS["to.dtype"].entry(pivots, _dtype.int32)
    return put(made, kept)


@linalg_composite.triangular_solve.recorded
def _(self: Any, A: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
    made = kernel_of(linalg_composite.triangular_solve, self, A, upper, transpose, unitriangular)
    for source in (self, A):
        F.transpose(source, -2, -1)
    kept = [part._array.copy("K") for part in made]
    for target, source in zip(made, (self, A)):
        F.copy_(target, source)
    return tuple(put(part, array) for part, array in zip(made, kept))
