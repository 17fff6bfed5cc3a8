"""Decorators of data pipes: register a method name, declare determinism, check types."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class functional_datapipe:
    """Make a pipe available as a method of all pipes of its kind."""

    name: str

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        """Register the class and return it."""
        if issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


_determinism_demanded = False
_validation_on = True


class guaranteed_datapipes_determinism:
    """Context manager: pipes marked as non-deterministic cannot be created."""

    prev: bool

    def __init__(self) -> None:
        global _determinism_demanded
        self.prev = _determinism_demanded
        _determinism_demanded = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        global _determinism_demanded
        _determinism_demanded = self.prev


class non_deterministic:
    """Mark a pipe as non-deterministic, always or depending on its arguments."""

    cls: Any = None
    deterministic_fn: Callable[..., Any]

    def __init__(self, arg: Any) -> None:
        if inspect.isclass(arg):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is "
                    "found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decorate a class if constructed with a function, else create a pipe."""
        if self.cls is not None:
            if _determinism_demanded:
                raise TypeError(_refusal(self.cls, ""))
            return self.cls(*args, **kwargs)
        decorated = args[0]
        if not (inspect.isclass(decorated) and issubclass(decorated, IterDataPipe)):
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {decorated.__name__} is found")
        self.cls = decorated
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> IterDataPipe[Any]:
        """Create a pipe; raise if these arguments make it non-deterministic and that is not allowed."""
        is_non_deterministic = self.deterministic_fn(*args, **kwargs)
        if not isinstance(is_non_deterministic, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, "
                f"but {type(is_non_deterministic)} is found"
            )
        if _determinism_demanded and is_non_deterministic:
            raise TypeError(_refusal(self.cls, " with the inputs"))
        return self.cls(*args, **kwargs)


def _refusal(cls: Any, when: str) -> str:
    return (
        f"{cls.__name__} is non-deterministic{when}, but you set 'guaranteed_datapipes_determinism'. "
        "You can turn off determinism for this DataPipe if that is acceptable for your application"
    )


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Check that arguments annotated as data pipes are data pipes."""
    signature = inspect.signature(f)

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> Any:
        hints = typing.get_type_hints(f)
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            if (
                inspect.isclass(hint)
                and issubclass(hint, IterDataPipe)
                and not isinstance(value, IterDataPipe)
            ):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
        return f(*args, **kwargs)

    return checked


class runtime_validation_disabled:
    """Context manager: `runtime_validation` does not check."""

    prev: bool

    def __init__(self) -> None:
        global _validation_on
        self.prev = _validation_on
        _validation_on = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        global _validation_on
        _validation_on = self.prev


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Check that each item of a pipe has the type that its class declares: `class P(IterDataPipe[int])`."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @functools.wraps(f)
    def checked(self: Any) -> Any:
        expected = _item_class(type(self))  # type: ignore[arg-type]
        for item in f(self):
            if _validation_on and not isinstance(item, expected):
                raise RuntimeError(
                    f"Expected an instance as subtype of {expected}, but found an instance of "
                    f"{item}({type(item)})"
                )
            yield item

    return checked


@functools.cache
def _item_class(cls: Any) -> type:
    """The item type that a pipe class declares; object if it declares none."""
    for ancestor in cls.__mro__:
        for base in getattr(ancestor, "__orig_bases__", ()):
            arguments = typing.get_args(base)
            if arguments and issubclass(typing.get_origin(base) or object, IterDataPipe):
                item = typing.get_origin(arguments[0]) or arguments[0]
                return item if isinstance(item, type) else object
    return object
