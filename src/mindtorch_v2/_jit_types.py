"""The classes of TorchScript's types: for isinstance checks and annotations. They have no instances here."""

from __future__ import annotations

from typing import Any

NAMES = (
    "AnyType", "Block", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType", "FloatType", "FutureType", "IntType",
    "InterfaceType", "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "RRefType", "StreamObjType", "StringType",
    "SymBoolType", "SymIntType", "TupleType", "Type", "UnionType",
)  # fmt: skip


def _refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(f"torch._C.{cls.__name__}: this library has no TorchScript, and builds no program")


# by name; torch has them in torch._C and at its top
CLASSES = {
    name: type(
        name,
        (),
        {"__new__": _refuse, "__module__": "torch._C", "__doc__": "A part of TorchScript; cannot be built."},
    )
    for name in NAMES
}
