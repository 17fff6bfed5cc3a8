"""Ops and functions of sparse tensors: constructors, conversions, questions for their parts, and methods that dense tensors share.

What they compute is in `_sparse` and `_sparse_compressed`, which are imported with the first sparse tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._deprecated_signatures import call as call_with_factors
from .._dispatch import OPS, composite, function, op, wrap
from .._graph import grad_state
from ._namespace import functions as F
from ._warn import warn_once


def _sparse() -> Any:
    from .. import _sparse as module

    return module


# ---------------------------------------------------------------------------------------------------- parts


def _ask(text: str, answer: Any) -> Any:
    return composite(text, expose="no")(answer)


_ask("aten::_nnz(Tensor self) -> int", lambda self: self._places.shape[1])
_ask("aten::sparse_dim(Tensor self) -> int", lambda self: self._places.shape[0])
_ask("aten::dense_dim(Tensor self) -> int", lambda self: self._elements.ndim - 1)
_ask("aten::is_coalesced(Tensor self) -> bool", lambda self: self._coalesced)
_ask("aten::_indices(Tensor(a) self) -> Tensor(a)", lambda self: _sparse().part(self, 0))
_ask("aten::_values(Tensor(a) self) -> Tensor(a)", lambda self: _sparse().part(self, 1))


@composite("aten::indices(Tensor(a) self) -> Tensor(a)", expose="no")
def indices_of(self: Any) -> Any:
    if not self._coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return _sparse().part(self, 0)


@composite("aten::values(Tensor(a) self) -> Tensor(a)", expose="no")
def values_of(self: Any) -> Any:
    if not self._coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    module = _sparse()
    return module.with_values_node(self, module.part(self, 1))


@composite("aten::_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", expose="no")
def _coalesced_(self: Any, coalesced: bool) -> Any:
    self._coalesced = coalesced
    return self


@composite("aten::coalesce(Tensor(a) self) -> Tensor(a)", expose="no")
def coalesce(self: Any) -> Any:
    if self._coalesced:
        return self
    module = _sparse()
    return module.record("CoalesceBackward0", module.coalesced(self), (self,), lambda g: (g,))


# ---------------------------------------------------------------------------------------------------- constructors

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@composite(
    "aten::_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, "
    f"{_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def _with_dims(
    sparse_dim: int, dense_dim: int, size: Any, indices: Any, values: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any,
    is_coalesced: Any,
) -> Any:  # fmt: skip
    return _sparse().of_parts(indices, values, size, bool(is_coalesced))


def _of_parts(
    indices: Any,
    values: Any,
    size: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    is_coalesced: Any,
) -> Any:
    return _with_dims(
        indices.shape[0], values.ndim - 1, size, indices, values, layout=layout, is_coalesced=is_coalesced
    )


_PARTS = f"Tensor indices, Tensor values, SymInt[] size, *, {_OPTIONS}, bool? is_coalesced=None"
_of_size = composite(f"aten::sparse_coo_tensor.indices_size({_PARTS}) -> Tensor", expose="no")(_of_parts)
_unsafe = composite(f"aten::_sparse_coo_tensor_unsafe({_PARTS}) -> Tensor", expose="no")(_of_parts)


@composite(
    f"aten::sparse_coo_tensor.indices(Tensor indices, Tensor values, *, {_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def _of_any_size(indices: Any, values: Any, *options: Any) -> Any:
    return _of_parts(indices, values, _check_parts(indices._array, values, None), *options)


@composite(
    "aten::embedding_sparse_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> "
    "Tensor",
    expose="no",
)
def embedding_sparse_backward(
    grad: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    if padding_idx != -1:
        kept = F.ne(indices, padding_idx)
        indices, grad = F.index(indices, [kept]), F.index(grad, [kept])
    width = grad.shape[-1]
    if not indices.numel():
        no_indices, no_values = F.empty((1, 0), dtype=_dtype.int64), F.empty((0, width), dtype=grad.dtype)
        return _unsafe(no_indices, no_values, (num_weights, width))
    places = F.reshape(indices, (1, -1))
    rows = F.reshape(grad, (-1, width))
    return _unsafe(OPS["to.dtype"].entry(places, _dtype.int64), rows, (num_weights, width))


def _as_tensor(data: Any, dtype: Any = None) -> Any:
    return data if isinstance(data, _dispatch.Tensor) else F.tensor(data, dtype=dtype)


@function(expose="function")
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of `values` at `indices` (one column each); of zeros when only a size is given."""
    if check_invariants is None and not Invariants.chosen:
        warn_once(
            "Sparse invariant checks are implicitly disabled. Memory errors (e.g. SEGFAULT) will occur when operating on a sparse "
            "tensor which violates the invariants, but checks incur performance overhead. To silence this warning, explicitly opt in "
            "or out. See `torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance. "
        )
    if values is None:
        extent = tuple(indices) if size is None else tuple(size)
        tensor = _sparse().empty(extent, len(extent), (dtype or _dtype.Default.dtype)._np)
        tensor.requires_grad = requires_grad
        return tensor
    index_tensor, value_tensor = _as_tensor(indices), _as_tensor(values)
    if dtype is not None:
        value_tensor = value_tensor.to(dtype)
    places = index_tensor._array.astype(np.int64, copy=False)
    if places.ndim == 1:
        places = places[:, None]
    extent = _check_parts(places, value_tensor, size)
    if check_invariants or (check_invariants is None and Invariants.enabled):
        _check_invariants(places, extent, is_coalesced)
    if index_tensor._array is not places:
        index_tensor = wrap(places)
    if not value_tensor.ndim:
        value_tensor = value_tensor.reshape(1)
    to_device = OPS["to.device"].entry
    value_tensor, index_tensor = (
        to_device(t, device=t.device, dtype=t.dtype) for t in (value_tensor, index_tensor)
    )
    if size is None:
        tensor = _of_any_size(index_tensor, value_tensor, is_coalesced=is_coalesced)
    else:
        tensor = _of_size(index_tensor, value_tensor, extent, is_coalesced=is_coalesced)
    if requires_grad:
        tensor = tensor.detach()
        tensor.requires_grad = True
    return tensor


