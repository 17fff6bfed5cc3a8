"""Rules about the work of a device: a recorded program in; findings about communication, copies and kernels out.

Each rule is about another part of the device's time, or about other kernels, the more specific ones first: a nanosecond that an earlier rule was
charged with does not count again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..arrays import FloatArray, IntArray, distinct_values
from ..json_types import JSONValue
from ..trace import DEVICE_COPY
from .device_breakdown import COMMUNICATION, COPY
from .host_advice import OVERLAP
from .idle_causes import COLLECTIVE_WAIT
from .intervals import Intervals, common, covered, union
from .recorded_program import EVIDENCE_ROWS, Evidence, Finding, RecordedProgram
from .roofline import Roofline, Row
from .roofline.collectives import CATEGORY as COLLECTIVE
from .roofline.work import MATRIX

_ELEMENTWISE_SHARE = 0.3  # of the device's busy time: from here on elementwise kernels are worth fusing
_FAR_FROM_PEAK = 0.5  # of what the device could do: below it, an op is worth a look
_LONG_ENOUGH_NS = 10_000  # shorter kernels do not reach a device's peak, however well they are written
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


def _communication(program: RecordedProgram) -> list[Finding]:
    """Communication between ranks during which the device computes nothing."""
    device = program.device
    rows = np.empty(0, np.int64) if device is None else device.rows_of(COMMUNICATION)
    if device is None or not len(rows):
        return []
    exposed = device.exposed_communication
    exposed_ns, total_ns = _length(exposed), _length(device.times(rows))
    starts, ends = program.trace.device.start_ns[rows], program.trace.device.end_ns[rows]
    return [
        Finding(
            "exposed_communication",
            f"communication takes {total_ns / device.busy_ns:.0%} of the busy time{program.of_device}, "
            f"and for {exposed_ns / max(total_ns, 1):.0%} of it nothing is computed meanwhile{_rate(program.roofline)}",
            OVERLAP,
            len(rows),
            (exposed, device.caused_by(COLLECTIVE_WAIT)),
            program.device_evidence(rows, covered(exposed, starts, ends)),
            rows,
        )
    ]


def _rate(roofline: Roofline) -> str:
    """How fast collectives sent their data, in words; empty: it is not known."""
    rows = [row for row in roofline.rows if row.category == COLLECTIVE and row.kernel_us]
    if not rows:
        return ""
    gigabytes = sum(row.count * row.bytes for row in rows) / 1e9
    seconds = sum(row.kernel_us for row in rows) / 1e6
    return f"; each rank sends {gigabytes / seconds:.3g} GB/s while it lasts"


def _layout_conversions(program: RecordedProgram) -> list[Finding]:
    """Kernels that only change the memory layout of images, around convolutions."""
    rows = program.work_named(lambda name: _LAYOUT.search(name) is not None)
    if program.device is None or not len(rows):
        return []
    return [
        Finding(
            "layout_conversion",
            f"{len(rows):,} kernels only convert between memory layouts (NCHW and NHWC) for convolutions",
            "keep one layout: model.to(memory_format=torch.channels_last), and the same for its inputs",
            len(rows),
            (program.device.times(rows),),
            program.device_evidence(rows),
            rows,
        )
    ]


def _single_precision(program: RecordedProgram) -> list[Finding]:
    """Matrix products and convolutions in 32 bits, on a device that has tensor cores."""
    rows = program.work_named(
        lambda name: _SINGLE_PRECISION.search(name) is not None and _ON_TENSOR_CORES.search(name) is None
    )
    if program.device is None or not len(rows) or not _tensor_cores(program, program.device.number):
        return []
    kept = _time_on_tensor_cores(program.roofline, rows)
    return [
        Finding(
            "tensor_cores_unused",
            "matrix products and convolutions run in 32 bits without the device's tensor cores, which are several times as fast",
            'use torch.autocast (bfloat16 or float16); where 32 bits must stay, torch.set_float32_matmul_precision("high") '
            "and torch.backends.cudnn.allow_tf32 on Ampere and later",
            len(rows),
            (_after(program, rows, kept),),
            program.device_evidence(rows),
            rows,
            kept,
        )
    ]


def _time_on_tensor_cores(roofline: Roofline, rows: IntArray) -> FloatArray:
    """By row of Device, which share of its time the same FLOP would take in 16 bits at the device's peak; 0 where that is not known."""
    peaks = roofline.peaks
    peak = (
        None
        if peaks is None
        else peaks.compute(MATRIX, "bfloat16", False) or peaks.compute(MATRIX, "float16", False)
    )
    shares = [
        min(1.0, row.count * row.flop / (peak * 1e12) / (row.kernel_us / 1e6))
        if peak and row.kernel_us
        else 0.0
        for row in roofline.rows
    ]
    return np.array([*shares, 0.0])[roofline.row_of_work[rows]]


