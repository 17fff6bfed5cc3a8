"""Names of torch that this library has so that programs can import them; their use raises an error that says so."""

from __future__ import annotations

from typing import Any, NoReturn


def refused_class(module: str, name: str, reason: str) -> Any:
    """A class whose construction raises."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{module}.{name} is not part of this library: {reason}")

    return type(name, (), {"__new__": __new__, "__module__": module, "__doc__": reason})


def refused_function(module: str, name: str, reason: str) -> Any:
    """A function that raises."""

    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{module}.{name} is not part of this library: {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = reason
    return function
