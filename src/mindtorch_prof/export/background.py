"""Exports in the background: a function that writes a file in, a handle out that can be waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Export:
    """A file that a thread writes. The interpreter waits for it at exit."""

    def __init__(self, write: Callable[[], object], path: str) -> None:
        self.path = path
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(write,), name=f"export of {path}")
        self._thread.start()

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except BaseException as error:  # `result` raises it
            self._error = error

    def done(self) -> bool:
        """Whether writing has ended, with or without an error."""
        return not self._thread.is_alive()

    def result(self, timeout: float | None = None) -> str:
        """Wait until the file is written and return its path; raises the error of writing it, or TimeoutError."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.path}: still being written after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self.path

    def __repr__(self) -> str:
        state = "failed" if self._error is not None else "written" if self.done() else "being written"
        return f"<export of {self.path}: {state}>"
