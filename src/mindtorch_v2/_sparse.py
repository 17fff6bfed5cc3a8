"""Sparse COO tensors: indices and values in, a tensor with `is_sparse` out, and elementwise ops.

The autograd nodes of sparse results are created here. Products and the entry point from the dispatcher are in `_sparse_ops`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _device, _dispatch, _dtype, _op_errors
from ._graph import RELEASED_TEXT, Node, attach, edge, grad_state, note_holder, storage_of
from ._size import Size
from ._tensor import Tensor

_new = _dispatch.new_tensor
_new_node = object.__new__
_wrap = _dispatch.wrap


def _op(name: str) -> Any:
    """A method that calls an op."""
    return _dispatch.OPS[name].entry


class _NoArray(AttributeError, NotImplementedError):
    """A sparse tensor has no array: what needs one is not implemented for sparse tensors."""


class SparseTensor(Tensor):
    """A tensor that stores only some elements: `_places` holds their indices (one column each), `_elements` their values."""

    __module__ = "mindtorch_v2"
    __slots__ = ("_places", "_elements", "_extent", "_coalesced", "_part_storages")
    is_sparse = True
    _is_sparse_layout = True
    _places: np.ndarray  # int64, (sparse dims, number of elements)
    _elements: np.ndarray  # (number of elements, *dense dims)
    _extent: tuple
    _coalesced: bool
    _part_storages: tuple  # of `_places` and `_elements`, once a tensor of them was needed

    def __getattr__(self, name: str) -> Any:
        if name == "_array":
            raise _NoArray("this operation is not there for sparse tensors; to_dense() gives a dense one")
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    # ------------------------------------------------------------------------------------------------ properties

    @property
    def shape(self) -> Size:
        return Size(self._extent)

    @property
    def dtype(self) -> _dtype.dtype:
        return _dtype.BY_NUM[self._elements.dtype.num]

    @property
    def device(self) -> _device.device:
        return _device.CPU

    @property
    def layout(self) -> _dtype.layout:
        return _dtype.sparse_coo

    @property
    def ndim(self) -> int:
        return len(self._extent)

    def dim(self) -> int:
        """How many dimensions."""
        return len(self._extent)

    ndimension = dim

    @property
    def itemsize(self) -> int:
        return self._elements.itemsize

    def numel(self) -> int:
        """How many elements a dense tensor of this size has."""
        return math.prod(self._extent)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: a sparse tensor has no strides."""
        return (0,) * self.ndim if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: elements are not stored in the order of the dimensions."""
        return False

    def contiguous(self, memory_format: Any = None) -> Any:
        """Refuse, as torch does."""
        raise RuntimeError("unsupported memory format option Contiguous")

    def data_ptr(self) -> int:
        """Refuse: there is no one storage."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self) -> Any:
        """Refuse: there is no one storage."""
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    storage = _typed_storage = untyped_storage

    def storage_offset(self) -> int:
        """Refuse: there is no one storage."""
        raise RuntimeError("sparse tensors do not have storage offset")

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Refuse, as torch does."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self) -> Any:
        """Refuse, as torch does."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.to_dense())

    def __len__(self) -> int:
        return self._extent[0]

    def item(self) -> Any:
        """The only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        _become(self, value)

    # ------------------------------------------------------------------------------------------------ its parts

    _indices = _op("_indices")
    _values = _op("_values")
    indices = _op("indices")
    values = _op("values")
    _nnz = _op("_nnz")
    sparse_dim = _dimI = _op("sparse_dim")  # noqa: N815  (torch's name)
    dense_dim = _dimV = _op("dense_dim")  # noqa: N815  (torch's name)
    is_coalesced = _op("is_coalesced")
    _coalesced_ = _op("_coalesced_")
    coalesce = _op("coalesce")
    to_dense = _op("to_dense")
    sparse_mask = _op("sparse_mask")
    t = _op("t")
    transpose = _op("transpose.int")

    def to_sparse(self, sparse_dim: int | None = None, **options: Any) -> Any:
        """This tensor."""
        if sparse_dim is not None and sparse_dim != self._places.shape[0]:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self._places.shape[0] is not supported"
            )
        return self

    to_sparse_coo = to_sparse

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        """Change the size, keeping the elements."""
        if self._places.shape[1] and (sparse_dim, dense_dim) != (
            self._places.shape[0],
            (self._elements.ndim - 1),
        ):
            raise RuntimeError(
                f"changing the number of sparse dimensions (from {self._places.shape[0]} to {sparse_dim}) on a non-empty sparse tensor is "
                "not supported."
            )
        self._extent = tuple(size)
        return self

    def sparse_resize_and_clear_(self, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        """Change the size and drop all elements."""
        _become(self, empty(tuple(size), sparse_dim, self._elements.dtype))
        return self

    # ------------------------------------------------------------------------------------------------ copies

    def detach(self) -> Any:
        """The same elements without history."""
        detached = make(self._places, self._elements, self._extent, self._coalesced)
        detached._part_storages = self._part_storages
        return detached

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """This tensor in another dtype."""
        from ._ops.copies import parse_to

        device, dtype, _, copy, _ = parse_to(args, kwargs)
        if device is not None and device.type != "cpu":
            raise NotImplementedError(f"sparse tensors are not there on device {device}")
        if dtype is None or dtype is self.dtype:
            return self.clone() if copy else self
        return _to_copy(self, dtype)

    def cpu(self, memory_format: Any = None) -> Any:
        """This tensor."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor's type, or this tensor in another dtype."""
        if dtype is None:
            return f"torch.sparse.{self.dtype._abbr}Tensor"
        if isinstance(dtype, _dtype.dtype):
            return self.to(dtype)
        from ._legacy import named

        return self.to((named(dtype) if isinstance(dtype, str) else dtype).dtype)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            if self._grad_fn is not None:
                raise RuntimeError(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
                )
            copy = make(self._places.copy(), self._elements.copy(), self._extent, self._coalesced)
            copy._rg = self._rg
            memo[id(self)] = copy
        return memo[id(self)]

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """The sum of all elements (dense), or over some dimensions (sparse, unless all of them)."""
        if dim is None:
            return _op("sum")(self, dtype=dtype)
        return _op("sum.dim_IntList")(self, dim, keepdim, dtype=dtype)

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        """The norm of all elements."""
        if dim is not None:
            raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must be empty")
        return self.coalesce().values().norm(2 if p == "fro" else p)

    def any(self) -> Any:
        """Whether some element is not zero."""
        return self.coalesce()._values().any()

    @property
    def T(self) -> Any:
        return self.permute(tuple(range(self.ndim - 1, -1, -1)))

    def permute(self, *dims: Any) -> Any:
        """The dimensions in another order; sparse and dense ones do not mix."""
        dims = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        return _op("permute")(self, dims)

    def __getitem__(self, index: Any) -> Any:
        result: Any = self
        for number in index if isinstance(index, tuple) else (index,):
            if not isinstance(number, int):
                raise _NoArray("sparse tensors are indexed by numbers only; to_dense() gives a dense one")
            result = _op("select.int")(result, 0, number) if result.is_sparse else result[number]
        return result

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """Take the elements of another sparse tensor."""
        if not src.is_sparse:
            raise RuntimeError(
                "copy_() between dense and sparse Tensors is not implemented! Found self type = "
                f"{self.type()} and src type = {src.type()}"
            )
        elements = src._elements.astype(self._elements.dtype, copy=True)
        _become(self, make(src._places.copy(), elements, src._extent, src._coalesced))
        return self


def _converter(name: str, dtype: _dtype.dtype) -> None:
    def convert(self: Any, memory_format: Any = None) -> Any:
        return self.to(dtype)

    convert.__name__ = name
    convert.__doc__ = f"This tensor as {dtype!r}."
    setattr(SparseTensor, name, convert)


for _name, _kind in (
    ("float", _dtype.float32), ("double", _dtype.float64), ("half", _dtype.float16), ("bfloat16", _dtype.bfloat16), ("int", _dtype.int32),
    ("long", _dtype.int64), ("short", _dtype.int16), ("char", _dtype.int8), ("byte", _dtype.uint8), ("bool", _dtype.bool_),
):  # fmt: skip
    _converter(_name, _kind)


# ---------------------------------------------------------------------------------------------------- construction


def part(self: Any, number: int) -> Tensor:
    """The indices (0) or the values (1) of a sparse tensor as a tensor. All tensors of one part share a storage."""
    tensor = _wrap(self._elements if number else self._places)
    storage = self._part_storages[number]
    if storage is None:
        storage, (places, elements) = storage_of(tensor), self._part_storages
        self._part_storages = (places, storage) if number else (storage, elements)
    tensor._storage = storage
    note_holder(tensor, tensor)
    return tensor


def with_values_node(self: Any, values: Any) -> Any:
    """The values of a sparse tensor, with their history."""
    return record("ValuesBackward0", values, (self,), lambda g: (_like(self, g),))


def with_dense_node(self: Any, dense: Any, masked_grad: Any) -> Any:
    """A dense tensor made of a sparse one, with its history."""
    to_dense_backward = _op("to_dense_backward")
    return record("ToDenseBackward0", dense, (self,), lambda g: (to_dense_backward(g, self, masked_grad),))


def of_parts(indices: Any, values: Any, extent: Any, is_coalesced: bool) -> Any:
    """A sparse tensor on the memory of two tensors, with its history."""
    tensor = make(indices._array, values._array, tuple(extent), is_coalesced)
    tensor._part_storages = storage_of(indices)._alias(), storage_of(values)._alias()
    return record(
        "SparseCooTensorWithDimsAndTensorsBackward0",
        tensor,
        (values,),
        lambda g: (values_at(g, tensor).reshape(values.shape),),
    )


def make(places: np.ndarray, elements: np.ndarray, extent: tuple, is_coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of checked parts."""
    tensor = _new(SparseTensor)
    tensor._places, tensor._elements, tensor._extent = places, elements, tuple(extent)
    tensor._coalesced = bool(is_coalesced) or places.shape[1] == 0
    tensor._part_storages = (None, None)
    return tensor


def empty(extent: tuple, sparse_dim: int, dtype: np.dtype) -> SparseTensor:
    """A sparse tensor without elements."""
    return make(np.empty((sparse_dim, 0), np.int64), np.empty((0, *extent[sparse_dim:]), dtype), extent, True)


def _become(self: Any, other: Any) -> None:
    self._places, self._elements = other._places, other._elements
    self._extent, self._coalesced, self._part_storages = (
        other._extent,
        other._coalesced,
        other._part_storages,
    )


def _with(self: Any, elements: np.ndarray) -> SparseTensor:
    return make(self._places, elements, self._extent, self._coalesced)


def _like(pattern: Any, values: Any) -> Any:
    """A gradient of values as a gradient of the sparse tensor."""
    gradient = make(pattern._places, values._array, pattern._extent, pattern._coalesced)
    return record(
        "SparseCooTensorWithDimsAndTensorsBackward0", gradient, (values,), lambda g: (values_at(g, gradient),)
    )


def record(name: str, result: Any, inputs: tuple, rule: Any) -> Any:
    """Give `result` a history: node `name`, whose `rule(gradient)` returns a gradient for each of `inputs`."""
    if not grad_state.enabled or not any(t._rg for t in inputs):
        return result
    node = _node(name)
    node.seq = grad_state.seq
    grad_state.seq += 1
    _dispatch.mark_node(node)
    node.next = tuple([edge(t) for t in inputs])
    node.rule = rule
    node.shapes, node.dtypes = tuple(result.shape), result.dtype._np
    attach(result, node)
    return result


def conj(value: Any) -> Any:
    """The conjugate of a number or of a complex tensor, dense or sparse; anything real as it is."""
    if not isinstance(value, Tensor):
        return value.conjugate()
    if not value.dtype.is_complex:
        return value
    if not value.is_sparse:
        return value.conj()
    result = make(value._places, np.conj(value._elements), value._extent, value._coalesced)
    return record("ConjBackward0", result, (value,), lambda g: (conj(g),))


class _SparseNode(Node):
    rule: Any = None

    def apply(self, *grads: Any) -> tuple:
        if self.rule is None:
            raise RuntimeError(RELEASED_TEXT)
        return tuple(self.rule(*grads))

    def release(self) -> None:
        self.released, self.rule = True, None


_NODES: dict[str, type] = {}


def _node(name: str) -> Any:
    if name not in _NODES:
        _NODES[name] = type(name, (_SparseNode,), {"__module__": "mindtorch_v2.autograd"})
    return _new_node(_NODES[name])


# ---------------------------------------------------------------------------------------------------- elements


def keys(places: np.ndarray, extent: tuple) -> np.ndarray:
    """One number for each column of indices, ordered as the indices are."""
    if not len(places):
        return np.zeros(places.shape[1], np.int64)
    numbers = places[0].copy()
    for row, n in zip(places[1:], extent[1 : len(places)]):
        numbers *= n
        numbers += row
    return numbers


def coalesced(self: Any) -> SparseTensor:
    """Every index once, in order; values at equal indices are added."""
    number = keys(self._places, self._extent)
    order = np.argsort(number, kind="stable")
    number, elements = number[order], self._elements[order]
    first = (
        np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
        if len(number)
        else np.empty(0, np.int64)
    )
    if len(first) != len(number):
        elements = _add_groups(elements, first)
    return make(self._places[:, order[first]], elements, self._extent, True)


def _add_groups(elements: np.ndarray, first: np.ndarray) -> np.ndarray:
    if elements.dtype.kind == "b":
        return np.logical_or.reduceat(elements, first, axis=0)
    if elements.dtype in _dtype.LOW_FLOATS:
        return np.add.reduceat(elements.astype(np.float32), first, axis=0).astype(elements.dtype)
    return np.add.reduceat(elements, first, axis=0, dtype=elements.dtype)


def add_to(target: np.ndarray, self: Any, alpha: Any) -> None:
    """target += alpha * self, for a dense target."""
    if not self._places.shape[1]:
        return
    parts = self if self._coalesced else coalesced(self)
    index = tuple(parts._places)
    elements = parts._elements if alpha == 1 else parts._elements * parts._elements.dtype.type(alpha)
    if target.dtype.kind == "b":
        target[index] |= elements
    else:
        target[index] += elements.astype(target.dtype, copy=False)


def sized_like(gradient: Any) -> Tensor:
    """A tensor of a sparse tensor's size, for code that reads only the size."""
    return _wrap(np.broadcast_to(np.zeros((), gradient._elements.dtype), gradient._extent))


def _recorded_gradients(gradients: Any) -> tuple:
    """Gradients, some of which may be sparse, as a profile shows them: those by their size."""
    return tuple([sized_like(g) if g is not None and g._is_sparse_layout else g for g in gradients])


_dispatch.recorded_gradients = _recorded_gradients


def values_at(source: Any, pattern: Any) -> Tensor:
    """The elements of `source` (dense or sparse) at the places of `pattern`."""
    if not source.is_sparse:
        if not pattern._places.shape[0]:
            return source.unsqueeze(0)
        return source[tuple(_wrap(row) for row in pattern._places)]
    if source._places is pattern._places or (
        source._places.shape == pattern._places.shape and np.array_equal(source._places, pattern._places)
    ):
        return record("ValuesBackward0", _wrap(source._elements), (source,), lambda g: (_like(source, g),))
    parts = source if source._coalesced else coalesced(source)
    have, wanted = keys(parts._places, parts._extent), keys(pattern._places, pattern._extent)
    values = np.zeros((len(wanted), *parts._elements.shape[1:]), parts._elements.dtype)
    if len(have):
        spot = np.minimum(np.searchsorted(have, wanted), len(have) - 1)
        matches = have[spot] == wanted
        values[matches] = parts._elements[spot[matches]]
    return _wrap(values)


sparse_mask = _op("sparse_mask")


def masked(self: Any, mask: Any) -> Any:
    """The result of `sparse_mask`."""
    if tuple(self.shape) != tuple(mask.shape):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}"
        )
    result = make(mask._places, _array_at(self, mask), mask._extent, mask._coalesced)
    return record(
        "SparseMaskBackward0",
        result,
        (self,),
        lambda g: (sparse_mask(g, mask) if g.is_sparse else g * _ones_of(mask),),
    )


