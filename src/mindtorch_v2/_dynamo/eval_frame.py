"""The module that `torch.compile` returns for a module: it holds the original and calls it."""

from __future__ import annotations

from typing import Any

from ..nn import Module


class OptimizedModule(Module):
    """A module around `_orig_mod`, which runs eagerly; parameter names get torch's prefix `_orig_mod.`."""

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the original is in training mode."""
        original = self._modules.get("_orig_mod")
        return original is None or original.training

    @training.setter
    def training(self, mode: bool) -> None:
        if "_orig_mod" in self.__dict__.get("_modules", ()):
            self._modules["_orig_mod"].training = mode  # type: ignore[union-attr]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the original."""
        return self._modules["_orig_mod"](*args, **kwargs)  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        original = self.__dict__["_modules"]["_orig_mod"]
        return original if name == "_orig_mod" else getattr(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        if name == "_orig_mod" or name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])  # type: ignore[arg-type]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._modules["_orig_mod"])})
