"""Tensors from data of Python, NumPy and other libraries, and `item`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _device, _dispatch, _dtype
from .._dispatch import composite, function, op, storage_of, wrap
from .._dtype import BY_NUM, Default
from .._meta import meta_tensor
from .._torch_dispatch import no_dispatch
from ._layout import to_float8
from ._namespace import functions as F
from ._warn import warn_once
from .copies import detach_, lift_fresh, to_device
from .creation import _STRIDED, _empty, _np, finish


def _infer(data: Any) -> Any:
    """The dtype torch gives to Python data: the widest category among the elements, floats as the default dtype."""
    if isinstance(data, (list, tuple)):
        best = None
        if data and data[0].__class__ is str:
            raise ValueError("too many dimensions 'str'")
        for item in data:
            dtype = _infer(item)
            if dtype is not None:
                best = dtype if best is None else _dtype.promote_types(best, dtype)
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
    """Nested data with tensors read as numbers."""
    if isinstance(data, (list, tuple)):
        return [_plain(part) for part in data]
    if isinstance(data, _dispatch.Tensor):
        return data.tolist() if data.ndim else item(data)
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
        odd = next(
            item for item in data if isinstance(item, (list, tuple)) != isinstance(data[0], (list, tuple))
        )
        if isinstance(data[0], (list, tuple)):
            raise TypeError(
                f"expected sequence at dim {depth + 1} (got {type(odd).__name__})"
                if not isinstance(odd, (list, tuple))
                else ""
            )
        raise TypeError(f"must be real number, not {type(odd).__name__}")
    for item in data:
        _check_lengths(item, depth + 1)


def array_of(data: Any, dtype: Any) -> np.ndarray:
    """A fresh array of Python, NumPy or tensor data."""
    kind = data.__class__
    if dtype is not None and dtype.__class__ is not _dtype.dtype:
        dtype = _dtype.named(dtype, "tensor")
    if dtype in _dtype.FLOAT8:
        return to_float8(array_of(data, None), dtype._np)
    if kind is float or kind is int or kind is bool or kind is complex:
        if dtype is None:
            dtype = _dtype.number_dtype(data)
        try:
            return np.array(data, dtype._np)
        except OverflowError:
            if dtype._rank == 1 and dtype is not _dtype.int64:
                raise RuntimeError(
                    f"value cannot be converted to type {dtype._name}_t without overflow"
                ) from None
            raise RuntimeError("Overflow when unpacking long long") from None
        except TypeError:
            return np.array(data).astype(dtype._np)
    if isinstance(data, _dispatch.Tensor):
        return data._array.astype(dtype._np) if dtype is not None else data._array.copy()
    if isinstance(data, (np.ndarray, np.generic)):
        own_dtype = _dtype.from_numpy_dtype(np.asarray(data).dtype)
        return np.array(
            data, (dtype or own_dtype)._np, order="K" if min(data.strides, default=0) > 0 else "C"
        )
    wanted = dtype or _infer(data) or Default.dtype
    if _starts_with_array(data):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
            "numpy.ndarray with numpy.array() before converting to a tensor."
        )
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


def _starts_with_array(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, np.ndarray) and data.ndim > 0


def _has_tensors(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_tensors(item) for item in data[:1]) or (
            bool(data)
            and not isinstance(data[0], (list, tuple))
            and any(isinstance(item, _dispatch.Tensor) for item in data)
        )
    return isinstance(data, _dispatch.Tensor)


def _new(data: Any, dtype: Any) -> Any:
    """A new tensor of data: memory that is filled for Python's, a copy by `to` of NumPy's."""
    if isinstance(data, np.ndarray) and not data.dtype.hasobject and min(data.strides, default=0) >= 0:
        wanted = _dtype.from_numpy_dtype(data.dtype) if dtype is None else dtype
        if wanted.__class__ is not _dtype.dtype:
            wanted = _dtype.named(wanted, "tensor")
        return to_device(lift_fresh(wrap(data.view(np.ndarray))), _device.CPU, wanted, copy=True)
    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = False
    try:
        with no_dispatch():
            array = array_of(data, dtype)
            wanted = BY_NUM[array.dtype.num]
            result = _empty(array.shape, dtype=wanted, layout=_STRIDED)
            result._array[...] = array
            result = to_device(result, _device.CPU, wanted)
        return lift_fresh(result)
    finally:
        state.enabled = enabled


@function(expose="function")
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    names: Any = None,
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
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        result = data.detach().to(data.device, dtype or data.dtype, copy=True).detach_()
        return finish(result, requires_grad, pin_memory)
    if where is _device.META:
        array = array_of(data, dtype)
        return finish(meta_tensor(array.shape, array.dtype), requires_grad)
    result = detach_(_new(data, dtype))
    return finish(result, requires_grad, pin_memory) if requires_grad or pin_memory else result


@function(expose="function")
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor that shares memory with `data` where it can."""
    if isinstance(data, np.ndarray):
        data = from_numpy(data) if min(data.strides, default=0) >= 0 else wrap(data.copy())
    if isinstance(data, _dispatch.Tensor):
        if device is None and (dtype is None or dtype.__class__ is _dtype.dtype):
            return to_device(data, data.device, data.dtype if dtype is None else dtype)
        return data.to(data.device if device is None else device, data.dtype if dtype is None else dtype)
    result = _new(data, dtype)
    return result if device is None or _device.resolve(device) is _device.CPU else result.to(device)