def _array_at(source: Any, mask: Any) -> np.ndarray:
    """The elements of `source` at the places of `mask`, as an array."""
    if source.is_sparse:
        with _quiet():
            return np.ascontiguousarray(values_at(_plain(source), mask)._array)
    if not len(mask._places):
        return source._array[None].copy()
    return np.ascontiguousarray(source._array[tuple(mask._places)])


def _plain(self: Any) -> Any:
    return make(self._places, self._elements, self._extent, self._coalesced)


def _ones_of(mask: Any) -> Any:
    return _with(mask, np.ones_like(mask._elements)).to_dense()


class _quiet:
    def __enter__(self) -> None:
        self.enabled, grad_state.enabled = grad_state.enabled, False

    def __exit__(self, *args: Any) -> None:
        grad_state.enabled = self.enabled


# ---------------------------------------------------------------------------------------------------- ops


def total(self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum, over all or some dimensions."""
    source = self if dtype is None else self.to(dtype)
    if source.dtype._rank < 2 and dtype is None and source.dtype is not _dtype.int64:
        source = source.to(_dtype.int64)
    if dim is None or (isinstance(dim, (tuple, list)) and len(dim) == 0):
        result = _wrap(np.asarray(source._elements.sum(dtype=source._elements.dtype)))
        return record("SumBackward0", result, (source,), lambda g: (g.expand(source.shape),))
    dims = sorted({d % self.ndim for d in (dim if isinstance(dim, (tuple, list)) else (dim,))})
    sparse = source._places.shape[0]
    kept = [d for d in range(sparse) if d not in dims]
    within = tuple(d - sparse + 1 for d in dims if d >= sparse)
    elements = source._elements.sum(within) if within else source._elements
    extent = tuple(n for d, n in enumerate(self._extent) if d not in dims)
    if not kept:
        result = _wrap(np.asarray(elements.sum(0, dtype=source._elements.dtype)))
    else:
        result = coalesced(make(np.ascontiguousarray(source._places[kept]), elements, extent))

    def rule(g: Any) -> tuple:
        whole = (g.to_dense() if g.is_sparse else g).reshape(
            [1 if d in dims else n for d, n in enumerate(source._extent)]
        )
        return (sparse_mask(whole.expand(source._extent), source),)

    result = record("SparseSumBackward0", result, (source,), rule)
    if keepdim:
        for d in dims:
            result = _unsqueeze(result, d) if result.is_sparse else result.unsqueeze(d)
    return result


def _add_sparse(a: Any, b: Any, alpha: Any) -> SparseTensor:
    if a._extent != b._extent:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a._extent)} != {list(b._extent)}"
        )
    kind = _dtype.promote_types(a.dtype, b.dtype)._np
    left, right = a._elements.astype(kind, copy=False), b._elements.astype(kind, copy=False)
    if alpha != 1:
        right = right * kind.type(alpha)
    joined = (
        a._elements.flags.c_contiguous and b._elements.flags.c_contiguous
    )  # torch concatenates if the values are not contiguous
    if joined and a._places.shape == b._places.shape and np.array_equal(a._places, b._places):
        return make(a._places, left + right, a._extent, a._coalesced and b._coalesced)
    if a._places.shape[0] != b._places.shape[0]:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {a._places.shape[0]} != {b._places.shape[0]}"
        )
    result = make(np.concatenate((a._places, b._places), 1), np.concatenate((left, right)), a._extent)
    return coalesced(result) if a._coalesced and b._coalesced else result


def _add(self: Any, other: Any, alpha: Any = 1) -> Any:
    if not isinstance(other, Tensor) or not other.is_sparse:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if self.is_sparse:
        result: Any = _add_sparse(self, other, alpha)
    else:
        _same_size(self, other)
        kind = _dtype.promote_types(self.dtype, other.dtype)._np
        array = self._array.astype(kind, copy=True)
        add_to(array, other, alpha)
        result = _wrap(array)
    return record("AddBackward0", result, (self, other), lambda g: (g, g if alpha == 1 else g * conj(alpha)))


def _same_size(self: Any, other: Any) -> None:
    if tuple(self.shape) != tuple(other.shape):
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while other has size "
            f"{list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _add_(self: Any, other: Any, alpha: Any = 1) -> Any:
    if not isinstance(other, Tensor) or not other.is_sparse:
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if grad_state.enabled and (self._rg or other._rg):
        raise RuntimeError(
            "in-place additions of sparse tensors are not recorded for gradients; use the out-of-place one"
        )
    if self.is_sparse:
        result = _add_sparse(self, other, alpha)
        _become(self, result)
        return self
    _same_size(self, other)
    add_to(self._array, other, alpha)
    storage_of(self)._version += 1
    return self


def _sub(self: Any, other: Any, alpha: Any = 1) -> Any:
    return _add(self, other, -alpha)


def _scaled(self: Any, elements: Any) -> Any:
    return _with(self, np.ascontiguousarray(elements))


def _number(value: Any) -> bool:
    return not isinstance(value, Tensor) or (not value.is_sparse and value.ndim == 0)


def _mul(self: Any, other: Any) -> Any:
    if not self.is_sparse:
        self, other = other, self
    if _number(other):
        with _quiet():
            elements = _dispatch.OPS["mul.Tensor"].run(_wrap(self._elements), other)._array
        inputs = (self, other) if isinstance(other, Tensor) else (self,)
        result = _scaled(self, elements)
        return record(
            "MulBackward0",
            result,
            inputs,
            lambda g: (g * conj(other), *(() if len(inputs) == 1 else ((g * conj(self)).sum(),))),
        )
    if other.is_sparse:
        left, right = (
            self if self._coalesced else coalesced(self),
            other if other._coalesced else coalesced(other),
        )
        with _quiet():
            common = np.isin(keys(left._places, left._extent), keys(right._places, right._extent))
            part = make(left._places[:, common], left._elements[common], left._extent, True)
            elements = (_wrap(part._elements) * values_at(right, part))._array
        result = _scaled(part, elements)
    else:
        factors = np.broadcast_to(_broadcast_array(other, self), self._extent)[tuple(self._places)]
        with _quiet():
            elements = _dispatch.OPS["mul.Tensor"].run(_wrap(self._elements), _wrap(factors))._array
        result = _scaled(self, elements)
    first, second = self, other
    return record(
        "MulBackward0",
        result,
        (first, second),
        lambda g: (
            g * conj(second),
            (g * conj(first)).to_dense() if not second.is_sparse else g * conj(first),
        ),
    )


def _broadcast_array(other: Any, self: Any) -> np.ndarray:
    text = _op_errors.broadcast_text([tuple(other.shape), tuple(self.shape)])
    if text is not None:
        raise RuntimeError(text)
    return other._array


def _div(self: Any, other: Any) -> Any:
    if not self.is_sparse or not _number(other):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got a sparse or larger divisor)"
        )
    with _quiet():
        elements = (_wrap(self._elements) / other)._array
    return record("DivBackward0", _scaled(self, elements), (self,), lambda g: (g / conj(other),))


def _in_place(function: Any) -> Any:
    def write(self: Any, *args: Any) -> Any:
        if grad_state.enabled and self._rg:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        with _quiet():
            result = function(self, *args)
        _become(
            self,
            make(
                result._places,
                result._elements.astype(self._elements.dtype, copy=False),
                result._extent,
                result._coalesced,
            ),
        )
        return self

    return write


def _neg(self: Any) -> Any:
    return record("NegBackward0", _with(self, -self._elements), (self,), lambda g: (-g,))


def _clone(self: Any, memory_format: Any = None) -> Any:
    copy = make(self._places.copy(), self._elements.copy(), self._extent, self._coalesced)
    return record("CloneBackward0", copy, (self,), lambda g: (g,))


def _to_copy(self: Any, dtype: Any = None, *rest: Any) -> Any:
    kind = self.dtype if dtype is None else dtype
    with _quiet():
        elements = _wrap(self._elements).to(kind)._array
    source = self.dtype
    return record("ToCopyBackward0", _with(self, elements), (self,), lambda g: (g.to(source),))


def _zero_(self: Any) -> Any:
    _become(self, empty(self._extent, self._places.shape[0], self._elements.dtype))
    return self


def _zeros_like(self: Any, dtype: Any = None, *rest: Any) -> Any:
    return empty(self._extent, self._places.shape[0], (dtype or self.dtype)._np)


def _permute(self: Any, dims: tuple, node: str = "PermuteBackward0") -> Any:
    dims = tuple(d % self.ndim for d in dims)
    sparse = self._places.shape[0]
    if any((d < sparse) != (place < sparse) for place, d in enumerate(dims)):
        raise RuntimeError(
            "transpose: transposed dimensions must be in the same kind, sparse or dense, for sparse tensors"
        )
    back = tuple(int(d) for d in np.argsort(dims))
    places = np.ascontiguousarray(self._places[list(dims[:sparse])])
    elements = self._elements.transpose((0, *[d - sparse + 1 for d in dims[sparse:]]))
    extent = tuple(self._extent[d] for d in dims)
    result = make(places, elements, extent, self._coalesced and dims[:sparse] == tuple(range(sparse)))
    return record(node, result, (self,), lambda g: (g.permute(back),))


def _transpose(self: Any, dim0: int, dim1: int) -> Any:
    dims = list(range(self.ndim))
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return _permute(self, tuple(dims), "TransposeBackward0")


def _t(self: Any) -> Any:
    if self.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self._places.shape[0]} sparse and "
            f"{(self._elements.ndim - 1)} dense dimensions"
        )
    if self.ndim < 2:
        return self
    return _permute(self, (1, 0), "TBackward0")


def _unsqueeze(self: Any, dim: int) -> Any:
    dim %= self.ndim + 1
    extent = (*self._extent[:dim], 1, *self._extent[dim:])
    if dim <= self._places.shape[0]:
        return make(np.insert(self._places, dim, 0, axis=0), self._elements, extent, self._coalesced)
    return make(
        self._places, np.expand_dims(self._elements, dim - self._places.shape[0] + 1), extent, self._coalesced
    )


def _select(self: Any, dim: int, index: int) -> Any:
    dim %= self.ndim
    n = self._extent[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self._extent)} at dimension {dim}"
        )
    index %= n
    sparse, extent = self._places.shape[0], (*self._extent[:dim], *self._extent[dim + 1 :])
    if dim >= sparse:
        return make(
            self._places,
            np.ascontiguousarray(self._elements.take(index, dim - sparse + 1)),
            extent,
            self._coalesced,
        )
    chosen = self._places[dim] == index
    if sparse == 1:
        return _wrap(np.asarray(self._elements[chosen].sum(0, dtype=self._elements.dtype)))
    return make(np.delete(self._places[:, chosen], dim, 0), self._elements[chosen], extent, self._coalesced)
