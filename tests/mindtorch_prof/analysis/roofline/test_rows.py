"""Rows of a roofline: equal to the tables that TraceLens publishes, and right on traces of known numbers."""

from __future__ import annotations

import ast
import csv
import random
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kineto_documents as documents
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_prof import load
from mindtorch_prof.analysis.roofline import Roofline, Row, roofline
from mindtorch_prof.trace import DEVICE_SET

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_018_279_936}
FLOAT_MM = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"]}


# ------------------------------------------------------------------------------------------ TraceLens

Key = tuple[str, Any, tuple[str, ...]]
TABLES = [
    ("traces/h100_qwen_infer_stack_memory.json.gz", "expected/h100_qwen_infer_stack_memory/GEMM.csv", 5),
    ("traces/h100_qwen_infer_stack_memory.json.gz", "expected/h100_qwen_infer_stack_memory/SDPA_fwd.csv", 1),
    (
        "traces/h100_qwen_infer_stack_memory.json.gz",
        "expected/h100_qwen_infer_stack_memory/unified_perf_summary.csv",
        25,
    ),
    (
        "traces/mi300_resnet_ddp_act_checkpoint.json.gz",
        "expected/mi300_resnet_ddp_act_checkpoint/GEMM.csv",
        3,
    ),
    ("graphs/vllm_piecewise/graph_execution.json.gz", "graphs/vllm_piecewise/expected/GEMM.csv", 2),
]


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def key_of(row: Row) -> Key:
    return row.name, frozen(row.input_shapes), tuple(row.dtypes)


def published(path: Path) -> dict[Key, list[dict[str, str]]]:
    """Rows of a table that have a model, by op, shapes and types: TraceLens also tells strides apart."""
    rows = defaultdict(list)
    with path.open() as file:
        for row in csv.DictReader(file):
            shapes, types = (row.get(name) or row[f"{name}_first"] for name in ("Input Dims", "Input type"))
            if row.get("GFLOPS") or row.get("GFLOPS_first"):
                rows[row["name"], frozen(ast.literal_eval(shapes)), ast_texts(types)].append(row)
    return rows


def ast_texts(text: str) -> tuple[str, ...]:
    return tuple(ast.literal_eval(text))


def number(row: dict[str, str], *names: str) -> float:
    return float(next(row[name] for name in names if row.get(name)))


@pytest.mark.parametrize(("trace", "table", "least"), TABLES, ids=[table for _, table, _ in TABLES])
def test_figures_equal_those_of_tracelens(trace: str, table: str, least: int, ecosystem: Path) -> None:
    ours = {key_of(row): row for row in roofline(load(ecosystem / trace)).rows}
    compared = 0
    for key, rows in published(ecosystem / table).items():
        if "vllm_piecewise" in table and key not in ours:
            continue  # kernels of a replayed graph, which this trace alone does not link to ops
        row, compared = ours[key], compared + 1
        calls = sum(number(each, "name_count", "operation_count") for each in rows)
        assert row.count == calls
        assert row.flop == pytest.approx(1e9 * number(rows[0], "GFLOPS", "GFLOPS_first"), rel=1e-9)
        moved = 2**20 * number(rows[0], "Data Moved (MB)", "Data Moved (MB)_first")
        assert row.bytes == pytest.approx(moved, rel=0.01 if key[0] == "aten::mean" else 1e-9)
        kernel_us = sum(number(each, "Kernel Time (µs)_sum") for each in rows)
        assert row.kernel_us == pytest.approx(kernel_us, rel=1e-3)
        if len(rows) == 1:  # theirs is the mean of the calls' rates, ours the rate of all calls
            assert row.tflops == pytest.approx(number(rows[0], "TFLOPS/s_mean"), rel=0.01)
            assert row.tbps == pytest.approx(number(rows[0], "TB/s_mean"), rel=0.01)
    assert compared >= least


