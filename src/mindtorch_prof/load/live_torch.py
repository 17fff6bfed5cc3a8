"""Live recordings of real torch: a finished profile object in, a recording out that answers as a loaded file does.

The profile's C++ events are read into the columns that the reader of trace files fills, and made a Trace by the same code. torch itself is
never imported: everything is read from the object. Lists and tables follow torch's own rules (`torch_lists`), analyses the engine's.
"""

from __future__ import annotations

import os
import socket
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import orjson

from ..arrays import Array, IntArray
from ..inputs import Argument, printed_value
from ..json_types import JSONObject, JSONValue
from ..torch_api.event_list import EventList
from ..torch_api.function_events import FunctionEvent, FunctionEventAvg
from ..torch_api.results import Results
from ..trace import DEVICE_ANNOTATION, OP, PYTHON, RUNTIME, Trace
from .categories import DEVICE, HOST, SPAN, category
from .collect import Collector
from .column_builder import ColumnBuilder
from .errors import TraceError
from .json_slices import no_garbage_collection
from .kineto import trace_of_columns
from .kineto_events import KinetoEvents, KinetoResults, MissingNameError
from .open_trace import Loaded
from .torch_lists import TorchLists
from .torch_objects import LiveLists, own_family

_EPOCH_UNIT = (
    10**15
)  # ns: times count from a multiple of it (11.6 days), so that microseconds as floats keep nanoseconds
_FLAGS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_NO_HOST = {"extra": -1, "unfinished": False, "synthetic": 0}
_INPUT_FIELDS = ("concrete_inputs", "dtypes", "structured_input_strides", "structured_input_shapes")


class LiveProfile:
    """The parts of real torch's profile objects that are read: of `torch.profiler.profile` and of `torch.autograd.profiler.profile`."""

    def __init__(self, prof: object) -> None:
        self.outer = prof
        inner: Any = getattr(prof, "profiler", None) if hasattr(prof, "profiler") else prof
        if inner is None:
            raise TraceError(
                "the profile has recorded nothing yet: from_torch needs one that was started and stopped"
            )
        if not hasattr(inner, "kineto_results"):
            kind = f"{type(prof).__module__}.{type(prof).__qualname__}"
            raise TypeError(
                f"from_torch expects a finished torch.profiler.profile or torch.autograd.profiler.profile, not {kind}"
            )
        results = inner.kineto_results
        if results is None:
            raise TraceError(
                "the profile is still recording or recorded nothing: call from_torch after it was stopped"
            )
        self.inner = inner
        self.results = cast("KinetoResults", results)

    def flag(self, name: str) -> bool:
        return bool(getattr(self.inner, name, False))

    @property
    def use_device(self) -> str | None:
        name = getattr(self.inner, "use_device", None)
        return name if isinstance(name, str) else None

    @property
    def trace_only(self) -> bool:
        """Whether the profile was told to keep no events, only what a trace file needs."""
        return bool(getattr(getattr(self.inner, "experimental_config", None), "trace_only", False))

    @property
    def verbose(self) -> bool:
        return bool(getattr(getattr(self.inner, "experimental_config", None), "verbose", False))

    def top(self) -> JSONObject:
        """What stands at the top of the trace file of this profile."""
        top: JSONObject = {name: int(self.flag(name)) for name in _FLAGS}
        top["schemaVersion"], top["host_name"] = 1, socket.gethostname()
        top["trace_id"] = str(getattr(self.inner, "trace_id", "") or "")
        metadata: dict[str, object] = {}
        for name in ("preset_metadata", "_trace_metadata"):
            metadata |= getattr(self.outer, name, None) or {}
        for key, text in metadata.items():
            try:
                top[str(key)] = orjson.loads(text) if isinstance(text, str) else str(text)
            except orjson.JSONDecodeError:
                top[str(key)] = str(text)
        distributed = self._distributed()
        if distributed:
            top["distributedInfo"] = distributed
        return top

    def _distributed(self) -> JSONObject:
        """Rank, world size and process groups, where torch.distributed is in use."""
        ask = getattr(self.outer, "_get_distributed_info", None)
        try:
            info = None if ask is None else ask()
        except Exception:  # torch's private function: a profile without ranks is better than none
            return {}
        return cast("JSONObject", orjson.loads(orjson.dumps(info, default=str))) if info else {}


