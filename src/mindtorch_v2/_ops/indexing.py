"""Indexing by tensors and masks: `index`, `index_put`, `take`, `put` and similar. `x[...]` itself is in `getitem`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from mindtorch_prof.inputs import TensorInput

from .. import _dtype
from .._dispatch import composite, function, op
from .._dtype import BY_NUM
from . import _dims
from ._accumulate import add_rows, linear_index
from ._children import INT64, UNKNOWN, Child, cast, child, item, known, reshape, tensor
from ._layout import copied, dense_order, dense_steps, empty_strided, expanded_target
from ._namespace import functions as F
from ._warn import warn_once
from .shape import size_text

_ALL = slice(None)
_INDEX_KINDS = "tensors used as indices must be long, int, byte or bool tensors"
_BYTE_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
_INT64 = _dtype.NP_INT64
_PRESERVE_FORMAT = 1  # torch's number


# ----------------------------------------------------------------------------------- index, index_put


def _numpy_index(array: np.ndarray, indices: list) -> tuple:
    """torch's list of index arrays as a NumPy index; masks checked and bytes turned into masks."""
    numpy_index: list[Any] = []
    for index in indices:
        if index is None:
            numpy_index.append(_ALL)
            continue
        kind = index.dtype
        if kind is not _INT64:
            if kind.kind == "b" or kind.num == 2:
                if kind.num == 2:
                    warn_once(_BYTE_MASK)
                _check_mask(
                    array,
                    index,
                    len(numpy_index)
                    if not any(f is not _ALL and f.dtype.kind == "b" and f.ndim > 1 for f in numpy_index)
                    else 0,
                )
                index = index if kind.kind == "b" else index.astype(bool)
            elif kind.num not in (5, 7):
                raise IndexError(_INDEX_KINDS)
        numpy_index.append(index)
    return tuple(numpy_index)


def _check_mask(array: np.ndarray, mask: np.ndarray, at: int) -> None:
    for d, n in enumerate(mask.shape):
        if at + d >= array.ndim or array.shape[at + d] != n:
            raise IndexError(
                f"The shape of the mask {size_text(mask.shape)} at index {d} does not match the shape of "
                "the indexed tensor "
                f"{size_text(array.shape)} at index {at + d}"
            )


def _explain(array: np.ndarray, index: tuple) -> IndexError:
    """torch's error for an index that NumPy refused."""
    at, parts = 0, []
    for part in index:
        if part is _ALL:
            at += 1
        elif part.dtype.kind == "b":
            parts.append((at, (int(np.count_nonzero(part)),), None))
            at += part.ndim
        else:
            parts.append((at, part.shape, part))
            at += 1
    try:
        np.broadcast_shapes(*[shape for _, shape, _ in parts])
    except ValueError:
        listed = ", ".join(size_text(shape) for _, shape, _ in parts)
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        )
    for count, (d, _, part) in enumerate(parts):
        if part is None or d >= array.ndim:
            continue
        n = array.shape[d]
        if n == 0 and part.size:
            return IndexError("index is out of bounds for dimension with size 0")
        bad = (part < -n) | (part >= n)
        if bad.any():
            return IndexError(
                f"index {int(part[bad][0])} is out of bounds for dimension {count} with size {n}"
            )
    return IndexError(f"too many indices for tensor of dimension {array.ndim} (got {len(index)})")


@op("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", expose="no")
def index(self: np.ndarray, indices: list) -> np.ndarray:
    last = indices[-1] if indices else None
    if last is not None and last.dtype is _INT64 and self.flags.c_contiguous:
        # one index tensor: take is several times faster than NumPy's general indexing
        dim = len(indices) - 1
        if dim == 0 or not any([i is not None for i in indices[:-1]]):
            try:
                return self.take(last, dim)
            except (IndexError, ValueError):
                raise _explain(self, (_ALL,) * dim + (last,)) from None
    where = _numpy_index(self, indices)
    try:
        values = self[where]
    except IndexError:
        raise _explain(self, where) from None
    if self.flags.c_contiguous or self.ndim < 3 or values.ndim < 2:
        return values if values.flags.c_contiguous else np.ascontiguousarray(values)
    return _laid_out(self, where, values)


