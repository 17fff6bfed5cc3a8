"""The inner ops that a profile shows for sparse tensors: queries of their parts, and the steps inside constructors, sums and products.

The bodies here run only while recording; results come from `_sparse`, which is imported with the first sparse tensor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _dispatch, _dtype
from .._dispatch import OPS, composite, op, storage_of, wrap
from ._namespace import functions as F
from .linalg_kernels import step, zeros
from .pointwise import flops_of_self


def _sparse() -> Any:
    from .. import _sparse as module

    return module


class quiet:
    """Disables gradients, for what ops call below autograd."""

    def __enter__(self) -> None:
        state = _dispatch.grad_state
        self.enabled, state.enabled = state.enabled, False

    def __exit__(self, *args: Any) -> None:
        _dispatch.grad_state.enabled = self.enabled


# ---------------------------------------------------------------------------------------------------- queries


def part(self: Any, number: int) -> Any:
    """The indices (0) or the values (1) of a sparse tensor, as a tensor of the same memory."""
    array = self._elements if number else self._places
    tensor = wrap(array)
    if self._part_tensors is None or not _holds(self._part_tensors[number]._array, array):
        self._part_tensors = wrap(self._places), wrap(self._elements)  # all callers share this memory
    tensor._storage = storage_of(self._part_tensors[number])
    return tensor


def _holds(whole: Any, array: Any) -> bool:
    return array is whole or array.base is whole or array.base is whole.base is not None


def _ask(text: str, answer: Any) -> None:
    op(text, expose="no", on="tensors", nondifferentiable=True)(answer)


_ask("aten::_nnz(Tensor self) -> int", lambda self: self._places.shape[1])
_ask("aten::sparse_dim(Tensor self) -> int", lambda self: self._places.shape[0])
_ask("aten::dense_dim(Tensor self) -> int", lambda self: self._elements.ndim - 1)
_ask("aten::is_coalesced(Tensor self) -> bool", lambda self: self._coalesced)
_ask("aten::_indices(Tensor(a) self) -> Tensor(a)", lambda self: part(self, 0))
_ask("aten::_values(Tensor(a) self) -> Tensor(a)", lambda self: part(self, 1))


@composite("aten::_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", expose="no")
def _coalesced_(self: Any, coalesced: bool) -> Any:
    self._coalesced = coalesced
    return self


def ask(self: Any, *names: str) -> None:
    """Record torch's queries of a tensor, in order."""
    for name in names:
        _dispatch.record(OPS[name], self)


@composite("aten::indices(Tensor(a) self) -> Tensor(a)", expose="no")
def indices(self: Any) -> Any:
    with quiet():
        ask(self, "is_coalesced")
        return OPS["alias"].entry(part(self, 0))


@composite("aten::values(Tensor(a) self) -> Tensor(a)", expose="no")
def values(self: Any) -> Any:
    with quiet():
        ask(self, "is_coalesced")
        tensor = part(self, 1)
        OPS["alias"].entry(tensor)
    return _sparse().with_values_node(self, tensor)


# ---------------------------------------------------------------------------------------------------- constructors


def _blank(dtype: Any, more: int = 0) -> None:
    """Record the empty parts that a new sparse tensor starts with."""
    places, elements = F.empty((1, 0), dtype=_dtype.int64), F.empty((0,), dtype=dtype)
    elements.resize_((0,))
    places.resize_((1, 0))
    for _ in range(more):
        F.empty((0,), dtype=dtype)


_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


@composite(
    "aten::_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, "
    f"{_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def with_dims(
    sparse_dim: int, dense_dim: int, size: Any, indices: Any, values: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any,
    is_coalesced: Any,
) -> Any:  # fmt: skip
    with quiet():
        _blank(values.dtype, 0)
    if values._rg and _dispatch.grad_state.enabled:
        with quiet():
            for _ in range(2):
                F.empty((0,), dtype=values.dtype)
    return _sparse().of_parts(indices, values, size, bool(is_coalesced))


