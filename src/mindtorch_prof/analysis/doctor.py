"""Doctor: a recording in; findings about what is missing, inconsistent or damaged in it out. Repairs nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import IntArray, rows_by
from ..number_formats import counted
from ..sensitive_data import secrets_in
from ..trace import NODE, Trace
from ..tree import depths, parents, thread_slices
from .figures import figures
from .overhead import overhead
from .recording import Recording, recorded_results
from .steps_table import steps_table

if TYPE_CHECKING:
    from ..torch_api.results import Results

_FAR_NS = 3600 * 10**9  # no recording has parts that are an hour apart


@dataclass(frozen=True)
class Finding:
    """One problem of a recording."""

    code: str  # stable, for programs
    severity: str  # error: numbers are wrong; warning: something is missing; info: good to know
    count: int
    message: str
    where: str = ""  # the first events that are affected

    def to_dict(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def doctor(source: Recording) -> list[Finding]:
    """All findings about a recording; none means that it is complete and consistent."""
    results = recorded_results(source)
    trace = results.trace
    findings = [*_recorded_health(trace), *_empty(trace)]
    if len(trace):
        findings += [
            *_times(trace),
            *_nesting(results),
            *_duplicates(trace),
            *_steps(results),
            *_backward_alone(trace),
        ]
    if len(trace.device):
        findings += _device(results)
    findings += [*_memory(trace), *_overhead(results), *_sensitive_metadata(trace)]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])


def _recorded_health(trace: Trace) -> list[Finding]:
    """What the recorder or the loader noted."""
    health = trace.health
    counters = [
        ("dropped", health.dropped, "was dropped", "were dropped"),
        (
            "unfinished",
            health.unfinished,
            "had not ended when the recording stopped; it ends with it",
            "had not ended when the recording stopped; they end with it",
        ),
        ("repaired", health.repaired, "was repaired", "were repaired"),
    ]
    findings = [
        Finding(code, "warning", n, f"{counted(n, 'event')} {of_one if n == 1 else of_many}")
        for code, n, of_one, of_many in counters
        if n
    ]
    notes = [Finding("note", "warning", 1, note) for note in health.notes]
    remarks = [Finding("note", "info", 1, remark) for remark in health.remarks]
    return [*findings, *notes, *remarks, *(Finding("lacks", "info", 1, text) for text in health.lacks)]


def _sensitive_metadata(trace: Trace) -> list[Finding]:
    """Secrets and environments in the file's metadata: whoever gets the file gets them too."""
    secrets, environments = secrets_in({**trace.settings.metadata, **trace.settings.added_metadata})
    advice = "`mindtorch-prof redact` removes them from the file"
    findings = []
    if secrets:
        message = f"the metadata holds what looks like tokens or passwords; {advice}"
        findings.append(Finding("secrets", "warning", len(secrets), message, _places(secrets)))
    if environments:
        message = f"the metadata holds environment variables or command lines; {advice}"
        findings.append(Finding("environment", "info", len(environments), message, _places(environments)))
    return findings


def _places(paths: list[str]) -> str:
    return ", ".join(paths[:3])


def _empty(trace: Trace) -> list[Finding]:
    if len(trace) or len(trace.device):
        return []
    return [Finding("empty", "warning", 0, "the trace has no events")]


def _times(trace: Trace) -> list[Finding]:
    findings = []
    backwards = np.flatnonzero(trace.end_ns < trace.start_ns)
    if len(backwards):
        findings.append(
            Finding("negative_duration", "error", len(backwards), f"{_that(len(backwards), 'event', 'end')} before the start",
                    _first_places(trace, backwards))
        )  # fmt: skip
    far = np.flatnonzero(np.abs(trace.start_ns - int(np.median(trace.start_ns))) > _FAR_NS)
    if len(far):
        findings.append(
            Finding("far_away", "error", len(far), f"{_that(len(far), 'event', 'are')} more than an hour away from the others "
                    "(timestamps of 0 or from another clock)", _first_places(trace, far))
        )  # fmt: skip
    return findings