def _index_children(self: Any, indices: Any) -> list[Child]:
    """torch turns masks into the positions where they are true, casts positions to int64, and views all of them, and the tensor without
    the indexed dimensions, in the shape of the result. indices: None if one of them is, as in `x[:, i]`."""
    known(self, indices)
    if not indices:
        return []
    rows, positions = [], []
    for index in indices:
        if _is_mask(index):  # how many are true depends on values
            found = tensor((0, len(index.shape)), index, "long int")
            rows += [
                child("aten::nonzero", index),
                *[child("aten::select.int", found, 1, d) for d in range(len(index.shape))],
            ]
            positions += [tensor((0,), found)] * len(index.shape)
        else:
            rows += [cast(index, INT64)] if index.type != "long int" else []
            positions.append(tensor(index.shape, index, "long int"))
    shape = np.broadcast_shapes(*[x.shape for x in positions])
    kept = self.shape[len(positions) :]
    rows += [child("aten::expand", x, shape) for x in positions if x.shape != shape]
    strides = (0,) * len(shape) + self.strides[len(positions) :]
    rows.append(child("aten::as_strided", self, shape + kept, strides))
    return rows + [reshape(tensor(shape, x), shape + (1,) * len(kept)) for x in positions]


def _is_mask(index: TensorInput) -> bool:
    return index.type in ("bool", "unsigned char")


index.children(_index_children)


def _laid_out(array: np.ndarray, where: tuple, values: np.ndarray) -> np.ndarray:
    """A copy of `values` whose dimensions lie in memory in the order of those of `array` that were not indexed."""
    at, strides, places = 0, [], []
    for part in where:
        if part is _ALL:
            strides.append(array.strides[at])
            at += 1
        else:
            places.append(len(strides))
            at += part.ndim if part.dtype.kind == "b" else 1
    strides += array.strides[at:]
    indexed = [0] * (values.ndim - len(strides))
    together = not places or places[-1] == places[0]
    first = places[0] if places and together else 0
    order = dense_order(values.shape, (*strides[:first], *indexed, *strides[first:]))
    out = empty_strided(values.shape, dense_steps(values.shape, order), values.dtype)
    np.copyto(out, values)
    return out


def _put(out: np.ndarray, indices: list, values: np.ndarray, accumulate: bool) -> None:
    if not out.flags.writeable:
        out = expanded_target(out, "index_put_", "tensor[indices] = tensor")
    where = _numpy_index(out, indices)
    if values.dtype is not out.dtype and values.dtype != out.dtype:
        if not (values.ndim == 0 and len(where) == 1 and where[0] is not _ALL and where[0].dtype.kind == "b"):
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{BY_NUM[out.dtype.num]._abbr} for the destination and "
                f"{BY_NUM[values.dtype.num]._abbr} for the source."
            )
        values = values.astype(out.dtype)
    try:
        if accumulate:
            _add_at(out, where, values)
        else:
            out[where] = values
    except IndexError:
        raise _explain(out, where) from None
    except ValueError:
        shape = out[where].shape
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {size_text(values.shape)} cannot be broadcast to "
            "indexing result of shape "
            f"{size_text(shape)}"
        ) from None


def _add_at(out: np.ndarray, where: tuple, values: np.ndarray) -> None:
    if len(where) == 1 and where[0] is not _ALL and where[0].dtype.kind == "b":
        out[where] += values
        return
    if out.dtype.kind == "b":
        np.logical_or.at(out, where, values)
        return
    if any([part is _ALL or part.dtype.kind == "b" for part in where]):
        np.add.at(out, where, values)
        return
    if any([part.size == 0 for part in where]):
        np.broadcast(*where)  # raises if they do not fit together
        return
    places = []
    for part, n in zip(where, out.shape):
        if not _dims.inside(part, 0, n):
            if not _dims.inside(part, -n, n):
                raise IndexError("index out of bounds")
            part = np.where(part < 0, part + n, part)
        places.append(part)
    lead = len(places)
    flat = linear_index(places, out.shape)
    rest = out.shape[lead:]
    if flat.size == 0 or out.size == 0:
        return
    ndim = flat.ndim + len(rest)
    if values.ndim > ndim:
        values = values.reshape(values.shape[-ndim:])
    if values.shape != (*flat.shape, *rest):
        values = np.broadcast_to(values, (*flat.shape, *rest))
    target = out.reshape((-1, *rest)) if out.flags.c_contiguous else None
    if target is None:
        np.add.at(out, where, values)
        return
    add_rows(target, flat.reshape(-1), values.reshape((-1, *rest)))


