"""Methods that torch's Tensor has besides its ops: subclasses, loading into a module, names kept from older versions."""

from __future__ import annotations

from typing import Any

from .. import _dispatch, _dtype
from .._dispatch import composite, function
from .._torch_dispatch import track_tensor
from ._namespace import functions as F


@function(expose="method")
def as_subclass(self: Any, cls: Any) -> Any:
    """The same memory and history as an instance of `cls`."""
    if not isinstance(cls, type) or not issubclass(cls, _dispatch.Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits "
            "from Tensor."
        )
    instance: Any = _dispatch.new_tensor(cls)
    if self._array_missing:
        instance._array_missing, instance._array_description = True, self._array_description
        return track_tensor(instance)
    alias = F.alias(self)
    instance._array, instance._storage, instance._base = alias._array, alias._storage, alias._base
    _dispatch.add_view(instance._base, instance)
    instance._rg, instance._grad_fn, instance._output_nr = alias._rg, alias._grad_fn, alias._output_nr
    instance._seen_version, instance._view_made_in = alias._seen_version, alias._view_made_in
    return track_tensor(instance)


@function(expose="method")
def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """The tensor that `Module.load_state_dict` stores when tensors are swapped: this one with new values, or `other`."""
    if assign:
        return other.detach()
    return self.copy_(other).detach()


@function(expose="method")
def const_data_ptr(self: Any) -> int:
    """Address of the first element, for reading."""
    return self.data_ptr()


@function(expose="method")
def record_stream(self: Any, stream: Any) -> None:
    """Refuse: there are no streams on the CPU."""
    raise RuntimeError("unknown parameter type")


@function("__nonzero__", expose="method")
def _nonzero(self: Any) -> bool:
    return self.__bool__()


@function("__long__", expose="method")
def _long(self: Any) -> int:
    return self.__int__()


@function("__delitem__", expose="method")
def _delitem(self: Any, key: Any, /) -> None:
    raise TypeError("Tensor does not support deleting items")


@function(expose="method")
def index(self: Any, positions: Any, dims: Any) -> Any:
    """The elements at the numbers `dims` along the dimensions `positions`, as torch names them."""
    where = positions if isinstance(positions, (tuple, list)) else (positions,)
    numbers = dims if isinstance(dims, (tuple, list)) else (dims,)
    if len(where) != len(numbers):
        raise TypeError(f"dims ({len(where)}) and indices ({len(numbers)}) must have the same length")
    for position in where:
        if not hasattr(position, "__index__") or isinstance(position, _dispatch.Tensor):
            raise TypeError(f"expected a dimension specifyer but found {position!r}")
    selected = self
    for d, number in sorted(zip([d % self.ndim for d in where], numbers), reverse=True):
        selected = selected.select(d, number)
    return selected


# -------------------------------------------------------------------------------------------------------- pinned memory, shapes


@composite("aten::_pin_memory(Tensor self, Device? device=None) -> Tensor", expose="no")
def _pin_memory(self: Any, device: Any = None) -> Any:
    return self.pin_memory(device)


@composite("aten::_shape_as_tensor(Tensor self) -> Tensor")
def _shape_as_tensor(self: Any) -> Any:
    return F.tensor(list(self.shape), dtype=_dtype.int64)


# ---------------------------------------------------------------------------------------------------- methods of their own signature


@function("lstsq", expose="method")
def lstsq_method(self: Any, other: Any) -> Any:
    """Removed from torch: raises an error that names the replacement."""
    return F.lstsq(self, other)


@function("lu", expose="method")
def lu_method(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """See `torch.lu`."""
    return F.lu(self, pivot=pivot, get_infos=get_infos)


@function("unique_consecutive", expose="method")
def unique_consecutive_method(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """See `torch.unique_consecutive`."""
    return F.unique_consecutive(self, return_inverse=return_inverse, return_counts=return_counts, dim=dim)


def _grad_dtype(self: Any) -> Any:
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


_dispatch.METHODS["grad_dtype"] = property(_grad_dtype, doc="The dtype of `.grad`: the tensor's own.")
_dispatch.METHODS["name"] = property(lambda self: None, doc="None: tensors have no names.")
