"""The classes that an event tree is made of, with torch's names and fields. Made by the tree; read-only, without a constructor."""

from __future__ import annotations

from enum import Enum
from typing import Any


class _EventType(Enum):
    """What kind of thing a node of an event tree is."""

    TorchOp = 0
    Backend = 1
    Vulkan = 2
    Allocation = 3
    PyCall = 5
    PyCCall = 6
    Kineto = 7

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __str__(self) -> str:
        return f"_EventType.{self.name}"


def _no_constructor(self: Any, *args: Any, **kwargs: Any) -> None:
    raise TypeError(f"torch._C._profiler.{type(self).__name__}: No constructor defined!")


class _Fields:
    """Named values that are read, not set; `_make` is the way to get one."""

    __slots__ = ()
    __init__ = _no_constructor

    @classmethod
    def _make(cls, **values: Any) -> Any:
        made = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self).__slots__:
            raise AttributeError(f"property of '{type(self).__name__}' object has no setter")
        raise AttributeError(f"'torch._C._profiler.{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<torch._C._profiler.{type(self).__name__} object at {id(self):#x}>"


class _TensorMetadata(_Fields):
    """A tensor as an event met it. Ids are None where allocations were not recorded."""

    __slots__ = (
        "impl_ptr",  # the tensor: a number that no other tensor of the process has; None: not recorded
        "storage_data_ptr",  # address of its memory; None: not recorded, or there is none
        "id",
        "allocation_id",
        "sizes",
        "strides",
        "dtype",
        "device",
        "layout",
    )
    impl_ptr: int | None
    storage_data_ptr: int | None
    id: int | None
    allocation_id: int | None
    sizes: list[int]
    strides: list[int]
    dtype: Any
    device: Any
    layout: Any

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)


class _ExtraFields_TorchOp(_Fields):
    """What only ops and ranges have."""

    __slots__ = ("name", "inputs", "scope", "sequence_number", "allow_tf32_cublas")
    name: str
    inputs: list[Any]
    scope: Any
    sequence_number: int
    allow_tf32_cublas: bool


class _ExtraFields_Allocation(_Fields):
    """What only allocations have; a negative size gives memory back."""

    __slots__ = ("ptr", "alloc_size", "id", "allocation_id", "total_allocated", "total_reserved", "device")
    ptr: int
    alloc_size: int
    id: int | None
    allocation_id: int | None
    total_allocated: int
    total_reserved: int
    device: Any


class _PyFrameState(_Fields):
    """A place in a Python program."""

    __slots__ = ("file_name", "line_number", "function_name")
    file_name: str
    line_number: int
    function_name: str


class _NNModuleInfo(_Fields):
    """A module, with its own parameters: (name, parameter, gradient or None)."""

    __slots__ = ("cls_name", "cls_ptr", "self_ptr", "parameters")
    cls_name: str
    cls_ptr: int
    self_ptr: int
    parameters: list[tuple[str, _TensorMetadata, _TensorMetadata | None]]


class _OptimizerInfo(_Fields):
    """An optimizer, with its parameters: (parameter, gradient or None, states: (name, tensor))."""

    __slots__ = ("self_ptr", "parameters")
    self_ptr: int
    parameters: list[tuple[_TensorMetadata, _TensorMetadata | None, list[tuple[str, _TensorMetadata]]]]


class _ExtraFields_PyCall(_Fields):
    """What only calls of Python functions have."""

    __slots__ = ("callsite", "caller", "module", "optimizer")
    callsite: _PyFrameState
    caller: _PyFrameState
    module: _NNModuleInfo | None
    optimizer: _OptimizerInfo | None


class _ExtraFields_PyCCall(_Fields):
    """What only calls of C functions have."""

    __slots__ = ("caller",)
    caller: _PyFrameState


class _ExtraFields_Kineto(_Fields):
    """An activity of a device or its driver; nothing further is said."""

    __slots__ = ()


class _ExtraFields_Backend(_Fields):
    """An event of a delegate; nothing further is said."""

    __slots__ = ()


class _ExtraFields_Vulkan(_Fields):
    """An event of a Vulkan device; nothing further is said."""

    __slots__ = ()


class _ExtraFields_OutOfMemory(_Fields):
    """An allocation that failed; nothing further is said."""

    __slots__ = ()
