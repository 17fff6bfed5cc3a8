"""Linear algebra built on other ops of linear algebra: pseudo-inverse, rank, norms, powers, least squares, and torch's older solvers. Tensors in,
tensors out, as torch's own ops call each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _dispatch, _dtype, return_types
from .._dispatch import OPS, composite, op
from . import _dims, linalg, linalg_eigen
from . import linalg_kernels as kernels
from ._children import UNKNOWN, Child, child
from ._namespace import functions as F
from .linalg_kernels import all_children, check, check_child, columns, copied_by_columns, mh

# ---------------------------------------------------------------------------------------------------- older names


@composite("aten::inverse(Tensor self) -> Tensor")
def inverse(self: Any) -> Any:
    return linalg.linalg_inv(self)


@composite("aten::det(Tensor self) -> Tensor")
def det(self: Any) -> Any:
    return linalg.linalg_det(self)


@composite("aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", expose="no")
def slogdet(self: Any) -> Any:
    return return_types.slogdet(tuple(linalg.linalg_slogdet(self)))


@composite("aten::logdet(Tensor self) -> Tensor")
def logdet(self: Any) -> Any:
    sign, log = linalg.linalg_slogdet(self)
    if sign.dtype.is_complex:
        return log + F.log(sign)
    return F.where(F.eq(sign, -1.0), math.nan, log)


@composite("aten::matrix_exp(Tensor self) -> Tensor")
def matrix_exp(self: Any) -> Any:
    return linalg.linalg_matrix_exp(self)


@composite("aten::matrix_power(Tensor self, int n) -> Tensor")
def matrix_power(self: Any, n: int) -> Any:
    return _power(self, n)


@composite("aten::linalg_matrix_power(Tensor self, int n) -> Tensor", expose="no")
def linalg_matrix_power(self: Any, n: int) -> Any:
    return _power(self, n)


def _power(A: Any, n: int) -> Any:
    kernels.check_matrix(A, "linalg.matrix_power", integers=True)
    if n == 0:
        return F.copy_(_copy(A), F.eye(A.shape[-1], dtype=A.dtype))
    if n == 1:
        return _copy(A)
    base, n = (linalg.linalg_inv(A), -n) if n < 0 else (A, n)
    if n == 1:
        return base
    if n == 3:
        return F.matmul(F.matmul(base, base), base)
    power = None
    while n:
        if n & 1:
            power = base if power is None else F.matmul(power, base)
        n >>= 1
        if n:
            base = F.matmul(base, base)
    return power


def _copy(A: Any) -> Any:
    return F.clone(A, memory_format=_dtype.contiguous_format)


@composite("aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", expose="no")
def qr(self: Any, some: bool) -> Any:
    return return_types.qr(tuple(linalg.linalg_qr(self, "reduced" if some else "complete")))


@composite(
    "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    expose="no",
)
def svd(self: Any, some: bool, compute_uv: bool) -> Any:
    if compute_uv:
        u, s, vh = linalg_eigen.linalg_svd(self, not some)
        return return_types.svd((u, s, mh(vh)))
    s = linalg_eigen.linalg_svdvals(self)
    lead = tuple(self.shape[:-2])
    u, v = (F.zeros((*lead, n, n), dtype=self.dtype) for n in self.shape[-2:])
    return return_types.svd((u, s, v))


@composite(
    "aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    expose="no",
)
def lu_with_info(self: Any, pivot: bool, check_errors: bool) -> Any:
    return tuple(linalg.linalg_lu_factor_ex(self, pivot=pivot, check_errors=False))


# ---------------------------------------------------------------------------------------------------- Cholesky


@op("aten::cholesky(Tensor self, bool upper=False) -> Tensor", expose="no")
def cholesky_op(self: np.ndarray, upper: bool) -> Any:
    factor, info = linalg.linalg_cholesky_ex.op.kernel(self, upper, False)
    if info.any():
        raise kernels.value_error("cholesky", info, self.ndim == 2)
    return factor


cholesky_op.derivative(self=lambda g, out, upper: linalg._cholesky_grad(g, out, upper))
cholesky_op.children(
    lambda self, upper: [
        check_child(self, "cholesky"),
        child("aten::triu_" if upper else "aten::tril_", self),
    ]
)


@op(
    "aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _cholesky_solve_helper(self: np.ndarray, A: np.ndarray, upper: bool) -> Any:
    for x in (self, A):
        if x.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor."
            )
    low = np.conj(np.swapaxes(np.triu(A), -1, -2)) if upper else np.tril(A)
    half = kernels.triangular_solution(low, self, False)
    return columns(kernels.triangular_solution(np.conj(np.swapaxes(low, -1, -2)), half, True))


@_cholesky_solve_helper.children
def _(self: Any, A: Any, upper: Any) -> list[Child]:
    """Both are copied column by column, and the codes of errors of all matrices are looked at."""
    check = check_child(self, "cholesky_solve_cpu", (1,))
    if self is UNKNOWN:
        return [check]
    rows = [*copied_by_columns(self), *copied_by_columns(A)]
    return [*rows, child("aten::zeros", (max(1, math.prod(self.shape[:-2])),), 3, 0), check]


@op("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", expose="no", on="tensors")
def cholesky_solve(self: Any, input2: Any, upper: bool) -> Any:
    for name, x in (("b", self), ("u", input2)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead"
            )
    batch = np.broadcast_shapes(self.shape[:-2], input2.shape[:-2])
    both = [x if tuple(x.shape[:-2]) == batch else x.expand((*batch, *x.shape[-2:])) for x in (self, input2)]
    return _cholesky_solve_helper(*both, upper)


@cholesky_solve.backward("self", "input2")
def _(g: Any, input2: Any, out: Any, upper: bool, needs: Any) -> Any:
    solution = cholesky_solve(g, input2, upper)
    if not needs[1]:
        return solution, None
    common = F.matmul(solution, mh(out))
    common = F.add(common, mh(common))
    factor = F.neg(F.matmul(input2, common) if upper else F.matmul(common, input2))
    return (solution if needs[0] else None), factor


@op("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor", out=True)
def cholesky_inverse(self: np.ndarray, upper: bool) -> Any:
    eye = np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape)
    is_zero = np.diagonal(self, axis1=-2, axis2=-1) == 0
    if is_zero.any():
        first = np.where(is_zero.any(-1), is_zero.argmax(-1) + 1, 0)
        raise kernels.value_error("cholesky_inverse", first, self.ndim == 2)
    return _cholesky_solve_helper.op.kernel(eye, self, upper)


def _cholesky_inverse_grad(g: Any, self: Any, out: Any, upper: bool) -> Any:
    common = F.add(g, mh(g))
    common = F.matmul(F.matmul(out, common), out)
    return F.neg(F.matmul(self, common) if upper else F.matmul(common, self))


cholesky_inverse.derivative(self=_cholesky_inverse_grad)
cholesky_inverse.children(lambda self, upper: [check_child(self, "cholesky_inverse", (1,))])


# ---------------------------------------------------------------------------------------------------- eigenvalues


@op("aten::_linalg_eigvals(Tensor self) -> Tensor", expose="no", nondifferentiable=True)
def _linalg_eigvals(self: np.ndarray) -> Any:
    kernels.check_matrix(self, "linalg.eigvals")
    kind = _dtype.BY_NUM[self.dtype.num].to_complex()._np
    is_finite = np.isfinite(self).all((-2, -1), keepdims=True)
    if is_finite.all():
        return np.linalg.eigvals(self).astype(kind)
    values = np.linalg.eigvals(np.where(is_finite, self, 0))
    return np.where(is_finite[..., 0], values, complex(np.nan, np.nan)).astype(kind)


_linalg_eigvals.children(
    lambda self: [*linalg_eigen.eigenvalue_children(self), check_child(self, "torch.linalg.eigvals", (1,))]
)


@composite("aten::linalg_eigvals(Tensor self) -> Tensor", expose="no")
def linalg_eigvals(self: Any) -> Any:
    if _dispatch.grad_state.enabled and self._rg:
        return linalg_eigen.linalg_eig(self)[0]
    return _linalg_eigvals(self)


# ---------------------------------------------------------------------------------------------------- pseudo-inverse, rank, condition


def _tolerances(A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Absolute and relative bounds below which singular values do not count, as 0-dim tensors of float64."""
    wide = _dtype.float64
    least = max(A.shape[-2:]) * float(np.finfo(A.dtype.to_real()._np).eps)
    if isinstance(atol, _dispatch.Tensor) or isinstance(rtol, _dispatch.Tensor):
        first = atol if atol is not None else F.zeros((), dtype=wide)
        if rtol is None:
            rtol = F.where(
                F.gt(first, 0), F.zeros((), dtype=first.dtype), F.full((), least, dtype=first.dtype)
            )
        return first, rtol
    first = kernels.zeros((), wide) if atol is None else kernels.full((), float(atol), wide)
    if rtol is None:
        rtol = 0.0 if atol is not None and atol > 0 else least
    return first, kernels.full((), float(rtol), wide)


