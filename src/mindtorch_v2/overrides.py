"""torch.overrides: the functions that `__torch_function__` can override, modes, and helpers for overridable functions."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from . import _dispatch, _overrides
from ._overrides import thread_state

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
    "redispatch_function",
]


# ---------------------------------------------------------------------------------------------------- calling handlers


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument or an active mode overrides torch's functions."""
    if thread_state.function_overrides == _overrides.ALL_OFF:
        return False
    if thread_state.function_modes:
        return True
    return thread_state.function_overrides == _overrides.ENABLED and any(
        _overrides.has_override(type(a)) for a in relevant_args
    )


def has_torch_function_unary(obj: Any) -> bool:
    """The same for one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same for arguments passed separately."""
    return has_torch_function(args)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """The arguments with overrides, in the order in which their handlers are called."""
    if thread_state.function_overrides != _overrides.ENABLED:
        return []
    return _overrides.overloaded_arguments(relevant_args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call the handlers of the innermost mode and of the arguments; the first result that is not NotImplemented."""
    overloaded = _get_overloaded_args(relevant_args)
    classes = tuple(type(o) for o in overloaded)
    if thread_state.function_modes and thread_state.function_overrides != _overrides.ALL_OFF:
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    for argument in overloaded:
        result = argument.__torch_function__(public_api, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api) or f"{public_api.__module__}.{public_api.__name__}"
    class_names = ", ".join(repr(cls) for cls in classes)
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: [{class_names}]"
    )


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """A decorator that makes a function overridable: `dispatcher` returns the arguments whose handlers are called."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor or defines `__torch_function__`."""
    return type(inp) is torch.Tensor or hasattr(inp, "__torch_function__")


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function from inside a handler, with overrides enabled again."""
    with enable_reentrant_dispatch():
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context manager: enable overrides again inside a handler."""
    with _enable_torch_function():
        yield


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    before, thread_state.function_overrides = thread_state.function_overrides, _overrides.ENABLED
    try:
        yield
    finally:
        thread_state.function_overrides = before


# ---------------------------------------------------------------------------------------------------- overridable functions


_NAMESPACES = {
    "torch": "",
    "torch.functional": "functional",
    "torch.nn.functional": "nn.functional",
    "torch.linalg": "linalg",
    "torch.fft": "fft",
    "torch.special": "special",
}
_FACTORIES = _overrides.FACTORIES | {"is_tensor", "broadcast_shapes"}  # arguments cannot override them


def _namespace(path: str) -> Any:
    if not path:
        return torch
    from importlib import import_module

    return import_module("." + path, __package__)


@functools.cache
def _get_overridable_functions() -> tuple[dict[Any, list[Callable]], dict[Callable, str]]:
    """The overridable functions by namespace, and the public name of each."""
    functions: dict[Any, list[Callable]] = {}
    names: dict[Callable, str] = {}
    for prefix, path in _NAMESPACES.items():
        namespace = _namespace(path)
        members = _dispatch.FUNCTIONS.items() if not path else vars(namespace).items()
        functions[namespace] = []
        for name, value in members:
            if not isinstance(value, types.FunctionType) or name.startswith("_") or name in _FACTORIES:
                continue
            if (value.__module__ or "").startswith(str(__package__)) and value not in functions[namespace]:
                functions[namespace].append(value)
                if prefix == "torch.functional":
                    names[value] = f"{prefix}.{name}"
                names.setdefault(value, f"{prefix}.{name}")
    methods = functions[torch.Tensor] = []
    for name, value in vars(torch.Tensor).items():
        if name in _overrides.IGNORED_MEMBERS:
            continue
        if isinstance(value, property):
            functions[value] = [value.__get__]
            names.setdefault(value.__get__, f"torch.Tensor.{name}.__get__")
        elif isinstance(value, types.FunctionType) and (not name.startswith("_") or name.startswith("__")):
            methods.append(value)
            names.setdefault(value, f"torch.Tensor.{name}")
    return functions, names


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that arguments can override, by namespace."""
    return _get_overridable_functions()[0]


@functools.cache
def get_ignored_functions() -> set[Callable]:
    """The functions that arguments cannot override."""
    found = {f for name in _FACTORIES if (f := getattr(torch, name, None)) is not None}
    found |= {f for name in _overrides.IGNORED if callable(f := getattr(torch.Tensor, name, None))}
    return found


@functools.cache
def get_testing_overrides() -> dict[Callable, Callable]:
    """A dummy override for every overridable function: accepts any arguments, returns -1."""
    return {f: _dummy_override(f) for functions in get_overridable_functions().values() for f in functions}


def _dummy_override(function: Callable) -> Callable:
    def override(*args: Any, **kwargs: Any) -> int:
        return -1

    override.__wrapped__ = function  # type: ignore[attr-defined]  # `inspect.signature` reads it
    return override


@functools.cache
def get_default_nowrap_functions() -> set[Callable]:
    """Property getters whose results the default handler does not convert to the subclass."""
    return set(_overrides.nowrap_functions())


@functools.cache
def _get_tensor_methods() -> set[Callable]:
    found = get_overridable_functions()
    return {*found[torch.Tensor], *(f for key, fs in found.items() if isinstance(key, property) for f in fs)}


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method of Tensor, or the getter of one of its properties."""
    if getattr(func, "__name__", None) == "__get__":
        return True
    name = getattr(func, "__name__", None)
    return func in _get_tensor_methods() and getattr(torch, name or "", None) is not func


def resolve_name(f: Callable) -> str | None:
    """The public name of a function of torch's, or None."""
    if isinstance(f, (torch.ops.OpOverload, torch.ops.OpOverloadPacket)):
        return str(f)
    try:
        return _get_overridable_functions()[1].get(f) or _resolve_member(f) or _resolve_factory(f)
    except TypeError:  # not hashable
        return None


def _resolve_factory(f: Callable) -> str | None:
    """The public name of an initializer or of a function that only modes can override."""
    name = getattr(f, "__name__", "")
    if name in _overrides.INITIALIZERS and getattr(torch.nn.init, name, None) is f:
        return f"torch.nn.init.{name}"
    return f"torch.{name}" if name in _FACTORIES and getattr(torch, name, None) is f else None


def _resolve_member(f: Callable) -> str | None:
    """The name of a method or of a property's getter or setter, guarded or not."""
    name = getattr(f, "__name__", "")
    owner = getattr(f, "__self__", None)
    for members in (_overrides.original_members(), _overrides.guarded_members(), vars(torch.Tensor)):
        if isinstance(owner, property):
            for attribute, value in members.items():
                if value is owner:
                    return f"torch.Tensor.{attribute}.{name}"
        elif members.get(name) is f:
            return f"torch.Tensor.{name}"
    return None


def _disable_user_warnings(
    func: Callable, regex: str = ".*is deprecated, please use.*", module: str = "torch"
) -> Callable:
    """`func` with warnings about deprecated names suppressed."""

    @functools.wraps(func)
    def silent(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, message=regex, module=module)
            return func(*args, **kwargs)

    return silent


# ---------------------------------------------------------------------------------------------------- modes


class TorchFunctionMode:
    """Context manager: calls of torch's functions go to `__torch_function__` of this object."""

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle a call; the mode is off while this runs."""
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """Create a mode; the caller enters it."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that only calls the function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchFunctionMode) -> None:
    _overrides.push_mode(mode)


def _pop_mode() -> TorchFunctionMode:
    return _overrides.pop_mode()


@contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Context manager: the innermost mode is off."""
    mode = thread_state.function_modes.pop()
    try:
        yield mode
    finally:
        thread_state.function_modes.append(mode)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode, or None."""
    return thread_state.function_modes[-1] if thread_state.function_modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the innermost last."""
    return list(thread_state.function_modes)
