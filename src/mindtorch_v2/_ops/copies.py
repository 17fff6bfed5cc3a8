"""Copies and conversions: clone, contiguous, copy_, to, fill_, detach, resize_, set_; tensors in and out."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from .. import _device, _dispatch, _dtype
from .._dispatch import FUNCTIONS, METHODS, composite, function, ints, op, view, wrap
from .._graph import grad_state, note_holder, set_requires_grad, storage_of, version_of
from .._meta import MetaArray, is_meta
from .._op_errors import broadcast_text
from .._storage import UntypedStorage
from .._tensor import _C_NAMES, Tensor, _strided
from ._children import (
    UNKNOWN,
    Child,
    child,
    dense_strides,
    dtype_number,
    empty,
    empty_like,
    is_dense,
    tensor_of,
)
from ._layout import cast, copied, empty_in, store, writable
from ._namespace import functions as F
from ._overlap import ask as check_overlap
from ._scalars import fitting

_new = _dispatch.new_tensor
_CONTIGUOUS = _dtype.contiguous_format


# ---------------------------------------------------------------------------------- clone, contiguous


@op("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
def clone(self: np.ndarray, memory_format: Any) -> np.ndarray:
    return copied(self, memory_format)


clone.derivative(self=lambda g: g)


@clone.children
def _(self: Any, memory_format: Any) -> list[Child]:
    dtype = dtype_number(self)
    if memory_format not in (None, 1):
        allocation = child("aten::empty_like", self, dtype, 0, None, None, memory_format, allocates=True)
    elif is_dense(self):
        allocation = child("aten::empty_strided", self.shape, self.strides, dtype, 0, allocates=True)
    else:
        allocation = empty_like(self)
    return [allocation, child("aten::copy_", self._replace(strides=dense_strides(self, memory_format)), self)]


@function(expose="method")
def contiguous(self: Any, memory_format: Any = _CONTIGUOUS) -> Any:
    """This tensor if it is contiguous, else a contiguous copy."""
    if memory_format is _CONTIGUOUS:
        if not (self._array_missing and is_meta(self)) and self._array.flags.c_contiguous:
            return self
    elif memory_format is _dtype.preserve_format and not self.is_contiguous():
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if self.is_contiguous(memory_format):
        return self
    return _contiguous(self, memory_format=memory_format)


F.contiguous = contiguous


@composite(
    "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    expose="no",
)
def _contiguous(self: Any, memory_format: Any = None) -> Any:
    wanted = memory_format or _CONTIGUOUS
    return self if self.is_contiguous(wanted) else clone(self, memory_format=wanted)


# -------------------------------------------------------------------------------- copy_, fill_, zero_


@op(
    "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    inplace="aten::copy_",
    node="torch::autograd::CopyBackwards",
    expose="no",
)
def copy(self: np.ndarray, src: np.ndarray, non_blocking: bool, out: Any = None) -> np.ndarray:
    if out is None:
        out = np.empty_like(self)
    if out.base is not None:
        check_overlap(out, src)
    try:
        store(out, src)
    except ValueError:
        if not out.flags.writeable:
            raise
        text = broadcast_text((out.shape, src.shape))
        if text is None:
            shape = np.broadcast_shapes(out.shape, src.shape)
            text = f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}"
        raise RuntimeError(text) from None
    return out


copy.derivative(
    self=lambda g: F.zeros_like(g, memory_format=_CONTIGUOUS),
    src=lambda g, src_dtype: _to(g, dtype=src_dtype),
)
_copy_ = copy.op.inplace.entry


@function(expose="method")
def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Copy the elements of `other` into this tensor."""
    if other.__class__ in _dispatch.NUMBERS:
        other = F.full((), other)
    elif not isinstance(other, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(other).__name__}")
    if other._array_missing and is_meta(other) and not self._array_missing:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return _copy_(self, other, non_blocking)


def _fill_kernel(self: np.ndarray, value: Any, out: Any = None) -> np.ndarray:
    if out is None:
        out = np.empty_like(self)
    writable(out).fill(fitting(value, out.dtype, out.size == 1))
    return out


def _fill_tensor_kernel(self: np.ndarray, value: np.ndarray, out: Any = None) -> np.ndarray:
    if value.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
        )
    if out is None:
        out = np.empty_like(self)
    store(out, value)
    return out


_filled = op("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", expose="no", node="FillBackward0")(
    _fill_kernel
)
_filled.derivative(self=lambda g: F.zeros_like(g))
_filled_tensor = op(
    "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor", expose="no", node="FillBackward1"
)(_fill_tensor_kernel)
_filled_tensor.derivative(self=lambda g: F.zeros_like(g), value=lambda g: g.sum())


