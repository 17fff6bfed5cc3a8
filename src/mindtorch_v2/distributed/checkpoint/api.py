"""torch.distributed.checkpoint.api: the error of saving and loading, which carries the failures of all ranks."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


def _wrap_exception(exc: BaseException) -> WRAPPED_EXCEPTION:
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj: Any) -> bool:
    return isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException)


class CheckpointException(BaseException):
    """A step failed on some ranks."""

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """The error of each rank that failed."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, stack) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(stack))
            text += "".join(traceback.format_exception_only(type(error), value=error))
        return text