def _bound(largest: Any, atol: Any, rtol: Any) -> Any:
    scaled = F.mul(F.unsqueeze(rtol, -1), largest)
    return F.max(F.unsqueeze(atol, -1), scaled)


def _check_pinv(A: Any) -> None:
    if A.ndim < 2 or A.dtype._rank < 2:
        raise RuntimeError(
            f"linalg.pinv({A.dtype._abbr}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat or "
            "cdouble types"
        )


def _pinv(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not A.shape[-1] or not A.shape[-2]:
        return F.empty((*A.shape[:-2], A.shape[-1], A.shape[-2]), dtype=A.dtype)
    if hermitian:
        values, U = linalg_eigen.linalg_eigh(A)
        sizes = F.abs(values)
        bound = _bound(F.amax(sizes, -1, True), atol, rtol)
        V = U
    else:
        U, values, V = svd(A)
        sizes = values
        bound = _bound(values.narrow(-1, 0, 1), atol, rtol)
    zero = F.zeros((), dtype=values.dtype)
    reciprocals = F.where(F.gt(sizes, bound), F.reciprocal(values), zero)
    reciprocals = OPS["to.dtype"].entry(reciprocals, A.dtype)
    adjoint = mh(U)
    return F.matmul(F.mul(V, F.unsqueeze(reciprocals, -2)), adjoint)


def _pinv_grad(g: Any, P: Any, A: Any) -> Any:
    m, n = A.shape[-2], A.shape[-1]
    Ph, gh = mh(P), mh(g)
    if m <= n:
        K = F.matmul(gh, P)
        first = F.matmul(K, Ph)
        projection = F.matmul(A, F.matmul(P, first))
        other = F.matmul(Ph, F.matmul(P, F.sub(gh, F.matmul(K, A))))
        inner = F.neg(mh(F.matmul(P, K)))
    else:
        K = F.matmul(P, gh)
        first = F.matmul(Ph, K)
        projection = F.matmul(F.matmul(first, P), A)
        other = F.matmul(F.matmul(F.sub(gh, F.matmul(A, K)), P), Ph)
        inner = F.neg(mh(F.matmul(K, P)))
    return F.sub(F.add(F.add(inner, other), first), projection)


def _declare_pinv(text: str) -> Any:
    @op(text, expose="no", on="tensors", node="LinalgPinvBackward0")
    def pinv(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
        _check_pinv(self)
        return _pinv(self, *_tolerances(self, atol, rtol), hermitian)

    pinv.derivative(self=lambda g, self, out: _pinv_grad(g, out, self))
    return pinv


pinv_floats = _declare_pinv(
    "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor"
)
pinv_tensors = _declare_pinv(
    "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor"
)


@composite("aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", expose="no")
def pinv_rcond(self: Any, rcond: float, hermitian: bool) -> Any:
    none, bound = (kernels.full((), value, _dtype.float64) for value in (0.0, rcond))
    return pinv_tensors(self, atol=none, rtol=bound, hermitian=hermitian)


@composite("aten::pinverse(Tensor self, float rcond=1e-15) -> Tensor")
def pinverse(self: Any, rcond: float) -> Any:
    return pinv_rcond(self, rcond)


def _rank(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if A.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    ranks = F.empty(A.shape[:-2], dtype=_dtype.int64)
    if not A.numel():
        return F.zero_(ranks)
    first, second = _tolerances(A, atol, rtol)
    if hermitian:
        sizes = F.abs(linalg_eigen.linalg_eigvalsh(A))
        largest = F.amax(sizes, -1, True)
    else:
        sizes = linalg_eigen.linalg_svdvals(A)
        largest = sizes.narrow(-1, 0, 1)
    return kernels.sum_into(F.gt(sizes, _bound(largest, first, second)), -1, False, None, ranks)


@composite(
    "aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    expose="no",
)
def rank_floats(self: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    return _rank(self, atol, rtol, hermitian)


@composite(
    "aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    expose="no",
)
def rank_tensors(input: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    return _rank(input, atol, rtol, hermitian)


@composite("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", expose="no")
def linalg_cond(self: Any, p: Any) -> Any:
    return _condition(self, p)


@composite("aten::linalg_cond.p_str(Tensor self, str p) -> Tensor", expose="no")
def cond_named(self: Any, p: str) -> Any:
    return _condition(self, p)


def _condition(A: Any, p: Any) -> Any:
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if not A.numel():
        return F.zeros(A.shape[:-2], dtype=F.real(A).dtype)
    if p is None or p in (2, -2):
        values = linalg_eigen.linalg_svdvals(A)
        first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        return F.squeeze(F.div(last, first) if p == -2 else F.div(first, last), -1)
    if p == "nuc":
        return F.mul(linalg.linalg_matrix_norm(A, p), linalg.linalg_matrix_norm(linalg.linalg_inv(A), p))
    inverse, info = linalg.linalg_inv_ex(A)
    F.masked_fill_(inverse, F.gt(info.unsqueeze_(-1).unsqueeze_(-1), 0), math.inf)
    first, last = linalg.linalg_matrix_norm(A, p), linalg.linalg_matrix_norm(inverse, p)
    condition = F.mul(first, last)
    if _dispatch.grad_state.enabled and condition._rg:
        return F.nan_to_num(condition, math.inf, math.inf, -math.inf)
    return F.nan_to_num_(condition, math.inf, math.inf, -math.inf)


# ---------------------------------------------------------------------------------------------------- norms


@composite(
    "aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
)
def linalg_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    _check_norm(self, ord, dim)
    if ord is not None and (len(dim) == 2 if dim is not None else self.ndim == 2):
        return linalg.linalg_matrix_norm(self, ord, dim or (-2, -1), keepdim, dtype=dtype)
    return F.linalg_vector_norm(self, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def _check_norm(self: Any, ord: Any, dim: Any) -> None:
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{', '.join(map(str, dim))}]"
        )
    if dim is None and ord is not None and self.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D."
        )


@composite(
    "aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    expose="no",
)
def norm_named(self: Any, ord: str, dim: Any, keepdim: bool, dtype: Any) -> Any:
    _check_norm(self, ord, dim)
    return linalg.linalg_matrix_norm(self, ord, dim or (-2, -1), keepdim, dtype=dtype)


# ---------------------------------------------------------------------------------------------------- products and reshapes


@composite("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", expose="no")
def linalg_multi_dot(tensors: Any) -> Any:
    from .einsum import multi_dot

    matrices = list(tensors)
    if len(matrices) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(matrices)}")
    shape = []
    if matrices[0].ndim == 1:
        matrices[0] = F.unsqueeze(matrices[0], 0)
    else:
        shape.append(matrices[0].shape[0])
    if matrices[-1].ndim == 1:
        matrices[-1] = F.unsqueeze(matrices[-1], -1)
    else:
        shape.append(matrices[-1].shape[-1])
    return multi_dot(matrices).view(tuple(shape))


@composite("aten::chain_matmul(Tensor[] matrices) -> Tensor", expose="no")
def chain_matmul(matrices: Any) -> Any:
    from .einsum import multi_dot

    product = multi_dot(list(matrices))
    return product.view(tuple(product.shape))


@composite("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", expose="no")
def linalg_vecdot(x: Any, y: Any, dim: int) -> Any:
    return F.sum(F.mul(F.conj(x) if x.dtype.is_complex else x, y), dim)


@composite("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", expose="no")
def linalg_vander(x: Any, N: Any) -> Any:
    count = (x.shape[-1] if x.ndim else 1) if N is None else N
    if count < 1:
        raise RuntimeError(f"N must be greater than 1. Got {count}")
    if not x.ndim:
        x = F.unsqueeze(x, -1)
    powers = F.cumprod(F.unsqueeze(x, -1).expand((*x.shape, count - 1)), -1)
    ones = powers.new_ones((*x.shape, 1))
    return F.cat([ones, powers], -1)


@composite("aten::linalg_matmul(Tensor self, Tensor other) -> Tensor", expose="no")
def linalg_matmul(self: Any, other: Any) -> Any:
    return F.matmul(self, other)


@composite(
    "aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)", expose="no"
)
def linalg_diagonal(A: Any, offset: int, dim1: int, dim2: int) -> Any:
    return F.diagonal(A, offset, dim1, dim2)


@composite("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor", expose="no")
def linalg_tensorinv(self: Any, ind: int) -> Any:
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, second = tuple(self.shape[:ind]), tuple(self.shape[ind:])
    rows, width = math.prod(first), math.prod(second)
    if rows != width:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {width} != {rows}"
        )
    inverse, info = linalg.linalg_inv_ex(self.reshape(rows, width))
    check(info, "inv", True)
    return inverse.reshape(*second, *first)


@composite("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", expose="no")
def linalg_tensorsolve(self: Any, other: Any, dims: Any) -> Any:
    if dims is not None:
        self = F.movedim(self, tuple(dims), tuple(range(self.ndim - len(dims), self.ndim)))
    shape = tuple(self.shape[other.ndim :])
    rows, width = other.numel(), math.prod(shape)
    if rows != width:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{width} != {rows}"
        )
    solution = linalg.linalg_solve(self.reshape(rows, width), other.flatten())
    return solution.reshape(shape)


