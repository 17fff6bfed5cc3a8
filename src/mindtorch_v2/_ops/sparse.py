"""torch's functions for sparse COO tensors: constructors, conversions, and the methods of dense tensors that sparse ones share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import function
from ._namespace import functions as F
from ._warn import warn_once


def _as_tensor(data: Any, dtype: Any = None) -> Any:
    return data if isinstance(data, _dispatch.Tensor) else F.tensor(data, dtype=dtype)


@function(expose="function")
def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of `values` at `indices` (one column each); of zeros when only a size is given."""
    from .. import _sparse

    if check_invariants is None and not Invariants.chosen:
        warn_once(
            "Sparse invariant checks are implicitly disabled. Memory errors (e.g. SEGFAULT) will occur when operating on a sparse "
            "tensor which violates the invariants, but checks incur performance overhead. To silence this warning, explicitly opt in "
            "or out. See `torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance. "
        )
    if values is None:
        extent = tuple(indices) if size is None else tuple(size)
        tensor = _sparse.empty(extent, len(extent), (dtype or _dtype.Default.dtype)._np)
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
    if _dispatch.recorder is not None:
        from .sparse_steps import construct

        index_matrix = (
            index_tensor
            if index_tensor._array.dtype == np.int64 and index_tensor.ndim == 2
            else _dispatch.wrap(places)
        )
        tensor = construct(index_matrix, value_tensor, extent, size is not None, is_coalesced)
        if requires_grad:
            tensor = tensor.detach()
            tensor.requires_grad = True
        return tensor
    elements = value_tensor._array if value_tensor.ndim else value_tensor._array.reshape(1)
    tensor = _sparse.make(places, elements, extent, bool(is_coalesced))
    tensor = _sparse.record(
        "SparseCooTensorWithDimsAndTensorsBackward0",
        tensor,
        (value_tensor,),
        lambda g: (_sparse.values_at(g, tensor).reshape(value_tensor.shape),),
    )
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
        from .. import _sparse

        number = _sparse.keys(places, extent)
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
    from .. import _sparse

    if layout is not None and layout is not _dtype.sparse_coo:
        _no_layout(repr(layout).removeprefix("torch."))
    if _dispatch.recorder is not None and self.ndim:
        from . import sparse_steps

        if sparse_dim is None:
            return sparse_steps.to_sparse(self, layout=layout, blocksize=blocksize, dense_dim=dense_dim)
        if 0 < sparse_dim <= self.ndim:
            return sparse_steps.to_sparse_dims(self, sparse_dim)
    count = sparse_dim
    if count is None:
        count = self.ndim - (dense_dim or 0)
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
    tensor = _sparse.make(
        np.ascontiguousarray(places, np.int64), np.ascontiguousarray(elements), array.shape, True
    )
    name = "ToSparseBackward1" if sparse_dim is None else "ToSparseBackward0"
    return _sparse.record(name, tensor, (self,), lambda g: (g.to_dense() if g.is_sparse else g,))


@function(expose="method")
def to_sparse_coo(self: Any) -> Any:
    """The non-zero elements as a sparse COO tensor."""
    return to_sparse(self)


@function(expose="method")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """This tensor: it is dense."""
    return self if dtype is None else self.to(dtype)


@function(expose="method")
def sparse_mask(self: Any, mask: Any) -> Any:
    """The elements at the places of the sparse tensor `mask`, sparse."""
    from .. import _sparse

    return _sparse.sparse_mask(self, mask)


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


def _no_layout(name: str) -> None:
    raise NotImplementedError(f"{name} tensors are not supported: of the sparse layouts only sparse_coo is")


def _compressed(name: str, expose: str) -> None:
    layout = name.replace("to_", "").replace("_tensor", "")

    def refuse(*args: Any, **kwargs: Any) -> Any:
        _no_layout(layout)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refuse: of the sparse layouts only sparse_coo is supported."
    function(name, expose=expose)(refuse)


for _name in ("csr", "csc", "bsr", "bsc"):
    _compressed(f"sparse_{_name}_tensor", "function")
    _compressed(f"to_sparse_{_name}", "method")
_compressed("sparse_compressed_tensor", "function")


@function()
def smm(input: Any, mat: Any) -> Any:
    """sparse @ dense, sparse."""
    from .. import _sparse_ops

    return to_sparse(_sparse_ops.mm(input, mat))


@function()
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * input + alpha * mat1 @ mat2, with `input` and `mat1` sparse."""
    from .. import _sparse, _sparse_ops

    product = to_sparse(_sparse_ops.mm(mat1, mat2))
    left, right = (
        input._elements * input._elements.dtype.type(beta),
        product._elements * product._elements.dtype.type(alpha),
    )
    return _sparse.make(
        np.concatenate((input._places, product._places), 1),
        np.concatenate((left, right)),
        tuple(product.shape),
    )


@function(expose="function")
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> Any:
    """sparse @ dense, as a hybrid tensor of the rows that have elements."""
    from .. import _sparse_ops

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
