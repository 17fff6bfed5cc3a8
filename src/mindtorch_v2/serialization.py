"""torch.save and torch.load: objects to files in torch's formats, and back.

A checkpoint is a pickle that refers to storages by key, plus the storages' bytes: as records of a zip archive
(`_archive`), or one after another in the legacy format. `_pickle_names` maps our classes to torch's names.
`weights_only=True`, the default, reads with `_weights_only_unpickler`, which runs no code from the file;
`weights_only=False` is Python's unpickler, which runs whatever the file says: for files that one trusts, as in torch.
"""

from __future__ import annotations

import contextlib
import copyreg
import io
import os
import pickle
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from typing import IO, Any, TypeAlias

import numpy as np

from mindtorch_prof.files import open_atomically

from . import _archive, _device, _dtype, _pickle_names, _weights_only_unpickler
from ._pickling import dumps
from ._storage import UntypedStorage
from ._weights_only_unpickler import StorageType, Unpickler
from .storage import _LEGACY, TypedStorage, _MetaStorage

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
STORAGE_KEY_SEPARATOR = ","

_LAYOUTS = {
    repr(layout): layout
    for layout in (
        _dtype.strided,
        _dtype.sparse_coo,
        _dtype.sparse_csr,
        _dtype.sparse_csc,
        _dtype.sparse_bsr,
        _dtype.sparse_bsc,
    )
}
copyreg.pickle(_dtype.layout, lambda layout: (_get_layout, (repr(layout),)))  # type: ignore[arg-type]


class SourceChangeWarning(Warning):
    """The source of a pickled module has changed; kept for programs that filter this warning."""


class LoadEndianness(Enum):
    """The byte order assumed for files that do not record it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _ThreadState(threading.local):
    skip_data = False


_local = _ThreadState()


# ------------------------------------------------------------------------------------------------ options


def _config() -> Any:
    from .utils.serialization import config

    return config


def get_crc32_options() -> bool:
    """Whether `save` computes checksums."""
    return _config().save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether `save` computes checksums; without them other zip programs reject the file."""
    _config().save.compute_crc32 = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not record it."""
    return _config().load.endianness


def set_default_load_endianness(endianness: Any) -> None:
    """Set the byte order assumed for files that do not record it."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _config().load.endianness = endianness


def get_default_mmap_options() -> int | None:
    """The flags with which `load(mmap=True)` maps a file."""
    return _config().load.mmap_flags


class set_default_mmap_options:
    """Set the flags with which `load(mmap=True)` maps a file; also a context manager."""

    def __init__(self, flags: int) -> None:
        import mmap as mmap_module

        if flags not in (mmap_module.MAP_PRIVATE, mmap_module.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, "
                f"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = get_default_mmap_options()
        _config().load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _config().load.mmap_flags = self.prev


class skip_data:
    """Context manager: `save` reserves the storages' space without writing it, and `load` does not read it."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before, _local.skip_data = _local.skip_data, True

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        _local.skip_data = self._before


# ---------------------------------------------------------------------------------------- allowed names


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow classes and functions, or (object, name) pairs, in files read with `weights_only=True`."""
    known = _weights_only_unpickler._safe_globals
    known.extend(entry for entry in safe_globals if entry not in known)


def get_safe_globals() -> list[Any]:
    """The classes and functions that the program has allowed."""
    return list(_weights_only_unpickler._safe_globals)


def clear_safe_globals() -> None:
    """Remove all that the program has allowed."""
    _weights_only_unpickler._safe_globals.clear()


class safe_globals:
    """`add_safe_globals` as a context manager."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self.safe_globals)

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        _weights_only_unpickler._safe_globals[:] = self._before


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `weights_only=True` would reject."""
    with _open_file(f, "rb") as file:
        if not _archive.is_archive(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = _archive.Reader(file)
        if "constants.pkl" in reader:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        return _weights_only_unpickler.unsafe_globals(reader.read("data.pkl"))


# ------------------------------------------------------------------------------------------------ locations

_Tagger = Callable[[Any], "str | None"]
_Restorer = Callable[[Any, str], Any]
_package_registry: list[tuple[int, _Tagger, _Restorer]] = []


def register_package(priority: int, tagger: _Tagger, deserializer: _Restorer) -> None:
    """Register a device type: a function that tags its storages in a file, and one that restores them."""
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])