# ---------------------------------------------------------------------------------------------------- least squares


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@op(
    "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, "
    "Tensor singular_values)",
    expose="no",
    returns=return_types.linalg_lstsq,
    outputs=2,
)
def linalg_lstsq(self: np.ndarray, b: np.ndarray, rcond: Any, driver: Any) -> Any:
    kernels.check_matrix(self, "torch.linalg.lstsq", square=False)
    driver = driver or "gelsy"
    if driver not in DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    m, n = self.shape[-2:]
    vector = self.ndim > 1 and self.ndim - 1 == b.ndim and self.shape[:-1] == b.shape
    right = b[..., None] if vector else b
    if right.shape[-2] != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    real = np.finfo(self.dtype).dtype
    bound = max(m, n) * float(np.finfo(real).eps) if rcond is None else float(rcond)
    u, s, vh = kernels.svd(self)
    large = s > bound * (s[..., :1] if s.shape[-1] else 0)
    reciprocals = np.where(large, 1 / np.where(large, s, 1), 0).astype(real)
    inverse = np.conj(np.swapaxes(vh, -1, -2)) * reciprocals[..., None, :]
    solution = np.matmul(inverse, np.matmul(np.conj(np.swapaxes(u, -1, -2)), right))
    rank, none = large.sum(-1), np.empty(0, real)
    residuals, values = none, none
    if m > n and driver != "gelsy" and bool((rank == n).all()):
        errors = np.abs(np.matmul(self, solution) - right)
        residuals = (errors * errors).sum(-2, dtype=real)
    if driver in ("gelsd", "gelss"):
        values = s
    if m > n:  # torch returns the first n rows of a buffer of m rows
        longer = np.empty((*solution.shape[:-2], solution.shape[-1], m), solution.dtype)
        rows = np.swapaxes(longer, -1, -2)[..., :n, :]
        rows[...] = solution
        solution = rows[..., 0] if vector else rows
    else:
        solution = np.ascontiguousarray(solution[..., 0]) if vector else columns(solution)
    return (
        solution,
        residuals,
        np.asarray(rank, np.int64) if driver != "gels" else np.empty(0, np.int64),
        values,
    )


