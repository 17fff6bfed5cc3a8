"""Annotations: `record_function`, a named range, and torch's faster and lower-level variants. While nothing records they cost one test."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from mindtorch_prof.trace import FUNCTION_SCOPE, USER_SCOPE

from .. import _dispatch
from .._tensor_slots import compiled_range, make_without_init

_ENTER = "profiler::_record_function_enter_new"
_DECLARED = f"{_ENTER}(str name, str? args=None) -> __torch__.torch.classes.profiler._RecordFunction"


def _refuse(position: int, argument: str, kind: str, value: Any) -> None:
    """Raise the error of torch's dispatcher for an argument that is no string."""
    name, module = type(value).__name__, type(value).__module__
    module = "torch" if module == "mindtorch_v2" else module
    class_text = f"<class '{name if module == 'builtins' else module + '.' + name}'>"
    raise RuntimeError(
        f"{_ENTER}() Expected a value of type '{kind}' for argument '{argument}' but instead found type '{name}'.\n"
        f"Position: {position}\nValue: {value}\nDeclaration: {_DECLARED}\n"
        f"Cast error details: Unable to cast Python instance of type {class_text} to C++ type '?' "
        "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )


class PythonRange:
    """A named range as a context manager. The compiled core has the same, `Range` in `src/_core/annotations.c`."""

    name: str
    args: str | None
    run_callbacks_on_exit: bool = True
    record: Any = None  # None: not entered, or left
    _ranges: Any = None  # where `record` was entered

    def __enter__(self) -> Any:
        name, args = self.name, self.args
        if args is not None or name.__class__ is not str:
            name = self._checked()
        ranges = _dispatch.ranges
        if ranges is None:
            self.record = _NOT_RECORDED
            return self
        token = ranges.enter(name, USER_SCOPE, -1, 0, (args,) if args else ())
        self._ranges = ranges
        self.record = _NOT_RECORDED if token is None else token
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        record = self.record
        if record is _NOT_RECORDED:
            return
        if record is None:
            raise AssertionError("Expected record to be set")
        if self.run_callbacks_on_exit:
            self._ranges.exit(record)
            self.record = None

    def _checked(self) -> str:
        raise NotImplementedError


# the second: `record` of a range that was entered while nothing recorded
_Range, _NOT_RECORDED = compiled_range() or (PythonRange, object())


class record_function(_Range):  # type: ignore[misc,valid-type]  # one of two classes
    """A named range: a context manager or a decorator."""

    name: str
    args: str | None
    run_callbacks_on_exit: bool
    record: Any
    _ranges: Any

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.args)

    def _checked(self) -> str:
        """The name as a string. Raises torch's error if name or args is neither a string nor bytes."""
        if not isinstance(self.name, (str, bytes)):
            _refuse(0, "name", "str", self.name)
        if self.args is not None and not isinstance(self.args, (str, bytes)):
            _refuse(1, "args", "Optional[str]", self.args)
        return self.name.decode() if isinstance(self.name, bytes) else str(self.name)

    def __call__(self, func: Any) -> Any:
        name, args = self.name, self.args

        @functools.wraps(func)
        def annotated(*positional: Any, **named: Any) -> Any:
            with record_function(name, args):
                return func(*positional, **named)

        return annotated

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """End the range when a future is done."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        token, ranges = self.record, self._ranges

        def done(future: Any) -> Any:
            if ranges is not None and token is not None and token is not _NOT_RECORDED:
                ranges.exit(token)
            return future.value()

        return fut.then(done)


make_without_init(record_function)


class KeywordValues(str):
    """The keyword values of a range as JSON. They are recorded as its last argument, one string, and parsed after the stop (see
    `record/caller_inputs.py`)."""

    __slots__ = ()

    def __str__(self) -> str:
        return self


class _RecordFunctionFast:
    """A range with the scope of an op, with inputs and keyword values; faster than `record_function`."""

    __slots__ = ("_name", "_arguments", "_keywords", "_open")

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        if not isinstance(name, str):
            raise RuntimeError("The name passed to RecordFunctionFast must be a string")
        if input_values is not None and not isinstance(input_values, (list, tuple)):
            raise RuntimeError("input_values must be a list or tuple")
        if keyword_values is not None and not isinstance(keyword_values, dict):
            raise RuntimeError("keyword_values must be dict")
        self._name = name
        self._arguments = tuple(input_values or ())
        self._keywords = keyword_values
        self._open: Any = None

    def __enter__(self) -> None:
        ranges = _dispatch.ranges
        if ranges is None:
            return
        if self._open is not None:
            raise RuntimeError(
                "Trying to enter a new record_function_fast context but the guard is unexpectedly already set"
            )
        arguments = self._arguments
        if self._keywords:
            arguments += (_keyword_values(self._keywords),)
        self._open = (ranges, ranges.enter(self._name, FUNCTION_SCOPE, -1, 0, arguments))

    def __exit__(self, *exception: object) -> None:
        if self._open is None:
            if _dispatch.ranges is not None:
                raise RuntimeError(
                    "Trying to exit an active record_function_fast context but no guard is set"
                )
            return
        ranges, token = self._open
        self._open = None
        ranges.exit(token)


def _keyword_values(values: dict) -> KeywordValues:
    import orjson

    by_name = {}
    for name, value in values.items():
        if isinstance(value, _dispatch.Tensor):
            warnings.warn(f"Unable to infer type of value for keyword: {name}", stacklevel=3)
            value = "NULL"
        by_name[str(name)] = value
    return KeywordValues(orjson.dumps(by_name, default=str).decode())


class _RecordFunction:
    """The handle that `_record_function_with_args_enter` returns, for the exit."""

    __slots__ = ("_ranges", "_token")

    def __init__(self, ranges: Any, token: Any) -> None:
        self._ranges = ranges
        self._token = token

    def __repr__(self) -> str:
        return "ScriptObject <__torch__.torch.classes.profiler._RecordFunction>"


def _record_function_with_args_enter(name: str, /, *args: Any) -> _RecordFunction:
    """Begin a range with any values as its inputs; end it with `_record_function_with_args_exit`."""
    if not isinstance(name, str):
        arguments = ", ".join(map(repr, (name, *args)))
        raise TypeError(
            "_record_function_with_args_enter(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: str, *args) -> object\n\nInvoked with: {arguments}"
        )
    ranges = _dispatch.ranges
    return _RecordFunction(ranges, None if ranges is None else ranges.enter(name, USER_SCOPE, -1, 0, args))


def _record_function_enter_new(name: str, args: str | None = None) -> _RecordFunction:
    """Begin a range, with a string as its input if there is one; end it with `_record_function_with_args_exit`."""
    if not isinstance(name, (str, bytes)):
        _refuse(0, "name", "str", name)
    if args is not None and not isinstance(args, (str, bytes)):
        _refuse(1, "args", "Optional[str]", args)
    name = name.decode() if isinstance(name, bytes) else name
    return _record_function_with_args_enter(name, *((args,) if args else ()))


def _record_function_with_args_exit(handle: Any, /) -> None:
    """End a range."""
    if not isinstance(handle, _RecordFunction):
        raise RuntimeError(
            "Tried to cast object to type __torch__.torch.classes.profiler._RecordFunction (of Python compilation unit at: 0) but object "
            "was missing attribute capsule"
        )
    ranges, handle._ranges = handle._ranges, None
    if ranges is not None:
        ranges.exit(handle._token)