def _nesting(results: Results) -> list[Finding]:
    trace = results.trace
    overlapping = []
    for first, last in thread_slices(trace.thread):
        end = trace.end_ns[first:last]
        parent = parents(depths(trace.start_ns[first:last], end))
        inner = np.flatnonzero(parent >= 0)
        overlapping.append(first + inner[end[inner] > end[parent[inner]]])
    overlaps = np.concatenate(overlapping) if overlapping else np.empty(0, np.int64)
    findings = []
    if len(overlaps):
        findings.append(
            Finding("overlap", "warning", len(overlaps), f"{_that(len(overlaps), 'event', 'overlap')} part of another event of the same thread; "
                    "they are treated as its siblings", _first_places(trace, overlaps))
        )  # fmt: skip
    negative = np.flatnonzero((results.shown_self_ns < 0) & results.shown)
    if len(negative):
        findings.append(
            Finding("negative_self", "error", len(negative), f"{_that(len(negative), 'event', 'have')} a negative self time: "
                    "their child events take longer than they do", _first_places(trace, negative))
        )  # fmt: skip
    window = trace.window_ns[1] - trace.window_ns[0]
    shown = results.shown
    for first, last in thread_slices(trace.thread):
        own = int(results.shown_self_ns[first:last][shown[first:last]].sum())
        if window > 0 and own > window * 1.001 + 1000:
            findings.append(
                Finding("too_much_time", "error", 1, f"the self times of thread {int(trace.thread[first])} add up to {own / 1e6:.3f} ms, "
                        f"more than the recording ({window / 1e6:.3f} ms)")
            )  # fmt: skip
    return findings


def _duplicates(trace: Trace) -> list[Finding]:
    """Events that are equal in everything: name, thread, times, number in the file, sequence number and inputs. Events of duration 0
    may repeat; nested calls of one op have equal times in files of whole microseconds, and numbers of their own."""
    if trace.external is None and not trace.settings.from_file:
        return []  # recorded in this process: each event has a number of its own
    columns = [trace.name, trace.end_ns, trace.start_ns, trace.thread, trace.sequence, trace.inputs]
    if trace.external is not None:
        columns.append(trace.external)
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        same &= np.diff(column[order]) == 0
    rows = order[1:][same & (trace.end_ns > trace.start_ns)[order[1:]]]
    if not len(rows):
        return []
    return [
        Finding("duplicate", "warning", len(rows), f"{len(rows):,} events are duplicates: same name, thread and times",
                _first_places(trace, rows))
    ]  # fmt: skip


def _steps(results: Results) -> list[Finding]:
    sheet = steps_table(results)
    if not sheet.n_rows:
        return [
            Finding(
                "no_steps", "info", 0, "the trace has no steps (ProfilerStep#N): there are no values per step"
            )
        ]
    numbers = sheet["step"].tolist()
    findings = []
    missing = sorted(set(range(min(numbers), max(numbers) + 1)) - set(numbers))
    if missing:
        findings.append(
            Finding("missing_steps", "warning", len(missing), f"{len(missing)} of {max(numbers) - min(numbers) + 1} steps are missing",
                    _first_numbers(missing))
        )  # fmt: skip
    idle = [n for n, events in zip(numbers, sheet["events"].tolist()) if not events]
    if idle:
        findings.append(
            Finding("steps_without_events", "warning", len(idle), f"{len(idle)} of {len(numbers)} steps have no events", _first_numbers(idle))
        )  # fmt: skip
    if "device_events" in sheet:
        idle = [n for n, events in zip(numbers, sheet["device_events"].tolist()) if not events]
        if idle:
            findings.append(
                Finding("steps_without_device_events", "warning", len(idle),
                        f"{len(idle)} of {len(numbers)} steps have no device events", _first_numbers(idle))
            )  # fmt: skip
    return findings


