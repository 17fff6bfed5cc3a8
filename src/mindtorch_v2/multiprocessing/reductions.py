"""Weak references to storages, by which programs find tensors that share memory."""

from __future__ import annotations

import weakref
from typing import Any


class StorageWeakRef:
    """A reference that does not keep a storage alive, and equals others to the same one."""

    __slots__ = ("_reference", "cdata")

    def __init__(self, storage: Any) -> None:
        untyped = getattr(storage, "_untyped_storage", storage)
        self._reference = weakref.ref(untyped)
        self.cdata = untyped._cdata

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)
