"""Acceleration of real torch's profiler: while it is on, torch's own profile objects get their events and averages from the engine.

One method of `torch.autograd.profiler.profile` is replaced, the one that makes the list of events: `events()`, `key_averages()`, `table()`,
`total_average()` and `export_stacks()` all go through it. The objects are of torch's own classes, and texts are made by torch's own code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter_ns
from types import ModuleType, TracebackType
from typing import Any

from ..load.kineto_events import KinetoEvents, MissingNameError
from ..load.live_torch import LiveProfile
from ..load.torch_lists import TorchLists
from ..load.torch_objects import Family, LiveLists

# versions of torch whose lists, averages, tables and stack files were compared with the engine's, program by program
CHECKED_VERSIONS = ("2.6", "2.8", "2.10", "2.13")
_CHECKED_DEVICES = (None, "cuda")  # of recordings with others, torch makes the lists itself
_METHOD = "_ensure_function_events"  # of torch.autograd.profiler.profile


class AccelerationError(RuntimeError):
    """Acceleration cannot be switched on; the message says why."""


class Acceleration(AbstractContextManager["Acceleration"]):
    """What `accelerate` gives: it is on until `undo` is called, or the block that it was entered for ends."""

    def __init__(self, profile_class: type[Any], original: object) -> None:
        self._class, self._original = profile_class, original

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()

    def undo(self) -> None:
        """Put torch's own method back. Lists that were made meanwhile stay as they are."""
        global _active
        if self._original is None:
            return
        setattr(self._class, _METHOD, self._original)
        self._original = None
        _active = None


_active: Acceleration | None = None


def switched_on() -> Acceleration:
    """Switch acceleration on; `accelerate` says what it does."""
    global _active
    if _active is not None:
        raise AccelerationError("torch's profiler is accelerated already")
    torch = _checked_torch()
    profile_class: type[Any] = torch.autograd.profiler.profile
    original = profile_class.__dict__.get(_METHOD)
    if original is None:
        raise AccelerationError(f"torch {torch.__version__} has no torch.autograd.profiler.profile.{_METHOD}")
    setattr(profile_class, _METHOD, _with_engine(torch, original))
    _active = Acceleration(profile_class, original)
    return _active


def _checked_torch() -> Any:
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "autograd"):
        raise AccelerationError("torch is not imported: import it before accelerate()")
    version = str(getattr(torch, "__version__", "unknown"))
    if not hasattr(torch, "_C"):
        raise AccelerationError("the module torch of this process is not real torch")
    match = re.match(r"(\d+\.\d+)", version)
    if match is not None and tuple(map(int, match[1].split("."))) < (2, 6):
        raise AccelerationError(
            f"torch {version} makes its list of events when a profile stops: there is nothing left to accelerate; "
            "mindtorch_prof.from_torch(prof) works with it"
        )
    if match is None or match[1] not in CHECKED_VERSIONS:
        raise AccelerationError(
            f"torch {version} was not checked: the answers of {', '.join(CHECKED_VERSIONS)} are known to be equal; "
            "mindtorch_prof.from_torch(prof) works with every version"
        )
    return torch


# ---------------------------------------------------------------------------------------------------- torch's methods


def _with_engine(torch: Any, original: Callable[..., None]) -> Callable[..., None]:
    def _ensure_function_events(self: Any) -> None:
        config = getattr(self, "experimental_config", None)
        done = self._function_events is not None
        if done or not self.kineto_results or getattr(config, "trace_only", False):
            original(self)
            return
        begun = perf_counter_ns()
        events = _engine_events(torch, self)
        if events is None:
            original(self)
            return
        self._needs_processing = False
        self._function_events = events
        stats = getattr(self, "_stats", None)
        if stats is not None:
            stats.parse_kineto_call_duration_us = int((perf_counter_ns() - begun) / 1000)
            stats.function_events_build_tree_call_duration_us = 0
            stats.number_of_events = len(events)
        if self._old_function_events and self.acc_events:
            for event in self._old_function_events:
                events.append(event)
            self._old_function_events = None

    return _named_as(_ensure_function_events, original)


def _named_as(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    for name in ("__module__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(original, name, None))
    return function


def _engine_events(torch: Any, prof: Any) -> Any:
    """The list of events of a finished profile; None: torch's own code has to make it."""
    util: Any = torch.autograd.profiler_util
    profile = LiveProfile(prof)
    if profile.use_device not in _CHECKED_DEVICES:
        return None
    try:
        kineto = KinetoEvents(profile.results)
        lists = TorchLists(
            kineto,
            use_device=profile.use_device,
            with_flops=profile.flag("with_flops"),
            with_stack=profile.flag("with_stack"),
            rewrite=lambda name: util._rewrite_name(name=name, with_wildcard=True),
            rounded_memory="start_us" in util.MemRecordsAcc.in_interval.__code__.co_varnames,
        )
        if lists.has_legacy_times:
            return None
    except MissingNameError:
        return None
    return LiveLists(lists, torch_family(torch), profile_memory=profile.flag("profile_memory")).events()


def torch_family(torch: Any) -> Family:
    """Real torch's own classes."""
    util: ModuleType = torch.autograd.profiler_util
    device_type = torch.autograd.DeviceType

    def metadata(texts: dict[str, str]) -> Any:
        build = getattr(util, "_build_metadata", None)
        return None if build is None else build(texts)

    return Family(
        util.FunctionEvent,
        util.FunctionEventAvg,
        util.EventList,
        util.Interval,
        util.Kernel,
        device_type,
        metadata,
    )
