"""Building blocks of linear algebra: LU factors and solutions as column-major arrays, checks, ops that write to given outputs, and what
torch shows inside LAPACK's wrappers. No gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .. import _dispatch
from .._dispatch import OPS, composite, op, storage_of
from .._dtype import BY_NUM, INTEGRAL_NUMS, LOW_FLOATS
from . import _dims
from ._children import UNKNOWN, Child, child, item, tensor
from ._namespace import functions as F


class LinAlgError(RuntimeError):
    """A matrix that an algorithm cannot handle, such as a singular one."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


# ---------------------------------------------------------------------------------------------------- checks


def check_matrix(a: Any, name: str, square: bool = True, integers: bool = False) -> None:
    """Raise what torch raises for an argument that is no (square) matrix of a supported type."""
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if square and a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )
    if integers:
        return
    if a.dtype.num in INTEGRAL_NUMS:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {BY_NUM[a.dtype.num]._abbr}"
        )
    if a.dtype in LOW_FLOATS:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {BY_NUM[a.dtype.num]._abbr}")


# ---------------------------------------------------------------------------------------------------- layout


def columns(array: np.ndarray) -> np.ndarray:
    """Matrices stored column by column, as LAPACK leaves them."""
    return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)


def mh(x: Any) -> Any:
    """The conjugate transpose."""
    return OPS["mH"].entry(x)


def is_vector_case(a: tuple, b: tuple) -> bool:
    """Whether the right side of a linear equation is one vector for each matrix, by the shapes of both sides."""
    return len(b) == 1 or b == a[:-1]


# ---------------------------------------------------------------------------------------------------- errors