@op(
    "aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
    "unsafe=False) -> Tensor",
    inplace="aten::_index_put_impl_",
    node="IndexPutImplBackward0",
    expose="no",
)
def _index_put_impl(
    self: np.ndarray, indices: list, values: np.ndarray, accumulate: bool, unsafe: bool, out: Any = None
) -> np.ndarray:
    if out is None:
        out = self.copy()
    _put(out, indices, values, accumulate)
    return out


@_index_put_impl.op.inplace.children
def _(self: Any, indices: Any, values: Any, accumulate: Any, unsafe: Any) -> list[Child]:
    if indices is UNKNOWN or not indices:
        return []
    mask = indices[0]
    if len(indices) > 1 or not _is_mask(mask) or prod(values.shape) != 1 or accumulate:
        return _index_children(self, indices)
    mask = tensor(mask.shape + (1,) * (len(self.shape) - len(mask.shape)), mask)
    # the number that is written stands in a tensor: a description does not hold it
    return [item(values), child("aten::masked_fill_.Scalar", self, mask, None)]


def _index_put_self(g: Any, indices: Any, accumulate: bool, shape: tuple) -> Any:
    return g if accumulate else index_put(g, indices, F.zeros(shape, dtype=g.dtype), False)


_index_put_impl.derivative(
    self=lambda g, indices, accumulate, values_shape: _index_put_self(g, indices, accumulate, values_shape),
    values=lambda g, indices: index(g, indices),
)
_index_put_impl_ = _index_put_impl.op.inplace.entry
index.derivative(
    self=lambda g, indices, self_shape: _index_put_impl_(g.new_zeros(self_shape), indices, g, True, True)
)


@op(
    "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    inplace="aten::index_put_",
)
def index_put(
    self: np.ndarray, indices: list, values: np.ndarray, accumulate: bool, out: Any = None
) -> np.ndarray:
    if out is None:
        out = copied(self)
    _put(out, indices, values, accumulate)
    return out


index_put.derivative(
    self=lambda g, indices, accumulate, values_shape: _index_put_self(g, indices, accumulate, values_shape),
    values=lambda g, indices: index(g, indices),
)
index_put_ = index_put.op.inplace.entry
index_put.children(
    lambda self, indices, values, accumulate: [
        child("aten::clone", self, _PRESERVE_FORMAT, allocates=True),
        child("aten::index_put_", self, indices, values, accumulate),
    ]
)
index_put_.children(
    lambda self, indices, values, accumulate: [
        child("aten::_index_put_impl_", self, indices, values, accumulate, False)
    ]
)


@function("index_put")
def _index_put_front(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with values written at the places that index tensors name."""
    return index_put(input, _checked("index_put", indices), values, accumulate)


@function("index_put_")
def _index_put_front_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write values at the places that index tensors name."""
    return index_put_(input, _checked("index_put_", indices), values, accumulate)


def _checked(name: str, indices: Any) -> Any:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not "
            f"{type(indices).__name__}"
        )
    return indices


# ------------------------------------------------------------------------------- places that a mask leaves out


def _within(self: Any, indices: Any) -> list[Any]:
    """The indices, kept inside their dimensions: what lies outside is masked."""
    return [None if i is None else F.clamp(i, -n, n - 1) for i, n in zip(indices, self.shape)]


@composite(
    "aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
    expose="function",
)
def _unsafe_masked_index(self: Any, mask: Any, indices: Any, fill: Any) -> Any:
    if not self.numel():
        return F.full_like(F.expand(mask, mask.shape), fill, dtype=self.dtype)
    return F.masked_fill(index(self, _within(self, indices)), F.logical_not(mask), fill)


@composite(
    "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
    expose="function",
)
def _unsafe_masked_index_put_accumulate(self: Any, mask: Any, indices: Any, values: Any) -> Any:
    if not self.numel():
        return F.clone(self)
    kept = F.masked_fill(values, F.logical_not(mask), 0)
    return index_put(self, _within(self, indices), kept, True)