def test_work_of_a_replayed_graph_is_known_from_the_capture(ecosystem: Path) -> None:
    """The capture has the ops and their inputs, and not their kernels."""
    from mindtorch_prof.analysis.roofline.models import work_of
    from mindtorch_prof.analysis.roofline.work import NotModelled
    from mindtorch_prof.torch_api.results import Results

    results = load(ecosystem / "graphs/vllm_piecewise/graph_capture.json.gz")._results
    assert isinstance(results, Results)
    ours = {}
    trace = results.trace
    for name, place in set(zip(trace.name.tolist(), trace.inputs.tolist())):
        if place >= 0:
            inputs = trace.input_table[place]
            try:
                work = work_of(trace.names[name], inputs)
            except NotModelled:
                continue
            ours[trace.names[name], frozen(inputs.dims), tuple(inputs.types)] = work
    compared = 0
    for key, rows in published(ecosystem / "graphs/vllm_piecewise/expected/GEMM.csv").items():
        if key in ours:
            compared += 1
            assert ours[key].flop == pytest.approx(1e9 * number(rows[0], "GFLOPS_first"), rel=1e-9)
            assert ours[key].nbytes == pytest.approx(
                2**20 * number(rows[0], "Data Moved (MB)_first"), rel=1e-9
            )
    assert compared == 6


def test_collectives_are_those_of_tracelens_coll_analysis(ecosystem: Path) -> None:
    name = "mi300_resnet_ddp_act_checkpoint"
    rows = roofline(load(ecosystem / "traces" / f"{name}.json.gz")).rows
    ours = {
        (row.name, row.dtypes[0], str(row.input_shapes)): row for row in rows if row.category == "collective"
    }
    with (ecosystem / "expected" / name / "coll_analysis.csv").open() as file:
        table = list(csv.DictReader(file))
    for expected in table:
        elements = int(float(expected["In msg nelems"]))
        row = ours[expected["Collective name"], expected["dtype"], str([[elements]])]
        assert row.count == int(expected["operation_count"])
        assert row.kernel_us == pytest.approx(float(expected["dur_sum"]), abs=0.01)
        ranks, sent = float(expected["Group size"]), 2**20 * float(expected["In msg size (MB)_first"])
        # theirs is the message, ours what a rank sends of it
        share = 2 * (ranks - 1) / ranks if expected["Collective name"] == "allreduce" else 1
        assert row.bytes == pytest.approx(sent * share, abs=1)
    assert len(table) == len(ours) == 4


@pytest.mark.parametrize("table", ["GEMM.csv", "SDPA_fwd.csv", "unified_perf_summary.csv"])
def test_times_and_rates_lie_between_the_least_and_the_most_that_tracelens_gives(
    table: str, ecosystem: Path
) -> None:
    name = "h100_qwen_infer_stack_memory"
    ours = {key_of(row): row for row in roofline(load(ecosystem / "traces" / f"{name}.json.gz")).rows}
    for key, rows in published(ecosystem / "expected" / name / table).items():
        row = ours[key]
        assert row.intensity == pytest.approx(number(rows[0], "FLOPS/Byte", "FLOPS/Byte_first"), rel=0.01)
        for figure, value in (
            ("Kernel Time (µs)", row.kernel_us / row.count),
            ("TFLOPS/s", row.tflops),
            ("TB/s", row.tbps),
        ):
            least = min(float(each[f"{figure}_min"]) for each in rows)
            most = max(float(each[f"{figure}_max"]) for each in rows)
            assert 0.999 * least <= (value or 0) <= 1.01 * most, (key, figure)


