"""The light door to the profiler: `load` and the command line `mindtorch-prof`, without tensors.

`import mindtorch_v2` puts the whole torch namespace together. Whoever only reads traces needs none of it, so
this package, if it is imported first, puts a light `mindtorch_v2` in its place: the same module, whose body
runs when something else than the profiler's readers is asked of it. Programs see no difference.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["load", "main"]

_NAME = "mindtorch_v2"
_LIGHT = ("_dtype", "profiler", "version")  # sub-modules that need no tensors


class _Waiting(MetaPathFinder):
    """Stands for the body of `mindtorch_v2` until it has run."""

    def __init__(self, package: ModuleType) -> None:
        self.package = package
        self.lock = threading.RLock()
        self.waits = True

    def getattr(self, name: str) -> Any:
        """The package's `__getattr__` in the meantime."""
        if self.waits and name in _LIGHT:
            return importlib.import_module(f"{_NAME}.{name}")
        self.run()
        return getattr(self.package, name)

    def run(self) -> None:
        """Run the body: from now on the package is what it always is."""
        with self.lock:
            if not self.waits:
                return
            self.waits = False
            sys.meta_path.remove(self)
            del self.package.__getattr__
            spec = self.package.__spec__
            assert spec is not None
            assert spec.loader is not None
            spec.loader.exec_module(self.package)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A sub-module is asked for: the package's body comes first, unless the sub-module is light."""
        head, _, rest = fullname.partition(".")
        if head != _NAME or rest.partition(".")[0] in _LIGHT:
            return None
        self.run()
        module = sys.modules.get(fullname)  # the body may have imported it
        return None if module is None else ModuleSpec(fullname, _There(module, module.__spec__))


class _There(Loader):
    """Loads a module that is loaded already."""

    def __init__(self, module: ModuleType, spec: ModuleSpec | None) -> None:
        self.module, self.spec = module, spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


def _put_light_package() -> None:
    if _NAME in sys.modules:
        return
    spec = importlib.util.find_spec(_NAME)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {_NAME!r}; mindtorch_prof is a part of it", name=_NAME)
    package = importlib.util.module_from_spec(spec)
    waiting = _Waiting(package)
    package.__getattr__ = waiting.getattr  # type: ignore[method-assign]
    sys.modules[_NAME] = package
    sys.meta_path.insert(0, waiting)


_put_light_package()


def load(*arguments: Any, **options: Any) -> Any:
    """Open a trace file; as `mindtorch_v2.profiler.load`."""
    from mindtorch_v2.profiler import load

    return load(*arguments, **options)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `mindtorch-prof`; gives its exit code."""
    from mindtorch_v2.profiler.cli import main

    return main(argv)
