"""The restricted unpickler: the bytes of a pickle in, containers and tensors out. Runs no code of the file.

It reads the instructions that a checkpoint of pickle protocol 2 needs and no others. A name in the file is
looked up in a list of allowed ones, nothing is imported, and what may be called is checked for its arguments:
no instruction can ask for more memory than the file is long.
"""

from __future__ import annotations

import re
import reprlib
import struct
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import lru_cache
from pickle import UnpicklingError
from typing import Any

from . import _dtype, _pickle_names
from .storage import _LEGACY, TypedStorage, UntypedStorage

_SHARED_ITEMS = 100_000  # so many items a tuple may have in any file, with those of the tuples inside it
_BLOCKED_MODULES = frozenset(("sys", "os", "posix", "nt"))
# dtypes that torch has and this library has not
_FOREIGN_DTYPE = re.compile(r"(float4_|q?u?int\d|bits\d|complex32)")
_CODECS = frozenset(("latin1", "latin-1", "ascii", "utf-8", "utf8"))

# instructions, by the byte that stands for them
_MARK, _STOP, _NONE, _REDUCE, _BINPERSID, _BUILD, _GLOBAL = b"(.NRQbc"
_BININT, _BININT1, _BININT2, _BINUNICODE, _SHORT_BINSTRING, _BINFLOAT = b"JKMXUG"
_APPEND, _APPENDS, _SETITEM, _SETITEMS = b"aesu"
_EMPTY_LIST, _EMPTY_TUPLE, _EMPTY_DICT, _TUPLE = b"])}t"
_BINGET, _LONG_BINGET, _BINPUT, _LONG_BINPUT = b"hjqr"
_PROTO, _NEWOBJ, _TUPLE1, _TUPLE2, _TUPLE3, _NEWTRUE, _NEWFALSE, _LONG1, _EMPTY_SET = (
    b"\x80\x81\x85\x86\x87\x88\x89\x8a\x8f"
)

_ARGUMENT_SIZE = {
    **dict.fromkeys((_MARK, _STOP, _NONE, _REDUCE, _BINPERSID, _BUILD, _APPEND, _APPENDS, _SETITEM), 0),
    **dict.fromkeys((_SETITEMS, _EMPTY_LIST, _EMPTY_TUPLE, _EMPTY_DICT, _TUPLE, _NEWOBJ, _TUPLE1), 0),
    **dict.fromkeys((_TUPLE2, _TUPLE3, _NEWTRUE, _NEWFALSE, _EMPTY_SET), 0),
    **dict.fromkeys((_BININT1, _BINGET, _BINPUT, _PROTO), 1),
    **dict.fromkeys((_BININT, _LONG_BINGET, _LONG_BINPUT), 4),
    _BININT2: 2,
    _BINFLOAT: 8,
}


