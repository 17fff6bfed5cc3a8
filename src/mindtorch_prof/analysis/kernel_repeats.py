"""Kernel repeats: a recording in; totals and repeated measurements per kernel, copy or memset out. For `diff --by kernel`.

The same as `repeats` for ops: steps are the repeats if the trace has steps, else single runs of a kernel. A kernel belongs to the step in
which it was launched.
"""

from __future__ import annotations

import numpy as np

from ..arrays import IntArray
from ..steps import steps_of
from ..tree import sum_by
from .recording import Recording, as_results
from .repeats import COUNTERS, TIMES, Measured

BY_KERNEL = ("kernel",)


def measure_kernels(source: Recording, *, use_steps: bool = True) -> Measured:
    """Group the device work of a recording by name. Work that was launched outside of steps is left out if there are steps."""
    results = as_results(source)
    trace = results.trace
    device = trace.device
    steps, step, step_ns = steps_of(trace) if use_steps else ((), np.full(len(trace), -1, np.int64), None)
    launch = np.where(device.launch >= 0, device.launch, device.op)
    of_launch = np.append(step, -1)[launch]
    of_op = np.append(step, -1)[device.op]
    launched_in = np.where(of_op >= 0, of_op, of_launch)
    keep = device.works & (launched_in >= 0) if steps else device.works
    rows = np.flatnonzero(keep)
    used, number = np.unique(device.name[rows], return_inverse=True)
    number = number.reshape(-1)
    keys = tuple((device.names[name],) for name in used.tolist())
    length = (device.end_ns - device.start_ns)[rows]
    count = np.bincount(number, minlength=len(keys)).astype(np.int64)
    zeros = np.zeros(len(keys), np.int64)
    totals: dict[str, IntArray] = dict.fromkeys((*TIMES, *COUNTERS), zeros)
    totals |= dict.fromkeys(("self_device", "device"), sum_by(number, length, len(keys)))
    totals |= {"count": count, "kernels": count}
    if steps:
        cells = sum_by(number * len(steps) + launched_in[rows], length, len(keys) * len(steps))
        device_column = cells.reshape(len(keys), len(steps))
    else:
        device_column = length
    no_time = np.zeros_like(device_column)
    columns: dict[str, IntArray] = {name: device_column if "device" in name else no_time for name in TIMES}
    outside = device.works & ~keep
    return Measured(
        BY_KERNEL,
        keys,
        totals,
        steps,
        columns,
        number,
        count,
        outside_ns=int((device.end_ns - device.start_ns)[outside].sum()),
        has=frozenset(("device",) if len(rows) else ()),
        step_ns=step_ns if step_ns is not None else np.empty(0, np.int64),
    )