def _tensor_cores(program: RecordedProgram, number: int) -> bool:
    """Whether a device has tensor cores: by its properties; a device that the file does not describe, by kernels that were compiled for it."""
    for properties in program.trace.settings.device_properties or ():
        if isinstance(properties, dict) and properties.get("id") == number:
            return _has_tensor_cores(properties)
    return len(program.work_named(lambda name: _WITH_TENSOR_CORES.search(name) is not None)) > 0


def _has_tensor_cores(properties: dict[str, JSONValue]) -> bool:
    """Whether a device has units for matrix products in 16 bits: NVIDIA since Volta, but for the GTX 16; AMD Instinct since MI100."""
    name, major = str(properties.get("name", "")), properties.get("computeMajor")
    if "AMD" in name or "Instinct" in name:
        return re.search(r"MI\d{3}", name) is not None
    return isinstance(major, int) and major >= 7 and "GTX 16" not in name


def _unfused(program: RecordedProgram) -> list[Finding]:
    """Much of the device's time goes to kernels that compute next to nothing: each reads and writes all its data."""
    rows = program.work_named(lambda name: _ELEMENTWISE.search(name) is not None)
    rows = rows[program.trace.device.kind[rows] != DEVICE_COPY]
    if program.device is None or not len(rows):
        return []
    times = program.device.times(rows)
    if _length(times) < _ELEMENTWISE_SHARE * program.device.busy_ns:
        return []
    return [
        Finding(
            "unfused_kernels",
            f"{len(rows):,} elementwise kernels and copies take {_length(times) / program.device.busy_ns:.0%} of the device's busy time; "
            "each reads and writes all its data",
            "fuse them: torch.compile, or fused versions of these modules (norms, activations, rotary embeddings)",
            len(rows),
            (times,),
            program.device_evidence(rows),
            rows,
            calls=_ops_of(program, rows),
        )
    ]


def _ops_of(program: RecordedProgram, rows: IntArray) -> IntArray:
    """The events that launched work."""
    op = program.trace.device.op[rows]
    return distinct_values(op[op >= 0])