@function(expose="function")
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: bool = False
) -> Any:
    """A tensor from anything array-like, sharing memory unless a copy is asked for."""
    if isinstance(obj, _dispatch.Tensor):
        result = obj if dtype is None or dtype is obj.dtype else obj.to(dtype)
        if copy:
            result = result.clone() if result is obj else result
        elif copy is False and result is not obj:
            raise ValueError("can't alias tensor with dtype change")
        return result if requires_grad == result.requires_grad else finish(result.detach(), requires_grad)
    if isinstance(obj, np.ndarray):
        result = tensor(obj, dtype=dtype) if copy else _shared(obj, dtype)
    elif hasattr(obj, "__dlpack__"):
        result = from_dlpack(obj)
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence")
        result = as_tensor(obj, dtype)
    return finish(result, requires_grad)


def _shared(array: np.ndarray, dtype: Any) -> Any:
    made = from_numpy(array) if min(array.strides, default=0) >= 0 else wrap(array.copy())
    return made if dtype is None or dtype is made.dtype else made.to(dtype)


@function(expose="function")
def from_numpy(ndarray: Any) -> Any:
    """A tensor on the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    kind = _dtype.from_numpy_dtype(ndarray.dtype)._np
    if (
        ndarray.dtype is not kind
    ):  # an equal dtype, such as that of an unpickled array: kernels compare by identity
        ndarray = ndarray.view(kind)
    if ndarray.size and min(ndarray.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not ndarray.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor "
            "will result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting "
            "it to a tensor. This type of warning will be suppressed for the rest of this program."
        )
    return lift_fresh(_borrowed(ndarray if type(ndarray) is np.ndarray else ndarray.view(np.ndarray)))


def _borrowed(array: np.ndarray) -> Any:
    """A tensor on memory that is not the library's own: it cannot be resized."""
    tensor = wrap(array)
    storage_of(tensor)._is_borrowed = True
    return tensor


@function(expose="function")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Any = None) -> Any:
    """A tensor on the memory of another library's array."""
    array = np.from_dlpack(ext_tensor._array if isinstance(ext_tensor, _dispatch.Tensor) else ext_tensor)
    return wrap(array.copy() if copy or not array.flags.writeable else array)


@function(expose="function")
def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A tensor on the memory of a Python buffer."""
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"frombuffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    try:
        return finish(_borrowed(np.frombuffer(buffer, dtype._np, count, offset)), requires_grad)
    except ValueError as error:
        raise ValueError(str(error)) from None


@op(
    "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    expose="no",
    nondifferentiable=True,
)
def _scalar_tensor(s: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return np.array(s, _np(dtype))


@function(expose="function")
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = _STRIDED,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A 0-dim tensor of a number."""
    return finish(_scalar_tensor(s, dtype=dtype), requires_grad, pin_memory)


@op("aten::complex(Tensor real, Tensor imag) -> Tensor", pointwise=True, out=True, expose="function")
def complex_(real: Any, imag: Any) -> Any:
    if real.dtype != imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {BY_NUM[real.dtype.num]._abbr} but got scalar type {BY_NUM[imag.dtype.num]._abbr} for second argument"
        )
    if real.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {BY_NUM[real.dtype.num]._abbr} and {BY_NUM[imag.dtype.num]._abbr}"
        )
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), BY_NUM[real.dtype.num].to_complex()._np)
    parts = result.reshape(*result.shape, 1).view(real.dtype)
    parts[..., 0], parts[..., 1] = real, imag
    return result


complex_.derivative(real=lambda g: F.real(g), imag=lambda g: F.imag(g))


@op("aten::polar(Tensor abs, Tensor angle) -> Tensor", pointwise=True, out=True, expose="function")
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
    return (
        self.item()
        if self.dtype not in _dtype.NOT_IN_NUMPY
        else self.astype(_dtype.in_numpy(self.dtype)).item()
    )


@composite("aten::item(Tensor self) -> Scalar")
def item(self: Any) -> Any:
    if (self.numel() if self._array_missing else self._array.size) != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return _local_scalar_dense(self)


@composite("aten::is_nonzero(Tensor self) -> bool")
def is_nonzero(self: Any) -> bool:
    return F.item(self) != 0
