"""OpenTelemetry: a recording in; its longest events as spans of one trace out, to a file of OTLP/JSON or to a collector.

The encoding is OTLP's own JSON: ids are hexadecimal, 64-bit integers are decimal text, enums are numbers. A file is JSON lines, as
OpenTelemetry's file exporter writes: one message per line, each of a size that collectors accept; a small trace is one JSON document.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import orjson

from ..analysis.recording import Recording, recorded_results
from ..arrays import IntArray
from ..files import open_for_export
from ..inputs import Inputs
from ..settings import Settings
from ..torch_api.results import Results
from ..trace import (
    ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SET,
    ENGINE,
    KERNEL,
    NODE,
    OP,
    PYTHON,
    RUNTIME,
)
from ..tree import nearest
from ..version import __version__
from .exporters import ExportOptions, is_address

MAX_SPANS = ExportOptions().max_spans
_MESSAGE_BYTES = (
    900_000  # of a message, about: collectors read lines of up to 1 MiB and requests of up to 20 MiB
)
_SPAN_BYTES = 300  # of a span, about, without its name and attributes
_TIMEOUT_S = 30.0
_INTERNAL = 1  # OTLP's SPAN_KIND_INTERNAL
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_KINDS = {OP: "op", NODE: "node", ENGINE: "engine", ANNOTATION: "annotation", PYTHON: "module", KERNEL: "kernel", RUNTIME: "runtime"}  # fmt: skip
_DEVICE_KINDS = {DEVICE_KERNEL: "kernel", DEVICE_COPY: "memcpy", DEVICE_SET: "memset"}

Span = dict[str, object]


class _Chosen(NamedTuple):
    """The events that become spans, the longest of the recording, and where each belongs."""

    rows: IntArray  # of the Trace
    device_rows: IntArray  # of its Device
    parent: IntArray  # by row of `rows`, another row of the Trace that is a span too; -1: none
    device_parent: IntArray  # the same, by row of `device_rows`
    left_out: int


def export_otlp(
    source: Recording,
    target: str | os.PathLike[str],
    *,
    min_us: float = 0.0,
    max_spans: int = MAX_SPANS,
    parent: str | None = None,
    service: str = "",
) -> int:
    """Write the longest events of a recording as spans: ops, annotations, calls of modules, runtime calls, and the work of devices below the
    op that launched it. Gives the number of spans.

    - `target`: a file (`.gz` compresses), or the address of a collector (http://localhost:4318), to which they are sent
    - `min_us`: shorter events are left out; `max_spans`: the most spans, with that of the whole recording, 0: all events
    - `parent`: the span that the recording belongs to, as a `traceparent` of W3C; None: the current span of the program's OpenTelemetry, if any
    - `service`: OpenTelemetry's `service.name`; "": that of OTEL_SERVICE_NAME, or "torch"

    A span whose parent was left out belongs to the nearest span around it. The same recording has the same ids each time.
    """
    from ..analysis.call_tree import with_python

    if max_spans < 0:
        raise ValueError(f"max_spans is {max_spans}; expected a number of spans, or 0 for all")
    results = with_python(recorded_results(source), "modules")
    spans = _spans(results, min_us, max_spans, _parent_ids(parent))
    resource = _resource(results.trace.settings, service)
    text = os.fspath(target)
    if is_address(text):
        for message in _messages(spans, resource):
            _send(text, message)
    else:
        with open_for_export(text) as out:
            for message in _messages(spans, resource):
                out.write(message)
                out.write(b"\n")
    return len(spans)


def _parent_ids(parent: str | None) -> tuple[str, str] | None:
    """The ids of the trace and of the span that a recording belongs to; None: it is a trace of its own."""
    if parent is not None:
        match = _TRACEPARENT.fullmatch(parent.strip().lower())
        if match is None or not int(match[1], 16) or not int(match[2], 16):
            raise ValueError(
                f"{parent!r} is no traceparent; expected 00-TRACE_ID-SPAN_ID-01, with 32 and 16 hexadecimal digits"
            )
        return match[1], match[2]
    api = sys.modules.get("opentelemetry.trace")  # not imported by the program: it has no current span
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


# ---------------------------------------------------------------------------------------------------- what becomes a span


def _chosen(results: Results, min_us: float, most: int) -> _Chosen:
    trace, device = results.trace, results.trace.device
    length = np.concatenate((trace.end_ns - trace.start_ns, device.end_ns - device.start_ns))
    candidates = np.flatnonzero(np.concatenate((results.shown | (trace.kind == PYTHON), device.works)))
    long = candidates[length[candidates] >= round(min_us * 1000)]
    # the longest; of equal ones the outer one, which stands before those inside it
    longest = long[np.argsort(-length[long], kind="stable")]
    kept = np.sort(longest[:most] if most >= 0 else longest)
    rows, device_rows = kept[kept < len(trace)], kept[kept >= len(trace)] - len(trace)
    is_span = np.zeros(len(trace), bool)
    is_span[rows] = True
    # by row, itself or the nearest span around it; the last one for -1: no event
    around = np.append(nearest(results.nesting.parent, is_span), -1)
    return _Chosen(
        rows,
        device_rows,
        around[results.nesting.parent[rows]],
        around[device.op[device_rows]],
        len(candidates) - len(kept),
    )


def _spans(results: Results, min_us: float, max_spans: int, outer: tuple[str, str] | None) -> list[Span]:
    """The span of the recording first, then those of the host in the order of threads, then those of devices."""
    trace, device = results.trace, results.trace.device
    chosen = _chosen(results, min_us, max_spans - 1 if max_spans else -1)
    settings = trace.settings
    identity = f"{settings.trace_id}/{settings.host_name}/{settings.pid}/{settings.rank}/{trace.origin_ns}/{trace.window_ns}/{len(trace)}"
    trace_id = outer[0] if outer else hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]

    def span_id(number: int) -> str:
        return hashlib.sha256(f"{identity}#{number}".encode("utf-8", "replace")).hexdigest()[:16]

    def span(number: int, parent: int, name: str, start: int, end: int, about: dict[str, object]) -> Span:
        return {
            "traceId": trace_id,
            "spanId": span_id(number),
            "parentSpanId": span_id(parent),
            "name": _text(name) or "(no name)",
            "kind": _INTERNAL,
            "startTimeUnixNano": str(max(trace.origin_ns + start, 0)),
            "endTimeUnixNano": str(max(trace.origin_ns + max(start, end), 0)),
            "attributes": _attributes(about),
        }

    whole = -1  # the number of the recording's own span
    starts, ends = (
        np.concatenate(pair) for pair in ((trace.start_ns, device.start_ns), (trace.end_ns, device.end_ns))
    )
    root = span(
        whole,
        whole,
        settings.source_name or "torch.profiler",
        int(starts.min(initial=trace.window_ns[0] if not len(starts) else np.iinfo(np.int64).max)),
        int(ends.max(initial=trace.window_ns[0] if not len(ends) else 0)),
        {
            "torch.events": len(trace) + int(device.works.sum()),
            "torch.spans_left_out": chosen.left_out,
            "torch.health": trace.health.line() or None,
        },
    )
    if outer is None:
        del root["parentSpanId"]
    else:
        root["parentSpanId"] = outer[1]
    spans = [root]
    for row, parent in zip(chosen.rows.tolist(), chosen.parent.tolist()):
        name, start, end = trace.names[trace.name[row]], int(trace.start_ns[row]), int(trace.end_ns[row])
        spans.append(span(row, parent, name, start, end, _about_event(results, row)))
    kind = settings.device or "device"
    for row, parent in zip(chosen.device_rows.tolist(), chosen.device_parent.tolist()):
        about: dict[str, object] = {
            "torch.kind": _DEVICE_KINDS.get(int(device.kind[row])),
            "torch.device": f"{kind}:{int(device.device[row])}",
            "torch.stream": int(device.stream[row]),
        }
        name, start, end = device.names[device.name[row]], int(device.start_ns[row]), int(device.end_ns[row])
        spans.append(span(len(trace) + row, parent, name, start, end, about))
    return spans


def _about_event(results: Results, row: int) -> dict[str, object]:
    trace = results.trace
    thread = int(trace.thread[row])
    number = int(trace.inputs[row])
    inputs = trace.input_table[number] if number >= 0 else Inputs(())
    return {
        "torch.kind": _KINDS.get(int(trace.kind[row])),
        "thread.id": results.system_thread(thread),
        "thread.name": trace.settings.threads.get(thread, (0, ""))[1] or None,
        "torch.input_shapes": json.dumps(list(inputs.shapes)) if number >= 0 else None,
        "torch.sequence_nr": int(trace.sequence[row]) if trace.sequence[row] >= 0 else None,
        "torch.flops": int(trace.flops[row]) if trace.flops[row] > 0 else None,
    }


# ---------------------------------------------------------------------------------------------------- messages


def _resource(settings: Settings, service: str) -> dict[str, object]:
    about: dict[str, object] = {
        "service.name": service or os.environ.get("OTEL_SERVICE_NAME") or "torch",
        "host.name": settings.host_name or None,
        "process.pid": settings.pid or None,
        "torch.rank": settings.rank,
        "torch.world_size": settings.world_size,
    }
    return {"attributes": _attributes(about)}


def _attributes(values: dict[str, object]) -> list[dict[str, object]]:
    """Attributes in OTLP's form; those without a value are left out."""
    return [
        {
            "key": key,
            "value": {"intValue": str(value)}
            if isinstance(value, int)
            else {"stringValue": _text(str(value))},
        }
        for key, value in values.items()
        if value is not None
    ]


def _text(text: str) -> str:
    """Text without lone surrogates, which JSON readers of other languages refuse."""
    return text.encode("utf-8", "replace").decode()


def _messages(spans: list[Span], resource: dict[str, object]) -> Iterator[bytes]:
    """Messages of some of the spans each, all of them together."""
    batch: list[Span] = []
    size = 0
    for span in spans:
        batch.append(span)
        size += _SPAN_BYTES + len(str(span["name"])) + len(str(span["attributes"]))
        if size >= _MESSAGE_BYTES:
            yield _message(batch, resource)
            batch, size = [], 0
    if batch:
        yield _message(batch, resource)


def _message(spans: list[Span], resource: dict[str, object]) -> bytes:
    scope = {"name": "mindtorch_prof", "version": __version__}
    return orjson.dumps(
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
    )


def _send(address: str, message: bytes) -> None:
    """Send a message to a collector; an OSError says what it did not take."""
    import urllib.error
    import urllib.parse
    import urllib.request

    parts = urllib.parse.urlsplit(address)
    if parts.path in ("", "/"):
        address = urllib.parse.urlunsplit(parts._replace(path="/v1/traces"))
    request = urllib.request.Request(address, message, {"Content-Type": "application/json"}, method="POST")  # noqa: S310  # of http and https alone (is_address)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310  # as above
            body = response.read()
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer too, and would keep the connection open for as long as it lives
        raise
    try:
        refused = json.loads(body or b"{}").get("partialSuccess") or {}
    except (ValueError, AttributeError):  # an answer that is not OTLP's: the collector took the message
        return
    if int(refused.get("rejectedSpans") or 0):
        raise OSError(
            f"{int(refused['rejectedSpans']):,} spans were refused: {refused.get('errorMessage') or 'no reason given'}"
        )
