"""torch.ops: every declared op by its aten name and overload, as `torch.ops.aten.add.Tensor(x, y)`."""

from __future__ import annotations

from typing import Any

from . import _dispatch


class OpOverload:
    """One overload of an op: called with the arguments of its schema."""

    def __init__(self, packet: OpOverloadPacket, name: str, op: Any) -> None:
        self._packet, self._overloadname, self._op = packet, name, op
        self.namespace = op.namespace
        self.__name__ = f"{packet.__name__}.{name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        return self._op.entry(*args, **kwargs)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._packet

    @property
    def _schema(self) -> str:
        return self._op.text

    def name(self) -> str:
        """The qualified name, such as "aten::add.Tensor"."""
        return self._op.qualified_name + ("" if self._overloadname == "default" else "." + self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._packet.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads of an op; called, it takes the one that fits the arguments."""

    def __init__(self, namespace: str, name: str, found: dict[str, Any]) -> None:
        self._namespace, self.__name__ = namespace, name
        self._qualified_op_name = f"{namespace}::{name}"
        self._overloads = {key: OpOverload(self, key, op) for key, op in found.items()}

    def overloads(self) -> list[str]:
        """The overloads' names."""
        return list(self._overloads)

    def __getattr__(self, key: str) -> OpOverload:
        found = self._overloads.get(key)
        if found is None and key == "Scalar" and "Tensor" in self._overloads:
            # a number stands where a tensor may: one kernel serves both
            found = self._overloads["Tensor"] if self._overloads["Tensor"]._op.promote else None
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{key}'"
            )
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        chosen = _dispatch.FUNCTIONS.get(self.__name__) or _dispatch.METHODS.get(self.__name__)
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        if chosen is not None:
            return chosen(*args, **kwargs)
        failed: Exception | None = None
        for overload in self._overloads.values():
            try:
                return overload(*args, **kwargs)
            except TypeError as error:
                failed = failed or error
        assert failed is not None
        raise failed

    def __iter__(self) -> Any:
        return iter(self._overloads)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"


class _OpNamespace:
    """The ops whose names begin with `<name>::`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op_name: str) -> OpOverloadPacket:
        found = {
            op.overload or "default": op
            for op in _dispatch.OPS.values()
            if op.name == op_name and op.namespace == self.name
        }
        if not found or op_name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(self.name, op_name, found)
        setattr(self, op_name, packet)
        return packet

    def __dir__(self) -> list[str]:
        return sorted({op.name for op in _dispatch.OPS.values() if op.namespace == self.name})

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


aten = _OpNamespace("aten")


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    made = globals()[name] = _OpNamespace(name)
    return made
