"""Reducing tensors for pickling, and rebuilding them. Storages and tensors only, no files.

Checkpoint files call the `_rebuild_*` functions by name: their names and arguments are torch's.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from . import _dtype
from ._exception_wrapper import ExceptionWrapper, KeyErrorMessage  # noqa: F401  (torch has these names here)
from ._storage import UntypedStorage
from ._tensor import Tensor, _from_storage
from ._tensor_slots import DEFAULTS
from .storage import _NAME_OF, TypedStorage, _MetaStorage

_FIELDS = frozenset(("_array", *DEFAULTS))


def reduce_tensor(tensor: Tensor, protocol: Any) -> tuple[Any, ...]:
    """`Tensor.__reduce_ex__`: the function and arguments that make the tensor again."""
    if tensor._hooks:
        from .utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    state, cls = dict(tensor.__dict__), type(tensor)
    function, args = _reduce_data(tensor)
    if (cls is Tensor or cls._is_sparse_layout) and not state:
        return function, args
    from .nn.parameter import Parameter

    if issubclass(cls, Parameter):
        parts: tuple[Any, ...] = (tensor.data, tensor.requires_grad, OrderedDict())
        return (_rebuild_parameter_with_state, (*parts, state)) if state else (_rebuild_parameter, parts)
    return _rebuild_from_type_v2, (function, cls, args, state)


def _reduce_data(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    if tensor.is_sparse:
        parts = (tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced())
        return _rebuild_sparse_tensor, (tensor.layout, parts)
    if tensor._is_sparse_layout:
        kind = tensor._kind
        indices = (getattr(tensor, kind.pointers)(), getattr(tensor, kind.indices)())
        return _rebuild_sparse_tensor, (tensor.layout, (*indices, tensor.detach().values(), tensor.size()))
    size, stride, dtype = tuple(tensor.shape), tensor.stride(), tensor.dtype
    if tensor._array_missing:
        return _rebuild_meta_tensor_no_storage, (dtype, size, stride, tensor.requires_grad)
    storage = tensor.untyped_storage()
    hooks: OrderedDict[int, Any] = OrderedDict()
    place = (tensor.storage_offset(), size, stride, tensor.requires_grad, hooks)
    if dtype in _NAME_OF:
        return _rebuild_tensor_v2, (TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True), *place)
    return _rebuild_tensor_v3, (storage, *place, dtype)


def _check_place(offset: Any, size: Any, stride: Any, itemsize: int, nbytes: int) -> None:
    """Raise for a tensor that would reach outside its storage, whatever a file says."""
    if not isinstance(size, (tuple, list)) or not isinstance(stride, (tuple, list)):
        raise TypeError(
            f"size and stride must be tuples of ints, got {type(size).__name__} and {type(stride).__name__}"
        )
    if not all(type(n) is int for n in (offset, *size, *stride)):
        raise TypeError("storage offset, size and stride must be ints")
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if any(n < 0 for n in stride) or math.prod(size) >= 1 << 62:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )
    reach = 0 if 0 in size else offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if reach * itemsize > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {reach * itemsize} are out of bounds for storage "
            f"of size {nbytes}"
        )


def _place(
    storage: UntypedStorage, dtype: _dtype.dtype, offset: int, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    _check_place(offset, size, stride, dtype.itemsize, storage.nbytes())
    if isinstance(storage, _MetaStorage):
        return _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)
    return _from_storage(storage, dtype, offset, size, stride, bool(requires_grad))


def _with_metadata(tensor: Tensor, metadata: dict[str, Any] | None) -> Tensor:
    """Apply the lazy conjugate or negative that torch marks in a file."""
    if not metadata:
        return tensor
    requires_grad = tensor.requires_grad
    tensor = tensor.detach()
    if metadata.get("conj"):
        tensor = tensor.conj_physical()
    if metadata.get("neg"):
        tensor = tensor.neg()
    return tensor.requires_grad_(requires_grad)


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on a typed storage."""
    return _place(storage._untyped_storage, storage.dtype, storage_offset, size, stride, False)


def _rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor on a typed storage, with what the file says about gradients."""
    tensor = _place(storage._untyped_storage, storage.dtype, storage_offset, size, stride, requires_grad)
    return _with_metadata(tensor, metadata)


def _rebuild_tensor_v3(
    storage: UntypedStorage | TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: _dtype.dtype,
    metadata: Any = None,
) -> Tensor:
    """A tensor of a dtype that has no storage class of its own."""
    untyped = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
    return _with_metadata(_place(untyped, dtype, storage_offset, size, stride, requires_grad), metadata)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor of the meta device."""
    return torch.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor: COO of indices, values, size and whether it is coalesced, others of pointers, indices, values and size."""
    if layout is not _dtype.sparse_coo:
        return torch.sparse_compressed_tensor(*data, layout=layout, check_invariants=True)
    if len(data) == 3:  # written before files said whether a tensor is coalesced
        data = (*data, None)
    indices, values, size, is_coalesced = data
    return torch.sparse_coo_tensor(indices, values, size, check_invariants=True, is_coalesced=is_coalesced)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """An nn.Parameter."""
    from .nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """An nn.Parameter with attributes of its own."""
    return _set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func: Callable[..., Any], new_type: Any, args: tuple[Any, ...], state: Any) -> Any:
    """A tensor of a subclass, or with attributes of its own."""
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if "__setstate__" in new_type.__dict__ and new_type is not Tensor:
        tensor.__setstate__(state)
        return tensor
    return _set_state(tensor, state)


def _set_state(tensor: Tensor, state: Any) -> Tensor:
    """Set a tensor's attributes, never those that hold its memory."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    for name, value in {**(state or {}), **(slots or {})}.items():
        if name in _FIELDS:
            raise RuntimeError(f"Invalid serialized state: '{name}' belongs to the tensor itself")
        setattr(tensor, name, value)
    return tensor


def _element_size(dtype: _dtype.dtype) -> int:
    """The bytes of an element."""
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """The type of the accelerator: none."""
    return None


def _get_device_module(device_type: str) -> Any:
    """The module of a device type, such as torch.cuda."""
    module = getattr(torch, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return module


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device, given as a number, a name or a device; -1 for the CPU where that is allowed."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    else:
        index = device if isinstance(device, int) else None
    if index is None:
        if optional:
            return torch.accelerator.current_device_index()
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements of tensors of one dtype, one after the other, as one vector."""
    return torch.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of a vector, shaped as `tensors` are: undoes `_flatten_dense_tensors`."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(views)


def _take_tensors(tensors: Any, size_limit: int) -> Any:
    """Lists of tensors of one type each, in order, of up to `size_limit` bytes unless one tensor is larger."""
    waiting: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, nbytes = tensor.type(), tensor.numel() * tensor.element_size()
        batch, total = waiting.get(kind, ([], 0))
        if batch and total + nbytes > size_limit:
            yield batch
            batch, total = [], 0
        waiting[kind] = ([*batch, tensor], total + nbytes)
    for batch, _ in waiting.values():
        if batch:
            yield batch
