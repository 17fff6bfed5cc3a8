"""Rules about devices: a recorded program in; advice about communication, copies, kernels and idle time of devices out.

Idle time for which the host was late is divided by its cause: loading of data, a wait of the host for the device, launches that take
longer than the kernels they launch, and other work of the host. Each gap has one cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import communication
from ..arrays import BoolArray, IntArray
from ..json_types import JSONValue
from ..trace import ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, RUNTIME
from ..tree import events_at
from .figures import device_label
from .host_advice import OVERLAP, explained_rows
from .intervals import covered, union
from .recorded_program import Advice, Evidence, Gaps, RecordedProgram
from .steps_table import working

_SHORT_GAP_NS = 50_000  # shorter gaps are the time between two launches, whatever the host does in it
_LONG_CALL_NS = (
    5_000_000  # no op takes so long to launch its work: it loads or tunes kernels, or computes on the host
)
_ELEMENTWISE_SHARE = 0.3  # of the device's busy time: from here on elementwise kernels are worth fusing
_WAITING_CALL = re.compile(
    r"(cuda|hip|aclrt|musa|xpu)\w*Synchronize\w*|(cuda|hip)Memcpy(WithStream)?$|zeEventHostSynchronize"
)
_LAYOUT = re.compile(
    r"nchw_?to_?(folded)?_?nhwc|nhwc_?to_?nchw|nchw2nhwc|nhwc2nchw|batched_transpose|transdata", re.IGNORECASE
)
_MATRIX = (
    # matrix products and convolutions in 32 bits that do not run on tensor cores
    r"(^|_)sgemm|_scudnn_|simt_sgemm|implicit_convolve_sgemm|sgemm_largek|(wgrad|dgrad)\w*engine<float|(wgrad|dgrad)\d?\w*<float"
    r"|xmma_\w*_f32f32_f32f32|winograd\w*<float, float|^Cijk_\w*?_SB?_MT|(igemm|miopen\w*conv)\w*_fp?32"
)
_SINGLE_PRECISION = re.compile(_MATRIX, re.IGNORECASE)
_ELEMENTWISE = re.compile(r"elementwise_kernel|catarray|direct_copy|triton_poi_", re.IGNORECASE)
_ON_TENSOR_CORES = re.compile(
    r"tf32|tensorop|s\d{3,5}gemm|s\d{3,5}cudnn|hmma|bf16|_h\d{3,5}|fp16", re.IGNORECASE
)
_WITH_TENSOR_CORES = re.compile(
    r"^(volta|turing|ampere|hopper|blackwell)_|(^|_)sm(7[05]|[89]\d|1\d\d)_", re.IGNORECASE
)


def _of_device(program: RecordedProgram, number: int) -> str:
    return f" of {device_label(program.trace, number)}" if len(program.devices) > 1 else ""


# ---------------------------------------------------------------------------------------------------- device time


def _communication(program: RecordedProgram) -> list[Advice]:
    """Communication between ranks during which the device computes nothing: of the device that loses most by it."""
    device = program.trace.device
    moves_data = np.append(communication.on_device(device.names), False)[device.name]
    found = [
        _exposed_communication(program, number, moves_data)
        for number in program.devices
        if (program.on(number) & moves_data).any()
    ]
    return sorted(found, key=lambda advice: -advice.at_stake_us)[:1]


def _exposed_communication(program: RecordedProgram, number: int, moves_data: BoolArray) -> Advice:
    device = program.trace.device
    work = program.on(number)
    kernels = work & (device.kind == DEVICE_KERNEL)
    collective = kernels & moves_data
    exposed = program.exposed(collective, kernels & ~moves_data)
    exposed_ns = int((exposed[1] - exposed[0]).sum())
    busy_ns = _length(device.start_ns[collective], device.end_ns[collective])
    share = busy_ns / max(_length(device.start_ns[work], device.end_ns[work]), 1)
    rows = np.flatnonzero(collective)
    times = covered(exposed, device.start_ns[rows], device.end_ns[rows])
    return program.advice(
        "exposed_communication",
        f"communication takes {share:.0%} of the busy time{_of_device(program, number)}, "
        f"and for {exposed_ns / max(busy_ns, 1):.0%} of it nothing is computed meanwhile",
        OVERLAP,
        len(rows),
        exposed_ns,
        program.device_evidence(rows, times),
    )


def _layout_conversions(program: RecordedProgram) -> list[Advice]:
    """Kernels that only change the memory layout of images, around convolutions."""
    device = program.trace.device
    converts = np.append([_LAYOUT.search(name) is not None for name in device.names], False).astype(bool)[
        device.name
    ]
    rows = np.flatnonzero(device.works & converts)
    if not len(rows):
        return []
    return [
        program.advice(
            "layout_conversion",
            f"{len(rows):,} kernels only convert between memory layouts (NCHW and NHWC) for convolutions",
            "keep one layout: model.to(memory_format=torch.channels_last), and the same for its inputs",
            len(rows),
            _length(device.start_ns[rows], device.end_ns[rows]),
            program.device_evidence(rows),
        )
    ]


def _single_precision(program: RecordedProgram) -> list[Advice]:
    """Matrix products and convolutions in 32 bits, on a device that has tensor cores."""
    trace, device = program.trace, program.trace.device
    single = np.array(
        [_SINGLE_PRECISION.search(n) is not None and _ON_TENSOR_CORES.search(n) is None for n in device.names]
        or [False]
    )
    named_so = np.array([_WITH_TENSOR_CORES.search(name) is not None for name in device.names] or [False])
    known = {
        number: _has_tensor_cores(properties)
        for properties in trace.settings.device_properties or ()
        if isinstance(properties, dict) and isinstance(number := properties.get("id"), int)
    }
    # a device that the file does not describe is known by kernels that were compiled for it
    able = [n for n in program.devices if known.get(n, bool(named_so[device.name[program.on(n)]].any()))]
    rows = np.flatnonzero(device.works & np.isin(device.device, able) & single[device.name])
    if not len(rows):
        return []
    return [
        program.advice(
            "tensor_cores_unused",
            "matrix products and convolutions run in 32 bits without the device's tensor cores, which are several times as fast",
            'use torch.autocast (bfloat16 or float16); where 32 bits must stay, torch.set_float32_matmul_precision("high") '
            "and torch.backends.cudnn.allow_tf32 on Ampere and later",
            len(rows),
            _length(device.start_ns[rows], device.end_ns[rows]),
            program.device_evidence(rows),
        )
    ]


def _has_tensor_cores(properties: dict[str, JSONValue]) -> bool:
    """Whether a device has units for matrix products in 16 bits: NVIDIA since Volta, but for the GTX 16; AMD Instinct since MI100."""
    name, major = str(properties.get("name", "")), properties.get("computeMajor")
    if "AMD" in name or "Instinct" in name:
        return re.search(r"MI\d{3}", name) is not None
    return isinstance(major, int) and major >= 7 and "GTX 16" not in name


def _unfused(program: RecordedProgram) -> list[Advice]:
    """Much of the device's time goes to kernels that compute next to nothing: each reads and writes all its data."""
    device = program.trace.device
    kernels = device.works & (device.kind == DEVICE_KERNEL)
    simple = np.array([_ELEMENTWISE.search(name) is not None for name in device.names] or [False])
    rows = np.flatnonzero(kernels & simple[device.name]) if len(device) else np.empty(0, np.int64)
    total = _length(device.start_ns[rows], device.end_ns[rows])
    busy = _length(device.start_ns[device.works], device.end_ns[device.works])
    if not len(rows) or total < _ELEMENTWISE_SHARE * busy:
        return []
    return [
        program.advice(
            "unfused_kernels",
            f"{len(rows):,} elementwise kernels and copies take {total / busy:.0%} of the device's busy time; "
            "each reads and writes all its data",
            "fuse them: torch.compile, or fused versions of these modules (norms, activations, rotary embeddings)",
            len(rows),
            total,
            program.device_evidence(rows),
        )
    ]