class LiveRecording(Loaded):
    """A finished profile of real torch, with what a loaded trace answers. Columns are read from it when they are first needed."""

    def __init__(self, profile: LiveProfile, kineto: KinetoEvents) -> None:
        self._profile, self._kineto = profile, kineto
        self._metadata: dict[str, object] = {}
        self._python_functions = bool(kineto.is_python.any())
        self._forward_stacks = False

    @cached_property
    def _results(self) -> Results:  # type: ignore[override]  # computed when first needed
        return Results(live_trace(self._profile, self._kineto))

    @cached_property
    def _lists(self) -> LiveLists:
        profile = self._profile
        lists = TorchLists(
            self._kineto,
            use_device=profile.use_device,
            with_flops=profile.flag("with_flops"),
            with_stack=profile.flag("with_stack"),
        )
        return LiveLists(lists, own_family(), profile_memory=profile.flag("profile_memory"))

    def events(self) -> EventList[FunctionEvent]:
        """All events, as torch's own list has them."""
        events: EventList[FunctionEvent] = self._lists.events()
        return events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        stats: bool = False,
    ) -> EventList[FunctionEventAvg]:
        """Averages over events of one name, as torch's own: optionally also of one input shape, stack or overload. With `stats`, `table()`
        shows min, p50, p95, max, std and the first of the durations of each row."""
        averages: EventList[FunctionEventAvg] = self._lists.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, stats=stats
        )
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total: FunctionEventAvg = self._lists.total_average()
        return total

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write folded stacks with a metric, for flame graphs."""
        if not self._profile.flag("with_stack"):
            raise AssertionError("export_stacks() requires with_stack=True")
        if self._lists.lists.has_stacks():
            self.events().export_stacks(os.fspath(path), metric)
        else:  # torch 2.13 keeps Python calls instead of stacks, and its own file is empty
            super().export_stacks(path, metric)

    def as_recorded(self) -> Loaded:
        """The same: real torch has no synthetic events."""
        return self


def recording_of(prof: object) -> Loaded:
    """Read a finished profile; `from_torch` says how."""
    own = getattr(getattr(prof, "profiler", prof), "_results", None)
    if isinstance(own, Results):  # a profile of mindtorch_v2, which has its Trace already
        return Loaded(own.trace, own.trace.settings.with_stack)
    profile = LiveProfile(prof)
    if profile.trace_only:
        return _through_file(profile, "the profile has trace_only=True, so torch keeps no events")
    try:
        kineto = KinetoEvents(profile.results)
        recording = LiveRecording(profile, kineto)
        for column in ("start", "length", "thread", "is_async", "correlation"):
            getattr(kineto, column)  # a name that has moved shows now
    except MissingNameError as error:
        return _through_file(profile, f"its events cannot be read ({error})")
    return recording


def _through_file(profile: LiveProfile, reason: str) -> Loaded:
    from . import load

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "live.pt.trace.json")
        try:
            profile.results.save(path)
        except (AttributeError, RuntimeError) as error:
            raise TraceError(
                f"{reason}, and it cannot be saved either ({error}); if its trace was exported before, load() opens that file"
            ) from error
        if not os.path.exists(path):
            raise TraceError(
                f"{reason}, and torch saved no trace of it; if it was exported before, load() opens that file"
            )
        warnings.warn(f"{reason}: it was saved to a temporary file and loaded", stacklevel=4)
        recording = load(path, progress=False)
    trace = replace(recording.trace, settings=replace(recording.trace.settings, source=""))
    return Loaded(trace, recording._python_functions, recording._forward_stacks)


# ---------------------------------------------------------------------------------------------------- the Trace


def live_trace(profile: LiveProfile, kineto: KinetoEvents) -> Trace:
    """The Trace of a live recording, as the reader of files would make it of its file."""
    with no_garbage_collection():
        columns = _LiveColumns(profile, kineto)
        top = profile.top()
        top["baseTimeNanoseconds"] = columns.origin
        trace, host = trace_of_columns(top, columns.collector)
    return columns.completed(trace, host["source"])


class _LiveColumns:
    """Kineto's events in the columns of a Collector."""

    def __init__(self, profile: LiveProfile, kineto: KinetoEvents) -> None:
        self.profile, self.kineto = profile, kineto
        self.origin = kineto.trace_start_ns // _EPOCH_UNIT * _EPOCH_UNIT
        self.pid = os.getpid()
        self.collector = Collector()
        self.collector.host = ColumnBuilder(**self.collector.host.types, source=np.int64)
        self.collector.window_start = kineto.trace_start_ns - self.origin
        self.start = kineto.start - self.origin
        self.tree = _EventTree(profile, kineto)
        # names get the numbers that they have here
        numbers, texts = kineto.names
        self.name = numbers
        for text in texts:
            self.collector.names[text]
        self._add_kinds()
        self._add_memory()
        self._add_frames_of_tree()
        self._add_thread_names()

    def _add_kinds(self) -> None:
        activity, texts = self.kineto.activities
        ignored = self.kineto.is_memory | self.kineto.is_out_of_memory | ~self.kineto.is_visible
        for number, text in enumerate(texts):
            rows = np.flatnonzero((activity == number) & ~ignored)
            if not len(rows):
                continue
            where, kind = category(text) or (HOST, OP)
            self.collector.categories[text] += len(rows)
            if where == DEVICE:
                self._add_device(kind, rows)
            elif where == SPAN:
                continue
            elif kind == PYTHON:
                self._add_frames(rows)
            else:
                self._add_host(kind, rows)

    def _common(self, rows: IntArray) -> dict[str, Array]:
        return {
            "name": self.name[rows].astype(np.int32),
            "thread": self._threads(rows),
            "start": self.start[rows],
            "length": np.maximum(self.kineto.length[rows], 0),
        }

    def _threads(self, rows: IntArray) -> IntArray:
        """Numbers of the system's threads in the collector."""
        system = self.kineto.numbers("device_resource_id", rows)
        threads, place = np.unique(system, return_inverse=True)
        numbers = [self.collector.threads[self.pid, thread] for thread in threads.tolist()]
        return np.array(numbers, np.int32)[place.reshape(-1)]

    def _add_host(self, kind: int, rows: IntArray) -> None:
        kineto = self.kineto
        is_runtime = kind == RUNTIME
        correlation = kineto.correlation[rows]
        nothing = np.full(len(rows), -1, np.int64)
        columns = self._common(rows)
        columns |= {
            "kind": np.full(len(rows), kind, np.int8),
            "external": kineto.linked[rows] if is_runtime else correlation,
            "correlation": correlation if is_runtime else nothing,
            "sequence": nothing if is_runtime else kineto.numbers("sequence_nr", rows),
            "forward": 0 * nothing if is_runtime else kineto.numbers("fwd_thread_id", rows),
            "inputs": nothing.astype(np.int32) if is_runtime else self._inputs(rows),
            "stack": nothing.astype(np.int32) if is_runtime else self._stacks(rows),
            "extra": nothing.astype(np.int32) if is_runtime else self._extras(rows),
            "flops": kineto.numbers("flops", rows)
            if self.profile.flag("with_flops") and not is_runtime
            else nothing,
            "unfinished": np.zeros(len(rows), bool),
            "synthetic": np.zeros(len(rows), np.int8),
            "source": rows,
        }
        self.collector.host.add_columns(columns, coarse=False)

    def _inputs(self, rows: IntArray) -> IntArray:
        """Numbers of inputs in the collector, which keeps them as a file words them."""
        if not (self.profile.flag("record_shapes") or self.profile.flag("with_flops")):
            return np.full(len(rows), -1, np.int32)
        structured = all(map(self.kineto.has, _INPUT_FIELDS))
        fields = _INPUT_FIELDS if structured else ("concrete_inputs", "dtypes", "shapes")
        numbers, values = self.kineto.interned(rows, *fields)
        of_value = [self._input_number(cast("tuple[list[object], ...]", each), structured) for each in values]
        return np.array(of_value or [-1], np.int32)[numbers]

    def _input_number(self, value: tuple[list[object], ...], structured: bool) -> int:
        concrete, types, *rest = value
        if not any((concrete, types, *rest)):
            return -1
        strides, dims = rest if structured else (None, rest[0])
        printed = [
            printed_value(tuple(each) if isinstance(each, list) else cast("Argument", each))
            for each in concrete
        ]
        printed += [""] * (len(types) - len(printed))
        text = orjson.dumps((printed, types, strides, dims))
        return self.collector.inputs[text]

    def _stacks(self, rows: IntArray) -> IntArray:
        if not self.profile.flag("with_stack"):
            return np.full(len(rows), -1, np.int32)
        numbers, stacks = self.kineto.stacks
        of_stack = [self.collector.stacks[";".join(stack)] for stack in stacks]
        return np.array([*of_stack, -1], np.int32)[numbers[rows]]

    def _extras(self, rows: IntArray) -> IntArray:
        """Numbers of further arguments: of collectives. Ops of aten have none."""
        extra = np.full(len(rows), -1, np.int32)
        texts = self.kineto.names[1]
        of_aten = np.array([text.startswith(("aten::", "autograd::")) for text in texts] or [True])
        places = np.flatnonzero(~of_aten[self.name[rows]])
        for place, arguments in zip(places.tolist(), self._arguments(rows[places])):
            if arguments:
                extra[place] = self.collector.extra_number(arguments)
        return extra

    def _arguments(self, rows: IntArray) -> Iterable[dict[str, JSONValue]]:
        """Metadata of events as a file has it."""
        kineto = self.kineto
        if kineto.has("metadata_json"):
            return map(_parsed_metadata, cast("Iterable[str]", kineto.values("metadata_json", rows)))
        return [{} for _ in range(len(rows))]

    def _add_device(self, kind: int, rows: IntArray) -> None:
        kineto, collector = self.kineto, self.collector
        # annotations are launched by no runtime call
        correlation = kineto.correlation[rows] * (kind != DEVICE_ANNOTATION)
        extra = np.fromiter(map(collector.device_extra_number, self._arguments(rows)), np.int32, len(rows))
        columns = self._common(rows)
        columns |= {
            "kind": np.full(len(rows), kind, np.int8),
            "device": kineto.numbers("device_index", rows),
            "stream": kineto.numbers("device_resource_id", rows),
            "external": kineto.linked[rows],
            "correlation": np.where(correlation > 0, correlation, -1),
            "extra": extra,
        }
        collector.device.add_columns(columns, coarse=False)

    def _add_frames(self, rows: IntArray) -> None:
        columns = self._common(rows) | {
            "own": self.kineto.numbers("python_id", rows),
            "parent": self.kineto.numbers("python_parent_id", rows),
            "module": self.kineto.numbers("python_module_id", rows),
        }
        self.collector.frames.add_columns(columns, coarse=False)

    def _add_frames_of_tree(self) -> None:
        """Python calls of a torch that lists none among its events: from its tree of events."""
        frames = self.tree.frames
        if frames is None or not len(frames["start"]):
            return
        system = self._system_threads()
        numbers = [
            self.collector.threads[self.pid, system.get(thread, thread)]
            for thread in frames["thread"].tolist()
        ]
        names = [self.collector.names[text] for text in self.tree.frame_names]
        self.collector.frames.add_columns(
            {
                **frames,
                "start": frames["start"] - self.origin,
                "name": np.array(names, np.int32),
                "thread": np.array(numbers, np.int32),
            },
            coarse=False,
        )

    def _system_threads(self) -> dict[int, int]:
        """From torch's numbers of threads to the system's."""
        rows = np.flatnonzero((self.kineto.device_type == 0) & (self.kineto.linked == 0))
        numbers, first = np.unique(self.kineto.thread[rows], return_index=True)
        system = self.kineto.numbers("device_resource_id", rows[first])
        return dict(zip(numbers.tolist(), system.tolist()))

    def _add_memory(self) -> None:
        kineto = self.kineto
        rows = np.flatnonzero(kineto.is_memory)
        if not len(rows):
            return
        nbytes = kineto.numbers("nbytes", rows)
        address, total = self.tree.addresses(kineto.start[rows], nbytes)
        on_device = kineto.device_type[rows] != 0
        index = np.full(len(rows), -1, np.int64)
        index[on_device] = np.maximum(kineto.numbers("device_index", rows[on_device]), 0)
        self.collector.memory.add_columns(
            {
                "thread": self._threads(rows),
                "start": self.start[rows],
                "nbytes": nbytes,
                "address": address,
                "total": total,
                "device": index,
            },
            coarse=False,
        )

    def _add_thread_names(self) -> None:
        """Names of the process and of its threads, as Kineto's files have them."""
        program = _comm(f"/proc/{self.pid}/comm")
        names = self.collector.process_names
        names.processes[self.pid], names.labels[self.pid] = program.strip(), "CPU"
        for pid, tid in list(self.collector.threads):
            name = _comm(f"/proc/{self.pid}/task/{tid}/comm")
            names.threads[pid, tid] = f"thread {tid} ({name})" if name else f"thread {tid}"

    # ------------------------------------------------------------------------------------------------ what a file lacks

    def completed(self, trace: Trace, source: IntArray) -> Trace:
        """The Trace with what Kineto's events say and its files do not: scopes, forward threads, overloads, the kind of device."""
        kineto = self.kineto
        scope = kineto.numbers("scope", source).astype(np.int8)
        system = self._system_threads()
        number = kineto.numbers("fwd_thread_id", source)
        numbers, place = np.unique(number, return_inverse=True)
        identity = np.array([system.get(n, 0) for n in numbers.tolist()] or [0], np.int64)[place.reshape(-1)]
        forward_thread = np.where(
            (number > 0) & (identity > 0) & (trace.sequence >= 0), identity, trace.forward_thread
        )
        settings = trace.settings
        device = self.profile.use_device if len(trace.device) else None
        settings = replace(
            settings,
            device=device or settings.device,
            verbose=self.profile.verbose,
            from_file=True,
            foreign=True,
        )
        trace = replace(trace, scope=scope, forward_thread=forward_thread, settings=settings)
        return self._with_overloads(trace, source)

    def _with_overloads(self, trace: Trace, source: IntArray) -> Trace:
        if not self.kineto.has("overload_name"):
            return trace
        overload, texts = self.kineto.texts("overload_name", source)
        if not any(texts):
            return trace
        pairs, name = np.unique(trace.name.astype(np.int64) * len(texts) + overload, return_inverse=True)
        return replace(
            trace,
            names=tuple([trace.names[pair // len(texts)] for pair in pairs.tolist()]),
            overloads=tuple([texts[pair % len(texts)] for pair in pairs.tolist()]),
            name=name.reshape(-1).astype(np.int32),
            settings=replace(trace.settings, overload_names=True),
        )


def _parsed_metadata(text: str) -> dict[str, JSONValue]:
    """Kineto's metadata is the inside of a JSON object; {} where it is none."""
    if not text:
        return {}
    try:
        values = orjson.loads(text if text.startswith("{") else "{" + text + "}")
    except orjson.JSONDecodeError:
        return {}
    return values if isinstance(values, dict) else {}


def _comm(path: str) -> str:
    try:
        with open(path) as stream:
            return stream.read().strip()
    except OSError:
        return ""


class _EventTree:
    """What only torch's tree of events knows: addresses of memory, and Python calls where the list of events has none."""

    def __init__(self, profile: LiveProfile, kineto: KinetoEvents) -> None:
        self.allocations: tuple[IntArray, IntArray, IntArray, IntArray] | None = (
            None  # time, bytes, address, total
        )
        self.frames: Mapping[str, Array] | None = None
        self.frame_names: Sequence[str] = ()
        with_frames = (
            profile.flag("with_stack") or profile.flag("with_modules")
        ) and not kineto.is_python.any()
        if not with_frames and not kineto.is_memory.any():
            return
        try:
            self._walk(profile.results, with_frames)
        except (AttributeError, TypeError, ValueError, OverflowError):
            return  # private names that have moved: the trace is without what only they tell

    def _walk(self, results: KinetoResults, with_frames: bool) -> None:
        allocations: list[tuple[int, int, int, int]] = []
        calls: list[tuple[int, int, int, int, int, int]] = []
        names: list[str] = []
        roots: list[Any] = list(results.experimental_event_tree())
        waiting: list[tuple[Any, int]] = [(root, -1) for root in reversed(roots)]
        while waiting:
            event, caller = waiting.pop()
            kind = event.tag.name
            if kind == "Allocation":
                fields = event.typed[1]
                address = int(fields.ptr)
                if address >= 2**63:
                    address -= 2**64
                total = int(fields.total_allocated)
                allocations.append((event.start_time_ns, int(fields.alloc_size), address, total))
            elif with_frames and kind in ("PyCall", "PyCCall"):
                name, own = event.name, len(calls)
                number = name.rpartition("_")[2] if name.startswith("nn.Module: ") else ""
                module = int(number) if number.isdecimal() else -1
                length = max(int(event.duration_time_ns), 0)
                calls.append((event.start_time_ns, length, event.start_tid, own, caller, module))
                names.append(name)
                caller = own
            children = event.children
            if children:
                waiting += [(child, caller) for child in reversed(children)]
        columns = np.array(allocations, np.int64).reshape(-1, 4)
        self.allocations = columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3]
        if with_frames:
            table = np.array(calls, np.int64).reshape(-1, 6)
            keys = ("start", "length", "thread", "own", "parent", "module")
            self.frames = {key: table[:, place] for place, key in enumerate(keys)}
            self.frame_names = names

    def addresses(self, time: IntArray, nbytes: IntArray) -> tuple[IntArray, IntArray]:
        """Addresses and running totals of allocations; 0 and -1 where the tree does not hold exactly these."""
        unknown = np.zeros(len(time), np.int64), np.full(len(time), -1, np.int64)
        if self.allocations is None or len(self.allocations[0]) != len(time):
            return unknown
        tree_time, tree_bytes, address, total = self.allocations
        order, tree_order = np.lexsort((nbytes, time)), np.lexsort((tree_bytes, tree_time))
        same = np.array_equal(time[order], tree_time[tree_order])
        if not same or not np.array_equal(nbytes[order], tree_bytes[tree_order]):
            return unknown
        found, totals = unknown
        found[order], totals[order] = address[tree_order], total[tree_order]
        return found, totals
