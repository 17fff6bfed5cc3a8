"""Typed storages: memory as a list of elements of one dtype. The memory itself is `UntypedStorage`."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np

from . import _device, _dtype
from ._storage import UntypedStorage
from ._storage import _from_buffer as _storage_of_buffer

__all__ = ["TypedStorage", "UntypedStorage"]

_REMOVAL = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
    "storage class. This should only matter to you if you are using storages directly.  To access "
    "UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)
_warned = False
_Int: TypeAlias = int  # aliases: TypedStorage has methods named like the built-in types
_Bool: TypeAlias = bool


def _warn_typed_storage_removal(stacklevel: int = 2) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(_REMOVAL, UserWarning, stacklevel=stacklevel + 1)


StorageBase = UntypedStorage  # torch has a base class of its storages under this name


class _MetaStorage(UntypedStorage):
    """A storage of the meta device: a number of bytes without memory."""

    _nbytes: int

    @classmethod
    def _sized(cls, nbytes: int) -> _MetaStorage:
        self = cls._of(np.empty(0, np.uint8))
        assert isinstance(self, _MetaStorage)
        self._nbytes = nbytes
        return self

    def nbytes(self) -> int:
        """The number of bytes it would have."""
        return self._nbytes

    @property
    def device(self) -> _device.device:
        """The meta device."""
        return _device.META


def _as_array(data: Any, dtype: _dtype.dtype) -> np.ndarray:
    if isinstance(data, (str, bytes)) or not hasattr(data, "__len__"):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    return np.array(list(data)).astype(dtype._np) if len(data) else np.empty(0, dtype._np)


class TypedStorage:
    """Memory as a list of numbers of one dtype; deprecated in torch, kept for files and old programs."""

    is_sparse: ClassVar[bool] = False
    is_cuda: ClassVar[bool] = False
    is_hpu: ClassVar[bool] = False
    dtype: _dtype.dtype
    _untyped_storage: UntypedStorage

    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        wrap_storage: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn_typed_storage_removal()
        if wrap_storage is not None:
            self._wrap(args, dtype, device, wrap_storage)
            return
        self.dtype = _dtype.Default.dtype if dtype is None else dtype
        where = _device.resolve(device)
        if len(args) > 1:
            raise RuntimeError(f"TypedStorage: takes a size or a sequence, got {len(args)} arguments")
        size = args[0] if args and isinstance(args[0], int) else 0 if not args else None
        if where.type == "meta":
            count = len(args[0]) if size is None else size
            self._untyped_storage = _MetaStorage._sized(count * self.dtype.itemsize)
        elif size is not None:
            self._untyped_storage = UntypedStorage(size * self.dtype.itemsize)
        elif isinstance(args[0], TypedStorage):
            self._untyped_storage = UntypedStorage._of(args[0]._array().astype(self.dtype._np))
        else:
            self._untyped_storage = UntypedStorage._of(_as_array(args[0], self.dtype))

    def _wrap(self, args: tuple[Any, ...], dtype: Any, device: Any, storage: Any) -> None:
        if args or device is not None:
            raise RuntimeError(
                "TypedStorage: 'wrap_storage' takes no positional arguments and no 'device' beside it"
            )
        if not isinstance(dtype, _dtype.dtype):
            raise TypeError(f"TypedStorage: 'dtype' must be torch.dtype, not {type(dtype)}")
        if not isinstance(storage, UntypedStorage):
            raise TypeError(f"TypedStorage: 'wrap_storage' must be UntypedStorage, but got {type(storage)}")
        self.dtype, self._untyped_storage = dtype, storage

    def _array(self) -> np.ndarray:
        raw = self._untyped_storage._bytes()
        return raw[: raw.size - raw.size % self.dtype.itemsize].view(self.dtype._np)

    def _from_array(self, array: np.ndarray) -> TypedStorage:
        return TypedStorage(wrap_storage=UntypedStorage._of(array), dtype=self.dtype, _internal=True)

    def _numbers(self) -> np.ndarray:
        array = self._array()
        return array.astype(np.float32) if array.dtype.kind == "V" or self.dtype is _dtype.bfloat16 else array

    @property
    def device(self) -> _device.device:
        """The device of the memory."""
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """The memory without a dtype."""
        _warn_typed_storage_removal()
        return self._untyped_storage

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        _warn_typed_storage_removal()
        return self._size()

    def __len__(self) -> int:
        _warn_typed_storage_removal()
        return self._size()

    def nbytes(self) -> int:
        """The number of bytes."""
        _warn_typed_storage_removal()
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of one element."""
        _warn_typed_storage_removal()
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        _warn_typed_storage_removal()
        return self._untyped_storage.data_ptr()

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def get_device(self) -> int:
        """-1: the memory is on the CPU."""
        _warn_typed_storage_removal()
        return -1

    def _index(self, idx: int) -> int:
        size = self._size()
        if not -size <= idx < size:
            raise IndexError(f"index {idx} out of range for storage of size {size}")
        return idx

    def __getitem__(self, idx: Any) -> Any:
        _warn_typed_storage_removal()
        if isinstance(idx, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(idx, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(idx)}")
        return self._numbers()[self._index(idx)].item()

    def __setitem__(self, idx: Any, value: Any) -> None:
        _warn_typed_storage_removal()
        if not isinstance(idx, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(idx)}")
        self._array()[self._index(idx) if isinstance(idx, int) else idx] = value
        self._untyped_storage._version += 1

    def __iter__(self) -> Iterator[Any]:
        _warn_typed_storage_removal()
        return iter(self._numbers().tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        _warn_typed_storage_removal()
        return self._numbers().tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __repr__(self) -> str:
        _warn_typed_storage_removal()
        of = f"dtype={self.dtype}, device={self.device}) of size {self._size()}"
        info = f"[torch.storage.TypedStorage({of}]"
        if self.device.type == "meta":
            return "...\n" + info
        return " " + "\n ".join(str(v) for v in self._numbers().tolist()) + "\n" + info

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        _warn_typed_storage_removal()
        self._array()[...] = value
        self._untyped_storage._version += 1
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of another storage."""
        _warn_typed_storage_removal()
        if isinstance(source, TypedStorage):
            array = source._array().astype(self.dtype._np)
        else:
            array = source._bytes().view(self.dtype._np)
        if array.nbytes != self._untyped_storage.nbytes():
            own_nbytes = self._untyped_storage.nbytes()
            raise RuntimeError(
                f"size does not match, self was {own_nbytes} bytes but src was {array.nbytes} bytes"
            )
        self._array()[...] = array
        self._untyped_storage._version += 1
        return self

    def clone(self) -> TypedStorage:
        """A copy with its own memory."""
        _warn_typed_storage_removal()
        return self._from_array(self._array().copy())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        twin = memo.get(id(self._untyped_storage))
        if twin is None:
            twin = memo[id(self._untyped_storage)] = self._untyped_storage.clone()
        return TypedStorage(wrap_storage=twin, dtype=self.dtype, _internal=True)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # by its bytes: as in torch, each tensor in a plain pickle gets its own memory
        _, (raw,) = self._untyped_storage.__reduce_ex__(protocol)
        return _typed_storage, (raw, self.dtype)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._untyped_storage.nbytes()

    def cpu(self) -> TypedStorage:
        """A storage on the CPU."""
        _warn_typed_storage_removal()
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype, _internal=True)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Raises: there is no CUDA device."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage on another device."""
        _warn_typed_storage_removal()
        if _device.resolve(device).type == "meta":
            storage: UntypedStorage = _MetaStorage._sized(self._untyped_storage.nbytes())
        else:
            storage = self._untyped_storage
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no device to pin memory for."""
        _warn_typed_storage_removal()
        return False

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """Raises, as torch does without an accelerator."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def share_memory_(self) -> TypedStorage:
        """Mark the memory as shared between processes."""
        _warn_typed_storage_removal()
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Whether the memory is marked as shared between processes."""
        _warn_typed_storage_removal()
        return self._untyped_storage.is_shared()

    def resizable(self) -> bool:
        """True: the memory belongs to this process."""
        _warn_typed_storage_removal()
        return True

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        _warn_typed_storage_removal()
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _to(self, dtype: _dtype.dtype) -> TypedStorage:
        array = self._array().astype(dtype._np)
        return TypedStorage(wrap_storage=UntypedStorage._of(array), dtype=dtype, _internal=True)

    def double(self) -> TypedStorage:
        """Converted to float64."""
        return self._to(_dtype.float64)

    def float(self) -> TypedStorage:
        """Converted to float32."""
        return self._to(_dtype.float32)

    def half(self) -> TypedStorage:
        """Converted to float16."""
        return self._to(_dtype.float16)

    def bfloat16(self) -> TypedStorage:
        """Converted to bfloat16."""
        return self._to(_dtype.bfloat16)

    def long(self) -> TypedStorage:
        """Converted to int64."""
        return self._to(_dtype.int64)

    def int(self) -> TypedStorage:
        """Converted to int32."""
        return self._to(_dtype.int32)

    def short(self) -> TypedStorage:
        """Converted to int16."""
        return self._to(_dtype.int16)

    def char(self) -> TypedStorage:
        """Converted to int8."""
        return self._to(_dtype.int8)

    def byte(self) -> TypedStorage:
        """Converted to uint8."""
        return self._to(_dtype.uint8)

    def bool(self) -> TypedStorage:
        """Converted to bool."""
        return self._to(_dtype.bool_)

    def complex_double(self) -> TypedStorage:
        """Converted to complex128."""
        return self._to(_dtype.complex128)

    def complex_float(self) -> TypedStorage:
        """Converted to complex64."""
        return self._to(_dtype.complex64)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A storage with a copy of the bytes of a buffer, read in the given byte order."""
        _warn_typed_storage_removal()
        dtype = kwargs.pop("dtype", None) or getattr(cls, "dtype", None) or _dtype.Default.dtype
        return _from_buffer(dtype, *args, **kwargs)

    @classmethod
    def from_file(cls, filename: str, shared: _Bool = False, size: _Int = 0) -> TypedStorage:
        """A storage on the memory map of a file; writes reach the file if `shared`."""
        _warn_typed_storage_removal()
        dtype = getattr(cls, "dtype", None) or _dtype.Default.dtype
        mapped = np.memmap(filename, dtype._np, "r+" if shared else "c", shape=(size,))
        return TypedStorage(wrap_storage=UntypedStorage._of(mapped), dtype=dtype, _internal=True)

    def pickle_storage_type(self) -> str:
        """The name of the legacy class, such as 'FloatStorage'."""
        _warn_typed_storage_removal()
        return self._pickle_storage_type()

    def _pickle_storage_type(self) -> str:
        try:
            return _NAME_OF[self.dtype]
        except KeyError:
            raise KeyError(f"dtype {self.dtype} is not recognized") from None

    def type(self, dtype: str | None = None, non_blocking: _Bool = False) -> Any:
        """The name of the legacy class, or the storage reinterpreted as another one."""
        _warn_typed_storage_removal()
        if dtype is None:
            return "torch." + self._pickle_storage_type()
        wanted = _LEGACY.get(dtype.rpartition(".")[2]) if isinstance(dtype, str) else dtype
        if wanted is None:
            raise TypeError(f"invalid storage type {dtype!r}")
        return self._to(wanted.dtype)


def _from_buffer(
    dtype: _dtype.dtype, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0
) -> TypedStorage:
    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    array = np.frombuffer(buffer, np.uint8, offset=offset)
    n_elements = array.size // dtype.itemsize if count < 0 else count
    if n_elements * dtype.itemsize > array.size:
        available = f"buffer has only {array.size} bytes after offset {offset}"
        raise ValueError(f"{available}, but specified a count of {count}")
    typed = array[: n_elements * dtype.itemsize].copy().view(dtype._np)
    if byte_order not in ("native", sys.byteorder):
        typed = typed.byteswap()
    return TypedStorage(wrap_storage=UntypedStorage._of(typed), dtype=dtype, _internal=True)


def _typed_storage(buffer: Any, dtype: _dtype.dtype) -> TypedStorage:
    """Restore a pickled typed storage."""
    return TypedStorage(wrap_storage=_storage_of_buffer(buffer), dtype=dtype, _internal=True)


class _LegacyStorageMeta(type):
    """Makes `isinstance(storage, torch.FloatStorage)` check the dtype."""

    dtype: _dtype.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base class of FloatStorage and the other typed classes; calling one creates a TypedStorage."""

    def __new__(cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> Any:
        if dtype is not None:
            raise RuntimeError(
                f"{cls.__name__}.__new__ received an invalid combination of arguments. "
                "Keyword argument 'dtype' cannot be specified"
            )
        return TypedStorage(*args, dtype=cls.dtype, device=device, wrap_storage=wrap_storage)


_NAME_OF = {
    d: d._abbr + "Storage"
    for d in _dtype.ALL
    if d not in (_dtype.uint16, _dtype.uint32, _dtype.uint64)  # torch has no class for these
}
_LEGACY: dict[str, Any] = {
    name: _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": d, "__module__": __name__})
    for d, name in _NAME_OF.items()
}

DoubleStorage = _LEGACY["DoubleStorage"]
FloatStorage = _LEGACY["FloatStorage"]
HalfStorage = _LEGACY["HalfStorage"]
LongStorage = _LEGACY["LongStorage"]
IntStorage = _LEGACY["IntStorage"]
ShortStorage = _LEGACY["ShortStorage"]
CharStorage = _LEGACY["CharStorage"]
ByteStorage = _LEGACY["ByteStorage"]
BoolStorage = _LEGACY["BoolStorage"]
BFloat16Storage = _LEGACY["BFloat16Storage"]
ComplexDoubleStorage = _LEGACY["ComplexDoubleStorage"]
ComplexFloatStorage = _LEGACY["ComplexFloatStorage"]
Storage = FloatStorage  # torch.Storage: the class of the initial default dtype


def _load_from_bytes(b: bytes) -> Any:
    """A storage from the bytes in torch's own pickles of storages."""
    from .serialization import load

    return load(io.BytesIO(b))


def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is a storage, typed or not."""
    return isinstance(obj, (TypedStorage, UntypedStorage))