@pytest.mark.parametrize("name", ["h100_qwen_infer_stack_memory", "mi300_resnet_ddp_act_checkpoint"])
def test_kernel_times_by_op_equal_those_of_tracelens(name: str, ecosystem: Path) -> None:
    loaded = load(ecosystem / "traces" / f"{name}.json.gz")
    result = roofline(loaded)
    ours: dict[str, float] = defaultdict(float)
    for row in result.rows:
        ours[row.name] += row.own_kernel_us
    for each in result.not_covered:
        ours[each.name] += each.kernel_us
    if name.startswith("mi300"):
        # ROCm ends a flow at hipMemsetAsync where one should begin: TraceLens misses these fills
        trace = loaded._results.trace
        device = trace.device
        for fill in np.flatnonzero((device.kind == DEVICE_SET) & (device.op >= 0)).tolist():
            op = trace.names[trace.name[device.op[fill]]]
            ours[op] -= int(device.end_ns[fill] - device.start_ns[fill]) / 1000
    theirs: dict[str, float] = defaultdict(float)
    with (ecosystem / "expected" / name / "ops_summary.csv").open() as file:
        for line in csv.DictReader(file):
            theirs[line["name"]] += float(line["total_direct_kernel_time_sum"])
    assert len(theirs) >= 20
    for op, kernel_us in theirs.items():
        assert ours[op] == pytest.approx(kernel_us, rel=1e-3), op


def test_most_of_an_inference_is_explained(ecosystem: Path) -> None:
    result = roofline(load(ecosystem / "traces/h100_qwen_infer_stack_memory.json.gz"))
    assert result.coverage_of_ops == pytest.approx(0.936, abs=0.001)
    assert result.coverage == pytest.approx(0.654, abs=0.001)
    assert result.sentence() == (
        "models explain 65 % of kernel time; 30 % was launched under no op in the trace, "
        "of the rest they explain 94 %"
    )


# ------------------------------------------------------------------------------------------ known traces


def mm_trace(*kernels: dict[str, Any], **op: Any) -> Roofline:
    """One product of 10 us, launching these kernels."""
    events = [
        documents.event("aten::mm", 100, 10, **{"External id": 1, **(op or FLOAT_MM)}),
        *(documents.launch(101 + place, 1) for place in range(len(kernels))),
        *kernels,
    ]
    return roofline(documents.load_document(documents.document(events, deviceProperties=[H100])))


def work_kernel(start: float, length: float, stream: int = 7, name: str = "gemm") -> dict[str, Any]:
    return documents.kernel(name, start, length, stream, correlation=1, **{"External id": 1})


def test_overlapping_kernels_of_a_call_count_once() -> None:
    (row,) = mm_trace(work_kernel(200, 100), work_kernel(250, 100, stream=8), work_kernel(400, 10)).rows
    assert row.kernel_us == row.own_kernel_us == 160
    assert row.tflops == pytest.approx(2 * 64 * 32 * 16 / 160e-6 / 1e12)
    assert row.tbps == pytest.approx(4 * (64 * 32 + 32 * 16 + 64 * 16) / 160e-6 / 1e12)


def test_the_bound_is_the_longer_of_computing_and_moving() -> None:
    (small,) = mm_trace(work_kernel(200, 100)).rows
    assert (small.bound, small.peak_tflops) == ("memory", 67)
    assert small.share_of_peak == pytest.approx(small.bytes / 3.35e12 / 100e-6)
    large = {"Input Dims": [[4096, 4096]] * 2, "Input type": ["c10::BFloat16"] * 2}
    (row,) = mm_trace(work_kernel(200, 200), **large).rows
    assert (row.bound, row.peak_tflops) == ("compute", 989.5)
    assert row.share_of_peak == pytest.approx(2 * 4096**3 / 989.5e12 / 200e-6)


def test_kernels_named_tf32_are_measured_against_tf32() -> None:
    (row,) = mm_trace(work_kernel(200, 100, name="sm80_xmma_gemm_f32f32_tf32f32")).rows
    assert row.peak_tflops == 494.5


def test_an_unknown_device_has_no_bounds_and_says_so() -> None:
    events = [
        documents.event("aten::mm", 100, 10, **{"External id": 1, **FLOAT_MM}),
        documents.launch(101, 1),
        work_kernel(200, 100),
    ]
    trace = documents.load_document(documents.document(events, deviceProperties=[{"id": 0, "name": "GPU"}]))
    unknown = roofline(trace)
    assert [(row.bound, row.share_of_peak) for row in unknown.rows] == [("unknown", None)]
    assert unknown.notes == [
        "the peaks of 'GPU' are not known, so bounds are not either: give them with --peaks"
    ]
    given_peaks = roofline(trace, {"memory_tbps": 1.0, "fp32": 10.0})
    assert [row.bound for row in given_peaks.rows] == ["memory"]
    assert given_peaks.notes == []