class StorageType:
    """What a name such as `FloatStorage` in a file stands for: a dtype."""

    __module__ = "mindtorch_v2.serialization"

    def __init__(self, name: str) -> None:
        self._dtype = _LEGACY[name].dtype

    @property
    def dtype(self) -> _dtype.dtype:
        """The dtype of the storage's elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


_safe_globals: list[Any] = []


def _user_globals() -> dict[str, Any]:
    """What the program allowed, by the name a file would use."""
    allowed = {}
    for entry in _safe_globals:
        if isinstance(entry, tuple):
            obj, name = entry
            if not callable(obj):
                raise TypeError(f"Expected first item in tuple to be callable, got {type(obj)}")
            allowed[name] = obj
            continue
        module, name = entry.__module__, entry.__qualname__
        if _pickle_names.is_ours(module):
            module, name = _pickle_names.to_torch(module, name)
        allowed[f"{module}.{name}"] = entry
    return allowed


@lru_cache(maxsize=1)
def _tensor_functions() -> dict[str, Callable[..., Any]]:
    from . import _utils

    named = (
        _utils._rebuild_tensor,
        _utils._rebuild_tensor_v2,
        _utils._rebuild_tensor_v3,
        _utils._rebuild_parameter,
        _utils._rebuild_parameter_with_state,
        _utils._rebuild_sparse_tensor,
        _utils._rebuild_meta_tensor_no_storage,
    )
    return {"torch._utils." + function.__name__: function for function in named}


@lru_cache(maxsize=1)
def _default_globals() -> dict[str, Any]:
    """What every file may name."""
    from . import _device, _size, _tensor, _utils
    from .nn.parameter import Parameter
    from .serialization import _get_layout

    allowed: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": _size.Size,
        "torch.Tensor": _tensor.Tensor,
        "torch.device": _device.device,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch.storage.TypedStorage": TypedStorage,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch._tensor._rebuild_from_type_v2": _utils._rebuild_from_type_v2,
    }
    allowed |= _tensor_functions()
    allowed |= {f"torch.{d._name}": d for d in (*_dtype.ALL, *_dtype.FLOAT8)}
    for name in _LEGACY:
        allowed[f"torch.{name}"] = allowed[f"torch.cuda.{name}"] = StorageType(name)
    return allowed


def _encode(text: Any, codec: Any = "utf-8") -> bytes:
    """`_codecs.encode` for the codecs that pickle writes bytes with."""
    if type(text) is not str or codec not in _CODECS:
        raise UnpicklingError(f"_codecs.encode is allowed for text and latin1 only, got codec {codec!r}")
    return text.encode(codec)


def _bytearray(*args: Any) -> bytearray:
    if args and type(args[0]) is str:
        return bytearray(_encode(*args))
    if args and type(args[0]) not in (bytes, bytearray):
        raise UnpicklingError(f"bytearray of {type(args[0])} is not allowed")
    return bytearray(*args)


def _tensor_class(cls: Any) -> Callable[..., Any]:
    from ._tensor import Tensor

    def make(*args: Any) -> Any:
        if not all(isinstance(arg, Tensor) or type(arg) is bool for arg in args):
            raise UnpicklingError(f"{cls.__name__} of a size or a sequence is not allowed; only of a tensor")
        return cls(*args)

    return make


def _from_type(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    from . import _tensor, _utils

    if func not in _tensor_functions().values():
        raise UnpicklingError(f"Trying to call reduce for unrecognized function {func}")
    if not (isinstance(new_type, type) and issubclass(new_type, _tensor.Tensor)):
        raise UnpicklingError(f"Expected a subclass of Tensor, but got {new_type}")
    return _utils._rebuild_from_type_v2(func, new_type, args, state)


@lru_cache(maxsize=1)
def _callables() -> dict[Any, Callable[..., Any]]:
    """What a file may call, and the function that does it."""
    from . import _device, _size, _tensor, _utils
    from .nn.parameter import Parameter
    from .serialization import _get_layout

    same = (OrderedDict, Counter, _get_layout, _size.Size, _device.device, _encode, set, complex)
    calls: dict[Any, Callable[..., Any]] = {function: function for function in same}
    calls |= {function: function for function in _tensor_functions().values()}
    calls[_utils._rebuild_from_type_v2] = _from_type
    calls[bytearray] = _bytearray
    calls[Parameter], calls[_tensor.Tensor] = _tensor_class(Parameter), _tensor_class(_tensor.Tensor)
    return calls


def _global_name(module: str, name: str) -> tuple[str, str]:
    """A name in a file as Python 3 spells it."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


def _shown(module: str, name: str) -> str:
    return name if module == "builtins" else f"{module}.{name}"


def _refusal(name: str) -> str:
    return (
        f"Unsupported global: GLOBAL {name} was not an allowed global by default. "
        f"Please use `torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this global "
        "if you trust this class/function."
    )


def _shown_value(value: object) -> object:
    """What a message shows of a value of a file; lists that hold one list many times would make an endless text."""
    return reprlib.repr(value) if isinstance(value, (tuple, list, set, dict)) else value


class _TupleSizes:
    """How many items tuples have, with those of tuples inside them as often as they occur there.

    A hundred bytes of a file can make a tuple of 2**60 items, which hold each other: its hash, as a key, would never be finished.
    """

    def __init__(self, n_bytes: int) -> None:
        """n_bytes: of the file. Items that occur once take a byte at least."""
        self._most = max(n_bytes, _SHARED_ITEMS)
        self._nested: dict[int, tuple[int, tuple]] = {}  # by id(): the size, and the tuple, which stays alive

    def checked(self, items: tuple) -> tuple:
        """The same tuple, if it is not too large."""
        inside = [item for item in items if item.__class__ is tuple]
        if inside:
            size = len(items) + sum(self._nested.get(id(each), (len(each),))[0] for each in inside)
            if size > self._most:
                raise UnpicklingError(
                    f"a tuple has more than {self._most:,} items with those of the tuples inside it"
                )
            self._nested[id(items)] = size, items
        return items


