"""Products and joins of sparse tensors, and the entry point from the dispatcher: an op and its arguments in, a sparse or dense result out.

When an argument has no array because it is sparse, the dispatcher calls `run_sparse`. An op that is not in `KERNELS` raises torch's
NotImplementedError. This module imports `_sparse`, never the other way round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dispatch, _dtype
from ._sparse import (
    _add,
    _add_,
    _clone,
    _div,
    _in_place,
    _like,
    _mul,
    _neg,
    _permute,
    _quiet,
    _select,
    _sub,
    _t,
    _to_copy,
    _transpose,
    _unsqueeze,
    _wrap,
    _zero_,
    _zeros_like,
    coalesced,
    conj,
    make,
    record,
    sparse_mask,
    total,
    values_at,
)

_functions = _dispatch.FUNCTIONS
Tensor = _dispatch.Tensor

# ---------------------------------------------------------------------------------------------------- products


def _scipy(self: Any, array: Any = None) -> Any:
    from scipy.sparse import csr_array

    elements = self._elements
    if elements.dtype in _dtype.LOW_FLOATS:
        elements = elements.astype(np.float32)
    return csr_array((elements, (self._places[0], self._places[1])), shape=self._extent)


def _matrix(self: Any) -> None:
    if self.ndim != 2 or (self.is_sparse and len(self._places) != 2):
        sparse, dense = (len(self._places), self._elements.ndim - 1) if self.is_sparse else (0, self.ndim)
        raise RuntimeError(
            f"Expected a matrix of two sparse dimensions, but got {sparse} sparse and {dense} dense dimensions"
        )


def _check_product(a: Any, b: Any) -> None:
    _matrix(a)
    if b.ndim != 2 or a._extent[1] != b.shape[0]:
        if b.ndim == 2:
            raise RuntimeError(
                f"addmm: Argument #3 (dense): Expected dim 0 size {a._extent[1]}, got {b.shape[0]}"
            )
        raise RuntimeError(f"addmm: Expected a dense matrix, got {b.ndim}D tensor")
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"addmm: expected 'mat1' and 'mat2' to have the same dtype, but got {a.dtype._abbr} and {b.dtype._abbr}"
        )


def _product(a: Any, b: Any) -> np.ndarray:
    array = b._array.astype(np.float32) if b._array.dtype in _dtype.LOW_FLOATS else b._array
    return np.ascontiguousarray(_scipy(a) @ array).astype(b._array.dtype, copy=False)


def _grad_of_sparse(g: Any, a: Any, b: Any) -> Any:
    rows, columns = _wrap(a._places[0]), _wrap(a._places[1])
    return _like(a, (g.index_select(0, rows) * conj(b).index_select(0, columns)).sum(1))


def _with_product_node(product: Any, mat: Any, a: Any, b: Any, beta: Any, alpha: Any, name: str) -> Any:
    """beta * mat + alpha * a @ b, for a sparse `a`, with its history. `mat`: None if beta is 0."""
    needs, adds = (a._rg, b._rg), mat is not None and mat._rg
    right = b if a._rg else None  # only the gradient of `a` needs `b`

    def rule(g: Any) -> tuple:
        scaled = g if alpha == 1 else g * conj(alpha)
        ga = _grad_of_sparse(scaled, a, right) if needs[0] else None
        gb = _functions["mm"](conj(a).t(), scaled) if needs[1] else None
        if mat is None:
            return ga, gb
        return (g if beta == 1 else g * conj(beta)) if adds else None, ga, gb

    return record(name, product, (a, b) if mat is None else (mat, a, b), rule)


def sparse_addmm(mat: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """The body of aten::_sparse_addmm: `mat1` is sparse, `mat` and `mat2` are dense."""
    with _quiet():
        product = _functions["addmm"](mat, mat1, mat2, beta=beta, alpha=alpha)
    added = None if beta == 0 else mat
    return _with_product_node(product, added, mat1, mat2, beta, alpha, "SparseAddmmBackward0")


def _times_dense(a: Any, b: Any) -> Any:
    """sparse @ dense, through aten::mm."""
    with _quiet():
        product = _functions["mm"](a, b)
    return _with_product_node(product, None, a, b, 0, 1, "SparseAddmmBackward0")


def _mm_kernel(a: Any, b: Any) -> Any:
    """aten::mm where one of its arguments is sparse."""
    if not a.is_sparse or b.is_sparse:
        return mm(a, b)
    _check_product(a, b)
    return _with_product_node(_wrap(_product(a, b)), None, a, b, 0, 1, "MmBackward0")


def _addmm_kernel(mat: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """aten::addmm where the first matrix is sparse."""
    if not mat1.is_sparse or mat2.is_sparse or mat.is_sparse:
        return addmm(mat, mat1, mat2, beta, alpha)
    _check_product(mat1, mat2)
    array = _product(mat1, mat2)
    if alpha != 1:
        array = array * array.dtype.type(alpha)
    if beta != 0:
        array = array + (mat._array if beta == 1 else mat._array * mat._array.dtype.type(beta))
    return _with_product_node(
        _wrap(array), None if beta == 0 else mat, mat1, mat2, beta, alpha, "AddmmBackward0"
    )


def _sparse_sparse(a: Any, b: Any) -> Any:
    if a._extent[1] != b._extent[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a._extent[0]}x{a._extent[1]} and {b._extent[0]}x{b._extent[1]})"
        )
    product = (_scipy(a) @ _scipy(b)).tocoo()
    product.sum_duplicates()
    places = np.stack([np.asarray(c, np.int64) for c in product.coords])
    result = make(places, product.data.astype(a._elements.dtype, copy=False), (a._extent[0], b._extent[1]))
    result = coalesced(result)
    return record(
        "SparseSparseMatmulBackward0", result, (a, b),
        lambda g: (sparse_mask(mm(g, conj(b).t()), a) if a._rg else None, sparse_mask(mm(conj(a).t(), g), b) if b._rg else None),
    )  # fmt: skip


def mm(a: Any, b: Any) -> Any:
    """The product of two matrices, at least one of them sparse (or both dense)."""
    if not a.is_sparse and not b.is_sparse:
        return _functions["mm"](a, b)
    if a.is_sparse and b.is_sparse:
        return _sparse_sparse(a, b)
    if a.is_sparse:
        return _times_dense(a, b)
    _matrix(b)
    if a.shape[-1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    return _times_dense(b.t(), a.t()).t().contiguous()


def addmm(mat: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * mat + alpha * mat1 @ mat2."""
    if mat1.is_sparse and not mat2.is_sparse and not mat.is_sparse:
        return _dispatch.OPS["_sparse_addmm"].entry(mat, mat1, mat2, beta=beta, alpha=alpha)
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    scaled = mat if beta == 1 else mat * beta
    return scaled + product


