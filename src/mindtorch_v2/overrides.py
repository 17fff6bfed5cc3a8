"""torch.overrides: which functions arguments and modes may answer themselves, and tools for functions of one's own that let them."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from . import _dispatch, _overrides
from ._overrides import here

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


# ---------------------------------------------------------------------------------------------------- asking


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument, or a mode, answers calls of torch's functions."""
    if here.off == _overrides.ALL_OFF:
        return False
    if here.modes:
        return True
    return here.off == _overrides.ENABLED and any(_overrides.answers(type(a)) for a in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """The same for one argument."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """The same for arguments one by one."""
    return has_torch_function(args)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """The arguments that answer, in the order in which they are asked."""
    if here.off != _overrides.ENABLED:
        return []
    return _overrides.overloaded(relevant_args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let a mode or the arguments answer a call."""
    found = _get_overloaded_args(relevant_args)
    kinds = tuple(type(o) for o in found)
    if here.modes and here.off != _overrides.ALL_OFF:
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    for asked in found:
        result = asked.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api) or f"{public_api.__module__}.{public_api.__name__}"
    listed = ", ".join(repr(kind) for kind in kinds)
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: [{listed}]"
    )


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """A decorator for functions that arguments may answer: `dispatcher` takes the same arguments and gives those that are asked."""

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
    """Whether an object is a tensor, or says how functions treat it."""
    return type(inp) is torch.Tensor or hasattr(inp, "__torch_function__")


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function, whose arguments answer it again, from inside an answer."""
    with enable_reentrant_dispatch():
        return func(*args, **(kwargs or {}))


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Arguments are asked again inside an answer."""
    with _enable_torch_function():
        yield


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    before, here.off = here.off, _overrides.ENABLED
    try:
        yield
    finally:
        here.off = before


# ---------------------------------------------------------------------------------------------------- which functions


_SPACES = {
    "torch": "",
    "torch.functional": "functional",
    "torch.nn.functional": "nn.functional",
    "torch.linalg": "linalg",
    "torch.fft": "fft",
    "torch.special": "special",
}
_FACTORIES = _overrides.FACTORIES | {"is_tensor", "broadcast_shapes"}  # arguments are not asked about them


def _space(path: str) -> Any:
    if not path:
        return torch
    from importlib import import_module

    return import_module("." + path, __package__)


@functools.cache
def _get_overridable_functions() -> tuple[dict[Any, list[Callable]], dict[Callable, str]]:
    found: dict[Any, list[Callable]] = {}
    names: dict[Callable, str] = {}
    for shown, path in _SPACES.items():
        space = _space(path)
        listed = _dispatch.FUNCTIONS.items() if not path else vars(space).items()
        found[space] = []
        for name, value in listed:
            if not isinstance(value, types.FunctionType) or name.startswith("_") or name in _FACTORIES:
                continue
            if (value.__module__ or "").startswith(str(__package__)) and value not in found[space]:
                found[space].append(value)
                if shown == "torch.functional":
                    names[value] = f"{shown}.{name}"
                names.setdefault(value, f"{shown}.{name}")
    methods = found[torch.Tensor] = []
    for name, value in vars(torch.Tensor).items():
        if name in _overrides._BODY_IGNORED:
            continue
        if isinstance(value, property):
            found[value] = [value.__get__]
            names.setdefault(value.__get__, f"torch.Tensor.{name}.__get__")
        elif isinstance(value, types.FunctionType) and (not name.startswith("_") or name.startswith("__")):
            methods.append(value)
            names.setdefault(value, f"torch.Tensor.{name}")
    return found, names


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that arguments may answer, by where they are."""
    return _get_overridable_functions()[0]


@functools.cache
def get_ignored_functions() -> set[Callable]:
    """The functions that arguments are never asked about."""
    found = {f for name in _FACTORIES if (f := getattr(torch, name, None)) is not None}
    found |= {f for name in _overrides._IGNORED if callable(f := getattr(torch.Tensor, name, None))}
    return found


@functools.cache
def get_testing_overrides() -> dict[Callable, Callable]:
    """A stand-in for every function that may be answered: takes anything, gives -1."""
    return {f: _stand_in(f) for functions in get_overridable_functions().values() for f in functions}


def _stand_in(function: Callable) -> Callable:
    def instead(*args: Any, **kwargs: Any) -> int:
        return -1

    instead.__wrapped__ = function  # type: ignore[attr-defined]  # for its signature
    return instead


@functools.cache
def get_default_nowrap_functions() -> set[Callable]:
    """Getters whose tensors the default answer leaves as they are."""
    return set(_overrides.unconverted())


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
        return _get_overridable_functions()[1].get(f) or _resolve_body(f) or _resolve_rest(f)
    except TypeError:  # not hashable
        return None


def _resolve_rest(f: Callable) -> str | None:
    name = getattr(f, "__name__", "")
    if name in _overrides._INITIALIZERS and getattr(torch.nn.init, name, None) is f:
        return f"torch.nn.init.{name}"
    return f"torch.{name}" if name in _FACTORIES and getattr(torch, name, None) is f else None


def _resolve_body(f: Callable) -> str | None:
    """The name of a method or of a property's getter or setter, plain or guarded."""
    name = getattr(f, "__name__", "")
    owner = getattr(f, "__self__", None)
    for space in (_overrides.originals(), _overrides.body(), vars(torch.Tensor)):
        if isinstance(owner, property):
            for attribute, value in space.items():
                if value is owner:
                    return f"torch.Tensor.{attribute}.{name}"
        elif space.get(name) is f:
            return f"torch.Tensor.{name}"
    return None


def _disable_user_warnings(
    func: Callable, regex: str = ".*is deprecated, please use.*", module: str = "torch"
) -> Callable:
    """A function without the warnings that speak of deprecated names."""

    @functools.wraps(func)
    def silent(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, message=regex, module=module)
            return func(*args, **kwargs)

    return silent


# ---------------------------------------------------------------------------------------------------- modes


class TorchFunctionMode:
    """A block in which every call of torch's functions goes to `__torch_function__` of this object."""

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a call; the mode itself is off meanwhile."""
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A new mode, to be entered."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that answers every call by making it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchFunctionMode) -> None:
    _overrides.push_mode(mode)


def _pop_mode() -> TorchFunctionMode:
    return _overrides.pop_mode()


@contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """The innermost mode is off inside."""
    mode = here.modes.pop()
    try:
        yield mode
    finally:
        here.modes.append(mode)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode, or None."""
    return here.modes[-1] if here.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """All modes, the innermost last."""
    return list(here.modes)