linalg_lstsq.children(lambda self, b, rcond, driver: [check_child(self, "torch.linalg.lstsq", (1,))])


@linalg_lstsq.backward("self", "b")
def _(grads: Any, self: Any, b: Any, solution: Any, needs: Any) -> Any:
    gx, gr = grads
    vector = b.ndim == self.ndim - 1
    right, x = (F.unsqueeze(t, -1) if vector else t for t in (b, solution))
    ga = gb = None
    if gx is not None:
        gx = F.unsqueeze(gx, -1) if vector else gx
        P = pinv_floats(self)
        if needs[0]:
            ga = _pinv_grad(F.matmul(gx, mh(right)), P, self)
        if needs[1]:
            gb = F.matmul(mh(P), gx)
    if gr is not None and gr.numel():
        errors = 2 * (F.matmul(self, x) - right) * F.unsqueeze(gr, -2)
        if needs[0]:
            part = F.matmul(errors, mh(x))
            ga = part if ga is None else F.add(ga, part)
        if needs[1]:
            gb = F.neg(errors) if gb is None else F.sub(gb, errors)
    return ga, F.squeeze(gb, -1) if vector and gb is not None else gb


# ---------------------------------------------------------------------------------------------------- reflections, LDL


@op("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", out=True, returns=return_types.geqrf)
def geqrf(self: np.ndarray) -> Any:
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    rows, width = self.shape[-2:]
    flat = _dims.rows(self, 2)
    if not self.size:
        return self.copy(), np.zeros((*self.shape[:-2], min(rows, width)), self.dtype)
    factor = kernels.lapack("geqrf", flat.dtype)
    parts = [factor(matrix)[:2] for matrix in flat]
    reflectors = np.array([p[0].T for p in parts], self.dtype).reshape(*self.shape[:-2], width, rows)
    tau = np.array([p[1] for p in parts], self.dtype).reshape(*self.shape[:-2], min(rows, width))
    return np.swapaxes(reflectors, -1, -2), tau


