"""Compressed sparse tensors (CSR, CSC, BSR, BSC): pointers, indices and values in, tensors and their conversions out.

An op on them is run on COO tensors (`_sparse_ops`); results of ops that keep the layout are compressed again. Indices are checked when a
tensor is made, whether or not the program asks for it: kernels trust them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _dispatch, _dtype
from ._graph import grad_state
from ._sparse import SparseTensor, _new, _op, _wrap, coalesced, make, record, values_at
from ._tensor import Tensor


class Kind(NamedTuple):
    """A layout: whether rows are compressed (else columns), whether values are blocks, and torch's name of it."""

    layout: Any
    by_rows: bool
    in_blocks: bool
    name: str

    @property
    def pointers(self) -> str:
        return "crow_indices" if self.by_rows else "ccol_indices"

    @property
    def indices(self) -> str:
        return "col_indices" if self.by_rows else "row_indices"

    @property
    def turned(self) -> Kind:
        """The layout of the transpose."""
        return KINDS[self.layout._name[:-1] + ("c" if self.by_rows else "r")]


KINDS = {
    "sparse_csr": Kind(_dtype.sparse_csr, True, False, "SparseCsr"),
    "sparse_csc": Kind(_dtype.sparse_csc, False, False, "SparseCsc"),
    "sparse_bsr": Kind(_dtype.sparse_bsr, True, True, "SparseBsr"),
    "sparse_bsc": Kind(_dtype.sparse_bsc, False, True, "SparseBsc"),
}


