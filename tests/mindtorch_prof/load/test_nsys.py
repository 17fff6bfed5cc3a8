"""nsys exports: rows equal the tables of the file, and any table may be absent."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from pathlib import Path

import captures
import numpy as np
import pytest
from average_rows import row

from mindtorch_prof import load
from mindtorch_prof.load import NotATraceError
from mindtorch_prof.trace import (
    ANNOTATION,
    DEVICE_COPY,
    DEVICE_KERNEL,
    DEVICE_SET,
    DEVICE_SYNC,
    OP,
    RUNTIME,
    Trace,
)

TABLES = sorted(captures.nsys_tables())


@pytest.fixture
def small(tmp_path: Path) -> Trace:
    return load(captures.nsys_export(tmp_path / "a.sqlite")).trace


@pytest.fixture(scope="module")
def unpacked(ecosystem: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nsys") / "h100.sqlite"
    with gzip.open(ecosystem / "nsys" / "h100_2gpu_1s.sqlite.gz") as packed, open(path, "wb") as out:
        shutil.copyfileobj(packed, out)
    return path


def test_rows_of_an_export_are_those_of_its_tables(unpacked: Path) -> None:
    trace = load(unpacked).trace
    connection = sqlite3.connect(f"{unpacked.as_uri()}?mode=ro", uri=True)
    device = trace.device
    for kind, table in (
        (DEVICE_KERNEL, "CUPTI_ACTIVITY_KIND_KERNEL"),
        (DEVICE_COPY, "CUPTI_ACTIVITY_KIND_MEMCPY"),
        (DEVICE_SET, "CUPTI_ACTIVITY_KIND_MEMSET"),
        (DEVICE_SYNC, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
    ):
        for number in (0, 1):
            rows = (device.kind == kind) & (device.device == number)
            published = connection.execute(
                f"SELECT COUNT(*), COALESCE(SUM(end - start), 0) FROM {table} WHERE deviceId = {number}"
            ).fetchone()
            assert (int(rows.sum()), int((device.end_ns - device.start_ns)[rows].sum())) == published
    names = connection.execute(
        "SELECT value, COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName"
        " GROUP BY value"
    ).fetchall()
    number, count = np.unique(device.name[device.kind == DEVICE_KERNEL], return_counts=True)
    assert dict(zip([device.names[n] for n in number.tolist()], count.tolist())) == dict(names)
    (calls,) = connection.execute("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
    (ranges,) = connection.execute("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60)").fetchone()
    assert int((trace.kind == RUNTIME).sum()) == calls
    # torch hides a few of its own ops
    assert 0 <= ranges - int((trace.kind != RUNTIME).sum()) < 0.01 * ranges
    (linked,) = connection.execute(
        "SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r"
        " ON r.correlationId = k.correlationId AND (r.globalTid >> 24) = (k.globalPid >> 24)"
    ).fetchone()
    connection.close()
    assert int((device.launch[device.kind == DEVICE_KERNEL] >= 0).sum()) == linked > 0


def test_a_packed_export_is_the_same(unpacked: Path, ecosystem: Path) -> None:
    plain, packed = load(unpacked).trace, load(ecosystem / "nsys" / "h100_2gpu_1s.sqlite.gz").trace
    assert plain.start_ns.tolist() == packed.start_ns.tolist()
    assert plain.device.end_ns.tolist() == packed.device.end_ns.tolist()


def test_kernels_of_processes_that_share_a_correlation_id_go_to_their_own_launch(small: Trace) -> None:
    device = small.device
    owner = {
        device.names[name]: small.names[small.name[op]]
        for name, op in zip(device.name.tolist(), device.op.tolist())
    }
    assert owner["void gemm<float>(float*)"] == "aten::mm"
    assert owner["ncclDevKernel_AllReduce_Sum_f32"] == "my range"


def test_devices_have_the_numbers_of_the_gpus_not_those_of_their_process(small: Trace) -> None:
    device = small.device
    number = {device.names[name]: n for name, n in zip(device.name.tolist(), device.device.tolist())}
    assert (number["void gemm<float>(float*)"], number["ncclDevKernel_AllReduce_Sum_f32"]) == (0, 1)


def test_ranges_are_annotations_and_those_of_torchs_ops_are_ops(small: Trace) -> None:
    kinds = {small.names[n]: k for n, k in zip(small.name.tolist(), small.kind.tolist())}
    assert kinds["aten::mm"] == OP
    assert kinds["my range"] == kinds["FSDP::pre_forward (layer.0)"] == kinds["ProfilerStep#3"] == ANNOTATION
    assert kinds["cudaLaunchKernel"] == RUNTIME
    assert "a mark" not in kinds
    mm = [small.names[n] for n in small.name.tolist()].index("aten::mm")
    assert small.sequence[mm] == 5
    assert small.input_table[small.inputs[mm]].dims == [[2, 3], [3, 5]]


def test_a_range_without_an_end_is_unfinished(small: Trace) -> None:
    assert small.health.unfinished == 1


def test_devices_are_described_as_kineto_describes_them(small: Trace) -> None:
    first, second = small.settings.device_properties
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (first["id"], second["id"]) == (0, 1)
    assert (first["name"], first["numSms"], first["totalGlobalMem"]) == (
        "NVIDIA H100 80GB HBM3",
        132,
        85_000_000_000,
    )


def test_copies_have_kinetos_names_bytes_and_rates(small: Trace) -> None:
    device = small.device
    names = [device.names[n] for n in device.name.tolist()]
    copy = names.index("Memcpy HtoD (Pinned -> Device)")
    assert device.extra_table[device.extra[copy]] == {"bytes": 4000, "memory bandwidth (GB/s)": 20.0}
    assert "Memset (Device)" in names
    assert "Stream Sync" in names


def test_times_count_from_the_session(small: Trace) -> None:
    step = [small.names[n] for n in small.name.tolist()].index("ProfilerStep#3")
    assert small.origin_ns + int(small.start_ns[step]) == captures.BASE_NS + 1000
    assert int(small.end_ns[step] - small.start_ns[step]) == 2000


def test_threads_and_processes_are_named(small: Trace) -> None:
    assert small.settings.threads[41] == (41, "main thread")
    assert small.settings.processes[41] == "python3"


@pytest.mark.parametrize("table", TABLES)
def test_each_table_may_be_absent(table: str, tmp_path: Path) -> None:
    tables = captures.nsys_tables()
    del tables[table]
    trace = load(captures.write_tables(tmp_path / "a.sqlite", tables)).trace
    assert int((trace.device.kind == DEVICE_KERNEL).sum()) == (0 if table.endswith("KERNEL") else 2)
    said = " ".join(trace.health.lacks)
    for absent, words in (
        ("NVTX_EVENTS", "no NVTX ranges"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "no CUDA API calls"),
        ("TARGET_INFO_GPU", "GPUs are not described"),
        ("StringIds", "have no names"),
    ):
        assert (words in said) == (table == absent)


def test_older_exports_have_defaults_in_place_of_what_is_missing(small: Trace, tmp_path: Path) -> None:
    tables = captures.nsys_tables()
    columns, rows = tables["NVTX_EVENTS"]
    _, strings = tables["StringIds"]
    text, text_id, end = (columns.index(name) for name in ("text", "textId", "end"))
    changed = []
    for number, row_ in enumerate(rows):
        values = list(row_)
        if values[text]:
            strings.append((900 + number, values[text]))
            values[text_id] = 900 + number
        values[text] = ""
        values[end] = values[end] or 0
        changed.append(tuple(values))
    tables["NVTX_EVENTS"] = columns, changed
    trace = load(captures.write_tables(tmp_path / "old.sqlite", tables)).trace
    assert [trace.names[n] for n in trace.name.tolist()] == [small.names[n] for n in small.name.tolist()]
    assert (trace.end_ns.tolist(), trace.health.unfinished) == (small.end_ns.tolist(), 1)


def test_work_without_a_process_goes_to_the_only_call_with_its_number(tmp_path: Path) -> None:
    tables = captures.nsys_tables()
    for name, (columns, rows) in tables.items():
        if "globalPid" in columns and name.startswith("CUPTI"):
            place = columns.index("globalPid")
            without = [(*row_[:place], *row_[place + 1 :]) for row_ in rows]
            tables[name] = (*columns[:place], *columns[place + 1 :]), without
    device = load(captures.write_tables(tmp_path / "a.sqlite", tables)).trace.device
    launch = dict(zip([device.names[n] for n in device.name.tolist()], device.launch.tolist()))
    assert launch["Memcpy HtoD (Pinned -> Device)"] >= 0
    assert launch["void gemm<float>(float*)"] == -1  # two processes have a call with its number


def test_graphs_that_were_recorded_as_a_whole_are_work(tmp_path: Path) -> None:
    tables = captures.nsys_tables()
    columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphId", "graphExecId")
    tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = columns, [(5000, 6000, 0, 7, 99, 41 << 24, 12, 13)]
    trace = load(captures.write_tables(tmp_path / "a.sqlite", tables)).trace
    assert row(load(tmp_path / "a.sqlite"), "CUDA graph 12", device=True).self_device_time_total == 1.0
    assert any("their kernels are not known" in text for text in trace.health.lacks)


def test_an_export_without_events_is_refused(tmp_path: Path) -> None:
    tables = captures.nsys_tables()
    empty = {name: (columns, rows if name == "StringIds" else []) for name, (columns, rows) in tables.items()}
    with pytest.raises(NotATraceError, match=r"a\.sqlite: an nsys export without"):
        load(captures.write_tables(tmp_path / "a.sqlite", empty))
