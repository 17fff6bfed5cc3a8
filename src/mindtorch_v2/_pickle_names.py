"""Names in checkpoint files: our classes and functions under torch's module paths, and back.

A file says `torch.nn.modules.linear Linear`; here that is `mindtorch_v2.nn.modules.linear Linear`.
"""

from __future__ import annotations

import importlib
from typing import Any

PACKAGE = __name__.partition(".")[0]

_STORAGES = tuple(
    kind + "Storage"
    for kind in (
        "Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool",
        "ComplexDouble", "ComplexFloat",
    )
)  # fmt: skip

# (our module, name) -> (torch's module, name), where replacing our package's name by "torch" is not enough
_TO_TORCH = {
    ("_utils", "_rebuild_from_type_v2"): ("torch._tensor", "_rebuild_from_type_v2"),
    ("_storage", "UntypedStorage"): ("torch.storage", "UntypedStorage"),
    **{("storage", name): ("torch", name) for name in _STORAGES},
    ("optim._adafactor", "Adafactor"): ("torch.optim", "Adafactor"),
    ("optim._muon", "Muon"): ("torch.optim", "Muon"),
    ("", "Generator"): ("torch._C", "Generator"),
    ("_random", "Generator"): ("torch._C", "Generator"),
    ("random", "Generator"): ("torch._C", "Generator"),
}
_FROM_TORCH = {
    ("torch._tensor", "_rebuild_from_type_v2"): ("_utils", "_rebuild_from_type_v2"),
    ("torch._C", "Generator"): ("", "Generator"),
    **{(module, name): ("storage", name) for name in _STORAGES for module in ("torch", "torch.cuda")},
}


def is_ours(module: Any) -> bool:
    """Whether a module name is this package's."""
    return isinstance(module, str) and (module == PACKAGE or module.startswith(PACKAGE + "."))


def to_torch(module: str, name: str) -> tuple[str, str]:
    """torch's module and name for one of our classes or functions."""
    inner = module[len(PACKAGE) + 1 :]
    return _TO_TORCH.get((inner, name)) or ("torch." + inner if inner else "torch", name)


def from_torch(module: str, name: str) -> tuple[str, str]:
    """Our module and name for what a file calls by torch's; other names as they are."""
    listed = _FROM_TORCH.get((module, name))
    if listed is not None:
        return f"{PACKAGE}.{listed[0]}" if listed[0] else PACKAGE, listed[1]
    if module == "torch" or module.startswith("torch."):
        return PACKAGE + module[len("torch") :], name
    return module, name


def resolve(module: str, name: str) -> Any:
    """The object that a file means by a torch name; AttributeError if this library has none."""
    resolved: Any
    our_module, our_name = from_torch(module, name)
    try:
        resolved = importlib.import_module(our_module)
        for part in our_name.split("."):
            resolved = getattr(resolved, part)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ImportError) and not is_ours(our_module):
            raise
        raise AttributeError(f"Can't get attribute '{name}' on {module}: {error}") from None
    return resolved