class CompressedTensor(SparseTensor):
    """A tensor whose rows (or columns) of elements, or of blocks, are stored one after another."""

    __module__ = "mindtorch_v2"
    __slots__ = ("_pointers", "_inner", "_stored", "_kind")
    is_sparse = False
    _pointers: np.ndarray  # (*batch, rows + 1): where each row begins
    _inner: np.ndarray  # (*batch, number of elements): their columns
    _stored: np.ndarray  # (*batch, number of elements, *block, *dense dims)
    _kind: Kind

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._kind.layout is _dtype.sparse_csr

    @property
    def layout(self) -> _dtype.layout:
        return self._kind.layout

    @property
    def _elements(self) -> np.ndarray:  # type: ignore[override]
        return self._stored

    def _nnz(self) -> int:
        """How many elements or blocks are stored in each matrix."""
        return self._inner.shape[-1]

    def sparse_dim(self) -> int:
        """2: matrices are sparse."""
        return 2

    def dense_dim(self) -> int:
        """How many dimensions each element has."""
        return self._stored.ndim - self._inner.ndim - 2 * self._kind.in_blocks

    def values(self) -> Any:
        """The stored elements."""
        values = _wrap(self._stored)
        return record("ValuesBackward0", values, (self,), lambda g: (with_values(self, g),))

    def _part(self, name: str, kind: str, array: np.ndarray) -> Any:
        if name not in (self._kind.pointers, self._kind.indices):
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got {self._kind.name}"
            )
        return _wrap(array)

    def crow_indices(self) -> Any:
        """Where each row begins."""
        return self._part("crow_indices", "row", self._pointers)

    def col_indices(self) -> Any:
        """The column of each element."""
        return self._part("col_indices", "row", self._inner)

    def ccol_indices(self) -> Any:
        """Where each column begins."""
        return self._part("ccol_indices", "column", self._pointers)

    def row_indices(self) -> Any:
        """The row of each element."""
        return self._part("row_indices", "column", self._inner)

    def _refuse(self, name: str) -> Any:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {self._kind.name}")

    def indices(self) -> Any:  # type: ignore[override]
        """Refuse: only COO tensors have them."""
        self._refuse("indices")

    def is_coalesced(self) -> Any:  # type: ignore[override]
        """Refuse: only COO tensors can be asked."""
        self._refuse("is_coalesced")

    def coalesce(self) -> Any:  # type: ignore[override]
        """Refuse: only COO tensors can be."""
        self._refuse("coalesce")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Refuse, as torch does."""
        raise RuntimeError(f"Sparse {self._kind.name[6:].upper()} tensors do not have is_contiguous")

    def stride(self, dim: int | None = None) -> Any:
        """Refuse, as torch does."""
        raise RuntimeError(f"Sparse {self._kind.name[6:].upper()} tensors do not have strides")

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Refuse, as torch does."""
        raise TypeError(
            f"can't convert {self._kind.name} layout tensor to numpy. Use Tensor.to_dense() first."
        )

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """All elements, with zeros."""
        with without_gradients():
            dense = as_coo(self).to_dense()
        dense = record("ToDenseBackward0", dense, (self,), lambda g: (at_places_of(self, g),))
        return dense if dtype is None else dense.to(dtype)

    def to_sparse(
        self, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, **_: Any
    ) -> Any:
        """The same elements in another sparse layout."""
        if layout is None or layout is _dtype.sparse_coo:
            return as_coo(self)
        return compressed(self, layout, blocksize)

    def to_sparse_coo(self) -> Any:
        """The same elements as a COO tensor."""
        return as_coo(self)

    def to_sparse_csr(self, dense_dim: int | None = None) -> Any:
        """The same elements by rows."""
        return compressed(self, _dtype.sparse_csr)

    def to_sparse_csc(self, dense_dim: int | None = None) -> Any:
        """The same elements by columns."""
        return compressed(self, _dtype.sparse_csc)

    def to_sparse_bsr(self, blocksize: Any, dense_dim: int | None = None) -> Any:
        """The same elements as blocks, by rows."""
        return compressed(self, _dtype.sparse_bsr, blocksize)

    def to_sparse_bsc(self, blocksize: Any, dense_dim: int | None = None) -> Any:
        """The same elements as blocks, by columns."""
        return compressed(self, _dtype.sparse_bsc, blocksize)

    def detach(self) -> Any:
        """The same elements without history."""
        return of_arrays(self._pointers, self._inner, self._stored, self._extent, self._kind)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """This tensor in another dtype."""
        from ._ops.copies import parse_to

        device, dtype, _, copy, _ = parse_to(args, kwargs)
        if device is not None and device.type != "cpu":
            raise NotImplementedError(f"sparse tensors are not there on device {device}")
        if dtype is None or dtype is self.dtype:
            return self.clone() if copy else self
        return with_values(self, self.values().to(dtype))

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """This tensor in another dtype; it has no name of a type."""
        if dtype is None:
            raise RuntimeError(f"Unimplemented backend {self._kind.name}CPU")
        return super().type(dtype, non_blocking, **kwargs)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            copy = self.detach()
            copy._stored, copy._rg = self._stored.copy(), self._rg
            memo[id(self)] = copy
        return memo[id(self)]

    def sum(self, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """The sum of all elements."""
        if dim is not None:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        return as_coo(self).sum(dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        return as_coo(self)[index]


class without_gradients:
    """What is computed inside has no history."""

    def __enter__(self) -> None:
        self.enabled, grad_state.enabled = grad_state.enabled, False

    def __exit__(self, *args: Any) -> None:
        grad_state.enabled = self.enabled


# ---------------------------------------------------------------------------------------------------- construction


def of_arrays(
    pointers: np.ndarray, inner: np.ndarray, stored: np.ndarray, extent: tuple, kind: Kind
) -> CompressedTensor:
    """A tensor of checked parts."""
    tensor = _new(CompressedTensor)
    tensor._pointers, tensor._inner, tensor._stored = pointers, inner, stored
    tensor._extent, tensor._kind = tuple(extent), kind
    return tensor


def with_values(pattern: Any, values: Any) -> Any:
    """Other values at the places of a compressed tensor, with their history."""
    tensor = of_arrays(pattern._pointers, pattern._inner, values._array, pattern._extent, pattern._kind)
    return record("SparseCompressedTensorBackward0", tensor, (values,), lambda g: (_values_of(g, tensor),))


def _values_of(g: Any, pattern: Any) -> Any:
    return at_places_of(pattern, g).values()


def at_places_of(pattern: Any, source: Any) -> Any:
    """A dense or sparse tensor as a compressed one with the places of another."""
    if isinstance(source, CompressedTensor) and _same_places(source, pattern):
        return source
    values = values_at(
        as_coo(source) if isinstance(source, CompressedTensor) else source, as_coo(pattern.detach())
    )
    return with_values(pattern, values.reshape(pattern._stored.shape))


def _same_places(a: Any, b: Any) -> bool:
    if a._kind is not b._kind or a._extent != b._extent or a._stored.shape != b._stored.shape:
        return False
    return np.array_equal(a._pointers, b._pointers) and np.array_equal(a._inner, b._inner)


def of_parts(
    pointers: Any, indices: Any, values: Any, size: Any, kind: Kind, check: bool, requires_grad: bool
) -> Any:
    """A tensor of three tensors that a program gave."""
    outer, inner = pointers._array, indices._array
    if outer.dtype not in (np.int32, np.int64) or outer.dtype != inner.dtype:
        raise RuntimeError(
            f"{kind.pointers} and {kind.indices} must be an int32 or int64 type, but got: "
            f"{_dtype.BY_NUM[outer.dtype.num]._abbr} and {_dtype.BY_NUM[inner.dtype.num]._abbr}"
        )
    extent = (
        _inferred_size(outer, inner, values._array, kind) if size is None else tuple(int(n) for n in size)
    )
    _check(outer, inner, values._array, extent, kind, check)
    tensor = of_arrays(outer, inner, values._array, extent, kind)
    tensor = record(
        "SparseCompressedTensorBackward0", tensor, (values,), lambda g, t=tensor: (_values_of(g, t),)
    )
    if requires_grad:
        tensor = tensor.detach()
        tensor.requires_grad = True
    return tensor


def _block_of(stored: np.ndarray, inner: np.ndarray, kind: Kind) -> tuple:
    return tuple(stored.shape[inner.ndim : inner.ndim + 2]) if kind.in_blocks else (1, 1)


def _inferred_size(outer: np.ndarray, inner: np.ndarray, stored: np.ndarray, kind: Kind) -> tuple:
    block = _block_of(stored, inner, kind)
    compressed_size, plain_size = outer.shape[-1] - 1, int(inner.max()) + 1 if inner.size else 0
    rows, columns = (compressed_size, plain_size) if kind.by_rows else (plain_size, compressed_size)
    dense = stored.shape[inner.ndim + 2 * kind.in_blocks :]
    return (*outer.shape[:-1], rows * block[0], columns * block[1], *dense)


def _check(
    outer: np.ndarray, inner: np.ndarray, stored: np.ndarray, extent: tuple, kind: Kind, strictly: bool
) -> None:
    """Raise if parts do not fit together, or indices point outside; `strictly`: also if they are not in order."""
    batch, blocks = outer.ndim - 1, 2 * kind.in_blocks
    if inner.ndim != outer.ndim or stored.ndim < inner.ndim + blocks or len(extent) < batch + 2:
        raise RuntimeError(
            f"{kind.pointers}, {kind.indices}, values and size have dimensions that do not fit together: "
            f"{outer.ndim}, {inner.ndim}, {stored.ndim}, {len(extent)}"
        )
    dense = stored.ndim - inner.ndim - blocks
    if batch + 2 + dense != len(extent) or extent[batch + 2 :] != stored.shape[stored.ndim - dense :]:
        raise RuntimeError(f"values of shape {list(stored.shape)} do not fit size {list(extent)}")
    block = _block_of(stored, inner, kind)
    matrix = extent[batch : batch + 2]
    if 0 in block or any(n % b for n, b in zip(matrix, block)):
        raise RuntimeError(f"tensor sizes {tuple(matrix)} must be divisible by the block sizes {block}")
    rows, columns = (n // b for n, b in zip(matrix, block))
    n_outer, n_inner = (rows, columns) if kind.by_rows else (columns, rows)
    outer_name, inner_name = ("rows", "ncols") if kind.by_rows else ("columns", "nrows")
    if outer.shape[-1] != n_outer + 1:
        raise RuntimeError(
            f"{kind.pointers}.shape[-1] must be equal to the number of {outer_name} + 1 (={n_outer + 1}), but got {outer.shape[-1]}"
        )
    nnz = stored.shape[batch]
    if inner.shape[-1] != nnz:
        raise RuntimeError(
            f"{kind.indices}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got {inner.shape[-1]}"
        )
    if not outer.shape[:-1] == inner.shape[:-1] == stored.shape[:batch] == extent[:batch]:
        raise RuntimeError(
            f"all batch dimensions of {kind.pointers}, {kind.indices}, values and size must be equal"
        )
    _check_values(outer, inner, nnz, n_inner, kind, inner_name)
    if strictly:
        _check_order(outer, inner, kind)


def _check_values(
    outer: np.ndarray, inner: np.ndarray, nnz: int, n_inner: int, kind: Kind, inner_name: str
) -> None:
    steps = np.diff(outer, axis=-1)
    conditions = (
        (f"{kind.pointers}[..., 0] == 0", (outer[..., 0] == 0).all()),
        (f"{kind.pointers}[..., -1] == nnz", (outer[..., -1] == nnz).all()),
        (
            f"0 <= {kind.pointers}[..., 1:] - {kind.pointers}[..., :-1] <= {inner_name}",
            ((steps >= 0) & (steps <= n_inner)).all(),
        ),
        (f"0 <= {kind.indices} < {inner_name}", ((inner >= 0) & (inner < n_inner)).all()),
    )
    for text, holds in conditions:
        if not holds:
            raise RuntimeError(f"`{text}` is not satisfied.")


def _check_order(outer: np.ndarray, inner: np.ndarray, kind: Kind) -> None:
    for pointers, numbers in zip(outer.reshape(-1, outer.shape[-1]), inner.reshape(-1, inner.shape[-1])):
        grows = np.diff(numbers) > 0
        begins = pointers[(pointers > 0) & (pointers < len(numbers))] - 1
        grows[begins] = True
        if not grows.all():
            raise RuntimeError(
                f"`{kind.indices}[..., {kind.pointers}[..., i - 1]:{kind.pointers}[..., i]] for all i = 1, ..., "
                f"{'nrows' if kind.by_rows else 'ncols'} are sorted and distinct along the last dimension values` is not satisfied."
            )


# ---------------------------------------------------------------------------------------------------- conversions


def as_coo(self: Any) -> Any:
    """A compressed tensor as a COO tensor; anything else as it is."""
    if not isinstance(self, CompressedTensor):
        return self
    batch, kind = self._pointers.shape[:-1], self._kind
    bh, bw = _block_of(self._stored, self._inner, kind)
    count, nnz = math.prod(batch), self._inner.shape[-1]
    pointers = self._pointers.reshape(count, -1).astype(np.int64)
    lines = np.concatenate(
        [np.repeat(np.arange(p.size - 1), np.diff(p)) for p in pointers] or [np.empty(0, np.int64)]
    )
    inner = self._inner.reshape(-1).astype(np.int64)
    rows, columns = (lines, inner) if kind.by_rows else (inner, lines)
    places = (
        [np.repeat(axis, nnz * bh * bw) for axis in np.unravel_index(np.arange(count), batch)]
        if batch
        else []
    )
    places.append((rows[:, None, None] * bh + np.arange(bh)[:, None] + np.zeros(bw, np.int64)).reshape(-1))
    places.append((columns[:, None, None] * bw + np.zeros((bh, 1), np.int64) + np.arange(bw)).reshape(-1))
    dense = self._extent[len(batch) + 2 :]
    elements = self._stored.reshape(count * nnz * bh * bw, *dense)
    in_order = kind.by_rows and not kind.in_blocks
    coo = make(np.stack(places), elements, self._extent, in_order)
    return record("ToSparseBackward0", coo, (self,), lambda g: (at_places_of(self, g),))


def compressed(self: Any, layout: Any, blocksize: Any = None) -> Any:
    """A tensor of any layout in a compressed one."""
    kind = KINDS[layout._name]
    if kind.in_blocks and blocksize is None and isinstance(self, CompressedTensor) and self._kind.in_blocks:
        blocksize = _block_of(self._stored, self._inner, self._kind)
    if kind.in_blocks and blocksize is None:
        raise RuntimeError(f"to_sparse_{kind.name[6:].lower()}: a block size is needed")
    block = tuple(int(n) for n in blocksize) if kind.in_blocks else (1, 1)
    if (
        isinstance(self, CompressedTensor)
        and self._kind is kind
        and block == _block_of(self._stored, self._inner, kind)
    ):
        return self
    if self.ndim < 2:
        raise RuntimeError(
            f"to_sparse_{kind.name[6:].lower()}: needs a tensor of at least two dimensions, got {self.ndim}"
        )
    with without_gradients():
        coo = as_coo(self) if self._is_sparse_layout else self.to_sparse()
    tensor = _compressed_coo(coalesced(coo) if not coo._coalesced else coo, kind, block)
    return record(
        "ToSparseBackward1",
        tensor,
        (self,),
        lambda g: (g.to_dense() if not self._is_sparse_layout else as_coo(g),),
    )


def _compressed_coo(coo: Any, kind: Kind, block: tuple) -> CompressedTensor:
    batch = coo._places.shape[0] - 2
    extent = coo._extent
    if any(n % b for n, b in zip(extent[batch : batch + 2], block)):
        raise RuntimeError(
            f"tensor sizes {tuple(extent[batch : batch + 2])} must be divisible by the block sizes {block}"
        )
    if not batch:
        return of_arrays(*_compressed_matrix(coo._places, coo._elements, extent, kind, block), extent, kind)
    count = math.prod(extent[:batch])
    which = np.ravel_multi_index(tuple(coo._places[:batch]), extent[:batch])
    parts = [
        _compressed_matrix(
            coo._places[batch:, which == b], coo._elements[which == b], extent[batch:], kind, block
        )
        for b in range(count)
    ]
    if len({inner.size for _, inner, _ in parts}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    pointers, inner, stored = (
        np.stack(part).reshape(*extent[:batch], *part[0].shape) for part in zip(*parts)
    )
    return of_arrays(pointers, inner, stored, extent, kind)


def _compressed_matrix(
    places: np.ndarray, elements: np.ndarray, extent: tuple, kind: Kind, block: tuple
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pointers, indices and values of one matrix; the places are in order."""
    rows, columns = (axis // b for axis, b in zip(places, block))
    outer, inner = (rows, columns) if kind.by_rows else (columns, rows)
    n_outer, n_inner = (n // b for n, b in zip(extent[:2], block))
    if not kind.by_rows:
        n_outer, n_inner = n_inner, n_outer
    numbers, first, inverse = np.unique(outer * n_inner + inner, return_index=True, return_inverse=True)
    lines = outer[first]
    pointers = np.concatenate(([0], np.cumsum(np.bincount(lines, minlength=n_outer)))).astype(np.int64)
    if not kind.in_blocks:
        return pointers, inner[first], elements[first]
    stored = np.zeros((len(numbers), *block, *elements.shape[1:]), elements.dtype)
    stored[inverse.reshape(-1), places[0] % block[0], places[1] % block[1]] = elements
    return pointers, inner[first], stored


# ---------------------------------------------------------------------------------------------------- ops

# a unary op of each value; of a sum, a product or a mask the layout is that of the first compressed argument
_ON_VALUES = frozenset(
    """abs asin asinh atan atanh ceil clone conj_physical deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg
    positive rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc nan_to_num pow.Tensor_Scalar _to_copy""".split()
)
_KEEP_LAYOUT = frozenset("add.Tensor mul.Tensor mm sparse_mask".split())
_ON_COO = frozenset("add_.Tensor sum _sparse_mm _sparse_addmm addmm mv bmm select.int index_select".split())


def run_compressed(op: Any, arguments: tuple) -> Any:
    """Run an op on compressed tensors; torch's error if it has no kernel for them."""
    from ._sparse_ops import run_sparse

    name = op.full_name
    first = next(a for a in arguments if isinstance(a, CompressedTensor))
    if name in _ON_VALUES:
        return with_values(first, _dispatch.OPS[name].run(first.values(), *arguments[1:]))
    if name in ("zeros_like", "empty_like"):
        return zeros(first._extent, first.dtype, first._kind)
    if name in ("t", "transpose.int"):
        return _transposed(first, *arguments[1:])
    if name == "add_.Tensor" and arguments[0] is first:
        return _become(first, _dispatch.OPS["add.Tensor"].entry(first, *arguments[1:2], alpha=arguments[2]))
    if name == "mul.Tensor" and (same := _multiplied(arguments)) is not None:
        return same
    if name not in _KEEP_LAYOUT and name not in _ON_COO:
        raise NotImplementedError(
            f"Could not run '{op.qualified_name}{'.' + op.overload if op.overload else ''}' with arguments from the "
            f"'{first._kind.name}CPU' backend: unsupported tensor layout: {first._kind.name}. to_dense() gives a dense tensor."
        )
    result = run_sparse(op, tuple(as_coo(a) for a in arguments))
    if name in _KEEP_LAYOUT and isinstance(result, Tensor) and result.is_sparse:
        return compressed(result, first.layout, _block_of(first._stored, first._inner, first._kind))
    return result


def _become(self: Any, other: Any) -> Any:
    """Take the elements of another tensor."""
    if grad_state.enabled and (self._rg or other._rg):
        raise RuntimeError(
            "in-place additions of sparse tensors are not recorded for gradients; use the out-of-place one"
        )
    self._pointers, self._inner, self._stored = other._pointers, other._inner, other._stored
    return self


def _multiplied(arguments: tuple) -> Any:
    """The product with a number, with a tensor of the same places, or with a dense one; None if it is none of these."""
    a, b = arguments if isinstance(arguments[0], CompressedTensor) else arguments[::-1]
    multiply = _dispatch.OPS["mul.Tensor"].run
    if not isinstance(b, Tensor) or (not b._is_sparse_layout and b.ndim == 0):
        return with_values(a, multiply(a.values(), b))
    if isinstance(b, CompressedTensor):
        return with_values(a, multiply(a.values(), b.values())) if _same_places(a, b) else None
    if not b._is_sparse_layout:
        if tuple(b.shape) != a._extent:
            raise RuntimeError(
                f"sparse_mask(): operands have incompatible sizes; self has size {list(b.shape)} but mask has size {list(a._extent)}"
            )
        return with_values(a, multiply(a.values(), at_places_of(a, b).values()))
    return None


def _transposed(self: Any, dim0: int = 0, dim1: int = 1) -> Any:
    batch = self._pointers.ndim - 1
    if {dim0 % self.ndim, dim1 % self.ndim} != {batch, batch + 1}:
        raise RuntimeError(
            "transpose: only the two sparse dimensions of a compressed tensor can be exchanged"
        )
    extent = list(self._extent)
    extent[batch], extent[batch + 1] = extent[batch + 1], extent[batch]
    stored = self._stored
    if self._kind.in_blocks:
        stored = np.ascontiguousarray(np.swapaxes(stored, batch + 1, batch + 2))
    turned = of_arrays(self._pointers, self._inner, stored, tuple(extent), self._kind.turned)
    return record("TransposeBackward0", turned, (self,), lambda g: (g.transpose(dim0, dim1),))


def zeros(extent: tuple, dtype: Any, kind: Kind) -> CompressedTensor:
    """A tensor without elements."""
    if kind.in_blocks:
        raise RuntimeError(f"zeros: a block size is needed for layout {kind.layout}")
    outer = extent[-2] if kind.by_rows else extent[-1]
    batch = extent[:-2]
    pointers = np.zeros((*batch, outer + 1), np.int64)
    return of_arrays(
        pointers, np.empty((*batch, 0), np.int64), np.empty((*batch, 0), dtype._np), extent, kind
    )


# ---------------------------------------------------------------------------------------------------- products


def _sampled(pattern: Any, source: Any) -> Any:
    """The elements of a dense tensor at the places of a compressed one, without history."""
    pointers, inner = pattern._pointers, pattern._inner
    if pointers.ndim != 1 or pattern._stored.ndim != 1:
        return at_places_of(pattern, source).values()
    lines = np.arange(pointers.size - 1).repeat(pointers[1:] - pointers[:-1])
    return _wrap(source._array[(lines, inner) if pattern._kind.by_rows else (inner, lines)])


def sampled_addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """beta * self + alpha * (mat1 @ mat2) at the places of `self`."""
    with without_gradients():
        values = _sampled(self.detach(), mat1 @ mat2) * alpha
        if beta != 0:
            values = self.values() * beta + values

    def rule(g: Any) -> tuple:
        masked = at_places_of(self.detach(), g) * alpha.conjugate()
        return g * beta.conjugate(), masked @ mat2.mH, _dispatch.FUNCTIONS["mm"](mat1.mH, masked)

    result = with_values(self, values)
    return record("SparseSampledAddmmBackward0", result, (self, mat1, mat2), rule)


def mm_reduced(self: Any, dense: Any, reduce: str) -> Any:
    """self @ dense, where the products of each row are reduced by "sum", "mean", "amax" or "amin"."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    from ._ops._double_backward import through

    csr = compressed(self, _dtype.sparse_csr)
    terms = csr._stored[:, None] * dense._array[csr._inner]
    starts, counts = csr._pointers[:-1], csr._pointers[1:] - csr._pointers[:-1]
    filled = np.flatnonzero(counts)  # an empty row stays zero
    join = {"amax": np.maximum, "amin": np.minimum}.get(reduce, np.add)
    reduced = np.zeros((csr._extent[0], terms.shape[1]), terms.dtype)
    if len(filled):
        reduced[filled] = join.reduceat(terms, starts[filled], 0)
    if reduce == "mean":
        reduced /= np.maximum(counts, 1).astype(terms.dtype)[:, None]
    return record(
        "SparseMmReduceImplBackward0",
        _wrap(reduced),
        (csr, dense),
        lambda g: through(g, lambda sparse, dense: _reduced_products(sparse, dense, reduce), csr, dense),
    )


def _reduced_products(self: Any, dense: Any, reduce: str) -> Any:
    """What `mm_reduced` computes, in ops that have derivatives."""
    coo = as_coo(self)
    rows, columns = (_wrap(axis) for axis in coo._places)
    terms = values_at(coo, coo).unsqueeze(1) * dense.index_select(0, columns)
    result = terms.new_zeros((self._extent[0], dense.shape[1]))
    index = rows.unsqueeze(1).expand(terms.shape)
    if reduce == "sum":
        return result.scatter_add(0, index, terms)
    return result.scatter_reduce(0, index, terms, reduce, include_self=False)


def solved(A: Any, B: Any) -> Any:
    """X with A @ X = B, for a square CSR matrix."""
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import spsolve

    matrix = csr_array((A._stored, A._inner, A._pointers), shape=A._extent)
    return _wrap(np.asarray(spsolve(matrix, B._array), dtype=B._array.dtype).reshape(B.shape))


for _name in ("t", "transpose"):
    setattr(CompressedTensor, _name, _op("t" if _name == "t" else "transpose.int"))