@op("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor", expose="no")
def linalg_householder_product(input: np.ndarray, tau: np.ndarray) -> Any:
    rows, width = input.shape[-2:]
    if rows < width:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if width < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    flat, scales = _dims.rows(input, 2), _dims.rows(tau)
    if not tau.size:  # no reflections
        eye = np.broadcast_to(np.eye(rows, width, dtype=input.dtype), input.shape)
        return columns(np.ascontiguousarray(eye))
    q = np.empty((len(flat), width, rows), input.dtype)
    complex_kind = input.dtype.kind in "cW"
    build_q = kernels.lapack("ungqr" if complex_kind else "orgqr", flat.dtype)
    for i, matrix in enumerate(flat):
        q[i] = build_q(matrix, scales[i])[0].T
    return np.swapaxes(q.reshape(*input.shape[:-2], width, rows), -1, -2)


def _reflect(A: Any, tau: Any) -> Any:
    """The product of reflections by plain ops, for its gradient."""
    m, n = A.shape[-2], A.shape[-1]
    product = F.eye(m, dtype=A.dtype).expand(*A.shape[:-2], m, m)
    for i in range(tau.shape[-1] - 1, -1, -1):
        below = A.select(-1, i).narrow(-1, i + 1, m - i - 1)
        ones = F.ones((*A.shape[:-2], 1), dtype=A.dtype)
        v = F.cat([F.zeros((*A.shape[:-2], i), dtype=A.dtype), ones, below], -1).unsqueeze(-1)
        product = product - tau.select(-1, i).unsqueeze(-1).unsqueeze(-1) * F.matmul(
            v, F.matmul(mh(v), product)
        )
    return product.narrow(-1, 0, n)