def _pageable_copies(program: RecordedProgram) -> list[Advice]:
    """Copies to the device from pageable memory, for which the host waits."""
    device = program.trace.device
    if not len(device):
        return []
    named = np.array(["HtoD" in text and "Pageable" in text for text in device.names] or [False])
    copies = (device.kind == DEVICE_COPY) & named[device.name]
    rows = np.flatnonzero(copies)
    if len(rows) < 2:
        return []
    exposed = program.exposed(copies, device.works & (device.kind == DEVICE_KERNEL))
    times = covered(exposed, device.start_ns[rows], device.end_ns[rows])
    launched = device.op[rows] >= 0
    return [
        program.advice(
            "pageable_copies",
            f"{len(rows):,} copies to the device are from pageable (not pinned) memory and no kernel runs meanwhile",
            "use DataLoader(pin_memory=True) and .to(device, non_blocking=True); create tensors on the device where possible",
            len(rows),
            int((exposed[1] - exposed[0]).sum()),
            program.evidence(device.op[rows][launched], times[launched]),
        )
    ]


# ---------------------------------------------------------------------------------------------------- idle time


class _Causes(NamedTuple):
    """The gaps of a device for which the host was late and that no rule about the host explains; masks by what the host did."""

    gaps: Gaps
    waiting: BoolArray  # for the device, when the device ran dry
    wait: IntArray  # the row of that wait; -1: none
    launching: BoolArray  # it ran the ops that launch the next work
    stuck: BoolArray  # the same, but one op took very long
    working: BoolArray  # anything else


