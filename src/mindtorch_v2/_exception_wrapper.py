"""Exceptions from a worker: sent as type and traceback text, raised again in the main process."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any, NoReturn


class KeyErrorMessage(str):
    """A text that `KeyError` prints verbatim, line breaks included."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception as its type and traceback text, which can be pickled; the exception itself may not be."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        try:
            pickle.dumps(self.exc_type)
        except Exception:  # a class that only the worker has
            state["exc_type"] = RuntimeError
            state["name"] = self.exc_type.__name__
        return state

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type whose message contains the worker's traceback."""
        name = self.__dict__.get("name", self.exc_type.__name__)
        message = f"Caught {name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            if getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:  # its constructor takes other arguments
            raise RuntimeError(message) from None
        raise error
