"""Names inside generated code: candidates in, names out that are unique, legal and no builtins."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

import mindtorch_v2 as torch
from mindtorch_v2.utils import _pytree as pytree

from . import _pytree as fx_pytree

_ILLEGAL_CHARACTERS = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBER_SUFFIX = re.compile(r"(.*)_(\d+)$")
_SNAKE_CASE = re.compile(r"(?<=[a-z])([A-Z])")


class CustomBuiltin(NamedTuple):
    """An object that generated code can name without an import of its own, and the import of a saved copy."""

    import_str: str
    obj: Any


_custom_builtins = {
    "inf": CustomBuiltin("from math import inf", math.inf),
    "nan": CustomBuiltin("from math import nan", math.nan),
    "NoneType": CustomBuiltin("NoneType = type(None)", type(None)),
    "torch": CustomBuiltin("import torch", torch),
    "device": CustomBuiltin("from torch import device", torch.device),
    "fx_pytree": CustomBuiltin("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": CustomBuiltin("import torch.utils._pytree as pytree", pytree),
}


def _snake_case(s: str) -> str:
    return _SNAKE_CASE.sub(r"_\1", s).lower()


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


class _Namespace:
    """Gives unique names; one object keeps one name."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """A name like the candidate that nothing else has."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _ILLEGAL_CHARACTERS.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _NUMBER_SUFFIX.match(candidate)
        base, number = (match.group(1), int(match.group(2))) if match else (candidate, None)
        if number is None or candidate in self._used_names:
            number = self._base_count.get(candidate, 0)
            if match and candidate in self._used_names:
                number = self._base_count.get(base, number)
        else:
            self._note(candidate, base, number, obj)
            return candidate
        while candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._note(candidate, base, number, obj)
        return candidate

    def _note(self, name: str, base: str, number: int, obj: Any | None) -> None:
        self._used_names.add(name)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that is already in use."""
        if self._obj_to_name.setdefault(obj, name) != name:
            raise AssertionError("obj is already associated")

    def _is_illegal_name(self, name: str, obj: Any) -> bool:
        if name in keyword.kwlist:
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        return name in _custom_builtins and obj is not _custom_builtins[name].obj

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)
