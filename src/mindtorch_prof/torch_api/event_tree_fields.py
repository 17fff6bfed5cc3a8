"""The classes of an event tree's fields, with torch's names: read-only views of a tree's columns, without a constructor."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from ..inputs import TensorInput
from . import torch_types
from .enums import RecordScope
from .torch_types import TorchValue

if TYPE_CHECKING:
    from typing_extensions import Self

    from .event_tree import EventTree
    from .tensor_ids import Tensors


class _EventType(Enum):
    """The kind of a node of an event tree."""

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


F = TypeVar("F", bound="_Fields")


class _Fields:
    """Named values that cannot be set; made by `_make`."""

    __slots__ = ()

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"torch._C._profiler.{type(self).__name__}: No constructor defined!")

    @classmethod
    def _make(cls, **values: object) -> Self:
        fields = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(fields, name, value)
        return fields

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"property of '{type(self).__name__}' object has no setter")
        raise AttributeError(f"'torch._C._profiler.{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return f"<torch._C._profiler.{type(self).__name__} object at {id(self):#x}>"


class _View(_Fields):
    """A row of a tree; fields are looked up when they are read. Each tree has a subclass of its own, which knows the tree."""

    __slots__ = ("_row",)
    _of: EventTree
    _row: int

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, _View) and self.__class__ is other.__class__ and self._row == other._row
        )

    def __hash__(self) -> int:
        return hash(self._row)


def view_class(base: type[F], of: EventTree | Tensors, **members: object) -> type[F]:
    """A subclass whose instances belong to one tree. They are made without arguments, and their slots can be set."""
    members |= {
        "__slots__": (),
        "__init__": object.__init__,
        "__setattr__": object.__setattr__,
        "__module__": base.__module__,
        "_of": of,
    }
    return type(base.__name__, (base,), members)


class _TensorMetadata(_Fields):
    """A tensor that went into an event. Ids are None where allocations were not recorded."""

    __slots__ = ("_number", "_about")
    _of: Tensors
    _number: int  # 0: not recorded
    _about: TensorInput

    @property
    def impl_ptr(self) -> int | None:
        """A number that no other tensor of the process has; None: not recorded."""
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
    def dtype(self) -> TorchValue:
        """The type of its elements."""
        return torch_types.dtype(self._about.type)

    @property
    def device(self) -> TorchValue:
        """Where it is."""
        return torch_types.device("cpu")

    @property
    def layout(self) -> TorchValue:
        """How its elements are laid out."""
        return torch_types.layout(sparse=self._about.is_sparse)

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._about.shape)


Number = bool | int | float | complex
OpInput = _TensorMetadata | list[_TensorMetadata] | Number | None


class _ExtraFields_TorchOp(_View):
    """Fields of ops and ranges."""

    __slots__ = ()
    allow_tf32_cublas = False

    @property
    def name(self) -> str:
        """What it is called."""
        return self._of.event_names[self._row]

    @property
    def inputs(self) -> list[OpInput]:
        """The inputs: tensors, lists of tensors and numbers; None for anything else."""
        return self._of.tensors.inputs_of(self)

    @property
    def scope(self) -> RecordScope:
        """The kind of op or range."""
        return self._of.scopes[self._row]

    @property
    def sequence_number(self) -> int:
        """Shared by a forward op and its backward function; -1: none."""
        return self._of.sequences[self._row]


class _ExtraFields_Allocation(_View):
    """Fields of allocations and frees."""

    __slots__ = ()
    total_reserved = 0

    @property
    def ptr(self) -> int:
        """The address; the memory's number where the address is not known, because the memory was freed before the recording stopped."""
        return self._of.tensors.memory_address(self._row)

    @property
    def alloc_size(self) -> int:
        """Bytes allocated; negative: freed."""
        return self._of.allocation_sizes[self._row]

    @property
    def id(self) -> int | None:
        """Of the tensors on this memory; None: no event had one."""
        return self._of.tensors.id(self._of.tensors.memory_number(self._row))

    @property
    def allocation_id(self) -> int | None:
        """Of this memory; never used twice."""
        return self._of.tensors.allocation_id(self._of.tensors.memory_number(self._row))

    @property
    def total_allocated(self) -> int:
        """Bytes that this recording and earlier ones saw allocated and not freed."""
        trace = self._of.trace
        return int(trace.memory.total[self._row]) + trace.settings.allocated_before

    @property
    def device(self) -> TorchValue:
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
    """Fields of calls of Python functions."""

    __slots__ = ("callsite", "caller", "module", "optimizer")
    callsite: _PyFrameState
    caller: _PyFrameState
    module: _NNModuleInfo | None
    optimizer: _OptimizerInfo | None


class _ExtraFields_PyCCall(_Fields):
    """Fields of calls of C functions."""

    __slots__ = ("caller",)
    caller: _PyFrameState


class _ExtraFields_Kineto(_Fields):
    """An activity of a device or its driver; it has no fields."""

    __slots__ = ()


class _ExtraFields_Backend(_Fields):
    """An event of a delegate; it has no fields."""

    __slots__ = ()


class _ExtraFields_Vulkan(_Fields):
    """An event of a Vulkan device; it has no fields."""

    __slots__ = ()


class _ExtraFields_OutOfMemory(_Fields):
    """An allocation that failed; it has no fields."""

    __slots__ = ()
