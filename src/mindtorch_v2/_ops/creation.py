"""Making tensors: from Python and NumPy data, filled, counted, and like another tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _device, _dtype
from .. import _dispatch
from .._dispatch import composite, function, op, wrap
from .._dtype import BY_NUM, Default
from .._meta import meta_tensor
from .._sampling import fma64
from ._layout import empty_as
from ._namespace import functions as F

_STRIDED = _dtype.strided


def _sizes(size: tuple, keyword: Any = None) -> tuple:
    """A shape from varargs, one sequence, or the keyword `size`."""
    if keyword is not None:
        size = (keyword,)
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
        if isinstance(size, _dispatch.Tensor):
            size = size.tolist()
    elif len(size) == 1 and isinstance(size[0], _dispatch.Tensor) and size[0].ndim:
        size = size[0].tolist()
    shape = tuple([n if n.__class__ is int else _index(n, size) for n in size])
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _index(value: Any, size: Any) -> int:
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"empty(): argument 'size' (position 1) must be tuple of ints, but found element of type {type(value).__name__} at pos 0"
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


# ---------------------------------------------------------------------------------------------------- filled


@op("aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _empty(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    if memory_format is _dtype.channels_last and len(size) == 4:
        n, c, h, w = size
        return np.empty((n, h, w, c), _np(dtype)).transpose(0, 3, 1, 2)
    if memory_format is _dtype.channels_last_3d and len(size) == 5:
        n, c, d, h, w = size
        return np.empty((n, d, h, w, c), _np(dtype)).transpose(0, 4, 1, 2, 3)
    return np.empty(size, _np(dtype))


@op("aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.zeros(size, _np(dtype))


@_zeros.recorded
def _(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.zero_(_empty(size, dtype=dtype))


@op("aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _ones(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.ones(size, _np(dtype))


@_ones.recorded
def _(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(_empty(size, dtype=dtype), 1)


@op("aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.full(size, fill_value, (_dtype.number_dtype(fill_value) if dtype is None else dtype)._np)


@_full.recorded
def _(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(_empty(size, dtype=dtype or _dtype.number_dtype(fill_value)), fill_value)


def _factory(make: Any, name: str) -> Any:
    def factory(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None, pin_memory: bool = False,
        requires_grad: bool = False, names: Any = None, **keyword: Any,
    ) -> Any:  # fmt: skip
        if keyword:
            memory_format = keyword.pop("memory_format", None)
            shape = _sizes(size, keyword.pop("size", None))
            if keyword:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(keyword))}'")
        else:
            memory_format, shape = None, _sizes(size)
        if device is not None or _device._state.default is not None:
            if _device.resolve(device) is _device.META:
                return finish(meta_tensor(shape, _np(dtype)), requires_grad)
        if out is not None and dtype is None:
            dtype = out.dtype
        made = make(shape, dtype=dtype) if memory_format is None else make(shape, dtype=dtype, memory_format=memory_format)
        return finish(made, requires_grad, pin_memory, out) if requires_grad or pin_memory or out is not None else made

    factory.__name__ = name
    return factory


function("empty", expose="function")(_factory(_empty, "empty"))
function("zeros", expose="function")(_factory(_zeros, "zeros"))
function("ones", expose="function")(_factory(_ones, "ones"))


@function(expose="function")
def full(
    size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, names: Any = None,
) -> Any:  # fmt: skip
    """A tensor of one value."""
    shape = _sizes((size,))
    if isinstance(fill_value, _dispatch.Tensor):
        fill_value, dtype = fill_value.item(), dtype or fill_value.dtype
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, (dtype or _dtype.number_dtype(fill_value))._np), requires_grad)
    if out is not None and dtype is None:
        dtype = out.dtype
    return finish(_full(shape, fill_value, dtype=dtype), requires_grad, pin_memory, out)


@op("aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _empty_strided(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    order = sorted(range(len(size)), key=lambda d: (-stride[d], d))
    dense = np.empty([size[d] for d in order], _np(dtype))
    made = dense.transpose(np.argsort(order)) if size else dense
    item = made.itemsize
    if made.size and any(n > 1 and s != w * item for n, s, w in zip(made.shape, made.strides, stride)):
        reach = 1 + sum((n - 1) * s for n, s in zip(size, stride))
        return np.ndarray(size, made.dtype, np.empty(reach, made.dtype), 0, tuple(s * item for s in stride))
    return made


@function(expose="function")
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = _STRIDED, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor of a shape and strides, not filled."""
    shape = _sizes((size,))
    if _device.resolve(device) is _device.META:
        return finish(meta_tensor(shape, _np(dtype)), requires_grad)
    return finish(_empty_strided(shape, tuple(stride), dtype=dtype), requires_grad, pin_memory)


