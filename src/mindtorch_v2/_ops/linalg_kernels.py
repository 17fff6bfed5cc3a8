"""Building blocks of linear algebra: LU factors and solutions as column-major arrays, and the inner ops that a profile shows
(`aten::linalg_lu_factor.out` inside `aten::_linalg_det`). No gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import OPS, composite, op, storage_of, wrap
from . import inplace_views
from ._namespace import functions as F


class LinAlgError(RuntimeError):
    """A matrix that an algorithm cannot handle, such as a singular one."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


# ---------------------------------------------------------------------------------------------------- layout


def columns(array: np.ndarray) -> np.ndarray:
    """Matrices stored column by column, as LAPACK leaves them."""
    return np.swapaxes(np.ascontiguousarray(np.swapaxes(array, -1, -2)), -1, -2)


def blank_columns(shape: tuple, dtype: Any) -> Any:
    """Uninitialised column-major matrices, allocated without a recorded op."""
    return wrap(np.swapaxes(np.empty((*shape[:-2], shape[-1], shape[-2]), dtype), -1, -2))


def in_columns(tensor: Any) -> bool:
    """Whether matrices are stored column by column."""
    return bool(np.swapaxes(tensor._array, -1, -2).flags.c_contiguous)


def mh(x: Any) -> Any:
    """The conjugate transpose."""
    return OPS["mH"].entry(x)


def is_vector_case(a: Any, b: Any) -> bool:
    """Whether the right side of a linear equation is one vector for each matrix."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


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


def check(info: Any, name: str, is_matrix: bool) -> None:
    """Raise if `info` reports a failure."""
    if info._array_missing:
        return
    if _dispatch.recorder is None:
        array = info._array
        if array.any() if array.ndim else array.item():
            raise value_error(name, array, is_matrix)
    else:
        _linalg_check_errors(info, name, is_matrix=is_matrix)


@op(
    "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def _linalg_check_errors(info: Any, api_name: str, is_matrix: bool) -> None:
    if F.any(info).item():
        raise value_error(api_name, info._array, is_matrix)


# ---------------------------------------------------------------------------------------------------- arrays


def lu_arrays(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """LU factors (column-major), 1-based pivots, and per matrix the 1-based index of a zero pivot, or 0."""
    from scipy.linalg import lapack

    rows, width = A.shape[-2:]
    flat = A.reshape(-1, rows, width)
    factor = lapack.get_lapack_funcs("getrf", (flat,))
    lu = np.empty((len(flat), width, rows), A.dtype)
    pivots, info = np.empty((len(flat), min(rows, width)), np.int32), np.zeros(len(flat), np.int32)
    for i, matrix in enumerate(flat):
        factors, swaps, info[i] = factor(matrix)
        lu[i], pivots[i] = factors.T, swaps[: pivots.shape[1]] + 1
    batch = A.shape[:-2]
    return (
        np.swapaxes(lu.reshape(*batch, width, rows), -1, -2),
        pivots.reshape(*batch, -1),
        np.maximum(info, 0).reshape(batch),
    )


def lu_solve_arrays(
    LU: np.ndarray, pivots: np.ndarray, B: np.ndarray, left: bool, adjoint: bool
) -> np.ndarray:
    """X with AX = B (XA = B) or A^H X = B (XA^H = B) from A's factors."""
    if not left:
        turned = lu_solve_arrays(LU, pivots, np.conj(np.swapaxes(B, -1, -2)), True, not adjoint)
        return np.conj(np.swapaxes(turned, -1, -2))
    from scipy.linalg import lapack

    n, k = LU.shape[-1], B.shape[-1]
    batch = np.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    factors = np.broadcast_to(LU, (*batch, n, n)).reshape(-1, n, n)
    swaps = np.broadcast_to(pivots, (*batch, n)).reshape(-1, n)
    rights = np.broadcast_to(B, (*batch, n, k)).reshape(-1, n, k)
    solver = lapack.get_lapack_funcs("getrs", (factors, rights))
    solution = np.empty((len(factors), k, n), LU.dtype)
    for i, factor in enumerate(factors):
        solution[i] = solver(factor, swaps[i] - 1, rights[i], 2 if adjoint else 0)[0].T
    return np.swapaxes(solution.reshape(*batch, k, n), -1, -2)


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


