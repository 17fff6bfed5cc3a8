"""Hooks around `__iter__` and `__next__` of iterable pipes: only one valid iterator at a time, errors that
name the pipe, and a profiler event per item.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any

import mindtorch_v2 as torch

_FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
    "https://github.com/pytorch/data/issues/45."
)


class _SnapshotState(Enum):
    """The iteration state of a pipe: not started, restored to a position, or iterating."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


# ---------------------------------------------------------------------------------------------------- names


def _generate_input_args_string(obj: Any) -> str:
    """A pipe's constructor arguments, as far as it stores them under the same names."""
    kept = obj.__dict__
    code = getattr(type(obj).__init__, "__code__", None)
    names: tuple[str, ...] = ()
    if code is not None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS)
        names = code.co_varnames[1:count]
    return ", ".join(f"{name}={_simplify_obj_name(kept[name])}" for name in sorted(names) if name in kept)


def _simplify_obj_name(obj: Any) -> str:
    return obj.__name__ if isinstance(obj, FunctionType) else repr(obj)


def _generate_iterdatapipe_msg(datapipe: Any, simplify_dp_name: bool = False) -> str:
    """A pipe's class and arguments; the short form leaves out "IterDataPipe" and "MapDataPipe"."""
    text = f"{type(datapipe).__name__}({_generate_input_args_string(datapipe)})"
    return text.replace("IterDataPipe", "").replace("MapDataPipe", "") if simplify_dp_name else text


# ---------------------------------------------------------------------------------------------------- one pass at a time


def _set_datapipe_valid_iterator_id(datapipe: Any) -> int:
    """Start a new iterator, which invalidates older ones. Returns its number."""
    if getattr(datapipe, "_is_child_datapipe", False):
        datapipe._set_main_datapipe_valid_iterator_id()
    else:
        before = datapipe._valid_iterator_id
        datapipe._valid_iterator_id = 0 if before is None else before + 1
        datapipe.reset()
    return datapipe._valid_iterator_id


def _check_iterator_valid(datapipe: Any, iterator_id: int | None) -> None:
    """Raise if an iterator has been invalidated."""
    if getattr(datapipe, "_is_child_datapipe", False):
        if not datapipe._check_valid_iterator_id(iterator_id):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been created from one of the ChildDataPipes of "
                f"{_generate_iterdatapipe_msg(datapipe.main_datapipe)}." + _FEEDBACK
            )
    elif iterator_id is not None and datapipe._valid_iterator_id != iterator_id:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{_generate_iterdatapipe_msg(datapipe)}\nThis may be caused by multiple references to the same IterDataPipe. We recommend "
            "using `.fork()` if that is necessary." + _FEEDBACK
        )


def _add_pipe_name(error: Exception, datapipe: Any) -> None:
    """Add the name of the pipe to an error, unless it is there already."""
    marker = "thrown by __iter__ of"
    note = f"\nThis exception is {marker} {_generate_iterdatapipe_msg(datapipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (note,)
    elif marker not in error.args[0] and "single iterator per IterDataPipe constraint" not in error.args[0]:
        error.args = (error.args[0] + note, *error.args[1:])


# ---------------------------------------------------------------------------------------------------- hooks


def hook_iterator(cls: type) -> None:
    """Wrap `__iter__` and `__next__` of a new pipe class."""
    iterate, following = cls.__dict__.get("__iter__"), cls.__dict__.get("__next__")
    if following is not None:
        cls.__next__ = _hooked_next(following)  # type: ignore[attr-defined]
    if iterate is None:
        return
    hook = _hooked_generator if inspect.isgeneratorfunction(iterate) else _hooked_iter
    cls.__iter__ = hook(iterate)  # type: ignore[attr-defined]


def _annotated(datapipe: Any) -> Any:
    """The annotation of an item of a pipe. Its name is computed once, even if the arguments in it change later."""
    attributes = datapipe.__dict__
    name = attributes.get("_profile_name")
    if name is None:
        name = attributes["_profile_name"] = _generate_iterdatapipe_msg(datapipe, True)
    return torch.autograd.profiler.record_function(name)


def _hooked_next(next_fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(next_fn)
    def step(*args: Any, **kwargs: Any) -> Any:
        with _annotated(args[0]):
            item = next_fn(*args, **kwargs)
        args[0]._number_of_samples_yielded += 1
        return item

    return step


def _hooked_generator(iterate: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(iterate)
    def items(*args: Any, **kwargs: Any) -> Iterator[Any]:
        datapipe = args[0]
        if datapipe._fast_forward_iterator:
            source = datapipe._fast_forward_iterator
            datapipe._fast_forward_iterator = None
            datapipe._snapshot_state = _SnapshotState.Iterating
            yield from source
            return
        number = _begin(datapipe)
        source = iterate(*args, **kwargs)
        try:
            while True:
                try:
                    with _annotated(datapipe):
                        item = next(source)
                except StopIteration as end:
                    return end.value
                datapipe._number_of_samples_yielded += 1
                yield item
                _check_iterator_valid(datapipe, number)
        except Exception as error:
            _add_pipe_name(error, datapipe)
            raise
        finally:
            source.close()

    return items


def _begin(datapipe: Any) -> int:
    number = _set_datapipe_valid_iterator_id(datapipe)
    datapipe._number_of_samples_yielded = 0
    datapipe._fast_forward_iterator = None
    datapipe._snapshot_state = _SnapshotState.Iterating
    return number


def _hooked_iter(iterate: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(iterate)
    def begin(*args: Any, **kwargs: Any) -> Any:
        datapipe = args[0]
        if datapipe._fast_forward_iterator:
            source = datapipe._fast_forward_iterator
            datapipe._fast_forward_iterator = None
            datapipe._snapshot_state = _SnapshotState.Iterating
            return source
        source = iterate(*args, **kwargs)
        number = _begin(datapipe)
        return IteratorDecorator(
            source, datapipe, number, source is datapipe and hasattr(datapipe, "__next__")
        )

    return begin


class IteratorDecorator:
    """The iterator of a pipe whose `__iter__` is no generator."""

    def __init__(
        self, iterator: Any, datapipe: Any, iterator_id: int, self_and_has_next_method: bool
    ) -> None:
        self.iterator, self.datapipe, self.iterator_id = iterator, datapipe, iterator_id
        self.self_and_has_next_method = self_and_has_next_method

    def __iter__(self) -> IteratorDecorator:
        return self

    def _get_next(self) -> Any:
        _check_iterator_valid(self.datapipe, self.iterator_id)
        item = next(self.iterator)
        if not self.self_and_has_next_method:
            self.datapipe._number_of_samples_yielded += 1
        return item

    def __next__(self) -> Any:
        if self.self_and_has_next_method:  # the pipe's own `__next__` is annotated
            return self._get_next()
        with _annotated(self.datapipe):
            return self._get_next()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)