def test_an_op_around_another_has_the_same_kernels_and_none_of_its_own() -> None:
    linear = {"Input Dims": [[64, 32], [16, 32], []], "Input type": ["float", "float", ""]}
    events = [
        documents.event("aten::linear", 90, 30, **{"External id": 2, **linear}),
        documents.event("aten::mm", 100, 10, **{"External id": 1, **FLOAT_MM}),
        documents.launch(101, 1),
        work_kernel(200, 100),
    ]
    result = roofline(documents.load_document(documents.document(events)))
    assert {row.name: (row.kernel_us, row.own_kernel_us) for row in result.rows} == {
        "aten::linear": (100, 0),
        "aten::mm": (100, 100),
    }
    assert result.coverage == 1.0


def test_inputs_that_were_not_recorded_are_not_covered() -> None:
    result = mm_trace(work_kernel(200, 100), Other=1)
    assert result.rows == []
    assert [(each.name, each.kernel_us, each.reason) for each in result.not_covered] == [
        ("aten::mm", 100, "the inputs of the op were not recorded")
    ]
    assert result.sentence() == "models explain 0 % of kernel time"
    assert result.notes == ["the inputs of ops were not recorded: record with record_shapes=True"]


def test_a_call_without_a_model_is_not_covered_because_of_what_the_op_around_it_lacks(
    ecosystem: Path,
) -> None:
    result = roofline(load(ecosystem / "ascend/text_level1/rank0_ascend_pt"))
    reasons = {each.name: each.reason for each in result.not_covered}
    # Conv2D, Conv2DBackpropFilter ... are calls of CANN; the capture has no values of inputs: no strides
    assert reasons["aten::_convolution"] == "the value of input 3 was not recorded"
    assert reasons["aten::convolution_backward"] == "the value of input 7 was not recorded"
    assert not any("Conv2D" in name for name in reasons)
    by_op = result.not_covered_by_op()
    assert [each.name for each in by_op].count("aten::convolution_backward") == 1
    for column in ("count", "kernel_us"):
        assert sum(getattr(each, column) for each in by_op) == pytest.approx(
            sum(getattr(each, column) for each in result.not_covered)
        )


def test_what_models_explain_beside_collectives_is_said(ecosystem: Path) -> None:
    result = roofline(load(ecosystem / "traces/nvidia_ddp_train_nccl.json.gz"))  # its ops have no inputs
    collectives = sum(row.own_kernel_us for row in result.rows if row.category == "collective")
    assert result.covered_us == pytest.approx(result.collectives_us) == pytest.approx(collectives)
    assert result.coverage_beside_collectives == 0
    assert result.sentence() == "models explain 28 % of kernel time; beside collectives they explain 0 %"


def test_copies_to_the_host_are_bound_by_the_link() -> None:
    copy = {"Input Dims": [[64], [64], []], "Input type": ["float", "float", "Scalar"]}
    events = [
        documents.event("aten::copy_", 100, 10, **{"External id": 1, **copy}),
        documents.launch(101, 1),
        documents.kernel("Memcpy DtoH (Device -> Pinned)", 200, 5, cat="gpu_memcpy", correlation=1),
    ]
    (row,) = roofline(documents.load_document(documents.document(events, deviceProperties=[H100]))).rows
    assert (row.bound, row.share_of_peak, row.kernel_us) == ("link", None, 5)


def test_calls_that_differ_only_in_strides_are_one_row() -> None:
    events = []
    for number, strides in ((1, [[32, 1], [16, 1]]), (2, [[1, 64], [1, 32]])):
        at = 1000.0 * number
        events += [
            documents.event(
                "aten::mm", at, 10, **{"External id": number, "Input Strides": strides, **FLOAT_MM}
            ),
            documents.launch(at + 1, number),
            documents.kernel("gemm", at + 20, 100, correlation=number),
        ]
    (row,) = roofline(documents.load_document(documents.document(events))).rows
    assert (row.count, row.kernel_us) == (2, 200)


