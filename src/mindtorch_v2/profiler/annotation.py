"""Annotations: `record_function`, a span with a name. Free while nothing records: one test."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from .trace import USER_SCOPE


class record_function:
    """A named span: as a context, a decorator, or by hand with `__enter__` and `__exit__`."""

    __slots__ = ("name", "args", "run_callbacks_on_exit", "record", "_ranges", "__weakref__")

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record = None
        self._ranges: Any = None

    def __enter__(self) -> record_function:
        ranges = _dispatch.ranges
        if ranges is not None:
            self._ranges = ranges
            self.record = ranges.enter(self.name, USER_SCOPE, -1, 0, (self.args,) if self.args else ())
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self.record is not None and self.run_callbacks_on_exit:
            self._ranges.exit(self.record)
            self.record = self._ranges = None

    def __call__(self, func: Any) -> Any:
        import functools

        name, args = self.name, self.args

        @functools.wraps(func)
        def inside(*positional: Any, **named: Any) -> Any:
            with record_function(name, args):
                return func(*positional, **named)

        return inside

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """End the span when a future is done."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        token, ranges = self.record, self._ranges

        def done(future: Any) -> Any:
            if token is not None:
                ranges.exit(token)
            return future.value()

        return fut.then(done)
