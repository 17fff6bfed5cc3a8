"""torch.classes: classes that C++ extensions register. None can be loaded here, so every look-up raises."""

from __future__ import annotations

from typing import Any, NoReturn


class _ClassNamespace:
    """The classes of one extension."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attr: str) -> NoReturn:
        if attr.startswith("__"):
            raise AttributeError(attr)
        raise RuntimeError(
            f"Class {self.name}.{attr} not registered! this library loads no C++ extensions (torch.classes.{self.name}.{attr})"
        )


class _Classes:
    """The namespaces of extensions, by their names."""

    __file__ = "_classes.py"

    def __getattr__(self, name: str) -> _ClassNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return _ClassNamespace(name)

    @property
    def loaded_libraries(self) -> set[str]:
        """The extensions that are loaded: none."""
        return set()

    def load_library(self, path: Any) -> NoReturn:
        """Raises: a C++ extension needs torch's C++ library."""
        raise OSError(f"{path}: a C++ extension needs torch's C++ library, which this library does not have")


classes = _Classes()
