"""Rules about the idle time of a device: a recorded program in; findings by what the device waited for out.

The causes are those of `idle_causes`. The time for which the host was late is divided by what the host did: one op that takes very long, the
ops that launch the next work, or anything else.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import BoolArray, IntArray, distinct, distinct_values
from ..steps import is_step
from ..trace import ANNOTATION, DEVICE_KERNEL, PYTHON
from ..tree import nearest
from .device_time import DeviceTime
from .idle_causes import KERNEL_SWITCH, LAUNCH_DELAY, SYNCHRONISATION
from .intervals import Intervals
from .recorded_program import EVIDENCE_ROWS, Evidence, Finding, RecordedProgram, ranked_evidence

_SHORT_GAP_NS = 50_000  # shorter gaps are the time between two launches, whatever the host does in it
_LONG_CALL_NS = (
    5_000_000  # no op takes so long to launch its work: it loads or tunes kernels, or computes on the host
)


def _synchronisation(program: RecordedProgram) -> list[Finding]:
    """The host waits for the device, which has nothing to do afterwards until the host has launched more."""
    if program.device is None:
        return []
    begin, end = program.device.caused_by(SYNCHRONISATION)
    gaps = program.device.idle.gaps
    lost = program.charged.left(begin, end)
    some = np.flatnonzero((lost > 0) & (gaps.wait >= 0))
    if not len(some):
        return []
    wait = gaps.wait[some]
    count = len(distinct_values(wait))
    return [
        Finding(
            "synchronisation",
            f"the host waits for the device {count:,} times; afterwards the device{program.of_device} is idle until the host has "
            "launched more work",
            "wait less often: keep losses on the device, call .item(), .cpu() and synchronize() only every few steps, "
            "use non_blocking copies",
            count,
            ((begin, end),),
            program.evidence(program.outer_event[wait], lost[some]),
        )
    ]


def _late_host(program: RecordedProgram) -> list[Finding]:
    """The host launches the next work too late: by what it did meanwhile."""
    device = program.device
    if device is None or not len(device.idle.gaps):
        return []
    parts = _Parts(program, device)
    findings = []
    if parts.long_call.any():
        gaps = len(distinct_values(parts.gap[parts.long_call]))
        findings.append(
            Finding(
                "long_calls",
                f"{gaps:,} times one call of an op keeps the host for more than {_LONG_CALL_NS // 1_000_000} ms and the "
                f"device{program.of_device} is idle meanwhile",
                "if these are first calls, which load and tune kernels: record after a warm-up (the profiler's schedule has wait "
                "and warmup); else move the op's work on the host to the device or to another thread",
                gaps,
                (parts.times(parts.long_call),),
                parts.evidence(parts.long_call),
            )
        )
    if parts.other_work.any():
        gaps = len(distinct_values(parts.gap[parts.other_work]))
        findings.append(
            Finding(
                "host_bound",
                f"the device{program.of_device} is idle {gaps:,} times because the host does something else than calling "
                f"ops{_slowed(program)}",
                "move this work off the path: to the device, to another thread or process, or out of the loop",
                gaps,
                (parts.times(parts.other_work),),
                parts.evidence(parts.other_work),
            )
        )
    return [*findings, *_launch_bound(program, device, parts)]


def _launch_bound(program: RecordedProgram, device: DeviceTime, parts: _Parts) -> list[Finding]:
    """The device runs kernels faster than the host launches them."""
    work = program.trace.device
    begin, end = device.caused_by(LAUNCH_DELAY)
    gaps = device.idle.gaps
    late = np.zeros(len(gaps), np.int64)
    np.add.at(late, parts.gap[parts.launching], parts.length[parts.launching])
    lost = late + program.charged.left(begin, end)
    some = np.flatnonzero(lost)
    if not len(some):
        return []
    kernels = device.rows[work.kind[device.rows] == DEVICE_KERNEL]
    typical = float(np.median((work.end_ns - work.start_ns)[kernels])) / 1000 if len(kernels) else 0.0
    after = gaps.after[some]
    launcher = np.where(work.op[after] >= 0, work.op[after], work.launch[after])
    return [
        Finding(
            "launch_bound",
            f"the host launches work more slowly than the device{program.of_device} does it: {len(some):,} gaps "
            f"between {len(kernels):,} kernels, of {typical:.1f} us in the median{_slowed(program)}",
            "launch fewer and larger kernels: torch.compile, CUDA graphs, fused ops, larger batches",
            len(some),
            (parts.times(parts.launching), (begin, end)),
            program.evidence(program.outer_event[launcher[launcher >= 0]], lost[some][launcher >= 0]),
        )
    ]


def _kernel_switches(program: RecordedProgram) -> list[Finding]:
    """The pauses between one queued kernel and the next."""
    if program.device is None:
        return []
    begin, end = program.device.caused_by(KERNEL_SWITCH)
    some = np.flatnonzero(end > begin)
    if not len(some):
        return []
    mean = float((end - begin)[some].mean()) / 1000
    return [
        Finding(
            "kernel_switches",
            f"{len(some):,} times the device{program.of_device} pauses between two kernels that are queued, for {mean:.1f} us in the mean",
            "run fewer and larger kernels: torch.compile, fused ops, larger batches; CUDA graphs shorten the pauses",
            len(some),
            ((begin, end),),
            program.device_evidence(program.device.idle.gaps.after[some], (end - begin)[some]),
        )
    ]


class _Parts:
    """The time for which the host was late, in parts with one cause each: masks over the columns."""

    def __init__(self, program: RecordedProgram, device: DeviceTime) -> None:
        late, trace = device.idle.host_late, program.trace
        self._program = program
        self.gap, self._begin, self._end = late.gap, late.start_ns, late.end_ns
        self.length: IntArray = program.charged.left(late.start_ns, late.end_ns)
        is_op = ~np.isin(trace.kind, (ANNOTATION, PYTHON)) & ~is_step(trace)
        n_events = len(trace)
        in_trace = (late.event >= 0) & (late.event < n_events)
        op = np.where(in_trace, late.event, -1)
        # a Python call inside an op is part of that op
        inner = np.append(nearest(program.parent, is_op) if n_events else program.parent, -1)
        op = inner[op]
        op = np.where((op < 0) & (late.call >= 0), late.call, op)
        outer = np.append(program.outer_event, -1)[op]
        self._event: IntArray = late.event
        self._outer: IntArray = outer
        gap_length = device.idle.gaps.length_ns[late.gap]
        is_left = self.length > 0
        # how much of a gap one call of an op takes
        some = np.flatnonzero(is_left & (outer >= 0) & (gap_length >= _LONG_CALL_NS))
        _, place = distinct(late.gap[some] * (n_events + 1) + outer[some])
        longest = np.bincount(place, weights=self.length[some])[place]
        self.long_call: BoolArray = np.zeros(len(outer), bool)
        self.long_call[some] = longest >= gap_length[some] / 2
        calls = (outer >= 0) | (gap_length < _SHORT_GAP_NS)
        self.launching: BoolArray = calls & is_left & ~self.long_call
        self.other_work: BoolArray = ~calls & is_left

    def times(self, which: BoolArray) -> Intervals:
        return self._begin[which], self._end[which]

    def evidence(self, which: BoolArray) -> list[Evidence]:
        """What the host did: the outermost op, else the Python call or annotation that ran, with the place in the program."""
        program, trace = self._program, self._program.trace
        rows, place = distinct(np.where(self._outer >= 0, self._outer, self._event)[which])
        times = np.zeros(len(rows), np.int64)
        np.add.at(times, place, self.length[which])
        in_trace = (rows >= 0) & (rows < len(trace))
        evidence = program.evidence(rows[in_trace], times[in_trace])
        frame = rows - len(trace)
        calls = np.flatnonzero(frame >= 0)
        if len(calls):
            names, group = distinct(trace.frames.name[frame[calls]])
            keys = [(trace.frames.names[name], "") for name in names.tolist()]
            evidence += ranked_evidence(keys, group, times[calls])
        nothing = rows < 0
        if nothing.any():
            evidence.append(
                {
                    "name": "(no op runs)",
                    "where": "Python code between ops",
                    "count": len(distinct_values(self.gap[which][place == np.flatnonzero(nothing)[0]])),
                    "total_us": int(times[nothing].sum()) / 1000,
                }
            )
        return sorted(evidence, key=lambda row: -row["total_us"])[:EVIDENCE_ROWS]


def _slowed(program: RecordedProgram) -> str:
    """A remark about recordings that slow the host down."""
    if not len(program.trace.frames):
        return ""
    return "; every Python call was recorded, which slows the host: compare with a recording without"


IDLE_RULES: tuple[Callable[[RecordedProgram], list[Finding]], ...] = (
    _synchronisation,
    _late_host,
    _kernel_switches,
)