def _far_from_peak(program: RecordedProgram) -> list[Finding]:
    """Ops whose kernels reach less than half of what the device could do with their work, by the roofline."""
    if program.device is None or program.roofline.peaks is None:
        return []
    roofline, device = program.roofline, program.trace.device
    shares = [
        row.share_of_peak if row.share_of_peak is not None and row.share_of_peak < _FAR_FROM_PEAK else 1.0
        for row in roofline.rows
    ]
    row = roofline.row_of_work[program.device.rows]
    kept = np.array([*shares, 1.0])[row]
    long_enough = (device.end_ns - device.start_ns)[program.device.rows] >= _LONG_ENOUGH_NS
    chosen = (kept < 1) & long_enough & (device.kind[program.device.rows] != DEVICE_COPY)
    rows, kept, row = program.device.rows[chosen], kept[chosen], row[chosen]
    times = _after(program, rows, kept)
    left = program.charged.left(*times)
    some = left > 0
    rows, kept, row, left = rows[some], kept[some], row[some], left[some]
    if not len(rows):
        return []
    length = (device.end_ns - device.start_ns)[rows]
    lost = np.bincount(row, weights=left, minlength=len(roofline.rows))
    order = np.argsort(-lost, kind="stable")
    longest = [(roofline.rows[i], float(lost[i]), int((row == i).sum())) for i in order.tolist() if lost[i]]
    reached = float((length * kept).sum() / length.sum())
    assert roofline.peaks is not None
    return [
        Finding(
            "far_from_peak",
            f"{len(rows):,} kernels of 10 us and more reach {reached:.0%} of what {roofline.peaks.name} could do with their work",
            "`mindtorch-prof roofline` lists them. Bound by memory: fuse them with their neighbours, avoid strides and copies. Bound by "
            "computation: shapes that are multiples of 8, larger batches, lower precision, a fused kernel (flash attention)",
            len(rows),
            (times,),
            [_peak_evidence(*each) for each in longest[:EVIDENCE_ROWS]],
            rows,
            kept,
        )
    ]


def _peak_evidence(row: Row, lost_ns: float, count: int) -> Evidence:
    shapes = " ".join(
        "x".join(map(str, shape))
        for shape in row.input_shapes
        if isinstance(shape, list) and shape and isinstance(shape[0], int)
    )
    where = f"{shapes}: {row.share_of_peak or 0:.0%} of the {row.bound} peak"
    return {"name": row.name, "where": where, "count": count, "total_us": lost_ns / 1000}


def _copies(program: RecordedProgram) -> list[Finding]:
    """Copies to and from the device while no kernel runs: from pageable memory, for which the host waits, and others."""
    device = program.device
    rows = np.empty(0, np.int64) if device is None else device.rows_of(COPY)
    if device is None or len(rows) < 2:
        return []
    names = program.trace.device.names
    pageable = np.array(["HtoD" in name and "Pageable" in name for name in names], bool)
    is_pageable = pageable[program.trace.device.name[rows]]
    findings = []
    for which, code, what, advice in (
        (
            is_pageable,
            "pageable_copies",
            f"copies to the device{program.of_device} are from pageable (not pinned) memory and no kernel runs meanwhile",
            "use DataLoader(pin_memory=True) and .to(device, non_blocking=True); create tensors on the device where possible",
        ),
        (
            ~is_pageable,
            "exposed_copies",
            f"copies run while the device{program.of_device} neither computes nor communicates",
            "copy on another stream with non_blocking=True while kernels run, copy less often, or keep the data on the device",
        ),
    ):
        chosen = rows[which]
        if len(chosen) >= 2:
            start, end = program.trace.device.start_ns[chosen], program.trace.device.end_ns[chosen]
            exposed = device.exposed_copies
            times = covered(exposed, start, end)
            op = program.trace.device.op[chosen]
            evidence = (
                program.evidence(op[op >= 0], times[op >= 0])
                if (op >= 0).any()
                else program.device_evidence(chosen, times)
            )
            both = common(exposed, union(start, end))
            findings.append(
                Finding(code, f"{len(chosen):,} {what}", advice, len(chosen), (both,), evidence, chosen)
            )
    return findings


def _after(program: RecordedProgram, rows: IntArray, kept: FloatArray) -> Intervals:
    """What is left of the times of work without the share of each that stays."""
    device = program.trace.device
    start, end = device.start_ns[rows], device.end_ns[rows]
    return start + np.ceil((end - start) * kept).astype(np.int64), end


def _length(times: Intervals) -> int:
    return int((times[1] - times[0]).sum())


DEVICE_RULES: tuple[Callable[[RecordedProgram], list[Finding]], ...] = (
    _communication,
    _copies,
    _layout_conversions,
    _single_precision,
    _unfused,
    _far_from_peak,
)