def _declare_inplace(base: Any, inplace: str, node: str) -> Any:
    """Declare the in-place form of `base` with a node and rules of its own."""
    unlisted = op(base.op.text, inplace=inplace, expose="no", listed=False, node=node)(base.op.kernel)
    unlisted.derivative(**base.op.rules)
    return unlisted.inplace


_fill_scalar_ = _declare_inplace(_filled, "aten::fill_.Scalar", "FillBackward2")
_fill_tensor_ = _declare_inplace(_filled_tensor, "aten::fill_.Tensor", "FillBackward3")


@function()
def fill_(input: Any, value: Any) -> Any:
    """Set every element to `value`."""
    return _fill_tensor_(input, value) if isinstance(value, Tensor) else _fill_scalar_(input, value)


@function(expose="function")
def fill(input: Any, value: Any) -> Any:
    """A tensor like `input` with every element `value`."""
    return _filled_tensor(input, value) if isinstance(value, Tensor) else _filled(input, value)


@op("aten::zero(Tensor self) -> Tensor", inplace="aten::zero_", expose="no")
def zero(self: np.ndarray, out: Any = None) -> np.ndarray:
    if out is None:
        return np.zeros_like(self)
    if (
        out.itemsize == 1 and out.dtype in _dtype.NP_FLOAT8
    ):  # float8_e8m0fnu has no zero: torch clears its bits
        out = writable(out)
        out.view(np.uint8).fill(0)
        return out
    writable(out).fill(0)
    return out


zero.derivative(self=lambda g: F.zeros_like(g))
zero_ = FUNCTIONS["zero_"] = zero.op.inplace.entry
# torch clears dense memory of less than 32768 elements by one call, other memory by `fill_`
zero.op.inplace.children(
    lambda self: (
        [] if is_dense(self) and 0 < math.prod(self.shape) < 32768 else [child("aten::fill_.Scalar", self, 0)]
    )
)


# -------------------------------------------------------------------------------------- detach, alias


@composite("aten::detach(Tensor(a) self) -> Tensor(a)")
def detach(self: Any) -> Any:
    detached = _new(Tensor)
    if self._array_missing:
        detached._array_missing, detached._array_description = True, self._array_description
        return detached
    detached._array = self._array
    detached._storage = storage_of(self)
    note_holder(self, detached)
    return detached


@composite("aten::detach_(Tensor(a!) self) -> Tensor(a!)")
def detach_(self: Any) -> Any:
    if self._grad_fn is None and self._base is None:
        set_requires_grad(self, False)
        return self
    from ..autograd.inplace import detach_ as forget

    return forget(self)


# torch shows a second event of the same name, without the namespace, inside these two
detach.children(lambda self: [child("detach", self)])
detach_.children(lambda self: [child("detach_", self)])
_alike = composite("aten::_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool", expose="no")(
    lambda self, from_: True
)


@view("aten::alias(Tensor(a) self) -> Tensor(a)", expose="no")
def alias(self: np.ndarray) -> np.ndarray:
    return self.view()


alias.derivative(self=lambda g: g)


@composite("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", expose="no")
def lift_fresh(self: Any) -> Any:
    return self


# ------------------------------------------------------------------------------------------------- to


@op(
    "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    node="ToCopyBackward0",
    expose="no",
)
def _to_copy(
    self: np.ndarray,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    non_blocking: bool,
    memory_format: Any,
) -> np.ndarray:
    if memory_format is None or memory_format is _dtype.preserve_format:
        return cast(self, self.dtype if dtype is None else dtype._np)
    out = empty_in(self, memory_format, None if dtype is None else dtype._np)
    store(out, self)
    return out


_to_copy.derivative(
    self=lambda g, self_dtype: _to(
        g if self_dtype.is_complex or not g.is_complex() else F.real(g), dtype=self_dtype
    )
)


@_to_copy.children
def _(
    self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, non_blocking: bool, memory_format: Any
) -> list[Child]:
    dtype = dtype_number(self) if dtype is None else dtype
    strides = dense_strides(self, memory_format)
    if memory_format is UNKNOWN or memory_format in (None, 1):  # not known: it is rarely given
        allocation = child("aten::empty_strided", self.shape, strides, dtype, 0, None, False, allocates=True)
    else:
        allocation = empty(self.shape, dtype, 0, False, memory_format)
    result = tensor_of(self.shape, dtype)._replace(strides=strides)
    return [allocation, child("aten::copy_", result, self, non_blocking)]


