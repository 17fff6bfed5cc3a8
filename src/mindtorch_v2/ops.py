"""torch.ops: every declared op by namespace, name and overload, such as `torch.ops.aten.add.Tensor(x, y)`."""

from __future__ import annotations

from typing import Any

from . import _dispatch, _function_schema, _overrides


def _is_traced(args: tuple, kwargs: dict) -> bool:
    """Whether an argument is a proxy: an object that is no tensor and overrides torch's functions."""
    overloaded = _overrides.overloaded_arguments(_overrides._flattened(args, kwargs))
    enabled = _overrides.thread_state.function_overrides == _overrides.ENABLED
    return enabled and any(not isinstance(argument, _dispatch.Tensor) for argument in overloaded)


class OpOverload:
    """One overload of an op: called with the arguments of its schema."""

    def __init__(self, packet: OpOverloadPacket, name: str, op: Any, outs: tuple[str, ...] = ()) -> None:
        self._packet, self._overloadname, self._op, self._outs = packet, name, op, outs
        self.namespace = op.namespace
        self.__name__ = f"{packet.__name__}.{name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _overrides.process_state.functions_guarded and _is_traced(args, kwargs):
            return _overrides.call_function(self, None, args, kwargs)
        try:
            return self._called(args, kwargs)
        except TypeError:
            wrong = self._wrong_arguments(len(args), kwargs)
            if wrong is not None:
                raise wrong from None
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the op gives; a TypeError where it does not take these arguments."""
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        if self._outs and kwargs.keys() >= set(self._outs):
            out = tuple(kwargs.pop(name) for name in self._outs)
            kwargs["out"] = out[0] if len(out) == 1 else out
            if not self._op.has_out:
                return self._packet(*args, **kwargs)
        return self._op.entry(*args, **kwargs)

    def _wrong_arguments(self, count: int, kwargs: dict[str, Any]) -> RuntimeError | None:
        """torch's error for a call with missing, unknown or too many arguments."""
        schema = self._schema
        names = {a.name for a in schema.arguments} | {"input", "out"}
        unknown = next((name for name in kwargs if name not in names), None)
        if unknown is not None:
            return RuntimeError(
                f"Unknown keyword argument '{unknown}' for operator '{schema.name}'. Schema: {schema}"
            )
        if count > len(schema.arguments):
            return RuntimeError(
                f"{schema.name}() expected at most {len(schema.arguments)} argument(s) but received {count} argument(s). "
                f"Declaration: {schema}"
            )
        for index, argument in enumerate(schema.arguments):
            name = "input" if argument.name == "self" else argument.name
            positional = index < count and not argument.kwarg_only
            if not (positional or argument.is_out or argument.has_default_value() or name in kwargs):
                return RuntimeError(
                    f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
                )
        return None

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._packet

    _overloadpacket = overloadpacket

    @property
    def _schema(self) -> _function_schema.FunctionSchema:
        return _function_schema.parse(self._text())

    def _text(self) -> str:
        text = self._op.text
        if self._outs:
            return _function_schema.with_out(text, self._overloadname, self._outs)
        if self._overloadname == "Scalar" and self._op.overload == "Tensor":
            return _function_schema.with_number(text)
        return text

    @property
    def _opname(self) -> str:
        return self._packet.__name__

    @property
    def is_view(self) -> bool:
        """Whether results alias an argument's memory."""
        schema = self._schema
        return not schema.is_mutable and any(r.alias_info is not None for r in schema.returns)

    def name(self) -> str:
        """The qualified name, such as "aten::add.Tensor"."""
        return self._op.qualified_name + ("" if self._overloadname == "default" else "." + self._overloadname)

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverload:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _overload, (self.namespace, self._packet.__name__, self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._packet.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads of an op; a call uses the one that fits the arguments."""

    def __init__(self, namespace: str, name: str, found: dict[str, Any]) -> None:
        self._namespace, self.__name__ = namespace, name
        self._qualified_op_name = f"{namespace}::{name}"
        self._overloads = {key: OpOverload(self, key, op) for key, op in found.items()}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._overloads)

    def _get_overload(self, op: Any, key: str) -> OpOverload:
        """The overload that torch calls `key`, implemented by `op`."""
        found = self._overloads.get(key)
        if found is None:
            from ._torch_dispatch import out_names

            name, outs = out_names(op)
            found = self._overloads[key] = OpOverload(self, key, op, outs if name == key else ())
        return found

    def _covered_overload(self, key: str) -> OpOverload | None:
        """An overload that is not declared here but covered by another: a number in place of a tensor, or
        `out`.
        """
        from ._torch_dispatch import out_names

        declared_ops = [overload._op for overload in self._overloads.values() if not overload._outs]
        for op in declared_ops:
            number = key == "Scalar" and op.overload == "Tensor" and op.promote
            if number or (
                out_names(op)[0] == key and op.schema.returns[:1] and op.schema.returns[0] == "Tensor"
            ):
                return self._get_overload(op, key)
        return None

    def __getattr__(self, key: str) -> OpOverload:
        if key.startswith("__"):
            raise AttributeError(key)
        found = self._overloads.get(key) or self._covered_overload(key)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{key}'"
            )
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _overrides.process_state.functions_guarded and _is_traced(args, kwargs):
            return _overrides.call_function(self, None, args, kwargs)
        function = None
        if self._namespace == "aten":
            function = _dispatch.FUNCTIONS.get(self.__name__) or _dispatch.METHODS.get(self.__name__)
        elif len(self._overloads) == 1:
            return next(iter(self._overloads.values()))(*args, **kwargs)
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        if function is not None:
            return function(*args, **kwargs)
        failed: Exception | None = None
        for overload in self._overloads.values():
            given = dict(kwargs)
            try:
                return overload._called(args, given)
            except TypeError as error:
                failed = failed or overload._wrong_arguments(len(args), given) or error
        assert failed is not None
        raise failed

    def __iter__(self) -> Any:
        return iter(self._overloads)

    def __copy__(self) -> OpOverloadPacket:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _packet, (self._namespace, self.__name__)

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"


# Overload names that exist only in this library.
_INTERNAL_OVERLOADS = frozenset(
    ("inner", "written", "named", "number", "shown", "sized", "of_batch", "ready", "plain")
)


def _is_torch_overload(full_name: str) -> bool:
    return full_name.rpartition(".")[2] not in _INTERNAL_OVERLOADS


class _OpNamespace:
    """The ops whose names begin with `<name>::`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op_name: str) -> OpOverloadPacket:
        overloads = {
            op.overload or "default": op
            for full_name, op in _dispatch.OPS.items()
            if op.name == op_name and op.namespace == self.name and _is_torch_overload(full_name)
        }
        if not overloads:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(self.name, op_name, overloads)
        setattr(self, op_name, packet)
        return packet

    def __dir__(self) -> list[str]:
        return sorted({op.name for op in _dispatch.OPS.values() if op.namespace == self.name})

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class _ProfilerOps(_OpNamespace):
    """torch.ops.profiler: functions that start and end an annotation."""

    def __init__(self) -> None:
        super().__init__("profiler")
        from .profiler.record_function import _record_function_enter_new, _record_function_with_args_exit

        self._record_function_enter = self._record_function_enter_new = _record_function_enter_new
        self._record_function_exit = _record_function_with_args_exit


def _packet(namespace: str, name: str) -> OpOverloadPacket:
    """A packet by its names: what a pickled one is."""
    return getattr(globals().get(namespace) or __getattr__(namespace), name)


def _overload(namespace: str, name: str, overload: str) -> OpOverload:
    """An overload by its names: what a pickled one is."""
    return getattr(_packet(namespace, name), overload)


aten = _OpNamespace("aten")


loaded_libraries: set[str] = set()


def load_library(path: str) -> None:
    """Raises: a shared library of C++ ops needs torch's C++ library. torchvision's ops have Python kernels here already."""
    import os

    if os.path.basename(os.path.dirname(path)) == "torchvision" and os.path.basename(path).startswith("_C"):
        import_vision_ops()
        return
    raise OSError(f"{path}: a library of C++ ops needs torch's C++ library, which this library does not have")


def import_vision_ops() -> None:
    """Define torchvision's ops with kernels in Python."""
    from importlib import import_module

    import_module("._vision_ops", __package__)


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    if name == "torchvision":
        import_vision_ops()
    namespace = globals()[name] = _ProfilerOps() if name == "profiler" else _OpNamespace(name)
    return namespace
