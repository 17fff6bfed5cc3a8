"""Device breakdown: parts of device time that add up, compared with painted time and TraceLens' tables."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import make_device, make_trace

from mindtorch_prof.analysis.device_breakdown import (
    COMMUNICATION,
    COMPUTATION,
    COPY,
    breakdown,
    breakdown_by,
    device_breakdown,
    device_work,
)
from mindtorch_prof.load import load
from mindtorch_prof.trace import (
    ANNOTATION,
    DEVICE_ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SET,
    DEVICE_SYNC,
    RUNTIME,
    Trace,
)

# (start, length, class) of pieces of work, in a time so short that it can be painted
WORK = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.sampled_from((COMPUTATION, COMMUNICATION, COPY))),
    min_size=1,
    max_size=30,
)


def columns(work: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, length, classes = np.array(work, np.int64).T
    return start, start + length, classes


def painted(work: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """The figures of a breakdown, counted time by time."""
    by_class = {
        wanted: {t for start, length, kind in work if kind == wanted for t in range(start, start + length)}
        for wanted in (COMPUTATION, COMMUNICATION, COPY)
    }
    computation, communication, copy = by_class[COMPUTATION], by_class[COMMUNICATION], by_class[COPY]
    return (
        max(start + length for start, length, _ in work) - min(start for start, *_ in work),
        len(computation),
        len(communication - computation),
        len(copy - computation - communication),
        len(communication),
        len(copy),
    )


@given(WORK)
def test_the_parts_are_those_that_painting_the_time_gives(work: list[tuple[int, int, int]]) -> None:
    figures = breakdown(*columns(work))
    assert painted(work) == (
        figures.span_ns,
        figures.computation_ns,
        figures.exposed_communication_ns,
        figures.exposed_copy_ns,
        figures.communication_ns,
        figures.copy_ns,
    )
    assert figures.idle_ns >= 0
    assert figures.busy_ns + figures.idle_ns == figures.span_ns
    assert 0 <= figures.overlap <= 1


@given(st.lists(WORK, min_size=1, max_size=5))
def test_groups_do_not_disturb_each_other(groups: list[list[tuple[int, int, int]]]) -> None:
    group = np.repeat(np.arange(len(groups)), [len(work) for work in groups])
    start, end, classes = columns([piece for work in groups for piece in work])
    order = np.random.default_rng(0).permutation(len(start))
    together = breakdown_by(group[order], start[order], end[order], classes[order], len(groups))
    assert [together.figures(index) for index in range(len(groups))] == [painted(work) for work in groups]


def test_a_group_without_work_has_no_time() -> None:
    one = np.array([1])
    together = breakdown_by(one, one * 5, one * 9, one * 0, 3)
    assert together.span_ns.tolist() == [0, 4, 0]
    assert together.computation_ns.tolist() == [0, 4, 0]


def test_streams_of_a_device_are_broken_down_within_its_span() -> None:
    device = make_device(
        ("gemm", 0, 10_000, 7, DEVICE_KERNEL, -1),
        ("Memset", 10_000, 12_000, 7, DEVICE_SET, -1),
        ("Memcpy HtoD", 30_000, 40_000, 7, DEVICE_COPY, -1),
        ("ncclDevKernel_AllReduce", 5_000, 20_000, 20, DEVICE_KERNEL, -1),
    )
    (whole,) = device_breakdown(make_trace(device=device))
    assert (whole.device, whole.events, whole.span_us) == (0, 4, 40.0)
    assert (whole.computation_us, whole.exposed_communication_us) == (12.0, 8.0)
    assert (whole.exposed_copy_us, whole.idle_us, whole.longest_idle_ns) == (10.0, 10.0, 10_000)
    assert whole.overlap == pytest.approx(7 / 15)
    first, second = whole.streams
    assert (first.stream, first.span_us, first.busy_us, first.longest_idle_ns) == (7, 40.0, 22.0, 18_000)
    assert (second.stream, second.busy_us, second.idle_us, second.longest_idle_ns) == (20, 15.0, 25.0, 20_000)


def test_annotations_and_waiting_are_no_work() -> None:
    device = make_device(
        ("gemm", 0, 1_000, 7, DEVICE_KERNEL, -1),
        ("nccl:all_reduce", 0, 9_000, 7, DEVICE_ANNOTATION, -1),
        ("wait", 1_000, 9_000, 7, DEVICE_SYNC, -1),
        ("copy", 3_000, 4_000, 7, DEVICE_COPY, -1),
    )
    (whole,) = device_breakdown(make_trace(device=device))
    assert (whole.span_us, whole.busy_us, whole.idle_us, whole.communication_us) == (4.0, 2.0, 2.0, 0.0)


def test_a_recording_without_device_work_has_no_breakdown() -> None:
    assert device_breakdown(make_trace(("aten::add", 0, 10))) == []


def test_work_belongs_to_the_step_that_launched_it() -> None:
    trace = make_trace(
        ("ProfilerStep#3", 0, 100, 1, ANNOTATION),
        ("aten::mm", 10, 20, 1),
        ("ProfilerStep#4", 100, 200, 1, ANNOTATION),
        ("aten::add", 110, 120, 1),
        device=make_device(
            ("gemm", 15, 120, 7, DEVICE_KERNEL, 1),  # runs on into the next step on the host
            ("gemm", 130, 150, 7, DEVICE_KERNEL, 1),
            ("add", 160, 170, 7, DEVICE_KERNEL, 3),
            ("late", 250, 260, 7, DEVICE_KERNEL, -1),
        ),
    )
    (whole,) = device_breakdown(trace)
    third, fourth = whole.steps
    assert (third.step, third.span_ns, third.computation_ns, third.idle_ns) == (3, 135, 125, 10)
    assert (fourth.step, fourth.span_ns, fourth.gap_before_ns) == (4, 10, 10)
    assert whole.outside_steps_ns == 10
    assert whole.span_ns == 245


def test_work_launched_before_the_recording_is_left_out_and_counted() -> None:
    trace = make_trace(
        ("aten::mm", 100, 120),
        device=make_device(
            ("warmup", 0, 50, 7, DEVICE_KERNEL, -1),
            ("gemm", 110, 150, 7, DEVICE_KERNEL, 0),
            ("no launch in the file", 160, 170, 7, DEVICE_KERNEL, -1),
        ),
    )
    (whole,) = device_breakdown(trace)
    assert (whole.span_ns, whole.computation_ns, whole.idle_ns) == (60, 50, 10)
    assert (whole.launched_before_events, whole.launched_before_ns) == (1, 50)
    assert (whole.work_ns, whole.without_op_ns, whole.without_op_share) == (100, 60, pytest.approx(0.6))


def test_an_annotation_or_a_launch_is_no_op() -> None:
    trace = make_trace(
        ("execute", 0, 100, 1, ANNOTATION),
        ("aten::mm", 10, 20),
        ("cudaGraphLaunch", 30, 35, 1, RUNTIME),
        device=make_device(
            ("gemm", 20, 40, 7, DEVICE_KERNEL, 1),
            ("replayed", 40, 50, 7, DEVICE_KERNEL, 0),
            ("replayed", 50, 60, 7, DEVICE_KERNEL, 2),
        ),
    )
    assert device_breakdown(trace)[0].without_op_ns == 20


def test_on_ascend_copies_do_not_extend_the_span() -> None:
    trace = make_trace(
        device=make_device(
            ("MEMCPY_ASYNC", 0, 50, 2, DEVICE_COPY, -1),
            ("Conv2D", 60, 90, 2, DEVICE_KERNEL, -1),
            ("MEMCPY_ASYNC", 95, 98, 3, DEVICE_COPY, -1),
            ("hcom_allReduce_", 100, 120, 4, DEVICE_KERNEL, -1),
            ("MEMCPY_ASYNC", 110, 150, 2, DEVICE_COPY, -1),
        )
    )
    gpu, npu = (
        device_breakdown(replace(trace, settings=replace(trace.settings, device=name)))[0]
        for name in ("cuda", "npu")
    )
    assert (gpu.span_ns, gpu.exposed_copy_ns, gpu.idle_ns) == (150, 83, 17)
    assert (npu.span_ns, npu.exposed_copy_ns, npu.idle_ns) == (60, 3, 7)
    assert (npu.computation_ns, npu.exposed_communication_ns) == (30, 20)


# ---------------------------------------------------------------------------- other tools' figures


def timeline(path: Path) -> dict[str, float]:
    """A gpu_timeline.csv of TraceLens: microseconds by type, recomputed work included."""
    times: dict[str, float] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            times[row["type"]] = times.get(row["type"], 0.0) + float(row["time ms"]) * 1000
    return times


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("traces/h100_qwen_infer_stack_memory.json.gz", "expected/h100_qwen_infer_stack_memory"),
        ("graphs/vllm_piecewise/graph_execution.json.gz", "graphs/vllm_piecewise/expected"),
    ],
)
def test_the_parts_are_those_of_tracelens(trace: str, expected: str, ecosystem: Path) -> None:
    (whole,) = device_breakdown(load(ecosystem / trace))
    times = timeline(ecosystem / expected / "gpu_timeline.csv")
    # TraceLens adds up floats of times since the machine's boot, exact to 0.24 ns: 0.03 us per thousand
    near = lambda value: pytest.approx(times[value], abs=0.03)
    assert whole.span_us == near("total_time")
    assert whole.computation_us == near("computation_time")
    assert whole.exposed_communication_us == near("exposed_comm_time")
    assert whole.exposed_copy_us == near("exposed_memcpy_time")
    assert whole.busy_us == near("busy_time")
    assert whole.idle_us == near("idle_time")
    assert whole.communication_us == near("total_comm_time")
    assert whole.copy_us == near("total_memcpy_time")


def test_communication_and_copies_are_those_of_tracelens_with_recomputed_work(ecosystem: Path) -> None:
    trace = load(ecosystem / "traces/mi300_resnet_ddp_act_checkpoint.json.gz").trace
    times = timeline(ecosystem / "expected/mi300_resnet_ddp_act_checkpoint/gpu_timeline.csv")
    (whole,) = device_breakdown(trace)
    assert whole.communication_us == pytest.approx(times["total_comm_time"], abs=0.03)
    assert whole.copy_us == pytest.approx(times["total_memcpy_time"], abs=0.03)
    assert whole.exposed_copy_us == pytest.approx(times["exposed_memcpy_time"], abs=0.03)
    # this table leaves memory fills out; original and recomputed kernels do not overlap in it
    work = device_work(trace)
    keep = trace.device.kind[work.rows] != DEVICE_SET
    kernels = breakdown(work.start_ns[keep], work.end_ns[keep], work.work_class[keep])
    assert kernels.computation_us == pytest.approx(times["computation_time"], abs=0.06)


@pytest.mark.parametrize(
    "folder", ["traces", "ranks/dlrm_8", "ranks/hta_2_of_128", "graphs/vllm_piecewise", "critical_path"]
)
def test_sums_hold_on_every_trace(folder: str, ecosystem: Path) -> None:
    checked = 0
    for path in sorted((ecosystem / folder).glob("*.json.gz")):
        if "expected" in path.name or "execution_trace" in path.name or ".raw." in path.name:
            continue
        for whole in device_breakdown(load(path)):
            for part in (whole, *whole.steps, *whole.streams):
                assert part.idle_ns >= 0
                assert part.span_ns == part.busy_ns + part.idle_ns
                assert part.exposed_communication_ns <= part.communication_ns
                assert part.exposed_copy_ns <= part.copy_ns
            assert max(stream.busy_ns for stream in whole.streams) <= whole.busy_ns
            assert whole.busy_ns <= sum(stream.busy_ns for stream in whole.streams)
            assert whole.without_op_ns <= whole.work_ns
            assert sum(step.events for step in whole.steps) <= whole.events
            checked += 1
    assert checked


@pytest.mark.parametrize("rank", [0, 1])
def test_steps_of_ascend_captures_are_those_of_their_own_table(rank: int, ecosystem: Path) -> None:
    folder = ecosystem / f"ascend/text_level1/rank{rank}_ascend_pt"
    (whole,) = device_breakdown(load(folder).trace)
    with (folder / "ASCEND_PROFILER_OUTPUT" / "step_trace_time.csv").open() as file:
        expected = {
            int(row["Step"]): {key: float(text) for key, text in row.items()} for row in csv.DictReader(file)
        }
    assert [step.step for step in whole.steps] == list(expected)
    for step in whole.steps:
        # its times are sums of rounded ones: a thousandth of a microsecond for each kernel
        near = lambda name, row=expected[step.step]: pytest.approx(row[name], abs=0.15)
        assert step.computation_us == near("Computing")
        assert step.exposed_communication_us == near("Communication(Not Overlapped)")
        assert step.communication_us == near("Communication")
        assert step.overlap * step.communication_us == near("Overlapped")
        assert step.idle_us + step.exposed_copy_us == near("Free")
        assert step.span_us == near("Stage")


def test_the_figures_of_a_device_do_not_depend_on_how_many_others_there_are() -> None:
    random = np.random.default_rng(0)
    count = 600
    start, length = random.integers(0, 1000, count), random.integers(1, 30, count)
    stream, op = random.integers(0, 3, count), random.integers(-1, 1, count)
    number = random.integers(0, 50, count)

    def of(rows: np.ndarray) -> Trace:
        columns = (start[rows], (start + length)[rows], stream[rows], np.zeros_like(rows), op[rows])
        work = make_device(*[("k", *each) for each in zip(*(column.tolist() for column in columns))])
        return make_trace(("aten::mm", 0, 5), device=replace(work, device=number[rows]))

    together = device_breakdown(of(np.arange(count)))
    assert len(together) == 50
    assert sum(each.launched_before_events for each in together) > 0
    for each in together:
        assert device_breakdown(of(np.flatnonzero(number == each.device))) == [each]