def _with_dims(indices: Any, values: Any, size: tuple, is_coalesced: Any = None) -> Any:
    count = indices.shape[0]
    return with_dims(count, max(values.ndim - 1, 0), size, indices, values, is_coalesced=is_coalesced)


@composite(
    f"aten::sparse_coo_tensor.indices_size(Tensor indices, Tensor values, SymInt[] size, *, {_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def of_size(
    indices: Any,
    values: Any,
    size: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    is_coalesced: Any,
) -> Any:
    return _with_dims(indices, values, size, is_coalesced)


@composite(
    f"aten::sparse_coo_tensor.indices(Tensor indices, Tensor values, *, {_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def of_any_size(
    indices: Any, values: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, is_coalesced: Any
) -> Any:
    least = F.min(indices, 1)[0] if indices.numel() else None
    size = [0] * indices.shape[0]
    if least is not None:
        most = F.add_(F.max(indices, 1)[0], 1)
        for bound in (least, most):
            OPS["to.dtype_layout"].entry(bound, dtype=bound.dtype)
        size = most._array.tolist()
    return _with_dims(indices, values, (*size, *values.shape[1:]), is_coalesced)


@composite(
    f"aten::_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, {_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    expose="no",
)
def unsafe(
    indices: Any,
    values: Any,
    size: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    is_coalesced: Any,
) -> Any:
    return _with_dims(indices, values, size, is_coalesced)


def construct(indices: Any, values: Any, size: Any, has_size: bool, is_coalesced: Any) -> Any:
    """torch.sparse_coo_tensor of tensors, while recording."""
    if not values.ndim:
        values = values.reshape(1)
    moved = [OPS["to.device"].entry(t, device=t.device, dtype=t.dtype) for t in (values, indices)]
    if has_size:
        return of_size(moved[1], moved[0], size, is_coalesced=is_coalesced)
    return of_any_size(moved[1], moved[0], is_coalesced=is_coalesced)


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
        return unsafe(
            F.empty((1, 0), dtype=_dtype.int64), F.empty((0, width), dtype=grad.dtype), (num_weights, width)
        )
    places = F.reshape(indices, (1, -1))
    rows = F.reshape(grad, (-1, width))
    places = OPS["to.dtype"].entry(places, _dtype.int64)
    return unsafe(places, rows, (num_weights, width))


# ---------------------------------------------------------------------------------------------------- to dense and back


@composite(
    "aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", expose="no"
)
def to_dense(self: Any, dtype: Any, masked_grad: Any) -> Any:
    return _to_dense(self, dtype, masked_grad)


@composite(
    "aten::_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", expose="no"
)
def _to_dense(self: Any, dtype: Any, masked_grad: Any) -> Any:
    with quiet():
        dense = F.zeros(self._extent, dtype=self.dtype)
        OPS["add_.Tensor"].entry(dense, self)
    dense = _sparse().with_dense_node(self, dense, masked_grad)
    return dense if dtype is None else dense.to(dtype)


@step(
    "aten::add.sparse(Tensor self, Tensor other, Scalar alpha, Tensor out) -> Tensor(a!)", flops=flops_of_self
)
def _add_into(self: Any, other: Any, alpha: Any, out: Any) -> Any:
    _sized(out, self, None)
    ask(other, "_nnz", "sparse_dim", "_values", "is_coalesced", "_indices", "sparse_dim", "_nnz")
    return out


@step(
    "aten::resize_as_.sparse(Tensor self, Tensor the_template, MemoryFormat? memory_format) -> Tensor(a!)",
    plain=True,
)
def _sized(self: Any, the_template: Any, memory_format: Any) -> Any:
    if not self.is_sparse:
        return _same_size(self, tuple(the_template.shape), None)
    ask(self, "sparse_dim")
    ask(the_template, "sparse_dim")
    ask(self, "dense_dim")
    ask(the_template, "dense_dim")
    return self


@step("aten::resize_.same(Tensor self, SymInt[] size, MemoryFormat? memory_format) -> Tensor(a!)")
def _same_size(self: Any, size: Any, memory_format: Any) -> Any:
    return self


