"""Ascend captures as text: rows equal the capture's own CSV and JSON files, and what is absent is said."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import captures
import numpy as np
import pytest
from average_rows import row

from mindtorch_prof import load
from mindtorch_prof.analysis.roofline import roofline
from mindtorch_prof.communication import on_device
from mindtorch_prof.load.ascend_files import nanoseconds
from mindtorch_prof.trace import ANNOTATION, DEVICE_COPY, DEVICE_KERNEL, DEVICE_PART, Trace

RANKS = ("rank0", "rank1")
UNKNOWN_PROCESS = 77


def output(ecosystem: Path, rank: str) -> Path:
    return ecosystem / "ascend" / "text_level1" / f"{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT"


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def kernels(trace: Trace) -> list[tuple[str, int, int, Any]]:
    """(name, start, length, arguments) of kernels and collectives, in the order of time."""
    device = trace.device
    rows = np.flatnonzero(device.kind == DEVICE_KERNEL)
    rows = rows[np.argsort(device.start_ns[rows], kind="stable")]
    return [
        (
            device.names[device.name[i]],
            trace.origin_ns + int(device.start_ns[i]),
            int(device.end_ns[i] - device.start_ns[i]),
            device.extra_table[device.extra[i]],
        )
        for i in rows.tolist()
    ]


@pytest.mark.parametrize("rank", RANKS)
def test_kernels_are_those_of_kernel_details(rank: str, ecosystem: Path) -> None:
    folder = output(ecosystem, rank)
    details = sorted(rows_of(folder / "kernel_details.csv"), key=lambda r: float(r["Start Time(us)"]))
    loaded = kernels(load(folder).trace)
    assert [name for name, *_ in loaded] == [r["Name"] for r in details]
    for (_, start, length, arguments), detail in zip(loaded, details):
        assert length / 1000 == pytest.approx(float(detail["Duration(us)"]), abs=0.0011)
        assert abs(start - nanoseconds([detail["Start Time(us)"]]).item()) <= 1
        if detail["Type"].startswith("hcom"):
            continue
        assert arguments["Type"] == detail["Type"]
        assert arguments["Accelerator Core"] == detail["Accelerator Core"]
        assert arguments.get("Input Shapes", "N/A") == detail["Input Shapes"].strip('"')


@pytest.mark.parametrize("rank", RANKS)
def test_kernels_by_type_are_those_of_op_statistic(rank: str, ecosystem: Path) -> None:
    folder = output(ecosystem, rank)
    total: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for name, _, length, arguments in kernels(load(folder).trace):
        if not name.startswith("hcom"):
            total[arguments["Type"], arguments["Accelerator Core"]].append(length / 1000)
    statistic = {(r["OP Type"], r["Core Type"]): r for r in rows_of(folder / "op_statistic.csv")}
    assert total.keys() == statistic.keys()
    for key, lengths in total.items():
        assert len(lengths) == int(statistic[key]["Count"])
        assert sum(lengths) == pytest.approx(
            float(statistic[key]["Total Time(us)"]), abs=0.0011 * len(lengths)
        )


@pytest.mark.parametrize("rank", RANKS)
def test_collectives_take_as_long_as_communication_json_says(rank: str, ecosystem: Path) -> None:
    folder = output(ecosystem, rank)
    trace = load(folder).trace
    document = json.loads((folder / "communication.json").read_text())
    (step,) = document.values()
    elapsed = {
        key.partition("@")[0]: about["Communication Time Info"]["Elapse Time(ms)"]
        for key, about in step["collective"].items()
        if not key.startswith("Total")
    }
    device = trace.device
    rows = np.flatnonzero(on_device(device.names)[device.name] & (device.kind == DEVICE_KERNEL))
    lengths = {
        device.names[device.name[i]]: int(device.end_ns[i] - device.start_ns[i]) / 1e6 for i in rows.tolist()
    }
    assert lengths == pytest.approx(elapsed, abs=1e-6)


@pytest.mark.parametrize("rank", RANKS)
def test_times_of_ops_are_those_of_operator_details(rank: str, ecosystem: Path) -> None:
    folder = output(ecosystem, rank)
    published: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for r in rows_of(folder / "operator_details.csv"):
        own = published[r["Name"]]
        own[0] += 1
        own[1] += float(r["Host Total Duration(us)"])
        own[2] += float(r["Device Self Duration(us)"])
    averages = {average.key: average for average in load(folder).key_averages()}
    # torch shows an op that only contains itself once
    names = [name for name in published if name != "HcclAllreduce"]
    assert len(names) > 100
    for name in names:
        count, host, on_npu = published[name]
        average = averages[name]
        assert (average.count, average.cpu_time_total) == (count, pytest.approx(host, abs=0.01))
        if name == "ReduceSum":  # five copies are launched by it, to which no arrow leads
            assert average.self_device_time_total > on_npu
        else:
            assert average.self_device_time_total == pytest.approx(on_npu, abs=0.05)


@pytest.mark.parametrize("rank", RANKS)
def test_calls_of_cann_are_those_of_api_statistic(rank: str, ecosystem: Path) -> None:
    folder = output(ecosystem, rank)
    trace = load(folder).trace
    levels = {"acl": "AscendCL", "node": "Node", "hccl": "Hccl"}
    table = rows_of(folder / "api_statistic.csv")
    for expected_row in table:
        name = f"{levels[expected_row['Level']]}@{expected_row['API Name']}"
        calls = trace.name == trace.names.index(name)
        length = (trace.end_ns - trace.start_ns)[calls] / 1000
        assert len(length) == int(expected_row["Count"])
        figures = [length.sum(), length.mean(), length.min(), length.max()]
        expected = [float(expected_row[key]) for key in ("Time(us)", "Avg(us)", "Min(us)", "Max(us)")]
        assert figures == pytest.approx(expected, abs=0.05)
    assert len(table) > 50


@pytest.mark.parametrize("rank", RANKS)
def test_transfers_between_ranks_are_those_of_communication_matrix(rank: str, ecosystem: Path) -> None:
    """The matrix lists some collectives only (the longest, the middle one ...), each by pair of ranks."""
    folder = output(ecosystem, rank)
    device = load(folder).trace.device
    parts = np.flatnonzero(device.kind == DEVICE_PART)
    compared = 0
    matrix = json.loads((folder / "communication_matrix.json").read_text())["step50"]["collective"]
    for key, pairs in matrix.items():
        for pair, expected in pairs.items():
            if expected.get("Op Name") not in device.names:  # sums of several collectives
                continue
            (collective,) = np.flatnonzero(device.name == device.names.index(expected["Op Name"]))
            begin, end = device.start_ns[collective], device.end_ns[collective]
            inside = parts[(device.start_ns[parts] >= begin) & (device.end_ns[parts] <= end + 1000)]
            sizes = [
                float(arguments["size(Byte)"])
                for arguments in (device.extra_table[device.extra[i]] for i in inside.tolist())
                if [str(arguments.get("src rank")), str(arguments.get("dst rank"))] == pair.split("-")
                and arguments.get("task type") != "Notify_Wait"
            ]
            assert sum(sizes) / 1e6 == pytest.approx(expected["Transit Size(MB)"], rel=0.01), (key, pair)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("left_out", ["planes", "calls", "connections", "flows", "files", "all"])
def test_work_of_the_device_is_the_same_where_a_level_records_less(
    left_out: str, ecosystem: Path, tmp_path: Path
) -> None:
    folder = output(ecosystem, "rank0")
    events = json.loads((folder / "trace_view.json").read_text())
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    planes = {
        (e["pid"], e["tid"])
        for e in events
        if e["name"] == "thread_name" and e["args"]["name"].startswith("Plane")
    }

    def stays(event: dict[str, Any]) -> bool:
        is_plane = (event["pid"], event["tid"]) in planes
        is_call = names.get(event["pid"]) == "CANN" and event["ph"] != "M"
        is_flow = event["ph"] in ("s", "f")
        return not (
            (left_out in ("planes", "all") and is_plane)
            or (left_out in ("calls", "all") and is_call)
            or (left_out in ("flows", "all") and is_flow)
        )

    chosen = [event for event in events if stays(event)]
    if left_out in ("connections", "all"):
        for event in chosen:
            event.get("args", {}).pop("connection_id", None)
    copy = tmp_path / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    copy.mkdir(parents=True)
    (copy / "trace_view.json").write_text(json.dumps(chosen))
    if left_out not in ("files", "all"):
        shutil.copy(folder / "kernel_details.csv", copy)
    whole, part = load(folder).trace.device, load(copy).trace.device
    assert [d.works.sum() for d in (whole, part)] == [215, 215]
    for kind in (DEVICE_KERNEL, DEVICE_COPY):
        lengths = [int((d.end_ns - d.start_ns)[d.kind == kind].sum()) for d in (whole, part)]
        assert lengths[0] == lengths[1]


def test_derived_rows_and_planes_are_no_host_events(ecosystem: Path) -> None:
    names = {*load(output(ecosystem, "rank0")).trace.names}
    assert names.isdisjoint(
        {"Free", "Computing", "Communication", "Notify_Wait", "Communication(Not Overlapped)"}
    )


def test_a_file_without_its_folder_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps(captures.text_events()))
    loaded = load(path)
    assert row(loaded, "aclnnMm").self_device_time_total == captures.KERNEL[2] + captures.COPY[2]
    assert loaded.trace.settings.rank is None
    assert "memory was not recorded (profile_memory)" in loaded.health.lacks


def test_an_open_file_is_read(tmp_path: Path) -> None:
    loaded = load(io.BytesIO(json.dumps(captures.text_events()).encode()))
    assert row(loaded, "aclnnMm").self_device_time_total == captures.KERNEL[2] + captures.COPY[2]


def test_times_may_be_numbers(tmp_path: Path) -> None:
    events = captures.text_events()
    for event in events:
        if "ts" in event:  # relative, as a double does not hold nanoseconds since the epoch
            event["ts"] = (nanoseconds([event["ts"]]).item() - captures.BASE_NS) / 1000
    trace = load(captures.text_capture(tmp_path / "a_ascend_pt", events)).trace
    assert sorted(trace.device.names[n] for n in trace.device.name[trace.device.works].tolist()) == [
        "MEMCPY_ASYNC", captures.KERNEL[0], captures.COLLECTIVE[0]
    ]  # fmt: skip


def test_collectives_without_tasks_are_said_to_lack_them(tmp_path: Path) -> None:
    events = [
        e
        for e in captures.text_events()
        if not (e.get("pid") == captures.HCCL and e.get("tid") == 1)
        and not (e.get("pid") == captures.HARDWARE and e.get("tid") == 4)
    ]
    loaded = load(captures.text_capture(tmp_path / "a_ascend_pt", events))
    assert row(loaded, "c10d::allreduce_").self_device_time_total == captures.COMMUNICATION_US
    assert any(text.startswith("collectives have no tasks") for text in loaded.health.lacks)
    device = loaded.trace.device
    collective = on_device(device.names)[device.name]
    assert device.stream[collective].tolist() == [-2]  # not known
    assert loaded.health  # nothing is damaged


def test_tasks_of_a_collective_on_the_hardware_alone_are_its_parts(tmp_path: Path) -> None:
    """Without planes, the hardware's own rows of a collective's tasks are not counted beside it."""
    events = [e for e in captures.text_events() if not (e.get("pid") == captures.HCCL and e.get("tid") == 1)]
    device = load(captures.text_capture(tmp_path / "a_ascend_pt", events)).trace.device
    kinds = {device.names[n]: k for n, k in zip(device.name.tolist(), device.kind.tolist())}
    assert kinds["SDMA"] == DEVICE_PART
    assert device.stream[on_device(device.names)[device.name]].tolist() == [4]


def test_the_frame_around_a_collective_is_no_kernel(tmp_path: Path) -> None:
    frame = {
        "ph": "X", "name": "KERNEL_AICORE", "pid": captures.HARDWARE, "tid": 4, "ts": captures.us(130.7),
        "dur": 190.0,
        "args": {"Task Type": "AI_CORE"},
    }  # fmt: skip
    device = load(
        captures.text_capture(tmp_path / "a_ascend_pt", [*captures.text_events(), frame])
    ).trace.device
    kinds = {device.names[n]: k for n, k in zip(device.name.tolist(), device.kind.tolist())}
    assert kinds["KERNEL_AICORE"] == DEVICE_PART
    assert kinds[captures.KERNEL[0]] == DEVICE_KERNEL


def test_without_calls_of_cann_arrows_still_lead_to_ops(tmp_path: Path) -> None:
    events = [e for e in captures.text_events() if e.get("pid") != captures.CANN]
    loaded = load(captures.text_capture(tmp_path / "a_ascend_pt", events))
    assert row(loaded, "aclnnMm").self_device_time_total == captures.KERNEL[2]
    assert any(text.startswith("no CANN API calls") for text in loaded.health.lacks)


def test_rows_of_unknown_processes_of_the_device_are_left_out_and_said(tmp_path: Path) -> None:
    events = [
        *captures.text_events(),
        {
            "ph": "X",
            "name": "?",
            "pid": UNKNOWN_PROCESS,
            "tid": 0,
            "ts": captures.us(1),
            "dur": 1.0,
            "args": {},
        },
        {"ph": "M", "name": "process_name", "pid": UNKNOWN_PROCESS, "tid": 0, "args": {"name": "New Thing"}},
        {"ph": "M", "name": "process_labels", "pid": UNKNOWN_PROCESS, "tid": 0, "args": {"labels": "NPU"}},
    ]
    loaded = load(captures.text_capture(tmp_path / "a_ascend_pt", events))
    assert "?" not in loaded.trace.names
    assert any("New Thing" in text for text in loaded.health.lacks)


def test_inputs_may_be_lists(tmp_path: Path) -> None:
    events = captures.text_events()
    for event in events:
        if event["name"] == "aten::mm":
            event["args"] |= {"Input Dims": [[2, 3], [3, 5]], "Input type": ["float", "float"]}
    trace = load(captures.text_capture(tmp_path / "a_ascend_pt", events)).trace
    mm = [trace.names[n] for n in trace.name.tolist()].index("aten::mm")
    assert trace.input_table[trace.inputs[mm]].dims == [[2, 3], [3, 5]]


def test_rows_of_further_processes_of_the_host_are_annotations_of_their_thread(tmp_path: Path) -> None:
    pid = (captures.PID << 10) | (1 << 5)
    events = [
        *captures.text_events(),
        {"ph": "X", "name": "GC", "pid": pid, "tid": captures.PID, "ts": captures.us(300), "dur": 5.0},
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "Python GC"}},
        {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": "CPU"}},
    ]
    trace = load(captures.text_capture(tmp_path / "a_ascend_pt", events)).trace
    collector = [trace.names[n] for n in trace.name.tolist()].index("GC")
    assert (trace.thread[collector], trace.kind[collector]) == (captures.PID, ANNOTATION)


def test_broken_events_are_dropped_and_counted(tmp_path: Path) -> None:
    events = [
        *captures.text_events(),
        {"ph": "X", "name": "bad", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": "soon", "dur": 1},
    ]
    loaded = load(captures.text_capture(tmp_path / "a_ascend_pt", events))
    assert loaded.health.dropped == 1
    assert row(loaded, "aclnnMm").self_device_time_total > 0


def test_another_list_of_events_with_times_as_texts_is_read_as_a_chrome_trace(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(
        json.dumps([{"ph": "X", "cat": "cpu_op", "name": "work", "pid": 1, "tid": 1, "ts": "10.5", "dur": 4}])
    )
    assert row(load(path), "work").cpu_time_total == 4


@pytest.mark.parametrize("rank", ["rank0", "rank1"])
def test_collectives_send_as_many_bytes_as_communication_json_says(rank: str, ecosystem: Path) -> None:
    folder = ecosystem / "ascend" / "text_level1" / f"{rank}_ascend_pt"
    (step,) = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "communication.json").read_text()).values()
    expected = sorted(
        op["Communication Bandwidth Info"]["HCCS"]["Transit Size(MB)"]
        for name, op in step["collective"].items()
        if name.startswith("hcom_")
    )
    rows = [row for row in roofline(load(folder)).rows if row.category == "collective"]
    # of 8 ranks; the tasks send pieces of whole blocks, which are up to 0.2 % less or more
    assert sorted(row.bytes / 1e6 for row in rows) == pytest.approx(expected, rel=0.002)
