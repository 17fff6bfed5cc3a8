"""Read and replace a module's tensors by dotted name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindtorch_v2 as torch

_MISSING: Any = object()


def set_tensor(module: Any, name: str, tensor: torch.Tensor) -> None:
    """Set a module's parameter, buffer or attribute of this name to a tensor."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not isinstance(tensor, torch.Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    if name in module._parameters:
        module._parameters[name] = tensor
    elif name in module._buffers:
        module._buffers[name] = tensor
    else:
        setattr(module, name, tensor)


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace a tensor and return the old one. `_MISSING` means none."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and not isinstance(tensor, torch.Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            if tensor is _MISSING:
                del members[name]
            else:
                members[name] = tensor
            return before
    if hasattr(module, name):
        before = getattr(module, name)
        if before is not None and not isinstance(before, torch.Tensor):
            raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    elif not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    else:
        before = _MISSING
    if tensor is _MISSING:
        if hasattr(module, name):
            delattr(module, name)
    else:
        setattr(module, name, tensor)
    return before


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Replace a child module and return the old one."""
    for value in (module, submodule):
        if not isinstance(value, torch.nn.Module):
            raise TypeError(f"{value} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if not isinstance(before, torch.nn.Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Reads and replaces the tensors of a module and its submodules."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.memo: dict[str, Any] = {}

    def get_submodule(self, name: str) -> Any:
        """The module at a dotted path."""
        if not name:
            return self.module
        if name not in self.memo:
            prefix, _, attr = name.rpartition(".")
            parent = self.get_submodule(prefix)
            if not hasattr(parent, attr):
                raise AttributeError(f"{parent._get_name()} has no attribute `{attr}`")
            submodule = getattr(parent, attr)
            if not isinstance(submodule, torch.nn.Module):
                raise TypeError(f"submodule `{name}`: {submodule} is not an instance of torch.nn.Module")
            self.memo[name] = submodule
        return self.memo[name]

    def _split_path(self, name: str) -> tuple[Any, str]:
        prefix, _, attr = name.rpartition(".")
        return self.get_submodule(prefix), attr

    def swap_submodule(self, path: str, value: Any) -> Any:
        """Replace the module at a dotted path and return the old one."""
        module, attr = self._split_path(path)
        return swap_submodule(module, attr, value)

    def get_tensor(self, name: str) -> Any:
        """The tensor at a dotted path."""
        module, attr = self._split_path(name)
        if not hasattr(module, attr):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        tensor = getattr(module, attr)
        if not isinstance(tensor, torch.Tensor) and tensor is not None:
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        return tensor

    def set_tensor(self, name: str, value: torch.Tensor) -> None:
        """Set the tensor at a dotted path."""
        set_tensor(*self._split_path(name), value)

    def del_tensor(self, name: str) -> None:
        """Remove the tensor at a dotted path."""
        module, attr = self._split_path(name)
        if not hasattr(module, attr):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        delattr(module, attr)

    def swap_tensor(self, name: str, value: torch.Tensor, allow_missing: bool = False) -> torch.Tensor:
        """Replace the tensor at a dotted path and return the old one."""
        return swap_tensor(*self._split_path(name), value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[torch.Tensor]:
        """The tensors at several paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[torch.Tensor]) -> None:
        """Set the tensors at several paths."""
        self.set_tensors_dict(_zip_checked(names, values))

    def set_tensors_dict(self, named_tensors: dict[str, torch.Tensor]) -> None:
        """Set each tensor at its path."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Remove the tensors at several paths."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[torch.Tensor], allow_missing: bool = False
    ) -> list[torch.Tensor]:
        """Replace the tensors at several paths and return the old ones."""
        return [
            self.swap_tensor(name, value, allow_missing)
            for name, value in _zip_checked(names, values).items()
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, torch.Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, torch.Tensor], list[str]]:
        """Replace each tensor at its path: (old tensors, names that had none). Either all or none are
        replaced.
        """
        before: dict[str, torch.Tensor] = {}
        missing: list[str] = []
        try:
            for name, tensor in named_tensors.items():
                original = self.swap_tensor(name, tensor, allow_missing=True)
                if original is _MISSING:
                    missing.append(name)
                before[name] = original
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """(names that are not among the keys, keys that are not names)."""
        given = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, torch.Tensor]]:
        """The module's parameters."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, torch.Tensor]]:
        """The module's buffers."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, torch.Tensor]]:
        """The module's parameters, then its buffers."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """The module and its submodules."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _zip_checked(names: Iterable[str], values: Iterable[Any]) -> dict[str, Any]:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return dict(zip(names, values))
