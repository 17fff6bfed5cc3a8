"""`ExecutionTraceObserver`: starts and stops the recording of an execution trace, and writes it to a file."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from dataclasses import replace

from mindtorch_prof.files import open_for_export
from mindtorch_prof.trace import Trace

from .execution_trace import ExecutionTrace

_ENABLE = "ENABLE_PYTORCH_EXECUTION_TRACE"


class _ITraceObserver(ABC):
    """The methods that `profile(execution_trace_observer=...)` calls when recording starts, stops, and at the end."""

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
    """Records all ops with their inputs and outputs, and writes them as a Chakra execution trace. Call `register_callback(path)`, then
    `start` and `stop` any number of times, then `unregister_callback`, which writes the file. A `profile` that gets an observer calls
    all of these but the first."""

    def __init__(self) -> None:
        self._registered = False
        self._execution_trace_running = False
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self.output_file_path_observer = ""
        self._finish: weakref.finalize | None = None

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer that writes to a new temporary file if ENABLE_PYTORCH_EXECUTION_TRACE=1 is set in the environment, else None.
        ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1 also creates the resources folder."""
        if os.environ.get(_ENABLE, "0") != "1":
            return None
        handle, path = tempfile.mkstemp(suffix=".et.json")
        os.close(handle)
        observer = ExecutionTraceObserver().register_callback(path)
        if os.environ.get(_ENABLE + "_EXTRAS", "0") == "1":
            observer.set_extra_resource_collection(True)
        return observer

    def set_extra_resource_collection(self, val: bool) -> None:
        """Set whether further files are written, to a folder beside the trace."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Set the file that `unregister_callback` writes; a name that ends in `.gz` is compressed."""
        if self._registered:
            return self
        compressed = output_file_path.endswith(".gz")
        self.output_file_path = self.output_file_path_observer = output_file_path
        folder = os.path.dirname(os.path.abspath(output_file_path))
        if not output_file_path or not os.access(folder, os.W_OK):
            shown_path = f"{output_file_path!r}{' (compressed)' if compressed else ''}"
            warnings.warn(
                f"no execution trace will be recorded: {shown_path} cannot be written; expected a file in a folder that can be written to",
                stacklevel=2,
            )
            return self
        names = os.environ.get(_ENABLE + "_SAVE_INTEGRAL_TENSOR_DATA", "")
        trace = ExecutionTrace(
            ranges_of_integers=os.environ.get(_ENABLE + "_SAVE_INTEGRAL_TENSOR_RANGE", "0") == "1",
            saved_ops=tuple(name for name in names.split(",") if name),
        )
        self._trace = trace
        self._registered = True
        # the file is also written if the program never calls `unregister_callback`
        self._finish = weakref.finalize(self, _write, trace, output_file_path)
        return self

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """The folder for further files; None if there is none, or if no further files are written."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            folder = self.get_resources_dir_for_et_path(self.output_file_path, create_dir=can_create)
            if folder is None:
                return None
            self.resources_dir = folder
        return self.resources_dir

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """The folder for further files beside a trace; None if it does not exist and is not created."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(folder, exist_ok=True)
        return folder if os.path.isdir(folder) else None

    def unregister_callback(self) -> None:
        """Stop recording and write the file."""
        if not self._registered:
            return
        self.stop()
        self._registered = False
        trace, finish = self._trace, self._finish
        if finish is not None:
            finish()
        if trace.data and (folder := self.get_resources_dir(can_create=True)) is not None:
            for node, number, content in trace.data:
                with open(os.path.join(folder, f"nid_{node}_tid_{number}.dat"), "wb") as out:
                    out.write(content)
        del self._trace
        self._finish = None

    @property
    def is_registered(self) -> bool:
        """Whether a file has been set and not yet written."""
        return self._registered

    def is_running(self) -> bool:
        """Whether it records now."""
        return self._execution_trace_running

    def start(self) -> None:
        """Record from now on, on every thread."""
        if self._registered and not self._execution_trace_running:
            self._trace.start()
            self._execution_trace_running = True
            self._record_pg_config()

    def stop(self) -> None:
        """Stop recording until the next `start`."""
        if self._execution_trace_running:
            self._trace.stop()
            self._execution_trace_running = False

    def cleanup(self) -> None:
        """Write the file, as `unregister_callback` does."""
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        """The file, or None if none has been set."""
        return self.output_file_path or None

    def _tied(self, trace: Trace) -> Trace:
        """A profile of the same window, with the id of each event's node in this trace."""
        return replace(trace, execution_node=self._trace.record_ids(trace)) if self._registered else trace

    def _record_pg_config(self) -> None:
        """Record the process groups of a distributed program: there are none in one process."""


def _write(trace: ExecutionTrace, path: str) -> None:
    trace.stop()
    with open_for_export(path) as out:
        trace.write(out)


# ---------------------------------------------------------------------------------------------------- torch's C++ functions


class _Process:
    """The one observer per process that torch's C++ functions use."""

    observer: ExecutionTraceObserver | None = None


def _add_execution_trace_observer(output_file_name: str, /) -> bool:
    """Create the observer of the process, for this file; False if there is one already, or the file cannot be written."""
    if _Process.observer is not None:
        return False
    observer = ExecutionTraceObserver().register_callback(output_file_name)
    _Process.observer = observer if observer.is_registered else None
    return observer.is_registered


def _remove_execution_trace_observer() -> None:
    """Write the file of the process's observer, and remove the observer."""
    if _Process.observer is not None:
        _Process.observer.unregister_callback()
        _Process.observer = None


def _enable_execution_trace_observer() -> None:
    """Start the observer of the process."""
    if _Process.observer is not None:
        _Process.observer.start()


def _disable_execution_trace_observer() -> None:
    """Stop the observer of the process."""
    if _Process.observer is not None:
        _Process.observer.stop()