@function(expose="function")
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = _STRIDED, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor whose dimensions stand in memory in the given order, not filled."""
    order = [int(d) for d in physical_layout]
    array = np.empty([size[d] for d in order], _np(dtype)).transpose(np.argsort(order))
    return finish(wrap(array), requires_grad, pin_memory)


# ---------------------------------------------------------------------------------------------------- like another


@op("aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _empty_like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    np_dtype = self.dtype if dtype is None else dtype._np
    if memory_format is not None and memory_format is not _dtype.preserve_format:
        return _dispatch.OPS["empty.memory_format"].kernel(self.shape, BY_NUM[np_dtype.num], None, None, None, memory_format)
    return dense_like(self, np_dtype)


def dense_like(array: np.ndarray, np_dtype: Any) -> np.ndarray:
    """An empty array in the memory order of `array`, or contiguous where that is not dense."""
    return empty_as(array, np_dtype)


@_empty_like.recorded
def _(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    made = wrap(_empty_like.op.kernel(self._array, dtype, None, None, None, memory_format))
    if memory_format is not None and memory_format is not _dtype.preserve_format:
        return _empty(tuple(self._array.shape), dtype=made.dtype, memory_format=memory_format)
    return _empty_strided(tuple(made._array.shape), made.stride(), dtype=made.dtype)


def _like(name: str, value: Any) -> Any:
    """Declare `<name>_like` for a fixed value."""

    @op(f"aten::{name}_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
    def like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
        made = _empty_like.op.kernel(self, dtype, layout, device, pin_memory, memory_format)
        made.fill(value)
        return made

    @like.recorded
    def _(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
        made = _empty_like(self, dtype=dtype, memory_format=memory_format)
        return F.fill_(made, value) if value else F.zero_(made)

    return like


@op("aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _full_like(self: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    made = _empty_like.op.kernel(self, dtype, layout, device, pin_memory, memory_format)
    made.fill(fill_value)
    return made


@_full_like.recorded
def _(self: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    return F.fill_(_empty_like(self, dtype=dtype, memory_format=memory_format), fill_value)


def _like_front(make: Any, name: str) -> Any:
    def like(
        input: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:  # fmt: skip
        if device is not None and _device.resolve(device) is not input.device:
            if _device.resolve(device) is _device.META:
                return finish(meta_tensor(input.shape, (dtype or input.dtype)._np), requires_grad)
            made = make(wrap(np.empty(input.shape, input.dtype._np)), dtype=dtype)
        else:
            made = make(input, dtype=dtype, memory_format=memory_format)
        return finish(made, requires_grad, pin_memory) if requires_grad or pin_memory else made

    like.__name__ = name
    return like


function("empty_like", expose="function")(_like_front(_empty_like, "empty_like"))
function("zeros_like", expose="function")(_like_front(_like("zeros", 0), "zeros_like"))
function("ones_like", expose="function")(_like_front(_like("ones", 1), "ones_like"))


@function(expose="function")
def full_like(
    input: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None,
) -> Any:  # fmt: skip
    """A tensor of one value, like another in shape and dtype."""
    return finish(_full_like(input, fill_value, dtype=dtype, memory_format=memory_format), requires_grad, pin_memory)


def _new_op(name: str, schema: str, build: Any) -> Any:
    return composite(f"aten::{name}(Tensor self, {schema}*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                     "bool? pin_memory=None) -> Tensor", expose="no")(build)  # fmt: skip


_new_empty = _new_op("new_empty", "SymInt[] size, ", lambda self, size, dtype, layout, device, pin_memory: _empty(
    size, dtype=dtype or self.dtype))  # fmt: skip
_new_zeros = _new_op("new_zeros", "SymInt[] size, ", lambda self, size, dtype, layout, device, pin_memory: F.zero_(
    _new_empty(self, size, dtype=dtype)))  # fmt: skip
_new_ones = _new_op("new_ones", "SymInt[] size, ", lambda self, size, dtype, layout, device, pin_memory: F.fill_(
    _new_empty(self, size, dtype=dtype), 1))  # fmt: skip
_new_full = _new_op("new_full", "SymInt[] size, Scalar fill_value, ",
    lambda self, size, fill_value, dtype, layout, device, pin_memory: F.fill_(_new_empty(self, size, dtype=dtype), fill_value))  # fmt: skip


def _new_front(make: Any, name: str) -> Any:
    def method(
        self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = _STRIDED,
        pin_memory: bool = False, **keyword: Any,
    ) -> Any:  # fmt: skip
        shape = _sizes(size, keyword.get("size"))
        if (self._array_missing and device is None) or (device is not None and _device.resolve(device) is _device.META):
            return finish(meta_tensor(shape, (dtype or self.dtype)._np), requires_grad)
        return finish(make(self, shape, dtype=dtype), requires_grad, pin_memory)

    method.__name__ = name
    return method


for _name, _make in (("new_empty", _new_empty), ("new_zeros", _new_zeros), ("new_ones", _new_ones)):
    function(_name, expose="method")(_new_front(_make, _name))


@function(expose="method")
def new_full(
    self: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = _STRIDED, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor of one value with this tensor's dtype."""
    return finish(_new_full(self, _sizes((size,)), fill_value, dtype=dtype), requires_grad, pin_memory)