def test_a_recording_without_a_device_has_no_rows(recorded_training: Any) -> None:
    result = roofline(recorded_training)
    assert (result.rows, result.coverage) == ([], None)
    assert "no kernels" in result.sentence()


def test_a_collective_is_a_row_with_the_bytes_it_sends() -> None:
    fields = {
        "Collective name": "allreduce",
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "Group size": 4,
        "dtype": "Float",
    }
    events = [
        documents.event("record_param_comms", 100, 10, **{"External id": 1, **fields}),
        documents.launch(101, 1),
        documents.kernel("ncclDevKernel_AllReduce", 200, 50, correlation=1),
    ]
    (row,) = roofline(documents.load_document(documents.document(events, deviceProperties=[H100]))).rows
    assert (row.name, row.category, row.bytes, row.bound) == ("allreduce", "collective", 6000, "link")


# ------------------------------------------------------------------------------------------ any trace


@st.composite
def device_traces(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Products inside products, each launching kernels that may overlap."""
    events: list[dict[str, Any]] = []
    number = 0
    for place in range(draw(st.integers(1, 4))):
        at = 10_000.0 * place
        for depth in range(draw(st.integers(1, 3))):
            number += 1
            size = draw(st.integers(1, 3))
            shapes = {"Input Dims": [[size, 8], [8, 4]], "Input type": ["float", "float"]}
            name = draw(st.sampled_from(["aten::mm", "aten::matmul", "outer::unknown"]))
            events.append(
                documents.event(name, at + depth, 1000 - 2 * depth, **{"External id": number, **shapes})
            )
            for _ in range(draw(st.integers(0, 3))):
                start, length = at + draw(st.integers(10, 40)), draw(st.integers(0, 30))
                stream = draw(st.sampled_from([7, 8]))
                events.append(documents.kernel("gemm", start, length, stream, **{"External id": number}))
    return events


def union_us(intervals: Iterable[tuple[float, float]]) -> float:
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return total


@given(events=device_traces(), seed=st.integers(0, 1000))
@settings(max_examples=60)
def test_rows_equal_a_plain_count_in_any_order_of_events(events: list[dict[str, Any]], seed: int) -> None:
    result = roofline(documents.load_document(documents.document(events, deviceProperties=[H100])))
    expected: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0])
    ops = [event for event in events if event["cat"] == "cpu_op"]
    kernels = [event for event in events if event["cat"] == "kernel"]
    for op in ops:
        if op["name"] == "outer::unknown":
            continue
        inside = {
            other["args"]["External id"]
            for other in ops
            if op["ts"] <= other["ts"] and other["ts"] + other["dur"] <= op["ts"] + op["dur"]
        }
        own = [(k["ts"], k["ts"] + k["dur"]) for k in kernels if k["args"]["External id"] in inside]
        if own:
            entry = expected[op["name"], str(op["args"]["Input Dims"])]
            entry[0] += 1
            entry[1] += union_us(own)
    rows = {(row.name, str(row.input_shapes)): [row.count, row.kernel_us] for row in result.rows}
    assert rows == {key: [count, pytest.approx(us)] for key, (count, us) in expected.items()}
    assert result.kernel_us == pytest.approx(sum(k["dur"] for k in kernels))
    assert result.covered_us + sum(each.kernel_us for each in result.not_covered) == pytest.approx(
        result.kernel_us
    )
    for row in result.rows:
        assert row.flop >= 0
        assert row.bytes >= 0
        assert row.own_kernel_us <= row.kernel_us
    shuffled = list(events)
    random.Random(seed).shuffle(shuffled)
    again = roofline(documents.load_document(documents.document(shuffled, deviceProperties=[H100])))
    assert again == result