@step(
    "aten::resize_as_.fresh(Tensor self, Tensor the_template, MemoryFormat? memory_format) -> Tensor(a!)",
    plain=True,
)
def _sized_first(self: Any, the_template: Any, memory_format: Any) -> Any:
    _dispatch.record(OPS["sparse_dim"], self)
    ask(the_template, "sparse_dim", "dense_dim", "sparse_dim")
    _blank_resized(the_template.dtype)
    return self


def _blank_resized(dtype: Any) -> None:
    wrap(np.empty(0, dtype._np)).resize_((0,))
    wrap(np.empty((1, 0), np.int64)).resize_((1, 0))


def _join(self: Any, other: Any, result: Any) -> None:
    """The steps of concatenating the elements of two sparse tensors."""
    for tensor, name in ((self, "_values"), (other, "_values"), (self, "_nnz"), (other, "_nnz")):
        ask(tensor, name)
    ask(self, "is_coalesced", "sparse_dim", "_indices", "sparse_dim")
    count = self._places.shape[1] + other._places.shape[1]
    places = F.empty((len(self._places), count), dtype=_dtype.int64)
    ask(self, "_values")
    ask(other, "_values")
    elements = F.zero_(F.empty((count, *result._elements.shape[1:]), dtype=result.dtype))
    ask(self, "_indices")
    ask(other, "_indices")
    kept = result._places.shape[1]
    places._array[:, :kept], elements._array[:kept] = result._places, result._elements
    places.narrow(1, 0, kept)
    elements.narrow(0, 0, kept)
    result._part_tensors = places, elements
    result._places, result._elements = places._array[:, :kept], elements._array[:kept]
    _dispatch.record(OPS["_coalesced_"], result, result._coalesced)


def _compare_dims(self: Any, other: Any) -> None:
    for name in ("_nnz", "sparse_dim", "dense_dim"):
        ask(self, name)
        ask(other, name)


def show_add_sparse(self: Any, other: Any, result: Any) -> None:
    """sparse + sparse."""
    with quiet():
        F.empty((0,), dtype=self.dtype)
        _compare_dims(self, other)
        blank = _sparse().empty((0,), 1, self._elements.dtype)
        _sized_first(blank, self, None)
        _join(self, other, result)


@step(
    "aten::add.joined(Tensor self, Tensor other, Scalar alpha, Tensor out) -> Tensor(a!)",
    plain=True,
    flops=flops_of_self,
)
def _join_into(self: Any, other: Any, alpha: Any, out: Any) -> Any:
    _compare_dims(self, other)
    _sized(self, other, None)
    result = out._joined
    _join(self, other, result)
    _sparse()._become(out, result)
    return out


def show_add_sparse_in_place(self: Any, other: Any, alpha: Any, result: Any) -> None:
    """sparse += sparse."""
    with quiet():
        self._joined = result
        _join_into(self, other, alpha, self)
        del self._joined


def sized_like(gradient: Any) -> Any:
    """A tensor of a sparse tensor's size, for code that reads only the size."""
    return wrap(np.broadcast_to(np.zeros((), gradient._elements.dtype), gradient._extent))


def accumulated(gradient: Any) -> Any:
    """A sparse gradient as a leaf stores it."""
    with quiet():
        ask(gradient, "_indices", "_values")
        if not gradient._elements.flags.c_contiguous or not gradient._places.flags.c_contiguous:
            return OPS["clone"].entry(gradient)
        ask(gradient, "_indices", "_values", "_values", "_indices")
        return unsafe(
            part(gradient, 0), part(gradient, 1), gradient._extent, is_coalesced=gradient._coalesced
        )


def show_add_in_place(self: Any, other: Any, alpha: Any) -> None:
    """dense += sparse."""
    with quiet():
        _add_into(self, other, alpha, self)


def show_add_dense(self: Any, other: Any, result: Any) -> Any:
    """dense + sparse: the memory of the result."""
    with quiet():
        target = resized_as(F.empty((0,), dtype=result.dtype), result)
        ask(other, "_nnz", "sparse_dim")
        F.copy_(target, self)
        ask(other, "_values", "is_coalesced", "_indices", "sparse_dim", "_nnz")
    np.copyto(target._array, result._array)
    return target


