"""The classes that an event tree is made of, with torch's names and fields: views of a tree's columns, read-only, without a constructor."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..inputs import TensorInput
from . import torch_types


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
    """What has named values that are read and not set; `_make` is the way to get one."""

    __slots__ = ()
    __init__ = _no_constructor

    @classmethod
    def _make(cls, **values: Any) -> Any:
        made = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"property of '{type(self).__name__}' object has no setter")
        raise AttributeError(f"'torch._C._profiler.{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<torch._C._profiler.{type(self).__name__} object at {id(self):#x}>"


class _View(_Fields):
    """A row of something; fields are looked up when they are asked for. Each thing has a class of its own for them, which knows it."""

    __slots__ = ("_row",)
    _of: Any
    _row: Any

    def __eq__(self, other: object) -> bool:
        return self is other or (
            self.__class__ is other.__class__ and self._row == other._row  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return hash(self._row)


def view_class(kind: type[_Fields], of: Any) -> Any:
    """A class of views of one thing's rows; its instances are made without arguments and filled by whoever makes them."""
    free = {"__slots__": (), "__init__": object.__init__, "__setattr__": object.__setattr__}
    return type(kind.__name__, (kind,), {**free, "__module__": kind.__module__, "_of": of})


class _TensorMetadata(_Fields):
    """A tensor as an event met it: its number, and (shape, strides in bytes, type). Ids are None where allocations were not recorded."""

    __slots__ = ("_number", "_about")
    _of: Any
    _number: int  # 0: not recorded
    _about: TensorInput

    @property
    def impl_ptr(self) -> int | None:
        """The tensor: a number that no other tensor of the process has; None: not recorded."""
        return self._of.first_number(self._number)

    @property
    def storage_data_ptr(self) -> int | None:
        """The address of its memory; None: not recorded, or there is none."""
        return self._of.address(self._number)

    @property
    def id(self) -> int | None:
        """Shared by all tensors on its memory."""
        return self._of.id(self._number)

    @property
    def allocation_id(self) -> int | None:
        """Of its memory; never used twice."""
        return self._of.allocation_id(self._number)

    @property
    def sizes(self) -> list[int]:
        """Its shape."""
        return list(self._about.shape)

    @property
    def strides(self) -> list[int]:
        """In elements."""
        return list(self._about.strides or ())

    @property
    def dtype(self) -> Any:
        """Its type."""
        return torch_types.dtype(self._about.type)

    @property
    def device(self) -> Any:
        """Where it is."""
        return torch_types.device("cpu")

    @property
    def layout(self) -> Any:
        """How its elements are laid out."""
        return torch_types.layout(sparse=self._about.is_sparse)

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._about.shape)


class _ExtraFields_TorchOp(_View):
    """What only ops and ranges have."""

    __slots__ = ()
    allow_tf32_cublas = False

    @property
    def name(self) -> str:
        """What it is called."""
        return self._of.texts[self._row]

    @property
    def inputs(self) -> list[Any]:
        """What went in: tensors, lists of tensors and numbers; None for anything else."""
        return self._of.tensors.inputs_of(self)

    @property
    def scope(self) -> Any:
        """What kind of op or range it is."""
        return self._of.scopes[self._row]

    @property
    def sequence_number(self) -> int:
        """Shared by a forward op and its backward function; -1: none."""
        return self._of.sequences[self._row]


class _ExtraFields_Allocation(_View):
    """What only allocations have; a negative size gives memory back."""

    __slots__ = ()
    total_reserved = 0

    @property
    def ptr(self) -> int:
        """The address; a made-up one for memory that was gone when the recording stopped."""
        return self._of.tensors.memory_address(self._row)

    @property
    def alloc_size(self) -> int:
        """Bytes taken, or given back if negative."""
        return self._of.memory_list[self._row]

    @property
    def id(self) -> int | None:
        """Of the tensors on this memory; None: none was met."""
        return self._of.tensors.id(self._of.tensors.memory_number(self._row))

    @property
    def allocation_id(self) -> int | None:
        """Of this memory; never used twice."""
        return self._of.tensors.allocation_id(self._of.tensors.memory_number(self._row))

    @property
    def total_allocated(self) -> int:
        """Bytes alive that were taken in this recording, or in earlier ones."""
        trace = self._of.trace
        return int(trace.memory.total[self._row]) + trace.settings.allocated_before

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._of.memory_device(self._row)


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