@composite(
    "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    expose="no",
)
def _to(
    self: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    non_blocking: bool,
    copy: bool,
    memory_format: Any,
) -> Any:
    if device is not None and device is not self.device:
        return _to_other_device(self, dtype, device)
    if (
        not copy
        and (dtype is None or dtype is self.dtype)
        and (
            memory_format is None
            or memory_format is _dtype.preserve_format
            or self.is_contiguous(memory_format)
        )
    ):
        return self
    return _to_copy(self, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)


@composite(
    "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    expose="no",
)
def _to_dtype(
    self: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Any:
    if (
        not copy
        and not (self._array_missing and is_meta(self))
        and dtype._np is self._array.dtype
        and (
            memory_format is None
            or memory_format is _dtype.preserve_format
            or self.is_contiguous(memory_format)
        )
    ):
        return self
    return _to_copy(self, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)


@composite(
    "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)",
    expose="no",
)
def to_device(
    self: Any,
    device: Any,
    dtype: Any,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """The overload for a device and a dtype; the device is the tensor's own."""
    if (
        not copy
        and dtype is self.dtype
        and (
            memory_format is None
            or memory_format is _dtype.preserve_format
            or self.is_contiguous(memory_format)
        )
    ):
        return self
    return _to_copy(self, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)


def _to_other_device(self: Any, dtype: Any, device: Any) -> Any:
    if is_meta(self):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return F.empty_strided(self.shape, self.stride(), dtype=dtype or self.dtype, device=device)


_PYTHON_TYPES = _dtype.PYTHON_TYPES


def _bad_to(args: tuple, kwargs: dict) -> TypeError:
    given = ", ".join(
        [type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
    )
    tail = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    return TypeError(
        f"to() received an invalid combination of arguments - got ({given}{', ' if kwargs else ''}), but "
        "expected one of:\n"
        f" * (torch.device device = None, torch.dtype dtype = None, {tail} * (torch.dtype dtype, {tail} * "
        f"(Tensor tensor, {tail}"
    )


def parse_to(args: tuple, kwargs: dict) -> tuple[Any, Any, bool, bool, Any]:
    """Device, dtype, non_blocking, copy and memory format, from any call form of `to`."""
    named = dict(kwargs)
    memory_format = named.pop("memory_format", None)
    first = args[0] if args else None
    device = dtype = None
    if isinstance(first, Tensor):
        names: tuple = ("tensor", "non_blocking", "copy")
    elif isinstance(first, _dtype.dtype) or first in _PYTHON_TYPES:
        names = ("dtype", "non_blocking", "copy")
    elif first is None or isinstance(first, (str, int, _device.device)):
        names = (
            ("device", "dtype", "non_blocking", "copy")
            if args or "tensor" not in named
            else ("tensor", "non_blocking", "copy")
        )
    else:
        raise _bad_to(args, kwargs)
    if len(args) > len(names):
        raise _bad_to(args, kwargs)
    values = dict(zip(names, args))
    for name, value in named.items():
        if name in values or (name not in names and not (name == "device" and names[0] == "dtype")):
            raise _bad_to(args, kwargs)
        values[name] = value
    if "tensor" in values:
        device, dtype = values["tensor"].device, values["tensor"].dtype
    else:
        device, dtype = values.get("device"), values.get("dtype")
        dtype = _PYTHON_TYPES.get(dtype, dtype) if isinstance(dtype, type) else dtype
        if isinstance(device, int) and not isinstance(device, bool):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if device is not None:
            device = _device.resolve(device)
    return (
        device,
        dtype,
        bool(values.get("non_blocking", False)),
        bool(values.get("copy", False)),
        memory_format,
    )


@function(expose="method")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """This tensor in another dtype, device or memory format; itself if nothing changes."""
    if len(args) == 1 and not kwargs and args[0].__class__ is _dtype.dtype:
        return _to_dtype(self, args[0])
    device, dtype, non_blocking, copy, memory_format = parse_to(args, kwargs)
    if dtype is not None:
        if device is None:
            return _to_dtype(self, dtype, non_blocking, copy, memory_format)
        if device is self.device:
            return to_device(self, device, dtype, non_blocking, copy, memory_format)
    elif device is None and not copy and memory_format is None:
        return self
    return _to(
        self, dtype=dtype, device=device, non_blocking=non_blocking, copy=copy, memory_format=memory_format
    )


F.to = to


def _converter(name: str, wanted: Any) -> Any:
    def convert(self: Any, memory_format: Any = None) -> Any:
        return _to_dtype(self, wanted, False, False, memory_format)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"This tensor as torch.{wanted._name}."
    METHODS[name] = convert
    return convert


for _name, _wanted in (
    ("float", _dtype.float32), ("double", _dtype.float64), ("half", _dtype.float16),
    ("bfloat16", _dtype.bfloat16), ("int", _dtype.int32), ("long", _dtype.int64), ("short", _dtype.int16),
    ("char", _dtype.int8), ("byte", _dtype.uint8),
    ("bool", _dtype.bool_), ("chalf", _dtype.complex32), ("cfloat", _dtype.complex64), ("cdouble", _dtype.complex128),
):  # fmt: skip
    _converter(_name, _wanted)


@composite("aten::type_as(Tensor self, Tensor other) -> Tensor", expose="method")
def type_as(self: Any, other: Any) -> Any:
    return _to(self, dtype=other.dtype)


_TYPE_NAMES = {f"torch.{d._abbr}Tensor": d for d in (*_dtype.ALL, *_dtype.FLOAT8)}


@function("type", expose="method")
def type_(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of the tensor's type, or this tensor as another type."""
    if dtype is None:
        return f"torch.{self.dtype._abbr}Tensor"
    if isinstance(dtype, _dtype.dtype):
        return _to_dtype(self, dtype, non_blocking)
    if isinstance(dtype, type):
        dtype = getattr(dtype, "_type_name", None) or (
            f"torch.{dtype.__name__}" if dtype.__module__.startswith("mindtorch_v2") else dtype.__name__
        )
    elif not isinstance(dtype, str):
        raise TypeError("dtype must be a type, str, or dtype object")
    if dtype == "torch.Tensor":
        return _to_dtype(self, _dtype.Default.dtype, non_blocking)
    wanted = _TYPE_NAMES.get(dtype)
    if wanted is None:
        raise ValueError(f"invalid type: '{dtype}'")
    return _to_dtype(self, wanted, non_blocking)


@function(expose="method")
def cpu(self: Any, memory_format: Any = None) -> Any:
    """This tensor on the CPU: itself."""
    return _to(self, device=_device.CPU, memory_format=memory_format)


@function(expose="method")
def cuda(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    """Refuse, as torch without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")


@function(expose="method")
def xpu(self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    """Refuse, as torch without XPU does."""
    raise AssertionError("Torch not compiled with XPU enabled")


# -------------------------------------------------------------------------------------- resize_, set_


def _no_resize(self: Any) -> None:
    if self._rg:
        raise RuntimeError("cannot resize variables that require grad")


def _unknown(self: Any) -> None:
    """Forget what a recording knows of this tensor: its memory has changed."""
    if self._tensor_id > 0:
        self._tensor_id = -self._tensor_id


def _resize_to(self: Any, size: tuple) -> Any:
    """Give `self` a contiguous shape on its storage, made longer if need be."""
    _no_resize(self)
    count = math.prod(size)
    if size and min(size) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    if self._array_missing:
        self._array_description = MetaArray(size, self._array_description.dtype)
        return self
    array = self._array
    storage = storage_of(self)
    offset = self.storage_offset()
    needed = (offset + count) * array.itemsize
    if needed > storage.nbytes():
        storage.resize_(needed)
        _unknown(self)
    strides, step = [0] * len(size), 1
    for d in range(len(size) - 1, -1, -1):
        strides[d] = step
        step *= max(size[d], 1)
    self._array, self._form = _strided(storage, array.dtype, offset, size, strides), 0
    return self


@composite(
    "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    expose="no",
)
def _resize_(self: Any, size: tuple, memory_format: Any = None) -> Any:
    if self.shape != size:
        _resize_to(self, size)
    _no_resize(self)
    if memory_format not in (None, _CONTIGUOUS, _dtype.preserve_format):
        laid = copied(self._array, memory_format)
        self._array, self._storage = laid, UntypedStorage._of(laid)
    return self


@function(expose="method")
def resize_(self: Any, *size: Any, memory_format: Any = None, **named: Any) -> Any:
    """Change the shape in place; new elements, if any, are not initialised."""
    if named:
        size = (_dispatch.only_named("resize_", size, named, "size"),)
    wanted = ints(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else ints(size)
    return _resize_(self, wanted, memory_format=memory_format)


@composite(
    "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
    "Tensor(a!)"
)
def resize_as_(self: Any, the_template: Any, memory_format: Any = None) -> Any:
    return _resize_(self, tuple(the_template.shape), memory_format=memory_format)


def _look_at(self: Any, source: Any, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
    if self._rg and grad_state.enabled:
        if self._grad_fn is None:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        raise RuntimeError("derivative for aten::set_ is not implemented")
    if source is None:
        source = wrap(np.empty(0, self._array.dtype))
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {_C_NAMES.get(source.dtype._abbr, source.dtype._abbr)} to a tensor of type "
                f"{_C_NAMES.get(self.dtype._abbr, self.dtype._abbr)}"
            )
        storage = storage_of(source)
        if size is None:
            array = source._array
        else:
            array = _strided(storage, self._array.dtype, storage_offset, size, stride or _steps(size))
    else:
        storage = getattr(source, "_untyped_storage", source)
        if size is None:
            size = (storage.nbytes() // self._array.itemsize,)
        array = _strided(storage, self._array.dtype, storage_offset, size, stride or _steps(size))
    _unknown(self)
    version = version_of(self)
    self._array, self._storage, self._form = array, storage._alias(), 0
    self._storage._version = version + 1
    note_holder(source if isinstance(source, Tensor) else self, self)
    return self


@composite("aten::set_(Tensor(a!) self) -> Tensor(a!)", expose="no")
def _set_to_nothing(self: Any) -> Any:
    return _look_at(self, None)


@composite("aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", expose="no")
def _set_to_tensor(self: Any, source: Any) -> Any:
    return _look_at(self, source)


@composite("aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)", expose="no")
def _set_to_storage(self: Any, source: Any) -> Any:
    return _look_at(self, source)


@composite(
    "aten::set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[])"
    " -> Tensor(a!)",
    expose="no",
)
def _set_into_storage(self: Any, source: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return _look_at(self, source, storage_offset, size, stride)


@composite(
    "aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, SymInt[] size, SymInt[] stride=[])"
    " -> Tensor(a!)",
    expose="no",
)
def _set_into_tensor(self: Any, source: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return _look_at(self, source, storage_offset, size, stride)


def _steps(size: Any) -> list[int]:
    strides, step = [], 1
    for n in reversed(tuple(size)):
        strides.append(step)
        step *= max(n, 1)
    return strides[::-1]


@function(expose="method")
def set_(self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Any:
    """Use the memory of another tensor or storage from now on."""
    if source is None and size is None:
        return _set_to_nothing(self)
    tensor = isinstance(source, Tensor)
    if size is None and not storage_offset:
        return (_set_to_tensor if tensor else _set_to_storage)(self, source)
    if size is None:
        return _look_at(self, source, storage_offset, size, stride)
    into = _set_into_tensor if tensor else _set_into_storage
    return into(self, source, storage_offset, ints(size), () if stride is None else ints(stride))


@function(expose="method")
def resize(self: Any, *sizes: Any) -> Any:
    """The same elements in another shape; the old name of view, which warns."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    wanted = ints(sizes[0]) if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else ints(sizes)
    if math.prod(wanted) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, wanted))} ({math.prod(wanted)} elements in total), but "
            "the given tensor has a size of "
            f"{'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only change "
            "the shape of a given tensor, "
            "while preserving the number of elements. "
        )
    return F.reshape(self, wanted)


@function(expose="method")
def resize_as(self: Any, tensor: Any) -> Any:
    """The same elements in the shape of another tensor; warns as `resize` does."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
    return F.reshape(self, tuple(tensor.shape))


@function(expose="method")
def storage(self: Any) -> Any:
    """The memory as a storage of elements; `untyped_storage` is the newer one, of bytes."""
    from ..storage import TypedStorage, _warn_typed_storage_removal

    _warn_typed_storage_removal(stacklevel=2)
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


@function(expose="method")
def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost in memory."""
    formats = ambiguity_check if isinstance(ambiguity_check, (tuple, list)) else ()
    if not isinstance(ambiguity_check, bool) and not (
        formats and all(isinstance(f, _dtype.memory_format) for f in formats)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, strides = tuple(self.shape), self.stride()
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    if ambiguity_check is False:
        return tuple(order)
    ambiguous = any(strides[a] == strides[b] for a, b in itertools.pairwise(order))
    if ambiguity_check is True:
        fits = not ambiguous
    else:
        fits = sum(self.is_contiguous(memory_format=f) for f in ambiguity_check) == 1 or not ambiguous
    if not fits:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory "
            "formats."
        )
    return tuple(order)
