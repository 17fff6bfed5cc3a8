"""Both forms of an Ascend capture: their device figures equal the capture's own tables, on both ranks."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import captures
import numpy as np
import pytest

from mindtorch_prof import load
from mindtorch_prof.communication import on_device
from mindtorch_prof.load.ascend import inputs_json, task_kinds
from mindtorch_prof.trace import (
    ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_PART,
    DEVICE_SYNC,
    OP,
    RUNTIME,
    Trace,
)

CAPTURES = [f"{form}_level1/rank{rank}" for form in ("text", "db") for rank in (0, 1)]


def covered_us(start: Any, end: Any) -> float:
    """The length of the union of intervals, one by one."""
    total, reached = 0, -1
    for first, last in sorted(zip(start.tolist(), end.tolist())):
        total += max(0, last - max(first, reached))
        reached = max(reached, last)
    return total / 1000


def breakdown(trace: Trace) -> dict[str, float]:
    """Ascend's own figures, from the rows of kernels and collectives."""
    device = trace.device
    kernel = device.kind == DEVICE_KERNEL
    collective = kernel & on_device(device.names)[device.name]
    start, end = device.start_ns, device.end_ns
    computing = covered_us(start[kernel & ~collective], end[kernel & ~collective])
    communication = covered_us(start[collective], end[collective])
    busy = covered_us(start[kernel], end[kernel])
    return {
        "Computing": computing,
        "Communication": communication,
        "Communication(Not Overlapped)": busy - computing,
        "Overlapped": computing + communication - busy,
        "Free": (int(end[kernel].max()) - int(start[kernel].min())) / 1000 - busy,
    }


def published(folder: Path) -> dict[str, float]:
    """The same figures in the capture's own step table."""
    output = folder / "ASCEND_PROFILER_OUTPUT"
    if (output / "step_trace_time.csv").exists():
        with open(output / "step_trace_time.csv", newline="") as file:
            (row,) = csv.DictReader(file)
        return {key: float(row[key]) for key in row if key in breakdown_keys()}
    connection = sqlite3.connect(f"{(output / 'analysis.db').as_uri()}?mode=ro&immutable=1", uri=True)
    columns = ("computing", "communication", "communication_not_overlapped", "overlapped", "free")
    (values,) = connection.execute(f"SELECT {', '.join(columns)} FROM StepTraceTime").fetchall()
    connection.close()
    return dict(zip(breakdown_keys(), values))


def breakdown_keys() -> tuple[str, ...]:
    return "Computing", "Communication", "Communication(Not Overlapped)", "Overlapped", "Free"


@pytest.mark.parametrize("name", CAPTURES)
def test_device_time_is_that_of_the_captures_own_step_table(name: str, ecosystem: Path) -> None:
    folder = ecosystem / "ascend" / f"{name}_ascend_pt"
    trace = load(folder).trace
    kernels = int((trace.device.kind == DEVICE_KERNEL).sum())
    # text: starts are cut to whole nanoseconds, so that each of the intervals may be off by one
    tolerance = kernels / 1000 if name.startswith("text") else 0.0011
    assert breakdown(trace) == pytest.approx(published(folder), abs=tolerance, rel=0)


@pytest.mark.parametrize("rank", [0, 1])
def test_both_forms_of_the_same_level_have_the_same_kinds_of_rows(rank: int, ecosystem: Path) -> None:
    text, db = (
        load(ecosystem / "ascend" / f"{form}_level1" / f"rank{rank}_ascend_pt").trace
        for form in ("text", "db")
    )
    for trace in (text, db):
        assert trace.settings.rank == rank
        assert np.unique(trace.device.device).tolist() == [rank]
        assert np.unique(trace.device.stream).tolist() == [0, 2, 3, 4]
        assert not trace.health.notes
    assert np.bincount(text.device.kind).tolist() == np.bincount(db.device.kind).tolist()
    ops = [np.bincount(t.kind[t.kind != RUNTIME]).tolist() for t in (text, db)]
    assert ops[0] == ops[1]
    assert len(text.frames) == len(db.frames) > 0
    assert len(text.memory) == len(db.memory) > 0


