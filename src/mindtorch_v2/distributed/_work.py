"""`Work`: a collective that is under way or done."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..futures import Future


class Work:
    """What an asynchronous collective returns: `wait()` blocks until it is done and raises its error."""

    def __init__(self, result: list[Any] | None = None, source: int = -1) -> None:
        self._future: Future = Future()
        self._result = result if result is not None else []
        self._source = source
        self._error: BaseException | None = None

    def _run(self, function: Callable[[], Any]) -> None:
        """Do the work, and keep its error for those who wait."""
        try:
            source = function()
        except Exception as error:
            self._error = error
            self._future.set_exception(error)
        else:
            self._source = source if isinstance(source, int) else self._source
            self._future.set_result(self._result)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until it is done."""
        limit = timeout.total_seconds()
        if limit > 0 and not self._future._ready.wait(limit):
            raise RuntimeError(f"Work is not done after {round(limit * 1000)}ms")
        self._future.wait()
        return True

    def is_completed(self) -> bool:
        """Whether it is done, or has failed."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it is done without an error."""
        return self._future.done() and self._error is None

    def exception(self) -> BaseException | None:
        """Its error, or None."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors it wrote."""
        self._future.wait()
        return self._result

    def source_rank(self) -> int:
        """The rank a received tensor came from."""
        return self._source

    _source_rank = source_rank

    def synchronize(self) -> None:
        """Block until it is done: there are no streams."""
        self.wait()

    def get_future(self) -> Future:
        """A future of the tensors it writes."""
        return self._future


Work.__module__ = "torch.distributed"
