"""Pickling under torch's names: an object in, the bytes of its pickle out. Storages are left to the caller."""

from __future__ import annotations

import importlib
import io
import pickle
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from . import _dtype
from ._pickle_names import PACKAGE, is_ours, to_torch

# where a pickle of protocol 2 or 3 names something of this package
_OUR_GLOBAL = re.compile(rf"c({PACKAGE}[^\n]*)\n([^\n]*)\n".encode())


def dumps(obj: Any, persistent_id: Callable[[Any], Any], pickle_module: Any, protocol: int) -> bytes:
    """Pickle `obj`; what `persistent_id` returns for an object is written in its place."""
    if pickle_module is not pickle:
        return _foreign(obj, persistent_id, pickle_module, protocol)
    if protocol < 4:
        # The compiled pickler writes our own names, each once; they are then replaced. If the same bytes
        # also occur in a string, the pickler below is used instead, which is eight times slower.
        pickler = _Noting(protocol, persistent_id)
        pickler.dump(obj)
        data = pickler.stream.getvalue()
        written = [(m.group(1).decode(), m.group(2).decode()) for m in _OUR_GLOBAL.finditer(data)]
        if sorted(written) == sorted(pickler.noted):
            return _OUR_GLOBAL.sub(_renamed, data)
    stream = io.BytesIO()
    renaming = _Renaming(stream, protocol)
    renaming.persistent_id = persistent_id  # type: ignore[assignment]
    renaming.dump(obj)
    return stream.getvalue()


def _renamed(match: re.Match[bytes]) -> bytes:
    module, name = to_torch(match.group(1).decode(), match.group(2).decode())
    return f"c{module}\n{name}\n".encode()


class _Noting(pickle.Pickler):
    """The compiled pickler, noting which names of this package it writes."""

    def __init__(self, protocol: int, persistent_id: Callable[[Any], Any]) -> None:
        self.stream = io.BytesIO()
        super().__init__(self.stream, protocol)
        self.persistent_id = persistent_id  # type: ignore[method-assign]
        self.noted: list[tuple[str, str]] = []

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _dtype.dtype:
            self.noted.append((PACKAGE, obj._name))
        elif (kind is FunctionType or isinstance(obj, type)) and is_ours(obj.__module__):
            self.noted.append((obj.__module__, obj.__qualname__))
        return NotImplemented


class _Renaming(pickle._Pickler):  # type: ignore[name-defined, misc]
    """The pickler in Python, which can be told what name to write."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None)
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        if not is_ours(module) or "." in name:
            super().save_global(obj, name)
            return
        assert isinstance(module, str)
        if getattr(importlib.import_module(module), name, None) is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not the same object as {module}.{name}")
        module, name = to_torch(module, name)
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch: ClassVar[dict[type, Any]] = {**pickle._Pickler.dispatch, FunctionType: save_global}  # type: ignore[attr-defined]


def _foreign(obj: Any, persistent_id: Callable[[Any], Any], pickle_module: Any, protocol: int) -> bytes:
    """Pickle with another pickle module, such as dill; our names stay as that module writes them."""
    stream = io.BytesIO()
    renaming = issubclass(pickle_module.Pickler, pickle._Pickler)  # type: ignore[attr-defined]
    bases = (_Renaming, pickle_module.Pickler) if renaming else (pickle_module.Pickler,)
    pickler = type("Pickler", bases, {})(stream, protocol)
    pickler.persistent_id = persistent_id
    pickler.dump(obj)
    return stream.getvalue()
