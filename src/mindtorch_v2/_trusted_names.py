"""What `torch.load(weights_only=False)` may take from a file: a name in, the object it names or an error out.

The file may hold instances of classes that the program itself has, and of a list of plain types; it may not name functions, nor
classes of the standard library that act when they are made (a process, a socket, an import). So loading can build the objects that
people save, and cannot run code that the author of the file chose. More names: `torch.serialization.add_safe_globals`.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

# name -> what may be taken from that module; "*": every class
_STANDARD: dict[str, Any] = {
    "builtins": (
        "list dict set frozenset tuple int float complex bool str bytes bytearray slice range object type unicode long xrange "
        "Exception ValueError TypeError RuntimeError KeyError IndexError NotImplementedError StopIteration"
    ).split(),
    "collections": ["OrderedDict", "defaultdict", "deque", "Counter", "ChainMap", "UserDict", "UserList", "UserString"],
    "datetime": "*", "decimal": "*", "fractions": "*", "uuid": ["UUID", "SafeUUID"], "pathlib": "*", "pathlib._local": "*",
    "argparse": ["Namespace"], "types": ["SimpleNamespace", "MappingProxyType"], "functools": ["partial"],
    "copyreg": ["_reconstructor", "__newobj__", "__newobj_ex__"],
    "enum": "*", "array": ["array", "_array_reconstructor"], "zoneinfo": ["ZoneInfo"], "ipaddress": "*", "string": ["Template"],
    "random": ["Random"], "logging": ["Logger", "getLogger"], "re": ["_compile"], "typing": "*", "dataclasses": "*", "_codecs": ["encode"],
    "itertools": ["count", "cycle", "chain", "repeat", "islice"], "operator": ["itemgetter"], "weakref": ["WeakSet"],
}  # fmt: skip
_NUMPY = (
    "_reconstruct",
    "scalar",
    "_frombuffer",
    "__bit_generator_ctor",
    "__generator_ctor",
    "__randomstate_ctor",
    "_array_reconstruct",
)


def _is_harmless(module: str, name: str, obj: Any) -> bool:
    """torch's functions that saved objects name: rebuilders, functions of nn, ops. Not the ones that read files or run text."""
    return "." not in name and (
        name.startswith(("_rebuild", "_get_layout"))
        or module.split(".")[1:2] in (["nn"], ["_utils"], ["_tensor"], ["storage"])
        or hasattr(obj, "op")
    )


def check(module: str, name: str, obj: Any, allowed: list[Any]) -> Any:
    """`obj`, if a file may name it; else an UnpicklingError that says what to do."""
    if any(obj is (entry[0] if isinstance(entry, tuple) else entry) for entry in allowed):
        return obj
    # where it really comes from: a pickle may name it by an alias, or as Python 2 called it
    home, own_name = getattr(obj, "__module__", None) or module, getattr(obj, "__qualname__", name)
    root = home.partition(".")[0]
    if root in sys.stdlib_module_names:
        listed = _STANDARD.get(home, ())
        fine = own_name in listed or (listed == "*" and isinstance(obj, type))
    else:
        fine = (
            isinstance(obj, type)
            or not callable(obj)
            or home == "__main__"
            or (root == "numpy" and own_name in _NUMPY)
            or (root in ("torch", "mindtorch_v2") and _is_harmless(home, own_name, obj))
        )
    if fine:
        return obj
    raise pickle.UnpicklingError(
        f"{module}.{name} is refused: loading a file must not run code that the file chose. If you trust it, call "
        f"torch.serialization.add_safe_globals([{name.rpartition('.')[2]}]) first."
    )
