"""torch.futures: a result, or an exception, that is set later. Independent of tensors and devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


_T = TypeVar("_T")


class Future(Generic[_T]):
    """A value that is set once; any number of threads can wait for it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], None]] = []

    def done(self) -> bool:
        """Whether the value or an exception is set."""
        return self._ready.is_set()

    def wait(self) -> Any:
        """Block until the future is complete, then return the value or raise the exception."""
        self._ready.wait()
        return self.value()

    def value(self) -> Any:
        """The value; raises the exception, or a RuntimeError if the future is not complete."""
        if not self._ready.is_set():
            raise RuntimeError("The future is not completed, so it has no value yet; use wait().")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: Any) -> None:
        """Complete the future with a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future for `callback(self)`, which runs when this one is complete."""
        next_future: Future = Future()

        def run(done: Future) -> None:
            try:
                next_future.set_result(callback(done))
            except Exception as error:
                next_future.set_exception(error)

        self.add_done_callback(run)
        return next_future

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call `callback(self)` when this future is complete, immediately if it already is."""
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be "
                    "marked completed once."
                )
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future]) -> Future:
    """A future for the list of futures, complete when all of them are."""
    collected: Future = Future()
    remaining = len(futures)
    lock = threading.Lock()

    def one_done(_: Future) -> None:
        nonlocal remaining
        with lock:
            remaining -= 1
            last = remaining == 0
        if last:
            collected.set_result(futures)

    if not futures:
        collected.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return collected


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all futures, once all are complete."""
    return [future.wait() for future in collect_all(futures).wait()]
