"""as_torch(): from then on `import torch` and `import torch.anything` give this package, in every module.

So does `import functorch`, the package that torch's distribution brings beside torch. Names are mapped, not copied: `torch.nn` is the same module object as `mindtorch_v2.nn`, imported once.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType

_HERE = __package__
# the top-level packages of torch's distribution, and the packages here that stand in for them
_PACKAGES = {"torch": _HERE, "functorch": f"{_HERE}._functorch.package"}
_lock = threading.Lock()
_uses = 0


def _own_name(fullname: str) -> str:
    """The name here of a module of torch's distribution."""
    package, dot, rest = fullname.partition(".")
    return _PACKAGES[package] + dot + rest


def _is_served(fullname: str) -> bool:
    return fullname.partition(".")[0] in _PACKAGES


class _Loader(Loader):
    """Loads the module of this package that a torch module name is mapped to."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(_own_name(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just replaced the module's own spec with that of its second name.
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


class _Finder(MetaPathFinder):
    """Finds modules of torch and functorch in this package; leaves other names to the finders after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_served(fullname):
            return None
        try:
            ours = importlib.util.find_spec(_own_name(fullname))
        except (
            ModuleNotFoundError
        ):  # a package above it is missing: the import system says so with torch's name
            return None
        if ours is None:
            return None
        return ModuleSpec(fullname, _Loader(), is_package=ours.submodule_search_locations is not None)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """What `importlib.metadata` asks finders for: the metadata of a distribution called torch."""
        from ._torch_metadata import find_distributions

        return find_distributions(DistributionFinder.Context() if context is None else context)


_finder = _Finder()


def _show_as(name: str) -> None:
    """Give the package, and the classes that torch has at its top, this module name: `type(x)` prints as `torch.Tensor`."""
    package = sys.modules[_HERE]
    package.__name__ = name
    for value in list(vars(package).values()):
        if isinstance(value, type) and value.__module__ in (_HERE, "torch"):
            value.__module__ = name


class as_torch:
    """Make `import torch` give this package: for good, or until the end of a `with` block.

    Modules imported in the meantime keep it. Raises RuntimeError when real torch is already imported, because
    two kinds of tensors would mix.
    """

    def __init__(self) -> None:
        global _uses
        with _lock:
            loaded = sys.modules.get("torch")
            if loaded is not None and loaded is not sys.modules[_HERE]:
                raise RuntimeError(
                    "as_torch(): real torch is already imported; call it before anything imports torch"
                )
            _uses += 1
            if _finder not in sys.meta_path:
                sys.meta_path.insert(0, _finder)
                _show_as("torch")
        self._active = True

    def __enter__(self) -> ModuleType:
        return sys.modules[_HERE]

    def __exit__(self, *exception: object) -> None:
        global _uses
        with _lock:
            if not self._active:
                return
            self._active = False
            _uses -= 1
            if _uses == 0:
                sys.meta_path.remove(_finder)
                _show_as(_HERE)
                for name in [n for n in sys.modules if _is_served(n)]:
                    del sys.modules[name]