def resized_as(buffer: Any, template: Any) -> Any:
    """An output that gets the size of another."""
    from ._shown import sized_as

    return sized_as(buffer, template)


@composite("aten::coalesce(Tensor(a) self) -> Tensor(a)", expose="no")
def coalesce(self: Any) -> Any:
    _dispatch.record(OPS["is_coalesced"], self)
    if self._coalesced:
        return self
    return _coalesce(self)


@composite("aten::_coalesce(Tensor self) -> Tensor", expose="no")
def _coalesce(self: Any) -> Any:
    module = _sparse()
    with quiet():
        ask(self, "is_coalesced", "_nnz", "_indices", "_values", "sparse_dim", "dense_dim", "_nnz")
        count, dims = self._places.shape[1], self._places.shape[0]
        if dims == 1:
            F.squeeze(part(self, 0), 0)
        else:
            F.arange(count)
        _blank(self.dtype)
        plain = module.coalesced(self)
        places = F.empty((dims, count), dtype=_dtype.int64)
        elements = F.empty(self._elements.shape, dtype=self.dtype)
        F.sort(wrap(module.keys(self._places, self._extent)))
        kept = plain._places.shape[1]
        places._array[:, :kept], elements._array[:kept] = plain._places, plain._elements
        result = module.make(places._array[:, :kept], elements._array[:kept], self._extent, True)
        result._part_tensors = places, elements
        _dispatch.record(OPS["_coalesced_"], result, True)
        places.narrow(1, 0, kept)
        elements.narrow(0, 0, kept)
    return module.with_node("CoalesceBackward0", result, self)


# ---------------------------------------------------------------------------------------------------- products


@composite("aten::_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", expose="no")
def sparse_mm(sparse: Any, dense: Any) -> Any:
    blank = zeros((sparse.shape[0], dense.shape[1]), dense.dtype)
    return sparse_addmm(blank, sparse, dense, beta=0, alpha=1)


@composite(
    "aten::_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    expose="no",
)
def sparse_addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    with quiet():
        product = OPS["addmm"].entry(self, mat1, mat2, beta=beta, alpha=alpha)
    from .. import _sparse_ops

    return _sparse_ops.with_product_node(product, self, mat1, mat2, beta, alpha)


def show_addmm(mat: Any, sparse: Any, dense: Any, beta: Any, array: np.ndarray) -> Any:
    """The memory of beta * mat + alpha * sparse @ dense."""
    from ._shown import given_size

    with quiet():
        out = F.empty((0,), dtype=dense.dtype)
        ask(sparse, "sparse_dim", "dense_dim")
        target = given_size(out, array.shape)
        ask(sparse, "_nnz", "_indices", "_values")
        if beta == 0:
            F.zero_(target)
        elif beta == 1:
            if target is not mat:
                F.copy_(target, mat)
        else:
            _scaled_into(mat, beta, target)
    np.copyto(target._array, array)
    return target


@step("aten::mul.scaled(Tensor self, Tensor other, Tensor out) -> Tensor(a!)")
def _mul_into(self: Any, other: Any, out: Any) -> Any:
    return out


def _scaled_into(mat: Any, beta: Any, out: Any) -> None:
    _mul_into(mat, wrap(np.array(beta, mat._array.dtype)), out)


# ---------------------------------------------------------------------------------------------------- copies


def show_clone(self: Any, result: Any) -> None:
    """The steps of a copy; `result` gets the memory of the copied parts."""
    ask(self, "dense_dim", "sparse_dim")
    for _ in range(4):
        F.empty((0,), dtype=self.dtype)
    ask(self, "_values", "_indices", "_values")
    elements = OPS["to.dtype_layout"].entry(part(self, 1), dtype=self.dtype, copy=True)
    ask(self, "_indices")
    places = OPS["to.dtype_layout"].entry(part(self, 0), dtype=_dtype.int64, copy=True)
    result._part_tensors = places, elements
    result._places, result._elements = places._array, elements._array
    ask(self, "is_coalesced")
    _dispatch.record(OPS["_coalesced_"], result, self._coalesced)


