"""Stand-ins for the objects of real torch's profiler: events of a trace file in, a finished profile out.

Kineto's objects exist only inside torch, and those of GPUs only where there is one. A trace file holds what
they were written from.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")


class Kind(IntEnum):
    """torch's kinds of devices."""

    CPU = 0
    CUDA = 1


class FakeEvent:
    """One event; every field is a method, as in torch's class."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields


# the value of a field that an event does not set
DEFAULTS: dict[str, Any] = {
    "name": "",
    "overload_name": "",
    "activity_type": "cpu_op",
    "start_ns": 0,
    "duration_ns": 0,
    "start_thread_id": 1,
    "end_thread_id": 1,
    "device_type": Kind.CPU,
    "device_index": 4242,
    "device_resource_id": 4242,
    "correlation_id": 0,
    "external_id": 0,
    "linked_correlation_id": 0,
    "sequence_nr": -1,
    "fwd_thread_id": 0,
    "scope": 0,
    "flops": 0,
    "nbytes": 0,
    "is_async": False,
    "is_hidden_event": False,
    "is_user_annotation": False,
    "is_python_function": False,
    "python_id": -1,
    "python_parent_id": -1,
    "python_module_id": -1,
    "shapes": [],
    "structured_input_shapes": [],
    "structured_input_strides": [],
    "dtypes": [],
    "concrete_inputs": [],
    "kwinputs": {},
    "stack": [],
    "metadata_json": "",
    "extra_meta": {},
    "flow_id": 0,
    "flow_type": 0,
    "flow_start": False,
    "cuda_elapsed_us": -1,
    "privateuse1_elapsed_us": -1,
}


def _method(name: str) -> Callable[[FakeEvent], Any]:
    return lambda self: self._fields.get(name, DEFAULTS[name])


for _name in DEFAULTS:
    setattr(FakeEvent, _name, _method(_name))
FakeEvent.end_ns = lambda self: self.start_ns() + self.duration_ns()  # type: ignore[attr-defined]


class FakeResults:
    """torch's `_ProfilerResult`."""

    def __init__(self, events: Iterable[FakeEvent], start_ns: int, document: Any = None) -> None:
        self._events, self._start, self._document = list(events), start_ns, document

    def events(self) -> list[FakeEvent]:
        return self._events

    def trace_start_ns(self) -> int:
        return self._start

    def experimental_event_tree(self) -> list[Any]:
        return []

    def save(self, path: str) -> None:
        Path(path).write_text(json.dumps(self._document))


def profile(results: FakeResults | None, **settings: Any) -> Any:
    """A stopped `torch.profiler.profile`."""
    flags = dict.fromkeys(
        ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), False
    )
    inner = SimpleNamespace(
        kineto_results=results,
        use_device=settings.pop("use_device", None),
        trace_id="",
        experimental_config=SimpleNamespace(trace_only=settings.pop("trace_only", False), verbose=False),
        **{**flags, **settings},
    )
    return SimpleNamespace(profiler=inner)


def read(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def results_of(document: Any, kinds: Any = Kind) -> FakeResults:
    """The objects from which a trace file was written. kinds: the enum of kinds of devices."""
    base = int(document.get("baseTimeNanoseconds", 0))
    threads: dict[tuple[Any, Any], int] = {}
    events = []
    slices = [e for e in document["traceEvents"] if e.get("ph") == "X" or e.get("name") == "[memory]"]
    for event in sorted(slices, key=lambda e: e["ts"]):
        if event.get("cat") == "Trace":
            continue
        on_device = event.get("cat") in DEVICE_CATEGORIES
        number = 0 if on_device else threads.setdefault((event["pid"], event["tid"]), len(threads) + 1)
        events.append(FakeEvent(**_fields(event, base, number, kinds)))
    start = base + round(min(e["ts"] for e in slices) * 1000)
    return FakeResults(events, start, document)


def _fields(event: Any, base: int, thread: int, kinds: Any) -> dict[str, Any]:
    args, cat = event.get("args") or {}, event.get("cat", "")
    fields: dict[str, Any] = {
        "name": event["name"],
        "activity_type": cat,
        "start_ns": base + round(event["ts"] * 1000),
        "duration_ns": round(event.get("dur", 0) * 1000),
        "start_thread_id": thread,
        "end_thread_id": thread,
        "device_resource_id": event["tid"],
        "device_index": event["pid"],
        "device_type": kinds.CPU,
    }
    external = args.get("External id", args.get("external id", 0)) or 0
    if event["name"] == "[memory]":
        on_gpu = args.get("Device Type", 0) == 1
        return fields | {
            "nbytes": args.get("Bytes", 0),
            "device_type": kinds.CUDA if on_gpu else kinds.CPU,
            "device_index": args.get("Device Id", -1),
        }
    if cat in DEVICE_CATEGORIES:
        rest = {k: v for k, v in args.items() if k not in ("External id", "external id")}
        return fields | {
            "device_type": kinds.CUDA,
            "device_index": args.get("device", event["pid"]),
            "device_resource_id": args.get("stream", event["tid"]),
            "correlation_id": args.get("correlation", 0),
            "linked_correlation_id": external,
            "is_user_annotation": cat == "gpu_user_annotation",
            "metadata_json": json.dumps(rest)[1:-1],
        }
    if cat == "python_function":
        return fields | {
            "is_python_function": True,
            "python_id": args.get("Python id", -1),
            "python_parent_id": -1 if args.get("Python parent id") is None else args["Python parent id"],
            "python_module_id": args.get("Python module id", -1),
        }
    if cat.endswith(("_runtime", "_driver")):
        return fields | {"correlation_id": args.get("correlation", 0), "linked_correlation_id": external}
    return fields | {
        "correlation_id": external,
        "sequence_nr": args.get("Sequence number", -1),
        "fwd_thread_id": args.get("Fwd thread id", 0),
        "scope": 7 if cat == "user_annotation" else 0,
        "is_user_annotation": cat == "user_annotation",
        "dtypes": args.get("Input type", []),
        "structured_input_shapes": args.get("Input Dims", []),
        "structured_input_strides": args.get("Input Strides", []),
        "shapes": [[] if d and isinstance(d[0], list) else d for d in args.get("Input Dims", [])],
        "concrete_inputs": [_value(text) for text in args.get("Concrete Inputs", [])],
    }


def _value(text: str) -> Any:
    """The value that a file prints."""
    plain = text.replace("True", "true").replace("False", "false")
    try:
        return json.loads(plain + "0" if text.endswith(".") else plain) if text else None
    except ValueError:
        return None