@function(expose="method")
def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """A tensor from data, with this tensor's dtype."""
    return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


@function(expose="method")
def new_empty_strided(
    self: Any, size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A tensor of a shape and strides with this tensor's dtype, not filled."""
    return finish(_new_empty_strided(self, tuple(size), tuple(stride), dtype=dtype), requires_grad)


@composite("aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
           "Device? device=None, bool? pin_memory=None) -> Tensor", expose="no")  # fmt: skip
def _new_empty_strided(
    self: Any, size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Any:
    return _empty_strided(size, stride, dtype=dtype or self.dtype)


@function(expose="method")
def new(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The old constructor, with this tensor's dtype."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], tuple(()) or type(self.shape)):
        return tensor(args[0], dtype=self.dtype)
    return self.new_empty(*(args or (0,)))


# ---------------------------------------------------------------------------------------------------- counted


def _count_dtype(*numbers: Any) -> Any:
    if any(isinstance(n, _dispatch.Tensor) and n.dtype._rank >= 2 or isinstance(n, (float, np.floating)) for n in numbers):
        return Default.dtype
    return _dtype.int64


@op("aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor", expose="no", nondifferentiable=True)  # fmt: skip
def _arange(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    dtype = dtype or _count_dtype(start, end, step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for bound in (start, end):
        if not math.isfinite(bound):
            raise RuntimeError(f"unsupported range: {float(start):g} -> {float(end):g}")
    if (step > 0) != (end >= start) and start != end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype._rank == 1 and all(isinstance(v, int) for v in (start, end, step)):
        return np.arange(start, end, step, dtype=dtype._np)
    count = max(0, math.ceil((float(end) - float(start)) / float(step)))
    if dtype._rank == 1:
        return (int(start) + int(step) * np.arange(count, dtype=np.int64)).astype(dtype._np)
    wide = np.float64 if dtype is _dtype.float64 else np.float64
    return (start + step * np.arange(count, dtype=wide)).astype(dtype._np)


@op("aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _arange_end(end: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return _arange.op.kernel(0, end, 1, dtype, layout, device, pin_memory)


@function(expose="function")
def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Numbers from start up to, not including, end."""
    if dtype is None:
        dtype = _count_dtype(start, 0 if end is None else end, step) if out is None else out.dtype
    if end is None and step == 1:
        made = _arange_end(start, dtype=dtype)
    else:
        made = _arange(*((0, start) if end is None else (start, end)), step, dtype=dtype)
    if _device.resolve(device) is _device.META:
        made = meta_tensor(made.shape, made._array.dtype)
    return finish(made, requires_grad, pin_memory, out)


@function("range", expose="function")
def range_(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Numbers from start up to and including end."""
    import warnings

    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use torch.arange, which produces values in [start, end).", UserWarning, stacklevel=2,
    )  # fmt: skip
    start, end = (0, start) if end is None else (start, end)
    count = int(math.floor((end - start) / step)) + 1
    return finish(wrap((start + step * np.arange(count)).astype(_np(dtype))), requires_grad, False, out)


def _line(start: float, end: float, steps: int, dtype: Any) -> np.ndarray:
    """`steps` numbers from start to end, counted from both ends as torch does, so that both are exact. Float32 and float64
    have one rounding in each product and sum, the shorter floats one after every step."""
    if steps == 1:
        return np.full(1, start)
    index = np.arange(steps)
    lower = index < steps // 2
    count = np.where(lower, index, steps - 1 - index).astype(np.float64)
    if dtype._np in _dtype.LOW_FLOATS:
        kind = dtype._np.type
        first, last = kind(start), kind(end)
        step = kind((last - first) / kind(steps - 1))
        moved = (step * count.astype(dtype._np)).astype(dtype._np)
        return np.where(lower, first + moved, last - moved)
    if dtype is _dtype.float32:
        first, last = np.float32(start), np.float32(end)
        step = float((last - first) / np.float32(steps - 1))
        return np.where(lower, float(first) + step * count, float(last) - step * count).astype(np.float32)
    if dtype.is_complex:
        parts = [(v.real, v.imag) if isinstance(v, complex) else (v, 0.0) for v in (start, end)]
        made = np.empty(steps, dtype._np)
        made.real, made.imag = (_line(*ends, steps, dtype.to_real()) for ends in zip(*parts))
        return made
    if dtype._rank < 2:
        start, end = int(start), int(end)
    step = (end - start) / (steps - 1)
    return np.where(lower, fma64(count, step, start), fma64(count, -step, end))


def _spaced(name: str, schema: str, finish_line: Any) -> Any:
    text = (f"aten::{name}(Scalar start, Scalar end, int steps{schema}, *, ScalarType? dtype=None, Layout? layout=None, "
            "Device? device=None, bool? pin_memory=None) -> Tensor")  # fmt: skip
    return op(text, expose="no", nondifferentiable=True)(finish_line)


def _linspace_kernel(start: Any, end: Any, steps: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None:
        dtype = Default.dtype.to_complex() if isinstance(start + end, complex) else Default.dtype
    return _line(start, end, steps, dtype).astype(dtype._np) if steps else np.empty(0, dtype._np)


def _logspace_kernel(start: Any, end: Any, steps: int, base: float, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype = dtype or Default.dtype
    return np.power(float(base), _line(start, end, steps, dtype)).astype(dtype._np) if steps else np.empty(0, dtype._np)


_linspace = _spaced("linspace", "", _linspace_kernel)
_logspace = _spaced("logspace", ", float base=10.0", _logspace_kernel)


@function(expose="function")
def linspace(
    start: Any, end: Any, steps: Any, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Evenly spaced numbers, both ends included."""
    made = _linspace(start, end, int(steps), dtype=dtype or (None if out is None else out.dtype))
    return finish(made, requires_grad, pin_memory, out)


@function(expose="function")
def logspace(
    start: Any, end: Any, steps: Any, base: float = 10.0, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Powers of `base` with evenly spaced exponents."""
    made = _logspace(start, end, int(steps), base, dtype=dtype or (None if out is None else out.dtype))
    return finish(made, requires_grad, pin_memory, out)


@op("aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _eye(n: int, m: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.eye(n, m, dtype=_np(dtype))


@function(expose="function")
def eye(
    n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = _STRIDED, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Ones on the diagonal, zeros elsewhere."""
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    made = _eye(n, n if m is None else m, dtype=dtype or (None if out is None else out.dtype))
    if _device.resolve(device) is _device.META:
        made = meta_tensor(made.shape, made._array.dtype)
    return finish(made, requires_grad, pin_memory, out)


# ---------------------------------------------------------------------------------------------------- from data


def _infer(data: Any) -> Any:
    """The dtype torch gives to Python data: the widest category met, floats as the default dtype."""
    if isinstance(data, (list, tuple)):
        best = None
        for item in data:
            found = _infer(item)
            if found is not None:
                best = found if best is None else _dtype.promote_types(best, found)
        return best
    if isinstance(data, _dispatch.Tensor):
        return data.dtype
    if isinstance(data, np.ndarray):
        return _dtype.from_numpy_dtype(data.dtype)
    if isinstance(data, np.generic):
        return _dtype.from_numpy_dtype(data.dtype)
    if isinstance(data, (bool, int, float, complex)):
        return _dtype.number_dtype(data)
    if hasattr(data, "__array__"):
        return _dtype.from_numpy_dtype(np.asarray(data).dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return _infer([data[i] for i in range_builtin(len(data))])
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


range_builtin = range


def _plain(data: Any) -> Any:
    """Nested data with tensors turned into arrays and lengths checked."""
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    if isinstance(data, _dispatch.Tensor):
        return data._array
    return data


def _check_lengths(data: Any, depth: int = 0) -> Any:
    """torch's error for ragged sequences."""
    if not isinstance(data, (list, tuple)):
        return
    lengths = {len(item) if isinstance(item, (list, tuple)) else None for item in data}
    if len(lengths) > 1:
        first = len(data[0]) if isinstance(data[0], (list, tuple)) else None
        for item in data:
            now = len(item) if isinstance(item, (list, tuple)) else None
            if now != first and first is not None and now is not None:
                raise ValueError(f"expected sequence of length {first} at dim {depth + 1} (got {now})")
        odd = next(item for item in data if isinstance(item, (list, tuple)) != isinstance(data[0], (list, tuple)))
        if isinstance(data[0], (list, tuple)):
            raise TypeError(f"expected sequence at dim {depth + 1} (got {type(odd).__name__})" if not isinstance(odd, (list, tuple)) else "")
        raise TypeError(f"must be real number, not {type(odd).__name__}")
    for item in data:
        _check_lengths(item, depth + 1)


def array_of(data: Any, dtype: Any) -> np.ndarray:
    """A fresh array of Python, NumPy or tensor data."""
    kind = data.__class__
    if kind is float or kind is int or kind is bool or kind is complex:
        if dtype is None:
            dtype = _dtype.number_dtype(data)
        try:
            return np.array(data, dtype._np)
        except OverflowError:
            if dtype._rank == 1 and dtype is not _dtype.int64:
                raise RuntimeError(f"value cannot be converted to type {dtype._name}_t without overflow") from None
            raise RuntimeError("Overflow when unpacking long long") from None
        except TypeError:
            return np.array(data).astype(dtype._np)
    if isinstance(data, _dispatch.Tensor):
        return data._array.astype(dtype._np) if dtype is not None else data._array.copy()
    if isinstance(data, (np.ndarray, np.generic)):
        found = _dtype.from_numpy_dtype(np.asarray(data).dtype)
        return np.array(data, (dtype or found)._np, order="C")
    wanted = dtype or _infer(data) or Default.dtype
    plain = data if not _has_tensors(data) else _plain(data)
    try:
        array = np.array(plain)
    except ValueError:
        _check_lengths(plain)
        raise
    if array.dtype.hasobject:
        _check_lengths(plain)
        if wanted._rank == 1:
            raise RuntimeError("Overflow when unpacking long long")
        array = np.array(plain, wanted._np)
    return np.ascontiguousarray(array.astype(wanted._np, copy=False)).reshape(array.shape)


def _has_tensors(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_tensors(item) for item in data[:1]) or (bool(data) and not isinstance(data[0], (list, tuple)) and any(
            isinstance(item, _dispatch.Tensor) for item in data))  # fmt: skip
    return isinstance(data, _dispatch.Tensor)


def _record_new(data: Any, array: np.ndarray) -> Any:
    """What torch.tensor shows in a profile: for lists the allocation, `to`, `lift_fresh`; for NumPy arrays a copy by `to`."""
    from .copies import to_device

    dtype = BY_NUM[array.dtype.num]
    if isinstance(data, np.ndarray):
        return to_device(F.lift_fresh(wrap(array)), _device.CPU, dtype, copy=True)
    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = False
    try:
        made = _empty(tuple(array.shape), dtype=dtype)
        np.copyto(made._array, array)
        return F.lift_fresh(to_device(made, _device.CPU, dtype))
    finally:
        state.enabled = enabled


@function(expose="function")
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False, names: Any = None
) -> Any:
    """A tensor from Python or NumPy data, always copied."""
    if device is not None or _device._state.default is not None:
        where = _device.resolve(device)
    else:
        where = _device.CPU
    if isinstance(data, _dispatch.Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).", UserWarning, stacklevel=2,
        )  # fmt: skip
        made = data.detach().to(dtype or data.dtype, copy=True).detach_()
        return finish(made, requires_grad, pin_memory)
    array = array_of(data, dtype)
    if where is _device.META:
        return finish(meta_tensor(array.shape, array.dtype), requires_grad)
    if _dispatch.recorder is None:
        made = wrap(array)
    else:
        made = F.detach_(_record_new(data, array))
    return finish(made, requires_grad, pin_memory) if requires_grad or pin_memory else made


@function(expose="function")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor that shares memory with `data` where it can."""
    if isinstance(data, _dispatch.Tensor):
        if _dispatch.recorder is None and device is None and (dtype is None or dtype is data.dtype):
            return data
        return data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray):
        made = from_numpy(data) if min(data.strides, default=0) >= 0 else wrap(data.copy())
        return made if dtype is None and _dispatch.recorder is None else made.to(device=device, dtype=dtype)
    made = wrap(array_of(data, dtype)) if _dispatch.recorder is None else _record_new(data, array_of(data, dtype))
    return made if device is None or _device.resolve(device) is _device.CPU else made.to(device)


@function(expose="function")
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: bool = False) -> Any:
    """A tensor from anything array-like, sharing memory unless a copy is asked for."""
    if isinstance(obj, _dispatch.Tensor):
        made = obj if dtype is None or dtype is obj.dtype else obj.to(dtype)
        if copy:
            made = made.clone() if made is obj else made
        elif copy is False and made is not obj:
            raise ValueError("can't alias tensor with dtype change")
        return made if requires_grad == made.requires_grad else finish(made.detach(), requires_grad)
    if isinstance(obj, np.ndarray):
        made = tensor(obj, dtype=dtype) if copy else as_tensor(obj, dtype)
    elif hasattr(obj, "__dlpack__"):
        made = from_dlpack(obj)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence")
        made = tensor(obj, dtype=dtype)
    return finish(made, requires_grad)


@op("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", on="tensors", expose="no", nondifferentiable=True)
def _lift_fresh(self: Any) -> Any:
    return self


@function(expose="function")
def from_numpy(ndarray: Any) -> Any:
    """A tensor on the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    _dtype.from_numpy_dtype(ndarray.dtype)
    if ndarray.size and min(ndarray.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not ndarray.flags.writeable:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor "
            "will result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting "
            "it to a tensor. This type of warning will be suppressed for the rest of this program.", UserWarning, stacklevel=2,
        )  # fmt: skip
    made = wrap(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray))
    return made if _dispatch.recorder is None else F.lift_fresh(made)


@function(expose="function")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Any = None) -> Any:
    """A tensor on the memory of another library's array."""
    array = np.from_dlpack(ext_tensor._array if isinstance(ext_tensor, _dispatch.Tensor) else ext_tensor)
    return wrap(array.copy() if copy or not array.flags.writeable else array)


@function(expose="function")
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Any:
    """A tensor on the memory of a Python buffer."""
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"frombuffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    try:
        return finish(wrap(np.frombuffer(buffer, dtype._np, count, offset)), requires_grad)
    except ValueError as error:
        raise ValueError(str(error)) from None


@op("aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no", nondifferentiable=True)  # fmt: skip
def _scalar_tensor(s: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.array(s, _np(dtype))


@function(expose="function")
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = _STRIDED, device: Any = None, pin_memory: bool = False, requires_grad: bool = False
) -> Any:
    """A 0-dim tensor of a number."""
    return finish(_scalar_tensor(s, dtype=dtype), requires_grad, pin_memory)


@op("aten::complex(Tensor real, Tensor imag) -> Tensor", out=True, expose="function")
def complex_(real: Any, imag: Any) -> Any:
    if real.dtype != imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {BY_NUM[real.dtype.num]._abbr} but got scalar type {BY_NUM[imag.dtype.num]._abbr} for second argument"
        )
    if real.dtype.num not in (np.dtype("f4").num, np.dtype("f8").num):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {BY_NUM[real.dtype.num]._abbr} and {BY_NUM[imag.dtype.num]._abbr}")
    made = np.empty(np.broadcast_shapes(real.shape, imag.shape), BY_NUM[real.dtype.num].to_complex()._np)
    made.real, made.imag = real, imag
    return made


complex_.derivative(real=lambda g: F.real(g), imag=lambda g: F.imag(g))


@op("aten::polar(Tensor abs, Tensor angle) -> Tensor", out=True, expose="function")
def polar(abs: Any, angle: Any) -> Any:
    made = np.empty(np.broadcast_shapes(abs.shape, angle.shape), BY_NUM[abs.dtype.num].to_complex()._np)
    made.real, made.imag = abs * np.cos(angle), abs * np.sin(angle)
    return made


polar.derivative(
    abs=lambda g, angle: F.real(g) * F.cos(angle) + F.imag(g) * F.sin(angle),
    angle=lambda g, abs, angle: F.imag(g) * abs * F.cos(angle) - F.real(g) * abs * F.sin(angle),
)


@op("aten::_local_scalar_dense(Tensor self) -> Scalar", expose="no", nondifferentiable=True)
def _local_scalar_dense(self: np.ndarray) -> Any:
    return self.item() if self.dtype is not _dtype.NP_BFLOAT16 else float(self.item())


@op("aten::item(Tensor self) -> Scalar", nondifferentiable=True)
def item(self: np.ndarray) -> Any:
    if self.size != 1:
        raise RuntimeError(f"a Tensor with {self.size} elements cannot be converted to Scalar")
    return self.item() if self.dtype is not _dtype.NP_BFLOAT16 else float(self.item())


@item.recorded
def _(self: Any) -> Any:
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return _local_scalar_dense(self)


@composite("aten::is_nonzero(Tensor self) -> bool")
def is_nonzero(self: Any) -> bool:
    return F.item(self) != 0