class Unpickler:
    """Reads one pickle out of `data`, beginning at `position`, which is then where it ended."""

    def __init__(
        self,
        data: bytes | memoryview,
        persistent_load: Callable[[Any], Any] | None = None,
        position: int = 0,
        encoding: str = "utf-8",
    ) -> None:
        self.data, self.position, self.encoding = bytes(data), position, encoding
        self.persistent_load = persistent_load
        self.user = _user_globals()
        self.user_types = {value for value in self.user.values() if isinstance(value, type)}
        self.user_functions = list(self.user.values())

    # ----------------------------------------------------------------------------------- what names may do

    def find(self, module: str, name: str) -> Any:
        """The object that a file means, if it is allowed."""
        module, name = _global_name(module, name)
        if module.partition(".")[0] in _BLOCKED_MODULES:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {_shown(module, name)} whose module {module} is blocked."
            )
        for allowed in (_default_globals(), self.user):
            for full in (f"{module}.{name}", _shown(module, name)):
                if full in allowed:
                    return allowed[full]
        if module == "torch" and _FOREIGN_DTYPE.match(name):
            raise NotImplementedError(f"torch.{name}: this library has no such dtype")
        raise UnpicklingError(_refusal(_shown(module, name)))

    def reduce(self, function: Any, args: Any) -> Any:
        """Call what is allowed to be called."""
        try:
            call = _callables().get(function)
        except TypeError:  # not hashable, so not a function
            call = None
        if call is None:
            if not any(function is allowed for allowed in self.user_functions):
                raise UnpicklingError(
                    f"Trying to call reduce for unrecognized function {_shown_value(function)}"
                )
            call = function
        return call(*args)

    def new(self, cls: Any, args: Any) -> Any:
        """An object of an allowed class, created without its `__init__`."""
        if cls is OrderedDict or cls is Counter or cls is set:
            return cls()
        if isinstance(cls, type) and cls in self.user_types:
            return cls.__new__(cls, *args)
        if isinstance(cls, type) and cls in _callables() and cls.__module__.startswith(_pickle_names.PACKAGE):
            return _callables()[cls](*args)
        raise UnpicklingError(
            "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` "
            f"but got {_shown_value(cls)}"
        )

    def build(self, obj: Any, state: Any) -> None:
        """Give an object its attributes."""
        from ._tensor import Tensor
        from ._utils import _set_state
        from .nn.parameter import Parameter

        kind = type(obj)
        if kind is OrderedDict:
            obj.__dict__.update(state)
        elif kind in self.user_types:
            _set_user_state(obj, state)
        elif kind is Tensor or kind is Parameter:
            _set_state(obj, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {kind}"
            )

    def stored(self, saved_id: Any) -> Any:
        """The storage that a file refers to."""
        if type(saved_id) not in (tuple, int):
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(saved_id)}")
        if type(saved_id) is tuple and saved_id and saved_id[0] != "storage":
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {type(saved_id[0])}")
        if self.persistent_load is None:
            raise UnpicklingError("unsupported persistent id encountered")
        return self.persistent_load(saved_id)

    # --------------------------------------------------------------------------------------------- reading

    def load(self) -> Any:
        """Read the pickle and return the object."""
        # one branch per instruction, the frequent ones first
        data, i, encoding = self.data, self.position, self.encoding
        stack: list[Any] = []
        below: list[list[Any]] = []
        memo: dict[int, Any] = {}
        checked = _TupleSizes(len(data)).checked
        size = len(data)
        while True:
            if i >= size:
                raise EOFError
            op = data[i]
            i += 1
            if op == _BINPUT:
                memo[data[i]] = stack[-1]
                i += 1
            elif op == _LONG_BINPUT:
                memo[int.from_bytes(data[i : i + 4], "little")] = stack[-1]
                i += 4
            elif op == _BINGET:
                stack.append(memo[data[i]])
                i += 1
            elif op == _LONG_BINGET:
                stack.append(memo[int.from_bytes(data[i : i + 4], "little")])
                i += 4
            elif op == _BINUNICODE:
                end = i + 4 + int.from_bytes(data[i : i + 4], "little")
                stack.append(str(data[i + 4 : end], "utf-8", "surrogatepass"))
                i = end
            elif op == _BININT1:
                stack.append(data[i])
                i += 1
            elif op == _BININT2:
                stack.append(int.from_bytes(data[i : i + 2], "little"))
                i += 2
            elif op == _BININT:
                stack.append(int.from_bytes(data[i : i + 4], "little", signed=True))
                i += 4
            elif op == _BINFLOAT:
                stack.append(struct.unpack(">d", data[i : i + 8])[0])
                i += 8
            elif op == _MARK:
                below.append(stack)
                stack = []
            elif op == _TUPLE:
                items, stack = stack, below.pop()
                stack.append(checked(tuple(items)))
            elif op == _TUPLE1:
                stack[-1] = checked((stack[-1],))
            elif op == _TUPLE2:
                stack[-2:] = [checked((stack[-2], stack[-1]))]
            elif op == _TUPLE3:
                stack[-3:] = [checked((stack[-3], stack[-2], stack[-1]))]
            elif op == _EMPTY_TUPLE:
                stack.append(())
            elif op == _NEWTRUE:
                stack.append(True)
            elif op == _NEWFALSE:
                stack.append(False)
            elif op == _NONE:
                stack.append(None)
            elif op == _BINPERSID:
                stack.append(self.stored(stack.pop()))
            elif op == _REDUCE:
                args = stack.pop()
                stack[-1] = self.reduce(stack[-1], args)
            elif op == _EMPTY_DICT:
                stack.append({})
            elif op == _EMPTY_LIST:
                stack.append([])
            elif op == _EMPTY_SET:
                stack.append(set())
            elif op in (_SETITEM, _SETITEMS):
                if op == _SETITEM:
                    items = [stack.pop(-2), stack.pop()]
                else:
                    items, stack = stack, below.pop()
                target = stack[-1]
                if type(target) not in (dict, OrderedDict, Counter):
                    raise UnpicklingError(
                        "Can only SETITEM for dict, collections.OrderedDict, "
                        f"collections.Counter, but got {type(target)}"
                    )
                for k in range(0, len(items), 2):
                    target[items[k]] = items[k + 1]
            elif op == _APPEND:
                item = stack.pop()
                if type(stack[-1]) is not list:
                    raise UnpicklingError(f"Can only append to lists, but got {type(stack[-1])}")
                stack[-1].append(item)
            elif op == _APPENDS:
                items, stack = stack, below.pop()
                if type(stack[-1]) is not list:
                    raise UnpicklingError(f"Can only extend lists, but got {type(stack[-1])}")
                stack[-1].extend(items)
            elif op == _GLOBAL:
                module, name, i = _read_global(data, i)
                stack.append(self.find(module, name))
            elif op == _NEWOBJ:
                args = stack.pop()
                stack[-1] = self.new(stack[-1], args)
            elif op == _BUILD:
                state = stack.pop()
                self.build(stack[-1], state)
            elif op == _LONG1:
                end = i + 1 + data[i]
                stack.append(int.from_bytes(data[i + 1 : end], "little", signed=True))
                i = end
            elif op == _SHORT_BINSTRING:
                end = i + 1 + data[i]
                raw = data[i + 1 : end]
                stack.append(raw if encoding == "bytes" else str(raw, encoding))
                i = end
            elif op == _PROTO:
                _warn_protocol(data[i])
                i += 1
            elif op == _STOP:
                self.position = i
                return stack.pop()
            else:
                raise UnpicklingError(f"Unsupported operand {op}")