@pytest.mark.parametrize("name", CAPTURES)
def test_every_kernel_and_collective_has_a_launch_and_an_op(name: str, ecosystem: Path) -> None:
    device = load(ecosystem / "ascend" / f"{name}_ascend_pt").trace.device
    works = device.works
    assert (device.launch[works] >= 0).all()
    assert (device.op[works] >= 0).all()


@pytest.mark.parametrize("name", CAPTURES)
def test_running_sums_of_memory_are_the_recorded_totals(name: str, ecosystem: Path) -> None:
    memory = load(ecosystem / "ascend" / f"{name}_ascend_pt").trace.memory
    assert memory.device is not None
    assert np.unique(memory.device).tolist() == [int(name[-1])]
    before = int(memory.total[0] - memory.nbytes[0])
    differs = memory.total != before + np.cumsum(memory.nbytes)
    # two changes of one time are in one record
    assert differs.mean() < 0.01


@pytest.fixture(params=("text", "db"))
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Trace:
    """The small capture of `captures`, in both forms."""
    make = captures.text_capture if request.param == "text" else captures.db_capture
    return load(make(tmp_path / "node7_3000000_20250109033444000_ascend_pt")).trace


def names_of(trace: Trace, kind: int) -> list[str]:
    return [trace.device.names[n] for n in trace.device.name[trace.device.kind == kind].tolist()]


def row_of(trace: Trace, name: str) -> int:
    (row,) = [i for i, n in enumerate(trace.name.tolist()) if trace.names[n] == name]
    return row


def test_tasks_are_kernels_copies_waits_or_parts(small: Trace) -> None:
    assert sorted(names_of(small, DEVICE_KERNEL)) == [captures.KERNEL[0], captures.COLLECTIVE[0]]
    assert names_of(small, DEVICE_COPY) == ["MEMCPY_ASYNC"]
    assert sorted(names_of(small, DEVICE_SYNC)) == ["EVENT_WAIT", "Notify_Wait"]
    assert names_of(small, DEVICE_PART) == ["Memcpy"]
    figures = breakdown(small)
    assert figures["Computing"] == captures.COMPUTATION_US
    assert figures["Communication"] == captures.COMMUNICATION_US
    assert figures["Overlapped"] == pytest.approx(captures.OVERLAP_US)


def test_device_rows_are_on_the_real_device_and_stream(small: Trace) -> None:
    device = small.device
    assert set(device.device.tolist()) == {captures.DEVICE}
    streams = dict(zip([device.names[n] for n in device.name.tolist()], device.stream.tolist()))
    assert streams[captures.KERNEL[0]] == 2
    assert streams[captures.COLLECTIVE[0]] == 4


def test_work_is_charged_to_the_op_that_put_its_launch_into_the_queue(small: Trace) -> None:
    device = small.device
    links = {
        device.names[name]: (small.names[small.name[launch]], small.names[small.name[op]])
        for name, launch, op in zip(device.name.tolist(), device.launch.tolist(), device.op.tolist())
        if launch >= 0
    }
    assert links[captures.KERNEL[0]] == ("Node@launch", "aclnnMm")
    assert links[captures.COLLECTIVE[0]] == ("Node@launch", "c10d::allreduce_")
    assert links["MEMCPY_ASYNC"] == ("AscendCL@aclnnMm", "aclnnMm")  # no arrow leads to it, only the queue


def test_calls_of_cann_are_on_the_threads_of_the_framework(small: Trace) -> None:
    calls = small.kind == RUNTIME
    assert {small.names[n] for n in small.name[calls].tolist()} == {
        "Enqueue", "Dequeue@aclnnMm", "Dequeue@HcclAllreduce", "AscendCL@aclnnMm", "Node@launch"
    }  # fmt: skip
    assert set(small.thread.tolist()) == {captures.PID, captures.WORKER}


def test_ops_have_inputs_stacks_and_sequence_numbers(small: Trace) -> None:
    mm = row_of(small, "aten::mm")
    inputs = small.input_table[small.inputs[mm]]
    assert inputs.dims == [[2, 3], [3, 5], []]
    assert inputs.types == ["float", "float", ""]
    assert small.stacks[small.stack[mm]] == ("model.py(3): forward", "train.py(9): main")
    backward = row_of(small, "MmBackward0")
    assert small.sequence[mm] == small.sequence[backward] == 4
    assert small.forward_thread[backward] == captures.PID