def mv(a: Any, vec: Any) -> Any:
    """The product of a sparse matrix and a vector."""
    if a._extent[1] != vec.shape[0]:
        raise RuntimeError(
            f"mv: expected self.size(-1) == vec.size(-1), but got {a._extent[1]} and {vec.shape[0]}"
        )
    with _quiet():
        product = _functions["matmul"](a, vec.unsqueeze(-1)).squeeze(-1)

    def rule(g: Any) -> tuple:
        ga = _grad_of_sparse(g.unsqueeze(1), a, vec.unsqueeze(1)) if a._rg else None
        return ga, _functions["mv"](conj(a).t(), g) if vec._rg else None

    return record("MvBackward0", product, (a, vec), rule)


def hspmm(mat1: Any, mat2: Any) -> Any:
    """sparse @ dense, as a hybrid tensor that keeps the rows of `mat1` that have elements."""
    rows = np.unique(mat1._places[0])
    _check_product(mat1, mat2)
    return make(rows[None], _product(mat1, mat2)[rows], (mat1._extent[0], mat2.shape[1]), True)


def _bmm(a: Any, b: Any) -> Any:
    if not a.is_sparse or b.is_sparse:
        raise RuntimeError("bmm: Expected the first matrices to be sparse and the second dense")
    return _functions["stack"]([mm(_select(a, 0, i), b[i]) for i in range(a._extent[0])])


# ---------------------------------------------------------------------------------------------------- choosing and joining


