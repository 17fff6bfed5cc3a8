"""Factories of tensors: empty, zeros, ones, full, their `_like` and `new_` forms, and tensors of given strides."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _device, _dispatch, _dtype
from .._dispatch import composite, function, op, wrap
from .._dtype import BY_NUM, Default
from .._meta import is_meta, meta_tensor
from . import factories_out
from ._children import (
    UNKNOWN,
    Child,
    child,
    dense_strides,
    dtype_number,
    dtype_or_default,
    empty,
    fill_,
    tensor_of,
    zero_,
)
from ._layout import empty_as, strided
from ._namespace import functions as F
from ._scalars import fitting

_STRIDED = _dtype.strided
_SPARSE = ("sparse_coo", "sparse_csr", "sparse_csc")


def _sizes(size: tuple, keyword: Any = None, name: str = "empty") -> tuple:
    """A shape from varargs, one sequence, or the keyword `size`."""
    if keyword is not None:
        size = (keyword,)
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
        if isinstance(size, _dispatch.Tensor):
            size = size._array.tolist()
        elif isinstance(size, str) or not hasattr(size, "__iter__"):
            raise TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
            )
    elif len(size) == 1 and isinstance(size[0], _dispatch.Tensor) and size[0].ndim:
        size = size[0]._array.tolist()
    shape = tuple([n if n.__class__ is int else _index(n, size, name) for n in size])
    for n in shape:
        if n < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _index(value: Any, size: Any, name: str) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        kind, place = type(value).__name__, next((i for i, n in enumerate(size) if n is value), 0)
        if place:
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {place + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            ) from None
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type {kind} at pos 0"
        ) from None


def _np(dtype: Any) -> np.dtype:
    return Default.np if dtype is None else dtype._np


def finish(tensor: Any, requires_grad: bool, pin_memory: bool = False, out: Any = None) -> Any:
    """The last step of a factory: `out=`, `requires_grad=`, and refusing pinned memory."""
    if pin_memory:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if out is not None:
        _dispatch.give_out(out, tensor._array)
        tensor = out
    if requires_grad:
        if tensor.dtype._rank < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        tensor.requires_grad = True
    return tensor


def check_out_dtype(dtype: Any, out: Any) -> None:
    """Refuse a `dtype=` that is not that of `out=`."""
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype._abbr} does not match dtype of out parameter ({out.dtype._abbr})")


# ---------------------------------------------------------------------------------------------------- filled


@op(
    "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _empty(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    if memory_format is _dtype.channels_last and len(size) == 4:
        n, c, h, w = size
        return np.empty((n, h, w, c), _np(dtype)).transpose(0, 3, 1, 2)
    if memory_format is _dtype.channels_last_3d and len(size) == 5:
        n, c, d, h, w = size
        return np.empty((n, d, h, w, c), _np(dtype)).transpose(0, 4, 1, 2, 3)
    return np.empty(size, _np(dtype))


@op(
    "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.zeros(size, _np(dtype))


_zeros.children(
    lambda size, dtype, layout, device, pin_memory, *, settings: [
        empty(size, dtype, layout, pin_memory),
        zero_(tensor_of(size, dtype_or_default(dtype, settings))),
    ]
)


def _filled(size: Any, value: Any, dtype: Any, layout: Any, pin_memory: Any) -> list[Child]:
    """The children of a factory that fills a tensor with a number; dtype: torch's number."""
    return [empty(size, dtype, layout, pin_memory), fill_(tensor_of(size, dtype), value)]