def show_transpose(self: Any, dim0: int, dim1: int, result: Any) -> None:
    """The steps of swapping two sparse dimensions: a copy whose rows of indices change places."""
    values = result._places, result._coalesced
    with quiet():
        copied = OPS["clone"].entry(self)
        ask(copied, "sparse_dim", "_indices", "_indices")
        places = part(copied, 0)
        rows = F.select(places, 0, dim0), F.select(places, 0, dim1)
        spare = F.zeros_like(rows[0], memory_format=_dtype.contiguous_format)
        F.copy_(spare, rows[0])
        F.copy_(rows[0], rows[1])
        F.copy_(rows[1], spare)
        result._part_tensors = copied._part_tensors
        if copied._part_tensors is not None:
            np.copyto(copied._part_tensors[0]._array, values[0])
            result._places, result._elements = copied._part_tensors[0]._array, copied._part_tensors[1]._array
        _dispatch.record(OPS["_coalesced_"], copied, values[1])
        result._coalesced = values[1]
        ask(copied, "_values", "_indices")


def show_scaled(self: Any, result: Any) -> None:
    """The steps of a sparse tensor times a number."""
    with quiet():
        F.empty((0,), dtype=self.dtype)
        ask(self, "_nnz", "sparse_dim", "dense_dim", "_indices", "_values")
        places = F.clone(part(self, 0))
        _finish(self, result, places)


def _finish(self: Any, result: Any, places: Any) -> None:
    target = _scaled_values(part(self, 1), wrap(result._elements))
    ask(self, "_nnz")
    places.narrow(1, 0, places.shape[1])
    target.narrow(0, 0, target.shape[0])
    result._part_tensors = places, target
    result._places, result._elements = places._array, target._array
    ask(self, "is_coalesced")
    _dispatch.record(OPS["_coalesced_"], result, self._coalesced)


@step("aten::mul.values(Tensor self, Tensor other) -> Tensor")
def _scaled_values(self: Any, other: Any) -> Any:
    return wrap(other._array.copy())


# ---------------------------------------------------------------------------------------------------- masks and sums


@composite("aten::sparse_mask(Tensor self, Tensor mask) -> Tensor", expose="no")
def sparse_mask(self: Any, mask: Any) -> Any:
    return _sparse().masked(self, mask)


def show_mask(self: Any, mask: Any, result: Any) -> None:
    """dense elements at the places of a sparse tensor."""
    with quiet():
        ask(mask, "_nnz", "_values")
        ones = OPS["expand_as"].entry(F.ones((1,), dtype=self.dtype), part(mask, 1))
        ask(mask, "_indices")
        pattern = of_size(part(mask, 0), ones, mask._extent)
        ask(mask, "is_coalesced")
        _dispatch.record(OPS["_coalesced_"], pattern, mask._coalesced)
        pattern._product = result
        _mask_product(pattern, self)
        _to_same_dtype(result, result.dtype, False, False, None)


@step(
    "aten::to.kept(Tensor(a) self, ScalarType dtype, bool non_blocking, bool copy, MemoryFormat? memory_format) -> Tensor(a)",
    plain=True,
)
def _to_same_dtype(self: Any, dtype: Any, non_blocking: bool, copy: bool, memory_format: Any) -> Any:
    return self


@composite(
    "aten::mul.masked(Tensor self, Tensor other) -> Tensor",
    expose="no",
    flops=flops_of_self,
)
def _mul_mask(self: Any, other: Any) -> Any:
    result = self._product
    _mul_parts(self, other, result)
    return result


def show_mul_dense(self: Any, other: Any, result: Any) -> None:
    """sparse * dense."""
    with quiet():
        _mul_parts(self, other, result)


