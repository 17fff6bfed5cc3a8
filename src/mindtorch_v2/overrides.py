"""torch.overrides: ops here call no `__torch_function__`, so every question about one is answered no."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import mindtorch_v2 as torch

__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument overrides ops: no."""
    return False


def has_torch_function_unary(obj: Any) -> bool:
    """Whether an argument overrides ops: no."""
    return False


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether an argument overrides ops: no."""
    return False


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> NoReturn:
    """Raises: there are no overrides to call."""
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}': this library does not call __torch_function__")


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """A decorator for functions that arguments could override; it leaves them as they are."""
    return lambda func: func


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or says how ops treat it."""
    return isinstance(inp, torch.Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function is a method of Tensor, or the getter of one of its properties."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property) or type(owner).__name__ == "getset_descriptor":
        return any(value is owner for value in vars(torch.Tensor).values())
    name = getattr(func, "__name__", None)
    return (
        name is not None and vars(torch.Tensor).get(name) is func and getattr(torch, name, None) is not func
    )


def resolve_name(f: Callable) -> str | None:
    """The public name of a function of torch's, or None."""
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    for path, owner in (
        ("torch", torch),
        ("torch.Tensor", torch.Tensor),
        ("torch.nn.functional", torch.nn.functional),
        ("torch.linalg", torch.linalg),
        ("torch.fft", torch.fft),
        ("torch.special", torch.special),
    ):
        if getattr(owner, name, None) is f:
            return f"{path}.{name}"
    return None


class TorchFunctionMode:
    """A block that sees every call of torch's functions; entering raises, as calls are not routed here."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError("__torch_function__ of a TorchFunctionMode has to be defined by its subclass")

    def __enter__(self) -> NoReturn:
        raise RuntimeError(
            "TorchFunctionMode is not supported: ops do not call __torch_function__. "
            "To see the ops that run, use torch.profiler.profile"
        )

    def __exit__(self, *exception: object) -> None:
        return None