class Invariants:
    """Whether constructors check every index, and whether the program chose that explicitly."""

    enabled = False
    chosen = False


def _check_parts(places: np.ndarray, values: Any, size: Any) -> tuple:
    if places.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    sparse, shape = places.shape[0], tuple(values.shape) or (1,)
    if size is None:
        if places.size and places.min() < 0:
            raise RuntimeError(
                f"found negative index {int(places.min())} for dim {int(np.argmin(places.min(1)))}"
            )
        return (*(places.max(1) + 1 if places.shape[1] else np.zeros(sparse, int)).tolist(), *shape[1:])
    extent = tuple(int(n) for n in size)
    if len(extent) != sparse + len(shape) - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(extent)}, sparse_dim = {sparse}, dense_dim = "
            f"{len(shape) - 1}"
        )
    if places.shape[1] != shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: {shape[0]}"
        )
    if extent[sparse:] != shape[1:]:
        raise RuntimeError(
            f"values has incorrect size, expected {[shape[0], *extent[sparse:]]}, got {list(shape)}"
        )
    return extent


def _check_invariants(places: np.ndarray, extent: tuple, is_coalesced: Any) -> None:
    if not places.size:
        return
    for d, row in enumerate(places):
        if row.min() < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {d}")
        if row.max() >= extent[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {extent[d]} but found index {int(row.max())}"
            )
    if is_coalesced:
        number = _sparse().keys(places, extent)
        if (number[1:] <= number[:-1]).any():
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )


