"""Storages: the memory of tensors. A tensor gets its storage when it is first needed (by a view, a write, `untyped_storage()`). All views
share it, and its version counts the writes."""

from __future__ import annotations

from pickle import PickleBuffer
from typing import Any

import numpy as np

from ._tensor_slots import address


class UntypedStorage:
    """A block of memory that tensors share."""

    # _root: the array whose memory this is (dense, any order of dimensions); _version: writes through tensors;
    # _keeps: the storage that this one is an alias of; _holders: weak references to the tensors on this storage and its aliases
    # that are no views, by their ids, once there are several (`_graph.note_holder`).
    _root: np.ndarray
    _version = 0
    _keeps: UntypedStorage | None = None
    _holders: dict[int, Any] | None = None
    _flat: np.ndarray | None = None
    _shared = False
    _is_borrowed = False  # the memory is a NumPy array's, which cannot grow
    _file: str | None = None  # the file whose pages the memory is, if writes go there

    def __new__(cls, size: Any = 0, *, device: Any = None) -> UntypedStorage:
        self = object.__new__(cls)
        if isinstance(size, int):
            self._root = np.empty(size, np.uint8)
        else:
            self._root = np.array(list(size), np.uint8)
        return self

    @classmethod
    def _of(cls, root: np.ndarray) -> UntypedStorage:
        self = object.__new__(cls)
        self._root = root
        return self

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped. `shared`: writes go to the file, which is created or extended if needed."""
        from ._dtype import uint8
        from ._ops.from_file import from_file

        storage = cls._of(from_file(str(filename), shared, nbytes, dtype=uint8)._array)
        storage._shared, storage._file = True, str(filename) if shared else None
        return storage

    @property
    def filename(self) -> str | None:
        """The file that the memory is shared with, or None."""
        return self._file

    @classmethod
    def _from_bytes(cls, flat: np.ndarray) -> UntypedStorage:
        return cls._of(flat)

    def _alias(self) -> UntypedStorage:
        """The same memory with a version counter of its own (`tensor.data`)."""
        other = type(self)._of(self._root)
        other._keeps, other._flat = self if self._keeps is None else self._keeps, self._flat
        other._is_borrowed = self._is_borrowed
        return other

    def _bytes(self) -> np.ndarray:
        """The memory as a one-dimensional uint8 array."""
        flat = self._flat
        if flat is None:
            root = self._root
            if root.ndim > 1 and not root.flags.c_contiguous:
                order = sorted(range(root.ndim), key=lambda d: (-abs(root.strides[d]), d))
                root = root.transpose(order)
            if not root.flags.c_contiguous:
                extent = (
                    sum((n - 1) * s for n, s in zip(root.shape, root.strides)) + root.itemsize
                    if root.size
                    else 0
                )
                flat = _span(root, extent)
            else:
                flat = root.reshape(-1).view(np.uint8)
            self._flat = flat
        return flat

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def nbytes(self) -> int:
        """Bytes of the memory."""
        return self._bytes().nbytes

    size = nbytes
    __len__ = nbytes

    def data_ptr(self) -> int:
        """Address of the first byte; 0 for an empty storage."""
        flat = self._bytes()
        place = address(flat) if flat.nbytes else 0
        if register is not None:
            register.note_address(self, place)
        return place

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the number of bytes, keeping the common part."""
        if self._is_borrowed:
            raise RuntimeError("Trying to resize storage that is not resizable")
        old = self._bytes()
        fresh = np.empty(nbytes, np.uint8)
        common = min(nbytes, old.nbytes)
        fresh[:common] = old[:common]
        self._root = self._flat = fresh
        self._keeps = None
        if on_allocate is not None:
            on_allocate(fresh)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copy the bytes of `source`."""
        from ._tensor import copy_storage

        copy_storage(self, source)
        self._version += 1
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        self._bytes()[:] = value
        return self

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return UntypedStorage(self.nbytes()).copy_(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        twin = memo.get(id(self))
        if twin is None:
            twin = memo[id(self)] = self.clone()
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raw = self._bytes()
        # from protocol 5 on the pickler takes the memory as it is, or hands it on without a copy
        return _from_buffer, (PickleBuffer(raw.data) if protocol >= 5 else raw.tobytes(),)

    def byteswap(self, dtype: Any) -> None:
        """Reverse the bytes of every element of type `dtype`."""
        raw = self._bytes()
        raw[:] = raw.reshape(-1, dtype.itemsize // (2 if dtype.is_complex else 1))[:, ::-1].reshape(-1)

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def type(self, dtype: str | None = None, non_blocking: bool = False) -> str:
        """The name of the class."""
        return "torch.storage.UntypedStorage"

    def get_device(self) -> int:
        """-1: the memory is on the CPU."""
        return -1

    def resizable(self) -> bool:
        """Whether the memory is the library's own, and no NumPy array's."""
        return not self._is_borrowed

    def tolist(self) -> list[int]:
        """The bytes as Python integers."""
        return self._bytes().tolist()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and not -self.nbytes() <= index < self.nbytes():
            raise IndexError(f"index {index} out of range for storage of size {self.nbytes()}")
        item = self._bytes()[index]
        return UntypedStorage._from_bytes(item) if isinstance(index, slice) else int(item)

    def __setitem__(self, index: Any, value: int) -> None:
        self._bytes()[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    @property
    def device(self) -> Any:
        from ._device import CPU

        return CPU

    is_cuda = False
    is_hpu = False
    is_sparse = False

    def cpu(self) -> UntypedStorage:
        """This storage; it is on the CPU."""
        return self

    def is_shared(self) -> bool:
        """Whether the memory was asked to be shared between processes."""
        return self._shared

    def share_memory_(self) -> UntypedStorage:
        """Move to memory that processes forked from now on share, together with every tensor on this storage."""
        if not self._shared:
            _share(self)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no device to pin memory for."""
        return False

    def element_size(self) -> int:
        """One byte."""
        return 1

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __repr__(self) -> str:
        lines = "\n".join(f" {b}" for b in self.tolist()[:1000])
        return f"{lines}\n[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