def _backward_alone(trace: Trace) -> list[Finding]:
    """Backward nodes whose forward op is not in the trace: usual if recording started between the two."""
    nodes = np.flatnonzero((trace.kind == NODE) & (trace.sequence >= 0) & (trace.forward_thread != 0))
    forward = trace.sequence[(trace.forward_thread == 0) & (trace.sequence >= 0)]
    if not len(nodes) or not len(forward):
        return []
    alone = nodes[~np.isin(trace.sequence[nodes], forward)]
    if not len(alone):
        return []
    return [
        Finding("backward_alone", "info", len(alone), f"{len(alone):,} of {len(nodes):,} backward nodes have no forward op in the trace",
                _first_places(trace, alone))
    ]  # fmt: skip


def _device(results: Results) -> list[Finding]:
    trace = results.trace
    device = trace.device
    findings = []
    works = device.works
    known = figures(results)
    alone, share = known.device_events_without_op, known.device_without_op_share
    if alone:
        findings.append(
            Finding("device_alone", "warning" if share > 0.01 else "info", alone, f"{alone:,} of {known.device_events:,} device events "
                    f"({share:.1%} of the device time) have no op that launched them")
        )  # fmt: skip
    overlaps = 0
    rows = np.flatnonzero(works)
    streams = np.stack((device.device[rows], device.stream[rows]))
    _, stream = np.unique(streams, axis=1, return_inverse=True)
    for _, own in rows_by(stream.reshape(-1)):
        in_stream = rows[own]
        in_stream = in_stream[np.argsort(device.start_ns[in_stream], kind="stable")]
        latest_end = np.maximum.accumulate(device.end_ns[in_stream])
        overlaps += int((device.start_ns[in_stream][1:] < latest_end[:-1]).sum())
    if overlaps:
        findings.append(
            Finding("device_overlap", "warning", overlaps, f"{_that(overlaps, 'device event', 'start')} before the previous one on the same stream has ended")
        )  # fmt: skip
    backwards = int((device.end_ns < device.start_ns).sum())
    if backwards:
        findings.append(
            Finding(
                "device_negative_duration",
                "error",
                backwards,
                f"{_that(backwards, 'device event', 'end')} before the start",
            )
        )
    launched = np.flatnonzero(works & (device.launch >= 0))
    too_early = int((device.start_ns[launched] < trace.start_ns[device.launch[launched]]).sum())
    if too_early:
        findings.append(
            Finding("device_too_early", "warning", too_early, f"{_that(too_early, 'device event', 'start')} before the launching call: "
                    "the clocks of CPU and device differ")
        )  # fmt: skip
    return findings


def _memory(trace: Trace) -> list[Finding]:
    memory = trace.memory
    if not len(memory):
        return []
    backwards = int((np.diff(memory.time_ns) < 0).sum())
    if backwards:
        return [
            Finding(
                "memory_order",
                "warning",
                backwards,
                f"{_that(backwards, 'memory event', 'are')} out of order in time",
            )
        ]
    return []


def _overhead(results: Results) -> list[Finding]:
    """How much longer the program took because it was recorded."""
    added = overhead(results)
    return [] if added is None else [Finding("overhead", "info", added.n_events, added.sentence())]


def _that(count: int, noun: str, verb: str) -> str:
    """A number of things and what they do: 1 event ends, 2 events end."""
    return (
        f"{counted(count, noun)} {verb if count != 1 else {'have': 'has', 'are': 'is'}.get(verb, verb + 's')}"
    )


def _first_places(trace: Trace, rows: IntArray, most: int = 3) -> str:
    """The names and times of the first events, as text."""
    first = rows[np.argsort(trace.start_ns[rows], kind="stable")[:most]]
    begun = trace.window_ns[0]
    return ", ".join(
        f"{trace.names[int(trace.name[r])]} at {(int(trace.start_ns[r]) - begun) / 1e6:.3f} ms"
        for r in first.tolist()
    )


def _first_numbers(numbers: list[int], most: int = 8) -> str:
    return ", ".join(map(str, numbers[:most])) + (" ..." if len(numbers) > most else "")
