"""The old tensor types: `torch.FloatTensor(2, 3)`, `isinstance(x, torch.LongTensor)`. Sizes, sequences or tensors in, tensors out."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _device, _dispatch, _dtype
from ._graph import note_holder
from ._size import Size
from ._storage import UntypedStorage
from ._tensor import Tensor, _blank

_KINDS = {
    "FloatTensor": _dtype.float32, "DoubleTensor": _dtype.float64, "HalfTensor": _dtype.float16, "BFloat16Tensor": _dtype.bfloat16,
    "LongTensor": _dtype.int64, "IntTensor": _dtype.int32, "ShortTensor": _dtype.int16, "CharTensor": _dtype.int8,
    "ByteTensor": _dtype.uint8, "BoolTensor": _dtype.bool_,
}  # fmt: skip
_C_NAMES = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16", "Long": "long int", "Int": "int",
    "Short": "short int", "Char": "signed char", "Byte": "unsigned char", "Bool": "bool", "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


class tensortype(type):
    """The class of the old tensor types: an instance check looks at dtype and layout."""

    dtype: _dtype.dtype
    layout: _dtype.layout
    is_cuda: bool
    _type_name: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is cls.layout
            and not cls.is_cuda
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.is_cuda:
            raise TypeError(f"type {cls._type_name} not available. Torch not compiled with CUDA enabled.")
        if cls.layout is _dtype.sparse_coo:
            return _new_sparse(cls.dtype, args)
        return _new_dense(cls.dtype, args, kwargs)

    def __new__(mcs, name: str, bases: tuple, space: dict) -> Any:
        if bases:
            raise TypeError(f"type '{bases[0]._type_name}' is not an acceptable base type")
        return super().__new__(mcs, name, bases, space)

    def __repr__(cls) -> str:
        return f"<class '{cls._type_name}'>"


def _options(dtype: _dtype.dtype) -> str:
    return (
        f"TensorOptions(dtype={_C_NAMES.get(dtype._abbr, dtype._abbr)}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _sized(size: Any, dtype: _dtype.dtype) -> Tensor:
    if any(n < 0 for n in size):
        negative = next(n for n in size if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {list(size)}")
    return _blank(size, dtype, _dtype.strided)


def _new_dense(dtype: _dtype.dtype, args: tuple, kwargs: dict) -> Tensor:
    device = kwargs.pop("device", None)
    if device is not None and _device.device(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {_device.device(device).type} was passed"
        )
    if kwargs:
        raise TypeError(
            f"new() received an invalid combination of arguments - some of the keywords were incorrect: {', '.join(kwargs)}"
        )
    if not args:
        return _sized((0,), dtype)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            return _alias(first, dtype)
        if isinstance(first, UntypedStorage) or hasattr(first, "_untyped_storage"):
            return _on_storage(first, dtype)
        if isinstance(first, Size):
            return _sized(tuple(first), dtype)
        if isinstance(first, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
        if isinstance(first, np.ndarray) or (
            hasattr(first, "__len__") and hasattr(first, "__getitem__") and not isinstance(first, dict)
        ):
            return _dispatch.FUNCTIONS["as_tensor"](_plain(first), dtype=dtype)
        if not hasattr(first, "__index__"):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    size = []
    for position, n in enumerate(args, 1):
        if not hasattr(n, "__index__"):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {position} with error "
                f'"type must be tuple of ints,but got {type(n).__name__}"'
            )
        size.append(n.__index__())
    return _sized(tuple(size), dtype)


def _plain(data: Any) -> Any:
    return data if isinstance(data, (list, tuple, np.ndarray)) else list(data)


def _alias(other: Tensor, dtype: _dtype.dtype) -> Tensor:
    if other.dtype is not dtype:
        raise TypeError(f"expected {_options(dtype)} (got {_options(other.dtype)})")
    return other.detach()


def _on_storage(storage: Any, dtype: _dtype.dtype) -> Tensor:
    untyped = getattr(storage, "_untyped_storage", storage)
    tensor = _dispatch.wrap(untyped._bytes().view(dtype._np))
    tensor._storage = untyped
    note_holder(tensor, tensor)
    return tensor


def _new_sparse(dtype: _dtype.dtype, args: tuple) -> Tensor:
    make = _dispatch.FUNCTIONS["sparse_coo_tensor"]
    if args and isinstance(args[0], Tensor):
        return make(*args, dtype=dtype)
    if not args:
        size: tuple = (0,)
    else:
        size = tuple(args[0]) if isinstance(args[0], (tuple, list)) else args
    return make(size, dtype=dtype)


def _make(
    name: str, dtype: _dtype.dtype, prefix: str = "", layout: _dtype.layout = _dtype.strided
) -> tensortype:
    path = "torch." + prefix
    space = {
        "__module__": path[:-1], "__doc__": f"Tensors of {dtype!r}.", "dtype": dtype, "layout": layout, "is_cuda": prefix == "cuda.",
        "is_sparse": layout is not _dtype.strided, "_type_name": path + name,
    }  # fmt: skip
    return tensortype(name, (), space)


DENSE = {name: _make(name, dtype) for name, dtype in _KINDS.items()}
SPARSE = {
    name: _make(name, dtype, "sparse.", _dtype.sparse_coo)
    for name, dtype in _KINDS.items() if dtype is not _dtype.bool_
}  # fmt: skip
CUDA = {name: _make(name, dtype, "cuda.") for name, dtype in _KINDS.items()}
FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor = (DENSE[name] for name in list(DENSE)[:5])
IntTensor, ShortTensor, CharTensor, ByteTensor, BoolTensor = (DENSE[name] for name in list(DENSE)[5:])

_BY_NAME = {kind._type_name: kind for table in (DENSE, SPARSE, CUDA) for kind in table.values()}


def named(name: str) -> tensortype:
    """The type called `name`, such as 'torch.FloatTensor'."""
    tensor_type = _BY_NAME.get(name)
    if tensor_type is None:
        raise ValueError(f"invalid type: '{name}'")
    return tensor_type