@linalg_householder_product.backward("input", "tau")
def _(g: Any, input: Any, tau: Any) -> Any:
    from ..autograd import grad

    if not tau.numel():  # the product is an identity, whatever `input` holds
        return F.zeros_like(input), F.zeros_like(tau)
    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = True
    try:
        both = [x if enabled and x._rg else x.detach().requires_grad_() for x in (input, tau)]
        return tuple(grad(_reflect(*both), both, g, create_graph=enabled))
    finally:
        state.enabled = enabled


@op(
    "aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
    expose="no",
    returns=return_types.linalg_ldl_factor_ex,
    nondifferentiable=True,
)
def linalg_ldl_factor_ex(self: np.ndarray, hermitian: bool, check_errors: bool) -> Any:
    kernels.check_matrix(self, "torch.linalg.ldl_factor_ex")
    flat = _dims.rows(self, 2)
    factor = kernels.lapack("hetrf" if hermitian and self.dtype.kind in "cW" else "sytrf", flat.dtype)
    factors, info = np.empty(flat.shape, self.dtype), np.zeros(len(flat), np.int32)
    pivots = np.empty(flat.shape[:2], np.int32)
    rows = np.arange(self.shape[-1])
    above = rows[:, None] < rows
    for i, matrix in enumerate(flat) if self.size else ():
        factors[i], pivots[i], info[i] = factor(matrix, lower=1)
        factors[i][above] = 0
    shape = self.shape[:-2]
    return columns(factors.reshape(self.shape)), pivots.reshape(self.shape[:-1]), info.reshape(shape)