def validate_cuda_device(location: Any) -> int:
    """Raises: there is no CUDA device."""
    raise RuntimeError(
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you "
        "are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to "
        "map your storages to the CPU."
    )


def validate_hpu_device(location: Any) -> int:
    """Raises: there is no HPU device."""
    raise RuntimeError(
        "The HPU device module is not registered. If you are running on a CPU-only machine, please use "
        "torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
    )


def _untyped(storage: Any) -> UntypedStorage:
    return storage._untyped_storage if isinstance(storage, TypedStorage) else storage


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _restore_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _meta_tag(storage: Any) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def _restore_meta(storage: Any, location: str) -> Any:
    return _MetaStorage._sized(_untyped(storage).nbytes()) if location == "meta" else None


def _no_tag(storage: Any) -> None:
    return None


def _refuse_cuda(storage: Any, location: str) -> Any:
    return validate_cuda_device(location) if location.startswith("cuda") else None


def _refuse_hpu(storage: Any, location: str) -> Any:
    return validate_hpu_device(location) if location.startswith("hpu") else None


register_package(10, _cpu_tag, _restore_cpu)
register_package(20, _no_tag, _refuse_cuda)
register_package(22, _meta_tag, _restore_meta)
register_package(24, _no_tag, _refuse_hpu)


def _type_name(storage: Any) -> str:
    module, name = type(storage).__module__, type(storage).__qualname__
    if _pickle_names.is_ours(module):
        module, name = _pickle_names.to_torch(module, name)
    return f"{module}.{name}"


def location_tag(storage: Any) -> str:
    """The device tag of a storage."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError("don't know how to determine data location of " + _type_name(storage))


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage on the device of its tag."""
    for _, _, restore in _package_registry:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})"
    )


MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | _device.device | str | dict[str, str] | None


