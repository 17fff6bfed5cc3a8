"""`x[...]` and `x[...] = value`: an index in, the views and index ops that torch calls for it out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _device, _dispatch, _dtype
from .._dispatch import METHODS
from .._graph import grad_state
from .._tensor import Tensor
from .._torch_dispatch import no_dispatch
from ._namespace import functions as F
from ._scalars import fitting
from .copies import _copy_, _fill_tensor_, alias, lift_fresh, to_device
from .creation import _empty, below
from .indexing import _INDEX_KINDS, index, index_put_
from .shape import _expand, _view, shape_of
from .slicing import select, slice_, unsqueeze

_ndarray = np.ndarray
_LAST = (1 << 63) - 1
_WHOLE = slice(None)
_NON_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
    "2.9; use x[tuple(seq)] instead of "
    "x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will "
    "result either in an error or a "
    "different result"
)
_VALID = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
    "(got {})"
)


def getitem(self: Any, key: Any, /) -> Any:
    """The elements of an index: a view if it consists of integers, slices, None and Ellipsis, else a copy."""
    kind = key.__class__
    if kind is int:
        try:
            return select(self, 0, key)
        except IndexError:
            return _select(self, 0, key, 0)
    if kind is slice:
        return _slice(self, 0, key, True)
    if key is None:
        return unsqueeze(self, 0)
    if kind is tuple and not self._array_missing:
        view = _basic_views(self, key)
        if view is not None:
            return view
    viewed, indices = _apply(self, key)
    if indices is not None:
        return index(viewed, indices)
    return alias(self) if viewed is self else viewed


def _basic_views(self: Any, where: tuple) -> Any:
    """The views of an index of integers, plain slices, None and Ellipsis; None if it has other parts, is wrong or names all."""
    used = 0
    for part in where:
        if part.__class__ is int or part.__class__ is slice:
            used += 1
        elif part is not None and part is not Ellipsis:
            return None
    free, dim, view = self._array.ndim - used, 0, self
    if free < 0:
        return None
    for part in where:
        if part.__class__ is int:
            n = view._array.shape[dim]
            if not -n <= part < n:
                return None
            view = select(view, dim, part)
        elif part.__class__ is slice:
            if part != _WHOLE:
                start, stop, step = _ends(part)
                if step <= 0:
                    return None
                if start or stop < view._array.shape[dim] or step != 1:
                    view = slice_(view, dim, start, stop, step)
            dim += 1
        elif part is None:
            view = unsqueeze(view, dim)
            dim += 1
        else:
            dim += free
            free = 0
    return view if view is not self else None


def _select(self: Any, dim: int, place: int, at: int) -> Any:
    """aten::select with the errors of indexing; `at` is the position of the integer in the index."""
    shape = shape_of(self)
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
            "convert a 0-dim tensor to a "
            "number"
        )
    n = shape[dim]
    if not -n <= place < n:
        raise IndexError(f"index {place} is out of bounds for dimension {at} with size {n}")
    return select(self, dim, place)


def _ends(part: slice) -> tuple[int, int, int]:
    """Start, stop and step of a slice; the largest integer if there is no stop."""
    start, stop, step = part.start, part.stop, part.step
    return (
        0 if start is None else start if start.__class__ is int else _whole(start),
        _LAST if stop is None else stop if stop.__class__ is int else _whole(stop),
        1 if step is None else step if step.__class__ is int else _whole(step),
    )


def _whole(value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def _slice(self: Any, dim: int, part: slice, always: bool) -> Any:
    start, stop, step = _ends(part)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    if not always and step == 1 and not start and stop >= self.size(dim):
        return self
    return slice_(self, dim, start, stop, step)


def _as_parts(where: Any) -> tuple:
    """The index as a tuple; a list that holds slices, tensors or lists counts as one, as in old NumPy."""
    if isinstance(where, tuple):
        return tuple(where)
    if isinstance(where, list) and len(where) < 32:
        for part in where:
            if isinstance(part, (Tensor, list, tuple, slice, type(Ellipsis), type(None), _ndarray)):
                warnings.warn(_NON_TUPLE, UserWarning, stacklevel=4)
                return tuple(where)
    return (where,)


def _kind(tensor: Any) -> int:
    """NumPy's number of a tensor's dtype: 0 for bool, 2 for uint8, 5 and 7 for int32 and int64."""
    return (tensor._array_description if tensor._array_missing else tensor._array).dtype.num


def _dimensions_used(parts: tuple) -> int:
    used = 0
    for part in parts:
        if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
            continue
        if (isinstance(part, Tensor) and _kind(part) in (0, 2)) or (
            isinstance(part, _ndarray) and part.dtype.num in (0, 2)
        ):
            used += part.ndim
        else:
            used += 1
    return used


def _index_tensor(part: Any) -> Tensor | None:
    """An index given as tensor, array or sequence, as a tensor; None if it is none of these."""
    if isinstance(part, Tensor):
        return part
    if isinstance(part, _ndarray):
        return F.as_tensor(part) if part.ndim else F.tensor(part.item())
    if isinstance(part, (list, tuple, range)):
        return _sequence_tensor(part)
    return None


def _sequence_tensor(part: Any) -> Tensor:
    """A sequence of integers or bools as an index tensor."""
    try:
        array = np.asarray(part if len(part) else (), None if len(part) else np.int64)
    except (ValueError, TypeError):
        return F.tensor(list(part))
    if array.dtype.kind not in "ib":
        return F.tensor(list(part))
    with no_dispatch():
        dtype = _dtype.BY_NUM[array.dtype.num]
        tensor = below(_empty, array.shape, dtype=dtype, layout=_dtype.strided)
        tensor._array[...] = array
        tensor = below(to_device, tensor, _device.CPU, dtype)
    return below(F.lift_fresh, tensor)


def _apply(self: Any, where: Any) -> tuple[Any, list | None]:
    """The views of an index, and the index tensors that remain (None if there are none)."""
    parts = _as_parts(where)
    used = _dimensions_used(parts)
    if used > self.ndim:
        if self.ndim == 0 and any(p.__class__ is int for p in parts):
            _select(self, 0, 0, 0)
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    viewed, dim, indices = self, 0, None
    free = self.ndim - used
    for at, part in enumerate(parts):
        if part.__class__ is int:
            viewed = _select(viewed, dim, part, at)
        elif part.__class__ is slice:
            viewed = _slice(viewed, dim, part, False)
            dim += 1
        elif part is None:
            viewed = unsqueeze(viewed, dim)
            dim += 1
        elif part is Ellipsis:
            dim += free
            free = 0
        elif isinstance(part, (bool, np.bool_)):
            viewed = unsqueeze(viewed, dim)
            indices = _place(indices, dim, _flag(part))
            dim += 1
        else:
            viewed, dim, indices = _apply_tensor(viewed, dim, indices, part, at)
    return viewed, indices


def _apply_tensor(
    viewed: Any, dim: int, indices: list | None, part: Any, at: int
) -> tuple[Any, int, list | None]:
    tensor = _index_tensor(part)
    if tensor is None:
        if isinstance(part, str):
            raise TypeError("new(): invalid data type 'str'")
        if hasattr(part, "__index__"):
            return _select(viewed, dim, part.__index__(), at), dim, indices
        raise IndexError(_VALID.format(type(part).__name__))
    number = _kind(tensor)
    if tensor.ndim == 0:
        if number in (0, 2):
            viewed = unsqueeze(viewed, dim)
            return viewed, dim + 1, _place(indices, dim, _flag(bool(tensor.item())))
        if number in (1, 3, 5, 7):
            return _select(viewed, dim, int(tensor.item()), at), dim, indices
        raise IndexError(_INDEX_KINDS)
    if number in (0, 2):
        return viewed, dim + tensor.ndim, _place(indices, dim, tensor)
    if number not in (5, 7):
        raise IndexError(_INDEX_KINDS)
    return viewed, dim + 1, _place(indices, dim, tensor)


def _place(indices: list | None, dim: int, tensor: Any) -> list:
    indices = [] if indices is None else indices
    skipped = sum([1 if i is None or _kind(i) not in (0, 2) else i.ndim for i in indices])
    indices += [None] * (dim - skipped)
    indices.append(tensor)
    return indices


def _flag(value: Any) -> Any:
    """True or False as an index along a dimension of length one: selects it once, or not at all."""
    places = _empty(
        (1,) if value else (0,), dtype=_dtype.int64, layout=_dtype.strided, pin_memory=_dtype.LEFT_OUT
    )
    return F.fill_(places, 0.0) if value else places


# -------------------------------------------------------------------------------------------- writing


def setitem(self: Any, key: Any, value: Any, /) -> None:
    """Write to the elements that the index names."""
    if not isinstance(value, Tensor):
        value = _boxed(value, self)
    if key is False:
        return
    if key is True:
        _copy_to(unsqueeze(self, 0), value)
        return
    if self._array_missing:
        viewed = None
    elif key.__class__ is int:
        viewed = _select(self, 0, key, 0)
    else:
        viewed = _basic_views(self, key if key.__class__ is tuple else (key,))
    indices = None
    if viewed is None:
        viewed, indices = _apply(self, key)
    if indices is None:
        _copy_to(viewed, value)
        return
    shape = value.shape
    short = _without_leading_ones(shape)
    index_put_(viewed, indices, _view(value, short) if len(short) != len(shape) else value)


def _boxed(value: Any, like: Any) -> Any:
    """A number as a tensor of the dtype of another."""
    if value.__class__ is not float:
        if not isinstance(value, (int, float, complex, np.integer)):
            raise TypeError(f"can't assign a {_full_name(value)} to a torch.{like.dtype._abbr}Tensor")
        value = _number(value)
    dtype = like._array.dtype
    number = _dispatch.wrap(np.array(fitting(value, dtype, True), dtype))
    enabled, grad_state.enabled = grad_state.enabled, False
    try:
        return lift_fresh(number)
    finally:
        grad_state.enabled = enabled


def _number(value: Any) -> Any:
    if isinstance(value, (int, np.integer)) and not -(1 << 63) <= value < 1 << 63:
        raise RuntimeError("Overflow when unpacking long long")
    return int(value) if isinstance(value, np.integer) else value


def _full_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _without_leading_ones(shape: tuple) -> tuple:
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return tuple(shape[first:])


def _copy_to(target: Any, value: Any) -> None:
    """Write `value` to a view, broadcast as torch's assignment does it."""
    shape = shape_of(value)
    if shape_of(target) == shape:
        _copy_(target, value)
    elif not shape:
        _fill_tensor_(target, value)
    else:
        short = _view(value, _without_leading_ones(value.shape))
        _copy_(target, short if short.shape == target.shape else _expand(short, target.shape))


def delitem(self: Any, key: Any, /) -> None:
    """Refuse: a tensor keeps all its elements."""
    raise TypeError("Tensor does not support deleting items")


METHODS["__getitem__"], METHODS["__setitem__"], METHODS["__delitem__"] = getitem, setitem, delitem