def _read_global(data: bytes, i: int) -> tuple[str, str, int]:
    first = data.find(b"\n", i)
    second = data.find(b"\n", first + 1)
    if first < 0 or second < 0:
        raise EOFError
    return str(data[i:first], "utf-8"), str(data[first + 1 : second], "utf-8"), second + 1


def _warn_protocol(protocol: int) -> None:
    if protocol != 2:
        warnings.warn(
            f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle "
            "protocol used by `torch.load` (2). The weights_only Unpickler might not support all "
            "instructions implemented by this protocol, please file an issue for adding support if you "
            "encounter this.",
            UserWarning,
            stacklevel=4,
        )


def _set_user_state(obj: Any, state: Any) -> None:
    """What pickle does with the state of an object, for classes that the program allowed."""
    if hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        obj.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)


def globals_in_pickle(data: bytes) -> set[str]:
    """Every name that a pickle refers to, found without building anything."""
    names: set[str] = set()
    i, size = 0, len(data)
    while True:
        if i >= size:
            raise EOFError
        op = data[i]
        i += 1
        if op == _STOP:
            return names
        if op == _GLOBAL:
            module, name, i = _read_global(data, i)
            names.add(_shown(*_global_name(module, name)))
        elif op == _BINUNICODE:
            i += 4 + int.from_bytes(data[i : i + 4], "little")
        elif op in (_LONG1, _SHORT_BINSTRING):
            i += 1 + data[i]
        elif op in _ARGUMENT_SIZE:
            i += _ARGUMENT_SIZE[op]
        else:
            raise UnpicklingError(f"Unsupported operand {op}")


def unsafe_globals(data: bytes) -> list[str]:
    """The names in a pickle that are not allowed."""
    allowed = set(_default_globals()) | set(_user_globals())
    builtin = {name.removeprefix("builtins.") for name in allowed if name.startswith("builtins.")}
    return sorted(globals_in_pickle(data) - allowed - builtin)