def _get_restore_location(map_location: Any) -> Callable[[Any, str], Any]:
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, target)
    if isinstance(map_location, _device.device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return restore


# ---------------------------------------------------------------------------------------- small helpers


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """Context manager: a temporary directory."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's version is at least the one given."""
    try:
        parts = module.__version__.split(".")[: len(req_version_tuple)]
        version = tuple(type(required)(part) for part, required in zip(parts, req_version_tuple))
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be "
            f"compared with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of this package with the name of a storage class."""
    return _LEGACY.get(storage_type.__name__) or getattr(sys.modules[__package__], storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The tensor class of a storage class, by its name."""
    name = type(storage).__name__.replace("Storage", "Tensor")
    return getattr(sys.modules[type(storage).__module__], name)


def _get_layout(name: str) -> _dtype.layout:
    """The layout of the name in a file."""
    return _LAYOUTS[name]


def _is_path(f: Any) -> bool:
    return isinstance(f, (str, os.PathLike))


@contextlib.contextmanager
def _open_file(f: Any, mode: str) -> Iterator[Any]:
    """A file object for a path, or the file object passed in. A file that is written replaces the old one when it is complete."""
    if not _is_path(f):
        yield f
        return
    with open(f, mode) if mode == "rb" else open_atomically(f) as file:
        yield file


# ------------------------------------------------------------------------------------------------ saving


class _SavedStorages:
    """The storages found while pickling, each under one key."""

    def __init__(self, legacy: bool) -> None:
        self._legacy = legacy
        self._keys: dict[tuple[int, int], str] = {}
        self._dtypes: dict[int, _dtype.dtype] = {}
        self.by_key: dict[str, tuple[UntypedStorage, int]] = {}

    def persistent_id(self, obj: Any) -> Any:
        """The reference that replaces a storage in the pickle; None for everything else."""
        if isinstance(obj, TypedStorage):
            storage, dtype, kind = obj._untyped_storage, obj.dtype, _LEGACY[obj._pickle_storage_type()]
        elif isinstance(obj, UntypedStorage):
            storage, dtype, kind = obj, _dtype.uint8, UntypedStorage
        else:
            return None
        nbytes, address = storage.nbytes(), storage.data_ptr()
        if nbytes and self._dtypes.setdefault(address, dtype) is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        memory = (address, nbytes) if nbytes else (id(storage), -1)
        key = self._keys.setdefault(
            memory, str(storage._cdata or id(storage)) if self._legacy else str(len(self._keys))
        )
        # keeps the storage alive, so that no address is used twice
        self.by_key[key] = (storage, dtype.itemsize)
        parts = ("storage", kind, key, location_tag(storage), nbytes // dtype.itemsize)
        return (*parts, None) if self._legacy else parts


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a file that torch can read too."""
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    storages = _SavedStorages(legacy=not _use_new_zipfile_serialization)
    pickled = dumps(obj, storages.persistent_id, pickle_module, pickle_protocol)
    if not _use_new_zipfile_serialization:
        with _open_file(f, "wb") as file:
            _write_legacy(file, pickled, storages, pickle_protocol)
        return
    with _open_archive_file(f) as file:
        writer = _archive.Writer(
            file.write, _archive.top_name(f) if _is_path(f) else "archive", get_crc32_options()
        )
        _write_records(writer, pickled, storages, byteorder=not _disable_byteorder_record)


@contextlib.contextmanager
def _open_archive_file(f: Any) -> Iterator[Any]:
    if _is_path(f):
        parent = os.path.dirname(os.fspath(f))
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
    try:
        opened = _open_file(f, "wb")
        file = opened.__enter__()
    except OSError as error:
        raise RuntimeError(f"open file failed with strerror: {error.strerror}") from error
    try:
        yield file
    except BaseException:
        if not opened.__exit__(*sys.exc_info()):
            raise
    else:
        opened.__exit__(None, None, None)


def _write_records(
    writer: _archive.Writer, pickled: bytes, storages: _SavedStorages, byteorder: bool
) -> None:
    alignment = _config().save.storage_alignment
    writer.add("data.pkl", pickled)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", str(alignment).encode())
    if byteorder:
        writer.add("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.by_key.items():
        raw = np.zeros(storage.nbytes(), np.uint8) if _local.skip_data else storage._bytes()
        writer.add(f"data/{key}", raw, alignment)
    writer.add("version", b"3\n")
    writer.close()


def _write_legacy(file: Any, pickled: bytes, storages: _SavedStorages, protocol: int) -> None:
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for head in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(head, file, protocol)
    file.write(pickled)
    keys = sorted(storages.by_key)
    pickle.dump(keys, file, protocol)
    for key in keys:
        storage, itemsize = storages.by_key[key]
        file.write((storage.nbytes() // itemsize).to_bytes(8, sys.byteorder))
        file.write(storage._bytes().data)


# ------------------------------------------------------------------------------------------------ loading

UNSAFE_MESSAGE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from "
    "`False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
    "it can result in arbitrary code execution. Do it only if you got the file from a trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
    "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)
_NOT_SEEKABLE = (
    ". You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
    "io.BytesIO and try to load from it instead."
)


def _weights_only_error(message: str) -> pickle.UnpicklingError:
    """The error for a file that the restricted unpickler rejects, with advice."""
    if message.startswith("Unsupported global"):
        text = (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {UNSAFE_MESSAGE}\n\t(2) Alternatively, to load with `weights_only=True` please check "
            f"the recommended steps in the following error message.\n\tWeightsUnpickler error: {message}"
        )
        return pickle.UnpicklingError(text + _DOCS)
    ask = (
        "Please file an issue with the following so that we can make `weights_only=True` compatible with "
        "your use case: WeightsUnpickler error: "
    )
    blocked = message.endswith("is blocked.")
    body = f"Weights only load failed. {UNSAFE_MESSAGE}\n{'' if blocked else ask}\n\n{message}"
    return pickle.UnpicklingError(body + _DOCS)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object from a file written by `save`, here or in torch."""
    weights_only = _forced_weights_only(weights_only)
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap is None:
        mmap = _config().load.mmap
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", UserWarning, stacklevel=2)
    pickle_load_args.setdefault("encoding", "utf-8")
    with _open_file(f, "rb") as file:
        _check_seekable(file)
        read = (
            _weights_only_reader(**pickle_load_args)
            if weights_only
            else _unrestricted_reader(pickle_module or pickle, pickle_load_args)
        )
        try:
            if _archive.is_archive(file):
                return _load_archive(f, file, map_location, read, mmap, weights_only)
            if mmap:
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({f}, "
                    "_use_new_zipfile_serialization=True), please torch.save your checkpoint with this "
                    "option in order to use mmap."
                )
            return _load_legacy(file, map_location, read)
        except pickle.UnpicklingError as error:
            if weights_only:
                raise _weights_only_error(str(error)) from None
            raise


def _forced_weights_only(weights_only: bool | None) -> bool | None:
    """The argument after the two variables that change it, as in torch: one overrides it, one its default."""
    forced, not_by_default = (
        os.environ.get(name, "0") in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced and not_by_default:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if forced:
        return True
    return False if not_by_default and weights_only is None else weights_only


def _check_seekable(file: Any) -> None:
    try:
        file.seek(file.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        missing = isinstance(error, AttributeError) and not hasattr(file, "seek")
        reason = f"{type(file).__name__!r} object has no attribute 'seek'" if missing else str(error)
        raise type(error)(reason + _NOT_SEEKABLE) from None


# A reader takes the pickle's bytes, a function that resolves references to storages, and the pickle's start;
# it returns the object and the pickle's end.
_Read = Callable[[bytes, "Callable[[Any], Any] | None", int], tuple[Any, int]]


def _weights_only_reader(*, encoding: str = "utf-8", **unknown: Any) -> _Read:
    for name in unknown:
        raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{name}'")

    def read(data: bytes, persistent_load: Any, position: int = 0) -> tuple[Any, int]:
        unpickler = Unpickler(data, persistent_load, position, encoding)
        return unpickler.load(), unpickler.position

    return read


def _unrestricted_reader(pickle_module: Any, pickle_load_args: dict[str, Any]) -> _Read:
    class TorchUnpickler(pickle_module.Unpickler):  # type: ignore[misc]
        """Resolves torch's names in this package."""

        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] == "torch":
                return _pickle_names.resolve(module, name)
            return super().find_class(module, name)

    def read(data: bytes, persistent_load: Any, position: int = 0) -> tuple[Any, int]:
        stream = io.BytesIO(data)
        stream.seek(position)
        unpickler = TorchUnpickler(stream, **pickle_load_args)
        if persistent_load is not None:
            unpickler.persistent_load = persistent_load
        return unpickler.load(), stream.tell()

    return read


def _load_archive(
    f: Any, file: IO[bytes], map_location: Any, read: _Read, mapped: bool, weights_only: bool
) -> Any:
    shared = mapped and _config().load.mmap_flags == 1
    reader = _archive.Reader(file, os.fspath(f) if mapped else None, shared)
    if "constants.pkl" in reader:
        _refuse_script(weights_only)
    storages = _LoadedStorages(reader, map_location)
    result, _ = read(reader.read("data.pkl"), storages.persistent_load, 0)
    return result


def _refuse_script(weights_only: bool) -> None:
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
        "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)",
        UserWarning,
        stacklevel=5,
    )
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
            + UNSAFE_MESSAGE
        )
    raise RuntimeError("TorchScript archives hold compiled programs, which this library cannot run")


def _storage_dtype(kind: Any) -> _dtype.dtype:
    if kind is UntypedStorage:
        return _dtype.uint8
    dtype = getattr(kind, "dtype", None)
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype


def _byteswapped(raw: np.ndarray, dtype: _dtype.dtype) -> np.ndarray:
    as_numbers = np.uint16 if dtype is _dtype.bfloat16 else dtype._np
    return raw.view(as_numbers).byteswap().view(np.uint8)


class _LoadedStorages:
    """The storages of an archive, each read when the pickle first refers to it."""

    def __init__(self, reader: _archive.Reader, map_location: Any) -> None:
        self._reader = reader
        self._restore = _get_restore_location(map_location)
        self._loaded: dict[str, Any] = {}
        self._swap = self._byteorder() != sys.byteorder

    def _byteorder(self) -> str:
        if "byteorder" in self._reader:
            order = self._reader.read("byteorder").decode("ascii", "replace")
            if order not in ("little", "big"):
                raise ValueError("Unknown endianness type: " + order)
            return order
        endianness = get_default_load_endianness()
        if endianness in (None, LoadEndianness.LITTLE):
            return "little"
        return "big" if endianness is LoadEndianness.BIG else sys.byteorder

    def persistent_load(self, saved_id: Any) -> TypedStorage:
        """The storage for a reference in the pickle."""
        if not isinstance(saved_id, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(saved_id).__name__}")
        kind_of_id = saved_id[0].decode("ascii") if isinstance(saved_id[0], bytes) else saved_id[0]
        if kind_of_id != "storage":
            raise AssertionError(
                f"Unknown typename for persistent_load, expected 'storage' but got '{kind_of_id}'"
            )
        kind, key, location, numel = saved_id[1:]
        dtype = _storage_dtype(kind)
        if key not in self._loaded:
            self._loaded[key] = self._load(str(key), dtype, numel, str(location))
        return TypedStorage(wrap_storage=_untyped(self._loaded[key]), dtype=dtype, _internal=True)

    def _load(self, key: str, dtype: _dtype.dtype, numel: int, location: str) -> Any:
        name, expected = f"data/{key}", numel * dtype.itemsize
        size = self._reader.size(name)
        if size != expected:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({expected} bytes = {expected} "
                "elements * 1 bytes/element) for dtype Byte"
            )
        raw = np.zeros(size, np.uint8) if _local.skip_data else self._reader.read_array(name)
        if self._swap:
            raw = _byteswapped(raw, dtype)
        return self._restore(UntypedStorage._from_bytes(raw), location)


class _LegacyStorages:
    """The storages of a legacy file: created when the pickle refers to them, filled from the data after it."""

    def __init__(self, map_location: Any, room: int) -> None:
        self._restore = _get_restore_location(map_location)
        self._bytes_left = room
        self.by_key: dict[str, tuple[UntypedStorage, _dtype.dtype]] = {}
        self._views: dict[str, UntypedStorage] = {}
        self._restored: dict[str, Any] = {}

    def persistent_load(self, saved_id: Any) -> Any:
        """The storage for a reference, or, for modules in old files, the class."""
        if not isinstance(saved_id, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(saved_id).__name__}")
        if saved_id[0] == "module":
            return saved_id[1]
        if saved_id[0] != "storage":
            raise RuntimeError(f"Unknown saved id type: {saved_id[0]}")
        kind, key, location, numel, view = saved_id[1:]
        dtype = _storage_dtype(kind)
        if key not in self.by_key:
            if not 0 <= numel * dtype.itemsize <= self._bytes_left:
                raise RuntimeError("a storage is longer than the file. The file might be corrupted.")
            self._bytes_left -= numel * dtype.itemsize
            storage = UntypedStorage._from_bytes(np.zeros(numel * dtype.itemsize, np.uint8))
            self.by_key[key] = (storage, dtype)
            self._restored[key] = self._restore(storage, location)
        restored = _untyped(self._restored[key])
        if view is not None:
            view_key, offset, length = view
            first = offset * dtype.itemsize
            restored = self._views.setdefault(view_key, restored[first : first + length * dtype.itemsize])
        return TypedStorage(wrap_storage=restored, dtype=dtype, _internal=True)

    def fill(self, keys: Any, data: bytes, position: int) -> int:
        """Copy the bytes of the storages, in the order of `keys`; returns the end of the last one."""
        for key in keys:
            storage, dtype = self.by_key[key]
            raw = storage._bytes()
            end = position + 8 + raw.nbytes
            if end > len(data):
                head = position + 8
                missing = (end if head <= len(data) else head) - len(data)
                raise RuntimeError(
                    f"unexpected EOF, expected {missing} more bytes. The file might be corrupted."
                )
            stated = int.from_bytes(data[position : position + 8], "little")
            if stated * dtype.itemsize != raw.nbytes:
                raise RuntimeError(
                    f"expected a storage of {raw.nbytes // dtype.itemsize} elements, got {stated}"
                )
            raw[:] = np.frombuffer(data, np.uint8, raw.nbytes, position + 8) if raw.nbytes else 0
            position = end
        return position


def _load_legacy(file: IO[bytes], map_location: Any, read: _Read) -> Any:
    start = file.tell()
    data = file.read()
    magic, position = read(data, None, 0)
    if type(magic) is not int or magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version, position = read(data, None, position)
    if type(version) is not int or version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    _, position = read(data, None, position)
    storages = _LegacyStorages(map_location, len(data))
    result, position = read(data, storages.persistent_load, position)
    keys, position = read(data, None, position)
    file.seek(start + storages.fill(keys, data, position))
    return result
