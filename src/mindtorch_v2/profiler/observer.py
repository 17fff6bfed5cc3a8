"""Execution traces (Chakra): torch's observer by name. Recording one is refused; observers of one's own work with `profile`."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod


class _ITraceObserver(ABC):
    """What `profile(execution_trace_observer=...)` calls when recording starts, stops, and at the end."""

    @abstractmethod
    def start(self) -> None:
        """Recording starts."""

    @abstractmethod
    def stop(self) -> None:
        """Recording stops."""

    @abstractmethod
    def cleanup(self) -> None:
        """The session is over."""


class ExecutionTraceObserver(_ITraceObserver):
    """torch's observer. Without a file it does nothing, as in torch; a file is refused, since no execution trace is written here."""

    def __init__(self) -> None:
        self.extra_resources_collection = False

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """The observer that the environment asks for with ENABLE_PYTORCH_EXECUTION_TRACE=1: refused; else none."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") == "1":
            return ExecutionTraceObserver().register_callback("")
        return None

    def set_extra_resource_collection(self, val: bool) -> None:
        """Whether compiled kernels would be kept too; there are none."""
        self.extra_resources_collection = val

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Refused: use `profile(record_shapes=True).export_chrome_trace()`, which has the ops with their inputs."""
        raise NotImplementedError(
            f"no execution trace can be written to {output_file_path!r}: this library has no Chakra writer; "
            "profile(record_shapes=True) and export_chrome_trace() give the ops with their inputs"
        )

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder beside the trace; None, since there is no trace."""
        return None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder beside a trace, if it is there or shall be made."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None

    def unregister_callback(self) -> None:
        """Nothing is registered."""

    @property
    def is_registered(self) -> bool:
        return False

    def is_running(self) -> bool:
        """Never: nothing is registered."""
        return False

    def start(self) -> None:
        """Nothing is registered."""

    def stop(self) -> None:
        """Nothing is registered."""

    def cleanup(self) -> None:
        """Nothing is registered."""

    def get_output_file_path(self) -> str | None:
        """None: nothing is registered."""
        return None