def _causes(program: RecordedProgram, number: int) -> _Causes:
    trace = program.trace
    gaps = program.late_gaps(number)
    rows = explained_rows(program)
    explained = covered(union(trace.start_ns[rows], trace.end_ns[rows]), gaps.begin, gaps.end)
    gaps = gaps.take(explained <= gaps.length / 2)
    waits = np.flatnonzero(
        program.named(lambda name: _WAITING_CALL.match(name) is not None) & (trace.kind == RUNTIME)
    )
    calls = np.flatnonzero(working(program.results))
    thread = trace.thread[gaps.launch]
    wait = np.full(len(gaps.begin), -1, np.int64)
    in_ops = np.zeros(len(gaps.begin), np.int64)
    for identity in np.unique(thread).tolist():
        here = np.flatnonzero(thread == identity)
        begin, end = gaps.begin[here], gaps.end[here]
        own = calls[trace.thread[calls] == identity]
        in_ops[here] = covered(union(trace.start_ns[own], trace.end_ns[own]), begin, end)
        own = waits[trace.thread[waits] == identity]
        own = own[np.argsort(trace.start_ns[own], kind="stable")]
        if len(own):
            # the last wait that began before the gap's middle, if it lasted into the gap
            last = np.searchsorted(trace.start_ns[own], (begin + end) // 2, side="right") - 1
            row = own[np.maximum(last, 0)]
            wait[here] = np.where((last >= 0) & (trace.end_ns[row] >= begin), row, -1)
    calling = (wait < 0) & ((in_ops >= gaps.length / 2) | (gaps.length < _SHORT_GAP_NS))
    stuck = calling & (gaps.length >= _LONG_CALL_NS) & (_longest_call(program, gaps) >= gaps.length / 2)
    return _Causes(gaps, wait >= 0, wait, calling & ~stuck, stuck, (wait < 0) & ~calling)


def _longest_call(program: RecordedProgram, gaps: Gaps) -> IntArray:
    """How much of each gap the op takes that the launching thread runs in its middle."""
    trace = program.trace
    row = events_at(trace, program.parent, (gaps.begin + gaps.end) // 2, trace.thread[gaps.launch])
    outer = np.append(program.outer_event, -1)[row]
    overlap = np.minimum(trace.end_ns[outer], gaps.end) - np.maximum(trace.start_ns[outer], gaps.begin)
    return np.where((row >= 0) & (trace.kind[outer] != ANNOTATION), overlap, 0)


def _idle_time(program: RecordedProgram) -> list[Advice]:
    """The device is idle because the host is late: by cause, each for the device that loses most by it."""
    worst: dict[str, Advice] = {}
    for number in program.devices:
        causes = _causes(program, number)
        parts = (
            (causes.waiting, _synchronisation),
            (causes.launching, _launch_bound),
            (causes.stuck, _long_calls),
            (causes.working, _host_bound),
        )
        for which, describe in parts:
            if which.any():
                advice = describe(program, number, causes.gaps.take(which), causes.wait[which])
                known = worst.get(advice.code)
                if known is None or advice.at_stake_us > known.at_stake_us:
                    worst[advice.code] = advice
    return list(worst.values())


def _synchronisation(program: RecordedProgram, number: int, lost: Gaps, wait: IntArray) -> Advice:
    """The host waits for the device, which has nothing to do afterwards until the host has launched more."""
    count = len(np.unique(wait))
    return program.advice(
        "synchronisation",
        f"the host waits for the device {count:,} times; afterwards the device{_of_device(program, number)} "
        "is idle until the host has launched more work",
        "wait less often: keep losses on the device, call .item(), .cpu() and synchronize() only every few steps, "
        "use non_blocking copies",
        count,
        int(lost.length.sum()),
        program.evidence(program.outer_event[wait], lost.length),
    )


def _launch_bound(program: RecordedProgram, number: int, lost: Gaps, _wait: IntArray) -> Advice:
    """The device runs kernels faster than the host launches them."""
    device = program.trace.device
    kernels = program.on(number) & (device.kind == DEVICE_KERNEL)
    typical = float(np.median((device.end_ns - device.start_ns)[kernels])) / 1000 if kernels.any() else 0.0
    return program.advice(
        "launch_bound",
        f"the host launches work more slowly than the device{_of_device(program, number)} does it: {len(lost.begin):,} gaps "
        f"between {int(kernels.sum()):,} kernels, of {typical:.1f} us in the median{_slowed(program)}",
        "launch fewer and larger kernels: torch.compile, CUDA graphs, fused ops, larger batches",
        len(lost.begin),
        int(lost.length.sum()),
        _launchers(program, lost),
    )


def _long_calls(program: RecordedProgram, number: int, lost: Gaps, _wait: IntArray) -> Advice:
    """Single calls of ops keep the host so long that the device runs dry: first calls, which load and tune kernels, or work on the host."""
    return program.advice(
        "long_calls",
        f"{len(lost.begin):,} times one call of an op keeps the host for more than {_LONG_CALL_NS // 1_000_000} ms "
        f"and the device{_of_device(program, number)} is idle meanwhile",
        "if these are first calls, which load and tune kernels: record after a warm-up (the profiler's schedule has wait "
        "and warmup); else move the op's work on the host to the device or to another thread",
        len(lost.begin),
        int(lost.length.sum()),
        _host_work(program, lost),
    )


def _host_bound(program: RecordedProgram, number: int, lost: Gaps, _wait: IntArray) -> Advice:
    """The device waits for other work of the host: Python code, ops on the CPU, waiting for other threads."""
    return program.advice(
        "host_bound",
        f"the device{_of_device(program, number)} is idle {len(lost.begin):,} times because the host does something "
        f"else than calling ops{_slowed(program)}",
        "move this work off the path: to the device, to another thread or process, or out of the loop",
        len(lost.begin),
        int(lost.length.sum()),
        _host_work(program, lost),
    )


def _slowed(program: RecordedProgram) -> str:
    """A remark about recordings that slow the host down."""
    slow = len(program.trace.frames) > 0
    return (
        "; every Python call was recorded, which slows the host: compare with a recording without"
        if slow
        else ""
    )


def _launchers(program: RecordedProgram, gaps: Gaps) -> list[Evidence]:
    """The ops whose launches end gaps."""
    op = program.trace.device.op[gaps.work]
    known = op >= 0
    rows = np.where(known, op, gaps.launch)
    return program.evidence(program.outer_event[rows], gaps.length)


def _host_work(program: RecordedProgram, gaps: Gaps) -> list[Evidence]:
    """What the launching thread did in the middle of each gap: the outermost event, or none."""
    trace = program.trace
    middle = (gaps.begin + gaps.end) // 2
    row = events_at(trace, program.parent, middle, trace.thread[gaps.launch])
    inside = row >= 0
    evidence = program.evidence(program.outer_event[row[inside]], gaps.length[inside])
    outside = int(gaps.length[~inside].sum())
    if outside:
        evidence.append(
            {
                "name": "(no op runs)",
                "where": "Python code between ops",
                "count": int((~inside).sum()),
                "total_us": outside / 1000,
            }
        )
    return sorted(evidence, key=lambda row: -row["total_us"])


def _length(start: IntArray, end: IntArray) -> int:
    begin, until = union(start, end)
    return int((until - begin).sum())


DEVICE_RULES: tuple[Callable[[RecordedProgram], list[Advice]], ...] = (
    _communication,
    _layout_conversions,
    _single_precision,
    _unfused,
    _pageable_copies,
    _idle_time,
)