def _index_select(self: Any, dim: int, index: Any) -> Any:
    dim %= self.ndim
    wanted = index._array
    extent = (*self._extent[:dim], len(wanted), *self._extent[dim + 1 :])
    if dim >= self._places.shape[0]:
        return make(
            self._places,
            self._elements.take(wanted, dim - self._places.shape[0] + 1),
            extent,
            self._coalesced,
        )
    pairs = [np.flatnonzero(self._places[dim] == w) for w in wanted]
    chosen = np.concatenate(pairs) if pairs else np.empty(0, np.int64)
    places = self._places[:, chosen].copy()
    places[dim] = np.repeat(np.arange(len(wanted)), [len(p) for p in pairs])
    return make(places, self._elements[chosen], extent)


def _cat(tensors: Any, dim: int = 0) -> Any:
    if not all(t.is_sparse for t in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found among them.")
    first = tensors[0]
    dim %= first.ndim
    extent = list(first._extent)
    extent[dim] = sum(t._extent[dim] for t in tensors)
    if dim >= first._places.shape[0]:
        raise NotImplementedError("cat: sparse tensors are joined along sparse dimensions only")
    parts, start = [], 0
    for t in tensors:
        places = t._places.copy()
        places[dim] += start
        start += t._extent[dim]
        parts.append(places)
    return make(np.concatenate(parts, 1), np.concatenate([t._elements for t in tensors]), tuple(extent))


def _stack(tensors: Any, dim: int = 0) -> Any:
    return _cat([_unsqueeze(t, dim) for t in tensors], dim)


# ---------------------------------------------------------------------------------------------------- entry point from the dispatcher

# functions that leave zero at zero: applied to the values of the coalesced tensor
_ON_VALUES = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "isnan", "isneginf",
    "isposinf", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    "signbit", "pow.Tensor_Scalar", "isinf", "nan_to_num",
)  # fmt: skip


def _on_values(name: str) -> Any:
    def kernel(self: Any, *args: Any) -> Any:
        parts = self.coalesce()
        values = _dispatch.OPS[name].run(parts.values(), *args)
        result = make(parts._places, values._array, parts._extent, True)
        return record(
            "SparseCooTensorWithDimsAndTensorsBackward0", result, (values,), lambda g: (values_at(g, result),)
        )

    return kernel


def _copy_to_dense(self: Any, src: Any, non_blocking: bool = False) -> Any:
    raise RuntimeError(
        f"copy_() between dense and sparse Tensors is not implemented! Found self type = {self.type()} and src type = {src.type()}"
    )


KERNELS: dict[str, Any] = {
    "copy_": _copy_to_dense,
    **{name: _on_values(name) for name in _ON_VALUES},
    "add.Tensor": _add, "add_.Tensor": _add_, "sub.Tensor": _sub, "sub_.Tensor": lambda a, b, alpha=1: _add_(a, b, -alpha),
    "mul.Tensor": _mul, "mul_.Tensor": _in_place(_mul), "div.Tensor": _div, "div_.Tensor": _in_place(_div),
    "neg": _neg, "neg_": _in_place(_neg), "clone": _clone, "_to_copy": _to_copy, "zero_": _zero_, "zeros_like": _zeros_like,
    "empty_like": _zeros_like, "sum": lambda self, dtype=None: total(self, dtype=dtype),
    "sum.dim_IntList": lambda self, dim, keepdim=False, dtype=None: total(self, dim, keepdim, dtype),
    "mm": _mm_kernel, "addmm": _addmm_kernel, "mv": mv, "bmm": _bmm, "t": _t, "transpose.int": _transpose, "permute": _permute, "select.int": _select,
    "index_select": _index_select, "cat": _cat, "stack": _stack, "unsqueeze": _unsqueeze,
    "abs_": _in_place(_on_values("abs")), "sqrt_": _in_place(_on_values("sqrt")),
}  # fmt: skip


def run_sparse(op: Any, arguments: tuple) -> Any:
    """Run an op on sparse tensors; torch's error if it has no sparse kernel."""
    if any(isinstance(a, Tensor) and a._is_sparse_layout and not a.is_sparse for a in arguments):
        from ._sparse_compressed import run_compressed

        return run_compressed(op, arguments)
    kernel = KERNELS.get(op.full_name)
    if kernel is None:
        raise NotImplementedError(
            f"Could not run '{op.qualified_name}{'.' + op.overload if op.overload else ''}' with arguments from the 'SparseCPU' backend. "
            "This could be because the operator doesn't exist for this backend; to_dense() gives a dense tensor."
        )
    return kernel(*arguments)