def test_steps_are_annotations(small: Trace) -> None:
    assert small.kind[row_of(small, "ProfilerStep#7")] == ANNOTATION
    assert small.kind[row_of(small, "aclnnMm")] == OP


def test_settings_say_rank_host_device_and_how_it_was_recorded(small: Trace) -> None:
    settings = small.settings
    assert (settings.rank, settings.world_size, settings.host_name) == (6, 8, "node7")
    assert settings.device == "npu"
    assert settings.record_shapes
    assert settings.with_stack
    profiler = settings.metadata["ascend_profiler"]
    assert isinstance(profiler, dict)
    assert profiler["profiler_level"] == "Level1"


def test_times_are_exact_to_the_nanosecond(small: Trace) -> None:
    device = small.device
    kernel = [device.names[n] for n in device.name.tolist()].index(captures.KERNEL[0])
    assert small.origin_ns + int(device.start_ns[kernel]) == captures.ns(captures.KERNEL[1])
    assert small.origin_ns == captures.BASE_NS


def test_memory_has_allocations_releases_and_what_was_released_of_older_memory(small: Trace) -> None:
    memory = small.memory
    mib = 1 << 20
    assert (memory.nbytes // mib).tolist() == [4, -1, -4]
    assert (memory.total // mib).tolist() == [14, 13, 9]
    assert memory.device is not None
    assert memory.device.tolist() == [captures.DEVICE] * 3
    assert memory.address[0] == memory.address[2] != memory.address[1]


def test_counters_hold_frequencies_and_totals_of_allocators(small: Trace) -> None:
    counters = small.counters
    series = {
        name: counters.value[counters.name == number].tolist() for number, name in enumerate(counters.names)
    }
    assert series["AI Core Freq (MHz)"] == [1800.0]
    assert series["memory of PTA: reserved (bytes)"] == [32.0 * (1 << 20)] * 4


def test_collectives_have_the_arguments_that_nccls_have(small: Trace) -> None:
    device = small.device
    row = [device.names[n] for n in device.name.tolist()].index(captures.COLLECTIVE[0])
    arguments = device.extra_table[device.extra[row]]
    assert arguments["Collective name"] == "allreduce"
    assert (arguments["In msg nelems"], arguments["dtype"], arguments["Group size"]) == (1000, "Half", 2)
    assert (arguments["Process Group Name"], arguments["Seq"]) == ("9586", 4)
    assert (arguments["Elapse Time(ms)"], arguments["Transit Time(ms)"]) == (0.2, 0.1)


def test_kernels_have_type_shapes_and_metrics(small: Trace) -> None:
    device = small.device
    row = [device.names[n] for n in device.name.tolist()].index(captures.KERNEL[0])
    arguments = device.extra_table[device.extra[row]]
    assert (arguments["Type"], arguments["Accelerator Core"]) == ("MatMulV2", "AI_CORE")
    assert (arguments["Input Shapes"], arguments["aic_mac_ratio"]) == ("2,3;3,5", 0.25)


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("aclnnZero_MemSet", "AI_VECTOR_CORE", DEVICE_KERNEL),
        ("WaitOp_kernel", "AI_CORE", DEVICE_KERNEL),
        ("MEMCPY_ASYNC", "PCIE_DMA_SQE", DEVICE_COPY),
        ("EVENT_WAIT", "EVENT_WAIT_SQE", DEVICE_SYNC),
        ("Notify Wait", "Notify Wait", DEVICE_SYNC),
        ("EVENT_RECORD", "PLACE_HOLDER_SQE", DEVICE_SYNC),
        ("SDMA", "SDMA", DEVICE_PART),
        ("Write Value", "Write Value", DEVICE_PART),
        ("aclnnDropoutGenMaskV2_DSAGenBitMask", "DSA_SQE", DEVICE_KERNEL),
        ("some_op", "AI_CPU", DEVICE_KERNEL),
    ],
)
def test_the_type_of_a_task_decides_before_its_name(name: str, kind: str, expected: int) -> None:
    assert task_kinds([(name, kind)]).tolist() == [expected]


def test_shapes_of_lists_of_tensors_are_read() -> None:
    assert inputs_json("[[2,3],[4]];\r\n", "TensorList;\r\nScalar") == (
        b'[null,["TensorList","Scalar"],null,[[[2,3],[4]],[]]]'
    )