def value_error(name: str, info: np.ndarray, is_matrix: bool) -> RuntimeError:
    """torch's error for the first matrix for which an algorithm failed."""
    places = np.flatnonzero(info.reshape(-1))
    number = int(info.reshape(-1)[places[0]])
    where = name + (": " if is_matrix else f": (Batch element {int(places[0])}): ")
    if "inv" in name:
        text = f"The diagonal element {number} is zero, the inversion could not be completed because the input matrix is singular."
    elif "solve" in name:
        text = "The solver failed because the input matrix is singular."
    elif "cholesky" in name:
        text = (
            "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
            f"{number} is not positive-definite)."
        )
    elif "lu_factor" in name:
        text = (
            f"U[{number},{number}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
            "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
        return RuntimeError(where + text)
    else:
        text = f"The algorithm failed to converge (error code: {number})."
    return LinAlgError(where + text)


# ---------------------------------------------------------------------------------------------------- solvers


def svd(A: np.ndarray, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """NumPy's singular values and vectors; NaN raises torch's error, and infinities give NaN, of which LAPACK's loop may not end."""
    finite = np.isfinite(A)
    if finite.all():
        try:
            return np.linalg.svd(A, full_matrices, compute_uv)
        except np.linalg.LinAlgError:
            raise LinAlgError(
                "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
                "singular values."
            ) from None
    is_finite = finite.all((-2, -1), keepdims=True)
    with_nan = np.flatnonzero(np.isnan(A).any((-2, -1)))
    if with_nan.size:
        where = "" if A.ndim == 2 else f" (Batch element {int(with_nan[0])}):"
        raise LinAlgError(
            f"linalg.svd:{where} The algorithm failed to converge because the input matrix contained non-finite values."
        )
    parts = np.linalg.svd(np.where(is_finite, A, 0), full_matrices, compute_uv)
    if not compute_uv:
        return np.where(is_finite[..., 0], parts, np.nan).astype(parts.dtype)
    u, s, vh = parts
    u, vh = (np.where(is_finite, part, np.nan).astype(part.dtype) for part in (u, vh))
    return u, np.where(is_finite[..., 0], s, np.nan).astype(s.dtype), vh


def triangular_solution(a: np.ndarray, b: np.ndarray, upper: bool) -> np.ndarray:
    """x with a @ x = b for matrices that are zero on the other side of the diagonal; divides by zero where they are singular."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        from scipy.linalg.blas import get_blas_funcs

        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
        solve = get_blas_funcs("trsm", (a, b))
        solution = np.empty(b.shape, np.result_type(a, b))
        for place in np.ndindex(batch):
            solution[place] = solve(1, a[place], b[place], lower=not upper)
        return solution


def check(info: Any, name: str, is_matrix: bool) -> None:
    """Raise if `info` reports a failure."""
    if not info._array_missing:
        _linalg_check_errors(info, name, is_matrix=is_matrix)


@op(
    "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def _linalg_check_errors(info: Any, api_name: str, is_matrix: bool) -> None:
    array = info._array
    if array.any() if array.ndim else array.item():  # any of one element takes five times as long
        raise value_error(api_name, array, is_matrix)


_linalg_check_errors.children(
    lambda info, api_name, is_matrix: [
        child("aten::any", info),
        item(tensor((), info, "bool")),
    ]
)


# ---------------------------------------------------------------------------------------------------- arrays


@cache
def lapack(routine: str, dtype: np.dtype) -> Any:
    """A routine of LAPACK for a dtype. SciPy takes longer to find it than to factorise a small matrix."""
    from scipy.linalg.lapack import get_lapack_funcs

    return get_lapack_funcs(routine, dtype=dtype)


@cache
def blas(routine: str, dtype: np.dtype) -> Any:
    """A routine of BLAS for a dtype."""
    from scipy.linalg.blas import get_blas_funcs

    return get_blas_funcs(routine, dtype=dtype)


def lu_arrays(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LU factors (column-major), 1-based pivots, and per matrix the 1-based index of a zero pivot, or 0."""
    if A.ndim == 2 and A.size:  # several times faster than a batch of one
        factors, swaps, failed = lapack("getrf", A.dtype)(A)
        return factors, swaps + np.int32(1), np.array(failed, np.int32)
    *batch, rows, width = A.shape
    lu = np.array(
        np.swapaxes(A, -1, -2), order="C"
    )  # rows of the transpose: LAPACK works in place on their views
    pivots, info = np.zeros((*batch, min(rows, width)), np.int32), np.zeros(batch, np.int32)
    if _at_once(lu):
        matrices = np.swapaxes(_dims.rows(lu, 2), -1, -2)
        _factor_at_once(matrices, _dims.rows(pivots), info.reshape(-1))
    elif A.size:
        factor = lapack("getrf", A.dtype)
        results = [factor(matrix.T, overwrite_a=True) for matrix in lu.reshape(-1, width, rows)]
        pivots += np.array([swaps for _, swaps, _ in results], np.int32).reshape(pivots.shape) + 1
        info[...] = np.array([failed for *_, failed in results]).reshape(info.shape)
    return np.swapaxes(lu, -1, -2), pivots, info


def lu_solve_arrays(
    LU: np.ndarray, pivots: np.ndarray, B: np.ndarray, left: bool, adjoint: bool
) -> np.ndarray:
    """X with AX = B (XA = B) or A^H X = B (XA^H = B) from A's factors."""
    if not left:
        turned = lu_solve_arrays(LU, pivots, np.conj(np.swapaxes(B, -1, -2)), True, not adjoint)
        return np.conj(np.swapaxes(turned, -1, -2))
    transposed = 2 if adjoint else 0
    if LU.ndim == B.ndim == 2 and B.size:
        return lapack("getrs", LU.dtype)(LU, pivots - 1, B, transposed)[0]
    n, k = B.shape[-2:]
    batch = np.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    solution = np.array(np.broadcast_to(np.swapaxes(B, -1, -2), (*batch, k, n)), LU.dtype, order="C")
    if solution.size:
        # by columns, as LAPACK takes them
        factors = np.broadcast_to(np.swapaxes(LU, -1, -2), (*batch, n, n)).reshape(-1, n, n)
        swaps = np.broadcast_to(pivots - 1, (*batch, n)).reshape(-1, n)
        if _at_once(factors):
            columns = np.swapaxes(solution.reshape(-1, k, n), -1, -2)
            _substitute_at_once(np.swapaxes(factors, -1, -2), swaps, columns, adjoint)
            return np.swapaxes(solution, -1, -2)
        solver = lapack("getrs", LU.dtype)
        for factor, swap, columns_of_b in zip(factors, swaps, solution.reshape(-1, k, n)):
            solver(factor.T, swap, columns_of_b.T, transposed, overwrite_b=True)
    return np.swapaxes(solution, -1, -2)


def _at_once(matrices: np.ndarray) -> bool:
    """Whether all matrices of a batch are worked on at once, column by column: SciPy takes one after the other, some microseconds each."""
    rows, width = matrices.shape[-2:]
    return matrices.size >= 32 * rows * width and 0 < max(rows, width) <= 16


def _factor_at_once(matrices: np.ndarray, pivots: np.ndarray, info: np.ndarray) -> None:
    """LU factors of many small matrices, in place; LAPACK's choice of pivots."""
    each = np.arange(len(matrices))
    for j in range(pivots.shape[1]):
        column = matrices[:, j:, j]
        size = np.abs(column.real) + np.abs(column.imag) if column.dtype.kind in "cW" else np.abs(column)
        chosen = j + size.argmax(1)
        pivots[:, j] = chosen + 1
        matrices[each, j], matrices[each, chosen] = matrices[each, chosen], matrices[each, j]
        pivot = matrices[:, j, j]
        is_zero = pivot == 0
        info[is_zero & (info == 0)] = j + 1
        matrices[:, j + 1 :, j] /= np.where(is_zero, 1, pivot)[:, None]
        matrices[:, j + 1 :, j + 1 :] -= matrices[:, j + 1 :, j, None] * matrices[:, j, None, j + 1 :]


def _substitute_at_once(factors: np.ndarray, swaps: np.ndarray, columns: np.ndarray, adjoint: bool) -> None:
    """Solve with the LU factors of many small matrices, in place in the right-hand sides."""
    n, each = factors.shape[-1], np.arange(len(factors))

    def swap_rows(order: Any) -> None:
        for j in order:
            other = swaps[:, j]
            columns[each, j], columns[each, other] = columns[each, other], columns[each, j]

    def eliminate(order: Any, coefficients: np.ndarray, unit: bool) -> None:
        """Substitution with a triangular matrix whose rows are solved in this order."""
        solved: list[int] = []
        for j in order:
            if not unit:
                columns[:, j] /= coefficients[:, j, j, None]
            solved.append(j)
            rest = [i for i in range(n) if i not in solved]
            columns[:, rest] -= coefficients[:, rest, j, None] * columns[:, j, None]

    if not adjoint:
        swap_rows(range(n))
        eliminate(range(n), factors, True)
        eliminate(range(n - 1, -1, -1), factors, False)
    else:
        turned = np.conj(np.swapaxes(factors, -1, -2))
        eliminate(range(n), turned, False)
        eliminate(range(n - 1, -1, -1), turned, True)
        swap_rows(range(n - 1, -1, -1))


# ------------------------------------------------------------------------- ops that write to given outputs


def step(text: str, plain: bool = False, **options: Any) -> Any:
    """Decorator for an op, below autograd, that only other ops call. Its outputs are among its arguments. Declared at its first call.

    plain: the result is not checked, since it may be a sparse tensor.
    """

    def declare(body: Any) -> Any:
        declared: list[Any] = []

        def call(*arguments: Any) -> Any:
            if not declared:
                declare_op = composite if plain else op
                kind = {} if plain else {"on": "tensors", "nondifferentiable": True}
                declared.append(declare_op(text, expose="no", **kind, **options)(body).op)
            return _dispatch.record(declared[0], *arguments)

        return call

    return declare


def put(target: Any, array: np.ndarray) -> Any:
    """Copy `array` into the memory of `target`."""
    np.copyto(target._array, array)
    storage_of(target)._version += 1
    return target


@step(
    "aten::zeros.inside(SymInt[] size, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor",
    plain=True,
)
def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.zero_(F.empty(size, dtype=dtype))


@step(
    "aten::full.inside(SymInt[] size, Scalar fill_value, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor",
    plain=True,
)
def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(F.empty(size, dtype=dtype), fill_value)


def zeros(size: tuple, dtype: Any) -> Any:
    """Zeros that an op allocates: filled above autograd, unlike those that a user asks for."""
    return _zeros(size, dtype, None, None, None)


def full(size: tuple, value: Any, dtype: Any) -> Any:
    """A tensor of one value that an op allocates."""
    return _full(size, value, dtype, None, None, None)


@step(
    "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim, ScalarType? dtype, Tensor out) -> Tensor(a!)",
    listed=False,  # the op of this name is that of `sums`
)
def sum_into(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    return put(out, np.add.reduce(self._array, axis=dim, keepdims=keepdim, dtype=out._array.dtype))


def mul_into(self: Any, other: Any, out: Any) -> Any:
    """A product written to `out`."""
    return _dispatch.record(OPS["mul.out"], self, other, out)


# ------------------------------------------------------------------------- what torch shows inside LAPACK's wrappers


def described(x: Any, shape: Callable[[tuple], Any], type: str | None = None) -> Any:
    """A described tensor whose shape is a function of that of another."""
    return UNKNOWN if x is UNKNOWN else tensor(shape(x.shape), x, type)


def pivots_of(A: Any) -> Any:
    """The described pivots of described matrices."""
    return described(A, lambda shape: (*shape[:-2], min(shape[-2:])), "int")


def check_child(A: Any, name: str, least: tuple = ()) -> Child:
    """A check of the error codes, one per matrix, that LAPACK gave; least: their shape for a single matrix."""
    info = described(A, lambda shape: shape[:-2] or least, "int")
    return child("aten::_linalg_check_errors", info, name, UNKNOWN if A is UNKNOWN else len(A.shape) == 2)


def all_children(test: str, x: Any, *other: Any, children: Any = None) -> list[Child]:
    """A test of all elements, read as one bool; children: those of the test, where it does not declare them."""
    truths = described(x, lambda shape: shape, "bool")
    return [
        child(test, x, *other, children=children),
        child("aten::all", truths),
        item(described(x, lambda _: (), "bool")),
    ]


def factor_child(A: Any, pivot: Any = True, sized: bool = True) -> Child:
    """An LU factorisation of described matrices; sized: the output for error codes has its size already."""
    LU, info = (
        described(A, lambda shape: shape),
        described(A, lambda shape: shape[:-2] if sized else (0,), "int"),
    )
    inside = [child("aten::copy_", LU, A)]
    return child("aten::linalg_lu_factor_ex.out", A, pivot, False, LU, pivots_of(A), info, children=inside)


_INT32 = 3  # torch's number


def turned(name: str, x: Any) -> Child:
    """`mT` or `mH` of a described matrix."""
    return child(name, x, children=[child("aten::transpose.int", x, -2, -1)])


def copied_by_columns(x: Any) -> list[Child]:
    """A copy of described matrices whose columns lie one after the other."""
    if x is UNKNOWN:
        rows = x
    else:
        rows = tensor((*x.shape[:-2], x.shape[-1], x.shape[-2]), x)
    copy = child("aten::clone", rows, 0)
    return [turned("aten::mT", x), copy, child("aten::transpose_", rows, -2, -1)]


def error_codes(A: Any) -> Child:
    """The codes of errors of described matrices."""
    return child("aten::zeros", described(A, lambda shape: shape[:-2]).shape, _INT32, 0)


def workspace() -> Child:
    """What LAPACK computes in; the size is its own."""
    return child("aten::empty.memory_format", None)


def lu_solve_children(LU: Any, pivots: Any, B: Any = None, result: Any = None) -> list[Child]:
    """The right side is copied to the result unless it is that, and the pivots that LAPACK is given are checked."""
    return [
        *([] if B is None else [child("aten::copy_", result, B)]),
        turned("aten::mT", LU),
        *all_children("aten::gt.Scalar", pivots, 0),
        *all_children("aten::le.Scalar", pivots, LU.shape[-2]),
    ]


def lu_solve_child(A: Any, B: Any, left: Any, in_place: bool = False) -> Child:
    """A solution from the factors of described matrices; in_place: written over the right side."""
    batch = UNKNOWN if A is UNKNOWN else np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    result = described(B, lambda shape: (*batch, *shape[-2:]))
    pivots = pivots_of(A)
    inside = lu_solve_children(A, pivots) if in_place else lu_solve_children(A, pivots, B, result)
    return child("aten::linalg_lu_solve.out", A, pivots, B, left, False, result, children=inside)