def restrided(tensor: Any) -> None:
    """Set the strides of an output that was resized after its allocation."""
    array = tensor._array
    inplace_views._as_strided(tensor, array.shape, tuple([s // array.itemsize for s in array.strides]), 0)


def cloned_columns(tensor: Any) -> Any:
    """A copy stored by columns."""
    turned = F.clone(OPS["mT"].entry(tensor), memory_format=_dtype.contiguous_format)
    return turned.transpose_(-2, -1)


def resized_columns(like: Any, shape: tuple) -> Any:
    """A column-major output that was allocated empty and is resized now."""
    from ._shown import given_size

    resized = given_size(like, (*shape[:-2], shape[-1], shape[-2]))
    return resized.transpose_(-2, -1)


@step(
    "aten::zeros.inside(SymInt[] size, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor",
    plain=True,
)
def _zeros_inside(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.zero_(F.empty(size, dtype=dtype))


@step(
    "aten::full.inside(SymInt[] size, Scalar fill_value, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor",
    plain=True,
)
def _full_inside(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(F.empty(size, dtype=dtype), fill_value)


def zeros(size: tuple, dtype: Any) -> Any:
    """Zeros allocated inside another op; while recording, the fill shows as a call inside that op."""
    if _dispatch.recorder is None:
        return F.zeros(size, dtype=dtype)
    return _zeros_inside(size, dtype, None, None, None)


def full(size: tuple, value: Any, dtype: Any) -> Any:
    """A tensor of one value, allocated inside another op."""
    if _dispatch.recorder is None:
        return F.full(size, value, dtype=dtype)
    return _full_inside(size, value, dtype, None, None, None)


@step(
    "aten::linalg_lu_factor_ex.out(Tensor A, bool pivot, bool check_errors, Tensor LU, Tensor pivots, Tensor info) -> Tensor(a!)"
)
def lu_factor_into(A: Any, pivot: bool, check_errors: bool, LU: Any, pivots: Any, info: Any) -> Any:
    _factor(A, LU, pivots, info)
    return LU


def _factor(A: Any, LU: Any, pivots: Any, info: Any) -> None:
    F.copy_(LU, A)
    lu, swaps, failed = lu_arrays(A._array)
    put(LU, lu), put(pivots, swaps), put(info, failed)


@step(
    "aten::linalg_lu_factor_ex.late(Tensor A, bool pivot, bool check_errors, Tensor LU, Tensor pivots, Tensor info) -> Tensor"
)
def lu_factor_info(A: Any, pivot: bool, check_errors: bool, LU: Any, pivots: Any, info: Any) -> Any:
    failures = wrap(np.empty(A._array.shape[:-2], np.int32))
    if failures.ndim:
        restrided(failures)
    _factor(A, LU, pivots, failures)
    return failures


@step(
    "aten::linalg_lu_solve.out(Tensor LU, Tensor pivots, Tensor B, bool left, bool adjoint, Tensor out) -> Tensor(a!)"
)
def lu_solve_into(LU: Any, pivots: Any, B: Any, left: bool, adjoint: bool, out: Any) -> Any:
    solution = lu_solve_arrays(LU._array, pivots._array, B._array, left, adjoint)
    show_lu_solve(LU, pivots, B, left, out)
    if left and out._array.strides[-1] != LU.shape[-1] * out._array.itemsize:
        F.copy_(out, wrap(solution))
    return put(out, solution)


def show_lu_solve(LU: Any, pivots: Any, B: Any, left: bool, out: Any) -> None:
    """Record the steps of a solution from factors: copy the right-hand side, check the pivots."""
    if left:
        if out is not B:
            F.copy_(out, B)
    else:
        turned = wrap(out._array.view()).transpose_(-2, -1)
        F.copy_(turned, mh(B))
    OPS["mT"].entry(LU)
    F.all(F.gt(pivots, 0)).item()
    F.all(F.le(pivots, LU.shape[-2])).item()
    if not left:
        turned.transpose_(-2, -1)


@step(
    "aten::_linalg_solve_ex.result(Tensor A, Tensor B, bool left, bool check_errors, Tensor result, Tensor LU, Tensor pivots, Tensor info) -> "
    "(Tensor, Tensor)"
)
def _solve_into(
    A: Any, B: Any, left: bool, check_errors: bool, result: Any, LU: Any, pivots: Any, info: Any
) -> Any:
    lu = blank_columns(A._array.shape, A._array.dtype)
    swaps = wrap(np.empty(A._array.shape[:-1], np.int32))
    restrided(lu)
    restrided(swaps)
    lu_factor_into(A, True, check_errors, lu, swaps, info)
    if not info._array.any():
        lu_solve_into(lu, swaps, B, left, False, result)
    return lu, swaps


@step(
    "aten::linalg_solve_ex.out(Tensor A, Tensor B, bool left, bool check_errors, Tensor result, Tensor info) -> Tensor(a!)"
)
def solve_into(A: Any, B: Any, left: bool, check_errors: bool, result: Any, info: Any) -> Any:
    new_empty = OPS["new_empty"].entry
    _solve_into(
        A, B, left, check_errors, result, new_empty(A, (0,)), new_empty(A, (0,), dtype=_dtype.int32), info
    )
    return result


@step("aten::tril.out(Tensor self, int diagonal, Tensor out) -> Tensor(a!)")
def tril_into(self: Any, diagonal: int, out: Any) -> Any:
    return put(out, np.tril(self._array, diagonal))


@step("aten::triu.out(Tensor self, int diagonal, Tensor out) -> Tensor(a!)")
def triu_into(self: Any, diagonal: int, out: Any) -> Any:
    return put(out, np.triu(self._array, diagonal))


@step(
    "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim, ScalarType? dtype, Tensor out) -> Tensor(a!)"
)
def sum_into(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    return put(out, np.add.reduce(self._array, axis=dim, keepdims=keepdim, dtype=out._array.dtype))


def mul_into(self: Any, other: Any, out: Any) -> Any:
    """A product written to `out`."""
    return _dispatch.record(OPS["mul.out"], self, other, out)


# ---------------------------------------------------------------------------------------------------- for gradients


def factors_of(A: Any, LU: Any, pivots: Any) -> tuple[Any, Any]:
    """The LU factors that the forward op saved; recomputed if it ran without a recorder and saved none."""
    if LU.numel() or not A.numel():
        return LU, pivots
    lu, swaps, _ = lu_arrays(A._array)
    return wrap(lu), wrap(swaps)


def solve_again(A: Any, LU: Any, pivots: Any, right: Any, left: bool) -> Any:
    """X with A^H X = right (or XA^H = right)."""
    if _dispatch.recorder is None:
        return F.linalg_solve_ex(A.mH, right, left=left)[0]
    return F.linalg_lu_solve(*factors_of(A, LU, pivots), right, left=left, adjoint=True)


def det_grad(g: Any, A: Any, LU: Any, pivots: Any, guarded: bool) -> Any:
    """g A^-H; `guarded`: a zero pivot is replaced by a very small number."""
    if _dispatch.recorder is None:
        return g.unsqueeze(-1).unsqueeze(-1) * F.linalg_inv(A).mH
    if not LU.numel():
        lu, swaps, _ = lu_arrays(np.conj(np.swapaxes(A._array, -1, -2)))
        LU, pivots = wrap(lu), wrap(swaps)
    scaled = F.diag_embed(OPS["expand_as"].entry(F.unsqueeze(g, -1), pivots))
    OPS["mT"].entry(scaled)
    if guarded:
        tiny = float(np.finfo(LU._array.dtype).eps)
        LU = F.add(LU, F.diag_embed(F.where(F.diagonal(LU, 0, -2, -1) == 0.0, tiny, 0.0)))
    return F.linalg_lu_solve(LU, pivots, scaled)