@function(expose="method")
def to_sparse(
    self: Any,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """The non-zero elements as a sparse COO tensor, whose first `sparse_dim` dimensions are sparse."""
    if layout is not None and layout is not _dtype.sparse_coo:
        return _compressed().compressed(self, layout, blocksize)
    if sparse_dim is not None:
        return _to_sparse_dims(self, sparse_dim)
    return _to_sparse(self, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@composite(
    "aten::to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    expose="no",
)
def _to_sparse(self: Any, layout: Any, blocksize: Any, dense_dim: Any) -> Any:
    return _nonzero_elements(self, self.ndim - (dense_dim or 0), "ToSparseBackward1")


@composite("aten::to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", expose="no")
def _to_sparse_dims(self: Any, sparse_dim: int) -> Any:
    return _nonzero_elements(self, sparse_dim, "ToSparseBackward0")


def _nonzero_elements(self: Any, count: int, node: str) -> Any:
    if self._rg and grad_state.enabled and self.dtype.is_complex:
        raise RuntimeError(
            "_to_sparse does not support automatic differentiation for outputs with complex dtype."
        )
    if not 0 <= count <= self.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, but {count} is given"
        )
    array = self._array
    outer = array != 0
    if count < array.ndim:
        outer = outer.any(tuple(range(count, array.ndim)))
    places = np.stack(np.nonzero(outer)) if count else np.empty((0, 1), np.int64)
    elements = array[tuple(places)] if count else array[None].copy()
    module = _sparse()
    tensor = module.make(
        np.ascontiguousarray(places, np.int64), np.ascontiguousarray(elements), array.shape, True
    )
    return module.record(node, tensor, (self,), lambda g: (g.to_dense() if g.is_sparse else g,))


@function(expose="method")
def to_sparse_coo(self: Any) -> Any:
    """The non-zero elements as a sparse COO tensor."""
    return to_sparse(self)


@function(expose="method")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """This tensor: it is dense."""
    return self if dtype is None else self.to(dtype)


@composite(
    "aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", expose="no"
)
def _to_dense(self: Any, dtype: Any, masked_grad: Any) -> Any:
    dense = _with_zeros(self, None, masked_grad)
    return dense if dtype is None else dense.to(dtype)


@composite(
    "aten::_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", expose="no"
)
def _with_zeros(self: Any, dtype: Any, masked_grad: Any) -> Any:
    module = _sparse()
    with module._quiet():
        dense = F.zeros(self._extent, dtype=self.dtype)
        module.add_to(dense._array, self, 1)
    return module.with_dense_node(self, dense, masked_grad)


@composite(
    "aten::to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor", expose="no"
)
def _to_dense_backward(grad: Any, input: Any, masked_grad: Any) -> Any:
    return grad if masked_grad is False else sparse_mask(grad, input)


@composite("aten::sparse_mask(Tensor self, Tensor mask) -> Tensor", expose="method")
def sparse_mask(self: Any, mask: Any) -> Any:
    if mask._is_sparse_layout and not mask.is_sparse:
        return _compressed().at_places_of(mask.detach(), self)
    return _sparse().masked(self, mask)


# ---------------------------------------------------------------------------------------------------- sums and products


@composite("aten::_sparse_sum(Tensor input) -> Tensor", expose="no")
def _sparse_sum(input: Any) -> Any:
    return _sparse().total(input)


@composite("aten::_sparse_sum.dim(Tensor input, int[1] dim) -> Tensor", expose="no")
def _sparse_sum_dims(input: Any, dim: Any) -> Any:
    return _sparse().total(input, dim)


@composite("aten::_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", expose="no")
def _sparse_mm(sparse: Any, dense: Any) -> Any:
    from .. import _sparse_ops

    if dense._is_sparse_layout:
        return _sparse_ops.mm(sparse, dense)
    return _sparse_ops.mm(_compressed().as_coo(sparse), dense)


@composite(
    "aten::_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    expose="no",
)
def _sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    from .. import _sparse_ops

    return _sparse_ops.sparse_addmm(self, mat1, mat2, beta, alpha)


# ---------------------------------------------------------------------------------------------------- dense tensors


def _refuse(name: str, text: str) -> None:
    def ask(self: Any) -> Any:
        raise RuntimeError(text)

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = "Refuse: the tensor is dense."
    function(name, expose="method")(ask)


_refuse("values", "values expected sparse tensor layout but got Strided")
_refuse("indices", "indices expected sparse coordinate tensor layout but got Strided")
_refuse("coalesce", "coalesce expected sparse coordinate tensor layout but got Strided")
_refuse("is_coalesced", "is_coalesced expected sparse coordinate tensor layout but got Strided")
_refuse("_nnz", "_nnz expected sparse tensor layout but got Strided")
for _part in ("crow_indices", "col_indices"):
    _refuse(_part, f"{_part} expected sparse row compressed tensor layout but got Strided")
for _part in ("ccol_indices", "row_indices"):
    _refuse(_part, f"{_part} expected sparse column compressed tensor layout but got Strided")
_refuse("_indices", "Could not run 'aten::_indices' with arguments from the 'CPU' backend.")
_refuse("_values", "Could not run 'aten::_values' with arguments from the 'CPU' backend.")


@function(expose="method")
def sparse_dim(self: Any) -> int:
    """0: all dimensions are dense."""
    return 0


@function(expose="method")
def dense_dim(self: Any) -> int:
    """The number of dimensions: all are dense."""
    return self.ndim


def _compressed() -> Any:
    from .. import _sparse_compressed

    return _sparse_compressed


def _of_compressed_parts(
    layout: Any,
    pointers: Any,
    indices: Any,
    values: Any,
    size: Any,
    dtype: Any,
    requires_grad: bool,
    check: Any,
) -> Any:
    module = _compressed()
    value_tensor = _as_tensor(values)
    if dtype is not None:
        value_tensor = value_tensor.to(dtype)
    strictly = Invariants.enabled if check is None else check
    parts = (_as_tensor(pointers), _as_tensor(indices), value_tensor)
    return module.of_parts(*parts, size, module.KINDS[layout._name], strictly, requires_grad)


@function(expose="function")
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A tensor in a compressed sparse layout: where its rows (or columns) begin, the other indices, and values."""
    if layout is None or layout._name not in _compressed().KINDS:
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got " + str(layout)
        )
    return _of_compressed_parts(
        layout, compressed_indices, plain_indices, values, size, dtype, requires_grad, check_invariants
    )


@function(expose="function")
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor by rows: where each begins, the columns of its elements, and values."""
    return _of_compressed_parts(
        _dtype.sparse_csr, crow_indices, col_indices, values, size, dtype, requires_grad, check_invariants
    )


@function(expose="function")
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor by columns: where each begins, the rows of its elements, and values."""
    return _of_compressed_parts(
        _dtype.sparse_csc, ccol_indices, row_indices, values, size, dtype, requires_grad, check_invariants
    )


@function(expose="function")
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of blocks by rows."""
    return _of_compressed_parts(
        _dtype.sparse_bsr, crow_indices, col_indices, values, size, dtype, requires_grad, check_invariants
    )


@function(expose="function")
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of blocks by columns."""
    return _of_compressed_parts(
        _dtype.sparse_bsc, ccol_indices, row_indices, values, size, dtype, requires_grad, check_invariants
    )


@function(expose="method")
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """The non-zero elements by rows."""
    return _compressed().compressed(self, _dtype.sparse_csr)


@function(expose="method")
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """The non-zero elements by columns."""
    return _compressed().compressed(self, _dtype.sparse_csc)


@function(expose="method")
def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks that have non-zero elements, by rows."""
    return _compressed().compressed(self, _dtype.sparse_bsr, blocksize)


@function(expose="method")
def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The blocks that have non-zero elements, by columns."""
    return _compressed().compressed(self, _dtype.sparse_bsc, blocksize)


@function()
def smm(input: Any, mat: Any) -> Any:
    """sparse @ dense, sparse."""
    from .. import _sparse_ops

    return to_sparse(_sparse_ops.mm(input, mat))


@function()
def sspaddmm(input: Any, mat1: Any, mat2: Any, *more: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * mat1 @ mat2, with `input` and `mat1` sparse."""
    if more:
        names, given = ("input", "mat1", "mat2"), (input, mat1, mat2, *more)
        return call_with_factors(sspaddmm, "sspaddmm", names, given, beta=beta, alpha=alpha)
    from .. import _sparse_ops

    product = to_sparse(_sparse_ops.mm(mat1, mat2))
    left, right = (
        input._elements * input._elements.dtype.type(beta),
        product._elements * product._elements.dtype.type(alpha),
    )
    return _sparse().make(
        np.concatenate((input._places, product._places), 1),
        np.concatenate((left, right)),
        tuple(product.shape),
    )


@function(expose="function")
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> Any:
    """sparse @ dense, as a hybrid tensor of the rows that have elements."""
    from .. import _sparse_ops

    if out is not None:
        raise NotImplementedError("hspmm: out= is not supported")
    return _sparse_ops.hspmm(mat1, mat2)


@function(expose="function")
def spmm(input: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix."""
    return F.mm(input, mat2)


@function(expose="function")
def dsmm(input: Any, mat2: Any) -> Any:
    """The product of a dense and a sparse matrix."""
    return F.mm(input, mat2)


@function(expose="function")
def saddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * mat1 @ mat2, with `mat1` sparse."""
    from .. import _sparse_ops

    return _sparse_ops.addmm(input, mat1, mat2, beta, alpha)


function("hsmm", expose="function")(hspmm)


# ---------------------------------------------------------------------------------------------------- indices


@op(
    "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
    nondifferentiable=True,
)
def _convert_indices_from_coo_to_csr(self: np.ndarray, size: int, out_int32: bool) -> Any:
    """Where each of `size` rows begins among sorted row indices, and where the last one ends."""
    starts = np.searchsorted(self, np.arange(size + 1), side="left")
    return starts.astype(np.int32 if out_int32 else np.int64)


@op(
    "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False)"
    " -> Tensor",
    nondifferentiable=True,
)
def _convert_indices_from_csr_to_coo(
    crow_indices: np.ndarray, col_indices: np.ndarray, out_int32: bool, transpose: bool
) -> Any:
    """The row and the column of each element of a compressed matrix, or of each matrix of a batch."""
    counts = np.diff(crow_indices, axis=-1)
    n_rows = counts.shape[-1]
    batches = counts.reshape(-1, n_rows)
    rows = np.concatenate([np.repeat(np.arange(n_rows), row_counts) for row_counts in batches])
    parts = [rows, col_indices.reshape(-1)]
    if crow_indices.ndim > 1:
        places = np.unravel_index(
            np.repeat(np.arange(len(batches)), batches.sum(-1)), crow_indices.shape[:-1]
        )
        parts = [*places, *parts]
    if transpose:
        parts[-2:] = parts[:-3:-1]
    return np.stack(parts).astype(np.int32 if out_int32 else np.int64)