@op(
    "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _ones(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.ones(size, _np(dtype))


_ones.children(
    lambda size, dtype, layout, device, pin_memory, *, settings: _filled(
        size, 1.0, dtype_or_default(dtype, settings), layout, pin_memory
    )
)


@op(
    "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.full(size, fill_value, (_dtype_to_fill(fill_value) if dtype is None else dtype)._np)


def _dtype_to_fill(value: Any) -> Any:
    """The dtype of a tensor full of a number; of a complex one never half precision, whatever the default is, as in torch."""
    found = _dtype.number_dtype(value)
    return _dtype.complex64 if found is _dtype.complex32 else found


_full.children(
    lambda size, fill_value, dtype, layout, device, pin_memory, *, settings: _filled(
        size, fill_value, dtype_or_default(dtype, settings, fill_value), layout, pin_memory
    )
)


def _without_elements(name: str, shape: tuple, dtype: Any, layout: Any) -> Any:
    """A sparse tensor of zeros."""
    if name not in ("empty", "zeros") or layout._name not in _SPARSE:
        raise RuntimeError(f"{name}: layout {layout} is not supported, only torch.strided is")
    from .. import _sparse, _sparse_compressed

    kind = dtype or _dtype.Default.dtype
    if layout is _dtype.sparse_coo:
        return _sparse.empty(shape, len(shape), kind._np)
    return _sparse_compressed.zeros(shape, kind, _sparse_compressed.KINDS[layout._name])


def _factory(make: Any, name: str) -> Any:
    def factory(
        *size: Any,
        out: Any = None,
        dtype: Any = None,
        layout: Any = _STRIDED,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        names: Any = None,
        **keyword: Any,
    ) -> Any:
        if keyword:
            memory_format = keyword.pop("memory_format", None)
            shape = _sizes(size, keyword.pop("size", None), name)
            if keyword:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(keyword))}'")
        else:
            memory_format, shape = None, _sizes(size, None, name)
        if layout is not _STRIDED and layout is not None:
            return finish(_without_elements(name, shape, dtype, layout), requires_grad, pin_memory)
        default = _device._state.default
        if (device is not None or default is not None) and _device.resolve(device) is _device.META:
            return finish(meta_tensor(shape, _np(dtype)), requires_grad)
        if out is not None:
            check_out_dtype(dtype, out)
            form = getattr(factories_out, name)
            form(shape, memory_format=memory_format, result=out) if name == "empty" else form(
                shape, result=out
            )
            return finish(out, requires_grad, pin_memory)
        tensor = (
            make(shape, dtype=dtype)
            if memory_format is None
            else make(shape, dtype=dtype, memory_format=memory_format)
        )
        return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor

    factory.__name__ = name
    return factory


function("empty", expose="function")(_factory(_empty, "empty"))
function("zeros", expose="function")(_factory(_zeros, "zeros"))
function("ones", expose="function")(_factory(_ones, "ones"))


@function(expose="function")
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    names: Any = None,
) -> Any:
    """A tensor of one value."""
    if size.__class__ is int:
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    shape = _sizes((size,))
    if dtype is not None and dtype.__class__ is not _dtype.dtype:
        dtype = _dtype.named(dtype, "full")
    if isinstance(fill_value, _dispatch.Tensor):
        fill_value, dtype = fill_value.item(), dtype or fill_value.dtype
    elif not isinstance(fill_value, (int, float, complex, np.generic)):
        raise TypeError(
            f"full(): argument 'fill_value' (position 2) must be Number, not {type(fill_value).__name__}"
        )
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, (dtype or _dtype_to_fill(fill_value))._np), requires_grad)
    if out is not None:
        check_out_dtype(dtype, out)
        dtype = out.dtype
    if dtype is not None:
        fill_value = fitting(fill_value, dtype._np)
    if out is not None:
        factories_out.full(shape, fill_value, result=out)
        return finish(out, requires_grad, pin_memory)
    return finish(_full(shape, fill_value, dtype=dtype), requires_grad, pin_memory)