def _from_buffer(buffer: Any) -> UntypedStorage:
    """A storage from its pickled bytes; writable memory is not copied."""
    raw = np.frombuffer(buffer, np.uint8)
    return UntypedStorage._from_bytes(raw if raw.flags.writeable else raw.copy())


views_of: Any = None  # views_of(tensor): the views of a tensor that are alive; set by _tensor

# Slots of recordings. `_hooks` assigns them.
# The tensor register of a recording: gives tensors their ids, and notes the addresses that the program asks for.
register: Any = None
# While memory is recorded: called with each array that a storage allocates.
on_allocate: Any = None


def _share(storage: UntypedStorage) -> None:
    """Put the bytes of a storage, its aliases and all tensors on them into an anonymous shared mapping."""
    import mmap

    root = storage if storage._keeps is None else storage._keeps
    old = root._bytes()
    fresh = np.frombuffer(mmap.mmap(-1, max(old.nbytes, 1)), np.uint8)[: old.nbytes]
    fresh[:] = old
    first = address(old)
    for one in (root, storage):
        one._shared, one._root, one._flat = True, fresh, fresh
    for holder in [reference() for reference in list((root._holders or {}).values())]:
        # ids are used again: what is registered may have other memory by now
        if holder is None or holder._storage is None or root not in (holder._storage, holder._storage._keeps):
            continue
        for tensor in (holder, *views_of(holder)):
            if isinstance(tensor._array, np.ndarray):
                one = tensor._storage
                if one is root or one._keeps is root:
                    one._shared, one._root, one._flat = True, fresh, fresh
                    _move(tensor, fresh, first)


def _move(tensor: Any, memory: np.ndarray, first: int) -> None:
    array = tensor._array
    offset = address(array) - first if array.size else 0
    if array.base is not memory:
        tensor._array = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)


def _span(root: np.ndarray, extent: int) -> np.ndarray:
    """`extent` bytes from the first element of `root`, as uint8, keeping `root` alive."""
    first_element = np.lib.stride_tricks.as_strided(root, (1,) * root.ndim)
    first_bytes = first_element.reshape(-1)[:1].view(np.uint8)
    return np.lib.stride_tricks.as_strided(first_bytes, (extent,), (1,))
