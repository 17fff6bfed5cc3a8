"""Data pipes: a dataset in, one with registered functions as methods out. Knows nothing of loaders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from .... import _dispatch
from ..dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe"]

USER_SCOPE = 7  # torch's RecordScope of annotations
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _Pipe:
    """What both kinds of pipe share: functions by name, hooks for pickling and printing."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    reduce_ex_hook: ClassVar[Callable[[Any], Any] | None] = None
    getstate_hook: ClassVar[Callable[[Any], Any] | None] = None
    str_hook: ClassVar[Callable[[Any], str] | None] = None
    repr_hook: ClassVar[Callable[[Any], str] | None] = None

    def __getattr__(self, attribute_name: str) -> Any:
        function = type(self).functions.get(attribute_name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}")
        bound = functools.partial(function, self)
        functools.update_wrapper(bound, function, assigned=("__doc__",))
        return bound

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make `function(pipe, ...)` a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Use `hook_fn` for the state in pickling; None goes back."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Use `hook_fn` for the whole of pickling; None goes back."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    def __getstate__(self) -> Any:
        hook = type(self).getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return str(type(self).__qualname__) if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return str(type(self).__qualname__) if hook is None else hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """A pipe that gives items one after another. `reset` is called when a pass begins."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        iterate, following = cls.__dict__.get("__iter__"), cls.__dict__.get("__next__")
        if iterate is not None:
            cls.__iter__ = _reset_first(iterate)  # type: ignore[method-assign]
        if following is not None:
            cls.__next__ = _shown(following)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[_T_co]:
        return self  # type: ignore[return-value]

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make `pipe.function_name(...)` build `cls_to_register(pipe, ...)`."""
        _register_class(cls, function_name, cls_to_register)

    def reset(self) -> None:
        """Go back to the beginning. Nothing to do for a pipe that keeps no place."""


def _reset_first(iterate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(iterate)
    def begin(self: Any) -> Any:
        self.reset()
        items = iterate(self)
        if items is not self:
            return _annotated(self, items)
        _names.pop(self, None)
        return items

    return begin


def _annotated(pipe: Any, items: Iterator[Any]) -> Iterator[Any]:
    """The items of a pipe; a profile shows a span with the pipe's name for each."""
    items, name = iter(items), ""
    try:
        while True:
            ranges = _dispatch.ranges
            if ranges is not None:
                name = name or _shown_name(pipe)
                token = ranges.enter(name, USER_SCOPE, -1, 0, ())
            try:
                item = next(items)
            except StopIteration as end:
                return end.value
            finally:
                if ranges is not None:
                    ranges.exit(token)
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _shown(following: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`__next__` of a pipe that is its own iterator; a profile shows a span with the pipe's name for each item."""

    @functools.wraps(following)
    def step(self: Any) -> Any:
        ranges = _dispatch.ranges
        if ranges is None:
            return following(self)
        if self not in _names:
            _names[self] = _shown_name(self)
        token = ranges.enter(_names[self], USER_SCOPE, -1, 0, ())
        try:
            return following(self)
        finally:
            ranges.exit(token)

    return step


# of pipes that are their own iterators: a name stays what it was when a pass began
_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _shown_name(pipe: Any) -> str:
    """The class and what it was made with, as far as it is kept under the same names."""
    kept = pipe.__dict__
    code = getattr(type(pipe).__init__, "__code__", None)
    names = () if code is None else code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    parts = [f"{name}={_shown_value(kept[name])}" for name in sorted(names) if name in kept]
    return f"{type(pipe).__name__.replace('IterDataPipe', '')}({', '.join(parts)})"


def _shown_value(value: Any) -> str:
    if isinstance(value, _Pipe):
        return repr(value).replace("IterDataPipe", "")
    if isinstance(value, FunctionType):
        return value.__name__
    return repr(value)


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """A pipe that answers to an index."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any) -> None:
        """Make `pipe.function_name(...)` build `cls_to_register(pipe, ...)`."""
        _register_class(cls, function_name, cls_to_register)


def _register_class(kind: Any, function_name: str, cls_to_register: Any) -> None:
    if function_name in kind.functions:
        raise Exception(  # noqa: TRY002  (torch's type)
            f"Unable to add DataPipe function name {function_name} as it is already taken"
        )

    def build(source: Any, *args: Any, **kwargs: Any) -> Any:
        return cls_to_register(source, *args, **kwargs)

    functools.update_wrapper(build, cls_to_register, assigned=("__doc__",), updated=())
    kind.functions[function_name] = build


class DFIterDataPipe(IterDataPipe[Any]):
    """An iterable pipe whose items are data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class DataChunk(list[_T]):
    """A batch that remembers the items it was made of."""

    def __init__(self, items: Iterable[_T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The items in brackets, indented."""
        return indent + "[" + ", ".join(str(item) for item in iter(self)) + "]"

    def __iter__(self) -> Iterator[_T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[_T]:
        """The items, one after another."""
        yield from self.items