@op(
    "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _empty_strided(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    contiguous = np.empty(size, _np(dtype))
    if contiguous.strides == tuple([step * contiguous.itemsize for step in stride]):
        return contiguous
    if not contiguous.size:
        return contiguous
    reach = 1 + sum([(n - 1) * step for n, step in zip(size, stride)])
    memory = np.empty(reach, contiguous.dtype)
    return strided(memory, size, [step * memory.itemsize for step in stride])


@function(expose="function")
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A tensor of a shape and strides, not filled."""
    shape = _sizes((size,))
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, _np(dtype)), requires_grad)
    return finish(_empty_strided(shape, tuple(stride), dtype=dtype), requires_grad, pin_memory)


@function(expose="function")
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """An uninitialised tensor whose dimensions lie in memory in the given order."""
    order = [int(d) for d in physical_layout]
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for place, d in enumerate(order):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index {place})."
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    array = np.empty([size[d] for d in order], _np(dtype)).transpose(np.argsort(order))
    return finish(wrap(array), requires_grad, pin_memory)


# ---------------------------------------------------------------------------------------------------- like another


@op(
    "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _empty_like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    np_dtype = self.dtype if dtype is None else dtype._np
    if memory_format is not None and memory_format is not _dtype.preserve_format:
        return _dispatch.OPS["empty.memory_format"].kernel(
            self.shape, BY_NUM[np_dtype.num], None, None, None, memory_format
        )
    return dense_like(self, np_dtype)


def dense_like(array: np.ndarray, np_dtype: Any) -> np.ndarray:
    """An empty array in the memory order of `array`, or contiguous where that is not dense."""
    return empty_as(array, np_dtype)


@_empty_like.children
def _(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> list[Child]:
    dtype = dtype_number(self) if dtype is None else dtype
    if memory_format is UNKNOWN or memory_format in (None, 1):  # not known: it is rarely given
        strides = dense_strides(self, None)
        return [child("aten::empty_strided", self.shape, strides, dtype, 0, None, pin_memory, allocates=True)]
    return [empty(self.shape, dtype, 0, pin_memory, memory_format)]


def _like_result(self: Any, dtype: Any, memory_format: Any) -> Any:
    """The described result of `empty_like`."""
    if self is UNKNOWN:
        return UNKNOWN
    result = tensor_of(self.shape, dtype_number(self) if dtype is None else dtype)
    return result._replace(strides=dense_strides(self, memory_format))


def _like(aten_name: str, value: Any) -> Any:
    """Declare `zeros_like` or `ones_like`."""

    @op(
        f"{aten_name}(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
        expose="no",
        nondifferentiable=True,
    )
    def like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
        made = _empty_like.op.kernel(self, dtype, layout, device, pin_memory, memory_format)
        made.fill(value)
        return made

    like.op.sequenced = True

    return like


@op(
    "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _full_like(
    self: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any
) -> Any:
    made = _empty_like.op.kernel(self, dtype, layout, device, pin_memory, memory_format)
    made.fill(fill_value)
    return made


_full_like.op.sequenced = _empty_like.op.sequenced = True
_zeros_like, _ones_like = _like("aten::zeros_like", 0), _like("aten::ones_like", 1)


@_zeros_like.children
def _(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> list[Child]:
    result = _like_result(self, dtype, memory_format)
    layout = 0 if layout is None else layout
    return [
        child(
            "aten::empty_like",
            self,
            dtype_number(result),
            layout,
            None,
            pin_memory,
            memory_format,
            allocates=True,
        ),
        zero_(result),
    ]


def _filled_like(self: Any, value: Any, *options: Any) -> list[Child]:
    return [
        child("aten::empty_like", self, *options, allocates=True),
        fill_(_like_result(self, options[0], options[-1]), value),
    ]


_ones_like.children(lambda self, *options: _filled_like(self, 1.0, *options))
_full_like.children(_filled_like)


def below(make: Any, *arguments: Any, **named: Any) -> Any:
    """Call with gradients off: tensors made from Python have no sequence number in a profile."""
    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = False
    try:
        return make(*arguments, **named)
    finally:
        state.enabled = enabled


def _like_front(make: Any, name: str) -> Any:
    def like(
        input: Any,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:
        if device is not None and _device.resolve(device) is not input.device:
            if _device.resolve(device) is _device.META:
                return finish(meta_tensor(input.shape, (dtype or input.dtype)._np), requires_grad)
            tensor = make(wrap(np.empty(input.shape, input.dtype._np)), dtype=dtype)
        else:  # as `below`, inline: a call costs 0.3 µs
            state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
            state.enabled = False
            try:
                tensor = make(input, dtype=dtype, memory_format=memory_format)
            finally:
                state.enabled = enabled
        return finish(tensor, requires_grad, pin_memory) if requires_grad or pin_memory else tensor

    like.__name__ = name
    return like


function("empty_like", expose="function")(_like_front(_empty_like, "empty_like"))
function("zeros_like", expose="function")(_like_front(_zeros_like, "zeros_like"))
function("ones_like", expose="function")(_like_front(_ones_like, "ones_like"))


@function(expose="function")
def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of one value, like another in shape and dtype."""
    tensor = below(_full_like, input, fill_value, dtype=dtype, memory_format=memory_format)
    return finish(tensor, requires_grad, pin_memory)


def _new_op(aten_name: str, schema: str, build: Any) -> Any:
    return composite(
        f"{aten_name}(Tensor self, {schema}*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
        expose="no",
    )(build)


def _with_gradients_off(build: Any) -> Any:
    return lambda *arguments: below(build, *arguments)


_new_empty = _new_op(
    "aten::new_empty",
    "SymInt[] size, ",
    lambda self, size, dtype, layout, device, pin_memory: _empty(size, dtype=dtype or self.dtype),
)
_new_zeros = _new_op(
    "aten::new_zeros",
    "SymInt[] size, ",
    _with_gradients_off(
        lambda self, size, dtype, layout, device, pin_memory: F.zero_(_new_empty(self, size, dtype=dtype))
    ),
)
_new_ones = _new_op(
    "aten::new_ones",
    "SymInt[] size, ",
    _with_gradients_off(
        lambda self, size, dtype, layout, device, pin_memory: F.fill_(
            _new_empty(self, size, dtype=dtype), 1.0
        )
    ),
)
_new_full = _new_op(
    "aten::new_full",
    "SymInt[] size, Scalar fill_value, ",
    _with_gradients_off(
        lambda self, size, fill_value, dtype, layout, device, pin_memory: F.fill_(
            _new_empty(self, size, dtype=dtype), fill_value
        )
    ),
)


def _new_front(make: Any, name: str) -> Any:
    def method(
        self: Any,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = _STRIDED,
        pin_memory: bool = False,
        **keyword: Any,
    ) -> Any:
        shape = _sizes(size, keyword.get("size"))
        if (self._array_missing and is_meta(self) and device is None) or (
            device is not None and _device.resolve(device) is _device.META
        ):
            return finish(meta_tensor(shape, (dtype or self.dtype)._np), requires_grad)
        return finish(make(self, shape, dtype=dtype), requires_grad, pin_memory)

    method.__name__ = name
    return method


for _name, _make in (("new_empty", _new_empty), ("new_zeros", _new_zeros), ("new_ones", _new_ones)):
    function(_name, expose="method")(_new_front(_make, _name))


@function(expose="method")
def new_full(
    self: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = _STRIDED,
    pin_memory: bool = False,
) -> Any:
    """A tensor of one value with this tensor's dtype."""
    return finish(_new_full(self, _sizes((size,)), fill_value, dtype=dtype), requires_grad, pin_memory)


@function(expose="method")
def new_tensor(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any
) -> Any:
    """A tensor from data, with this tensor's dtype."""
    return F.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@function(expose="method")
def new_empty_strided(
    self: Any,
    size: Any,
    stride: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A tensor of a shape and strides with this tensor's dtype, not filled."""
    return finish(_new_empty_strided(self, tuple(size), tuple(stride), dtype=dtype), requires_grad)


@composite(
    "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
)
def _new_empty_strided(
    self: Any,
    size: Any,
    stride: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Any:
    return _empty_strided(size, stride, dtype=dtype or self.dtype)


@function(expose="method")
def new(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The old constructor, with this tensor's dtype."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], type(self.shape)):
        return F.tensor(args[0], dtype=self.dtype)
    if self._array_missing:
        return self.new_empty(*(args or (0,)))
    options = {"dtype": self.dtype, "layout": _STRIDED, "pin_memory": _dtype.LEFT_OUT}
    return _empty(_sizes(args or (0,)), **options)