def _mul_parts(self: Any, other: Any, result: Any) -> None:
    F.empty((0,), dtype=other.dtype)
    ask(self, "_nnz", "sparse_dim", "dense_dim", "_indices", "_values")
    rows = [F.select(part(self, 0), 0, d) for d in range(self._places.shape[0])]
    gathered = F.index(F.expand(other, self._extent), rows)
    places = F.clone(part(self, 0))
    ask(self, "_nnz")
    places.narrow(1, 0, places.shape[1])
    gathered.narrow(0, 0, gathered.shape[0])
    np.copyto(gathered._array, result._elements)
    result._part_tensors = places, gathered
    result._places, result._elements = places._array, gathered._array
    ask(self, "is_coalesced")
    _dispatch.record(OPS["_coalesced_"], result, self._coalesced)


def _mask_product(pattern: Any, dense: Any) -> None:
    _dispatch.record(_mul_mask.op, pattern, dense)


@composite(
    "aten::to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor", expose="no"
)
def to_dense_backward(grad: Any, input: Any, masked_grad: Any) -> Any:
    return _sparse().sparse_mask(grad, coalesce(input))


@composite("aten::_sparse_sum(Tensor input) -> Tensor", expose="no")
def sparse_sum(input: Any) -> Any:
    return F.sum(values(coalesce(input)))


@composite("aten::_sparse_sum.dim(Tensor input, int[1] dim) -> Tensor", expose="no")
def sparse_sum_dims(input: Any, dim: Any) -> Any:
    return _sparse().total(input, dim)


def show_sum(self: Any, kept: list, extent: tuple) -> Any:
    """The sum over some of the sparse dimensions: one element for each remaining index."""
    with quiet():
        ask(self, "_indices", "_values", "sparse_dim")
        elements = F.clone(part(self, 1), memory_format=_dtype.contiguous_format)
        ask(self, "_nnz")
        places = F.empty((len(kept), self._places.shape[1]), dtype=_dtype.int64)
        for row, source in enumerate(kept):
            F.copy_(F.select(places, 0, row), F.select(part(self, 0), 0, source))
        return coalesce(_with_dims(places, elements, extent, False))


@composite(
    "aten::to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    expose="no",
)
def to_sparse(self: Any, layout: Any, blocksize: Any, dense_dim: Any) -> Any:
    return _to_sparse(self, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


@composite(
    "aten::_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor",
    expose="no",
)
def _to_sparse(self: Any, layout: Any, blocksize: Any, dense_dim: Any) -> Any:
    count = self.ndim - (dense_dim or 0)
    with quiet():
        result = to_sparse_dims(self, count)
    return _sparse().with_node("ToSparseBackward1", result, self)


@composite("aten::to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", expose="no")
def to_sparse_dims(self: Any, sparse_dim: int) -> Any:
    return _to_sparse_dims(self, sparse_dim)


@composite("aten::_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", expose="no")
def _to_sparse_dims(self: Any, sparse_dim: int) -> Any:
    module = _sparse()
    with quiet():
        marked = self if sparse_dim == self.ndim else _any_of(self, sparse_dim)
        nonzero = F.nonzero(marked)
        places = _cloned(F.transpose(nonzero, 0, 1))
        rows = OPS["chunk"].entry(places, max(sparse_dim, 1), 0)
        selected = F.index(self, [wrap(row._array[0]) for row in rows])
        squeezed = F.squeeze(wrap(selected._array[None]), 0)
        del squeezed
        elements = F.clone(selected)
        result = of_size(places, elements, tuple(self.shape))
        _dispatch.record(OPS["_coalesced_"], result, True)
    return module.with_node("ToSparseBackward0", result, self)


def _cloned(turned: Any) -> Any:
    """A row-major copy of a transposed matrix; its storage is that of the plain clone."""
    copied = F.clone(turned)
    contiguous = wrap(np.ascontiguousarray(copied._array))
    contiguous._storage = storage_of(copied)
    return contiguous


def _any_of(self: Any, sparse_dim: int) -> Any:
    return wrap((self._array != 0).any(tuple(range(sparse_dim, self.ndim))))