linalg_ldl_factor_ex.children(lambda self, hermitian, check_errors: [child("aten::tril.out", self, 0, self)])


@composite(
    "aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", expose="no"
)
def linalg_ldl_factor(self: Any, hermitian: bool) -> Any:
    LD, pivots, info = linalg_ldl_factor_ex(self, hermitian=hermitian)
    check(info, "torch.linalg.ldl_factor_ex", self.ndim == 2)
    return return_types.linalg_ldl_factor((LD, pivots))


@op(
    "aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def linalg_ldl_solve(LD: np.ndarray, pivots: np.ndarray, B: np.ndarray, hermitian: bool) -> Any:
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    for bound, is_met in (">= 1", np.abs(pivots) >= 1), ("<= LD.size(-2)", np.abs(pivots) <= LD.shape[-2]):
        if not is_met.all():  # LAPACK would write beyond its arrays
            raise RuntimeError(
                f"Pivots given to ldl_solve must all satisfy |pivot| {bound}. Did you properly pass the result of ldl_factor?"
            )
    if not B.size or not LD.size:
        return np.zeros(np.broadcast_shapes(LD.shape[:-2], B.shape[:-2]) + B.shape[-2:], B.dtype)
    flat, swaps = _dims.rows(LD, 2), _dims.rows(pivots)
    rights = _dims.rows(np.broadcast_to(B, (*LD.shape[:-2], *B.shape[-2:])), 2)
    solver = kernels.lapack("hetrs" if hermitian and LD.dtype.kind in "cW" else "sytrs", flat.dtype)
    solutions = [
        solver(matrix, swap, right, lower=1)[0].T for matrix, swap, right in zip(flat, swaps, rights)
    ]
    turned = np.array(solutions, LD.dtype).reshape(*LD.shape[:-2], B.shape[-1], B.shape[-2])
    return np.swapaxes(turned, -1, -2)


@linalg_ldl_solve.children
def _(LD: Any, pivots: Any, B: Any, hermitian: Any) -> list[Child]:
    """Checks of the pivots, which are negative for blocks of two rows."""
    sizes = child("aten::abs", pivots)
    return [
        sizes,
        *all_children("aten::ge.Scalar", pivots, 1),
        sizes,
        *all_children("aten::le.Scalar", pivots, LD.shape[-1]),
    ]


@op(
    "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor "
    "cloned_coefficient)",
    expose="no",
    returns=return_types.triangular_solve,
    outputs=2,
)
def triangular_solve(
    self: np.ndarray, A: np.ndarray, upper: bool, transpose: bool, unitriangular: bool
) -> Any:
    matrix = np.swapaxes(A, -1, -2) if transpose else A
    solution = linalg.linalg_solve_triangular.op.kernel(matrix, self, upper != transpose, True, unitriangular)
    return solution, columns(np.broadcast_to(A, (*solution.shape[:-2], *A.shape[-2:])))


@triangular_solve.backward("self", "A")
def _(
    grads: Any, A: Any, solution: Any, upper: bool, transpose: bool, unitriangular: bool, needs: Any
) -> Any:
    g, of_copy = grads
    if g is None:
        return None, of_copy
    gb = triangular_solve(g, F.conj(A) if A.dtype.is_complex else A, upper, not transpose, unitriangular)[0]
    if not needs[1]:
        return gb, None
    ga = -F.matmul(F.conj(solution), gb.mT) if transpose else -F.matmul(gb, mh(solution))
    shift = 1 if unitriangular else 0
    ga = F.triu(ga, shift) if upper else F.tril(ga, -shift)
    return gb, ga if of_copy is None else F.add(ga, of_copy)
