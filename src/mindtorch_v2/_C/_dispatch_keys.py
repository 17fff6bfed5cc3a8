"""torch._C's dispatch keys: names of layers of an op call, sets of them, and the guard that leaves layers out."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from .. import _autocast

_AUTOCAST = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda", "AutocastXPU": "xpu", "AutocastMPS": "mps"}

DispatchKey = Enum(  # type: ignore[misc]
    "DispatchKey",
    "Undefined CPU CUDA Meta MPS XPU Sparse SparseCPU SparseCsrCPU QuantizedCPU BackendSelect Python Functionalize ADInplaceOrView "
    "Autograd AutogradCPU AutogradCUDA AutogradXPU AutogradFunctionality AutocastCPU AutocastCUDA AutocastXPU AutocastMPS "
    "FuncTorchBatched FuncTorchGradWrapper PreDispatch PythonDispatcher CompositeExplicitAutograd CompositeImplicitAutograd",
    module=__name__,
)


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey]) -> None:
        self._keys = frozenset((keys,) if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """A set with this key too."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """A set without this key."""
        return DispatchKeySet(self._keys - {key})

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"


class _ExcludeDispatchKeyGuard:
    """Context manager: op calls leave layers out. Only autocast's layers can be left out here."""

    def __init__(self, keys: DispatchKeySet) -> None:
        others = sorted(key.name for key in keys._keys if key.name not in _AUTOCAST)
        if others:
            raise NotImplementedError(
                f"_ExcludeDispatchKeyGuard: only autocast can be left out here, not {', '.join(others)}"
            )
        self._devices = [_AUTOCAST[key.name] for key in keys._keys]

    def __enter__(self) -> None:
        self._before = [(device, _autocast.is_autocast_enabled(device)) for device in self._devices]
        for device in self._devices:
            _autocast.set_autocast_enabled(device, False)

    def __exit__(self, *exception: object) -> None:
        for device, enabled in self._before:
            _autocast.set_autocast_enabled(device, enabled)
