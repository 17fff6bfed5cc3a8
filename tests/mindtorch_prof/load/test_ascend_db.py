"""Ascend captures as a database: any table or column may be absent, and a capture's own tables are met."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import captures
import numpy as np
import pytest
from average_rows import row

from mindtorch_prof import load
from mindtorch_prof.communication import on_device
from mindtorch_prof.load import NotATraceError
from mindtorch_prof.trace import DEVICE_KERNEL, DEVICE_PART

TABLES = sorted(captures.db_tables())
NEEDED = {"STRING_IDS"}


@pytest.mark.parametrize("rank", [0, 1])
def test_kernels_have_the_names_and_times_of_their_tables(rank: int, ecosystem: Path) -> None:
    folder = ecosystem / "ascend" / "db_level1" / f"rank{rank}_ascend_pt"
    path = folder / "ASCEND_PROFILER_OUTPUT" / f"ascend_pytorch_profiler_{rank}.db"
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    published = connection.execute(
        "SELECT value, t.startNs, t.endNs FROM TASK t JOIN COMPUTE_TASK_INFO c USING (globalTaskId)"
        " JOIN STRING_IDS s ON s.id = c.name UNION ALL"
        " SELECT value, startNs, endNs FROM COMMUNICATION_OP JOIN STRING_IDS s ON s.id = opName"
    ).fetchall()
    connection.close()
    trace = load(folder).trace
    device = trace.device
    loaded = [
        (device.names[n], trace.origin_ns + start, trace.origin_ns + end)
        for n, start, end, kind in zip(
            device.name.tolist(), device.start_ns.tolist(), device.end_ns.tolist(), device.kind.tolist()
        )
        if kind == DEVICE_KERNEL
    ]
    assert sorted(loaded) == sorted(published)


@pytest.mark.parametrize("rank", [0, 1])
def test_steps_are_those_of_the_step_table(rank: int, ecosystem: Path) -> None:
    folder = ecosystem / "ascend" / "db_level1" / f"rank{rank}_ascend_pt"
    path = folder / "ASCEND_PROFILER_OUTPUT" / f"ascend_pytorch_profiler_{rank}.db"
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    ((number, start, end),) = connection.execute("SELECT id, startNs, endNs FROM STEP_TIME").fetchall()
    connection.close()
    trace = load(folder).trace
    (step,) = [i for i, n in enumerate(trace.name.tolist()) if trace.names[n] == f"ProfilerStep#{number}"]
    assert trace.origin_ns + int(trace.start_ns[step]) == start
    assert trace.origin_ns + int(trace.end_ns[step]) == end


@pytest.mark.parametrize("table", [name for name in TABLES if name not in NEEDED])
def test_each_table_may_be_absent(table: str, tmp_path: Path) -> None:
    tables = captures.db_tables()
    del tables[table]
    trace = load(captures.write_tables(tmp_path / "a.db", tables), strict=True).trace
    device = trace.device
    collective = on_device(device.names)[device.name] & (device.kind == DEVICE_KERNEL)
    assert int(collective.sum()) == (table != "COMMUNICATION_OP")
    works = device.kind == DEVICE_KERNEL
    if table not in ("TASK", "COMPUTE_TASK_INFO"):
        assert int((works & ~collective).sum()) == 1


@pytest.mark.parametrize("table", ["CANN_API", "COMMUNICATION_TASK_INFO", "PYTORCH_API", "MEMORY_RECORD"])
def test_each_table_of_a_real_capture_may_be_absent(table: str, ecosystem: Path, tmp_path: Path) -> None:
    source = ecosystem / "ascend" / "db_level1" / "rank0_ascend_pt"
    folder = tmp_path / "rank0_ascend_pt"
    shutil.copytree(source, folder)
    (path,) = folder.rglob("ascend_pytorch_profiler_0.db")
    path.chmod(0o644)
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TABLE {table}")
    connection.commit()
    connection.close()
    whole, part = load(source).trace.device, load(folder).trace.device
    lengths = [int((d.end_ns - d.start_ns)[d.kind == DEVICE_KERNEL].sum()) for d in (whole, part)]
    assert lengths[0] == lengths[1] > 0


def test_without_tasks_of_collectives_hardware_rows_of_their_connection_are_parts(tmp_path: Path) -> None:
    tables = captures.db_tables()
    del tables["COMMUNICATION_TASK_INFO"]
    device = load(captures.write_tables(tmp_path / "a.db", tables)).trace.device
    kinds = {device.names[n]: k for n, k in zip(device.name.tolist(), device.kind.tolist())}
    assert kinds["SDMA"] == DEVICE_PART
    assert device.stream[on_device(device.names)[device.name]].tolist() == [4]


def test_a_kernel_that_is_shown_twice_counts_once(tmp_path: Path) -> None:
    device = load(captures.db_capture(tmp_path / "a_ascend_pt")).trace.device
    names = [device.names[n] for n in device.name.tolist()]
    assert names.count(captures.KERNEL[0]) == 1
    assert "KERNEL_AICORE" not in names


@pytest.mark.parametrize(
    ("table", "column"),
    [("TASK", "connectionId"), ("PYTORCH_API", "inputShapes"), ("COMMUNICATION_OP", "count")],
)
def test_columns_may_be_absent(table: str, column: str, tmp_path: Path) -> None:
    tables = captures.db_tables()
    columns, rows = tables[table]
    place = [name.split()[0] for name in columns].index(column)
    tables[table] = (
        columns[:place] + columns[place + 1 :],
        [values[:place] + values[place + 1 :] for values in rows],
    )
    trace = load(captures.write_tables(tmp_path / "a.db", tables)).trace
    assert np.count_nonzero(trace.device.kind == DEVICE_KERNEL) == 2


def test_a_database_of_its_own_says_its_rank(tmp_path: Path) -> None:
    tables = captures.db_tables()
    tables["RANK_DEVICE_MAP"] = ("rankId", "deviceId"), [(5, captures.DEVICE)]
    loaded = load(captures.write_tables(tmp_path / "a.db", tables))
    assert loaded.trace.settings.rank == 5
    assert loaded.trace.settings.device_properties == ({"id": captures.DEVICE, "name": "Ascend910B"},)


def test_analysis_db_is_refused_and_points_to_its_neighbour(tmp_path: Path) -> None:
    folder = captures.db_capture(tmp_path / "a_ascend_pt")
    with pytest.raises(NotATraceError, match=r"analysis\.db: an SQLite file, but neither .* neighbour"):
        load(folder / "ASCEND_PROFILER_OUTPUT" / "analysis.db")


def test_ranges_that_the_program_marked_are_annotations(tmp_path: Path) -> None:
    tables = captures.db_tables()
    columns, rows = tables["STRING_IDS"]
    tables["STRING_IDS"] = columns, [*rows, (900, "my range")]
    thread = (captures.PID << 32) | captures.PID
    times = captures.ns(200.0), captures.ns(210.0)
    tables["MSTX_EVENTS"] = (
        ("startNs", "endNs", "globalTid", "message"),
        [
            (*times, thread, 900),
            (times[0], times[0], thread, 900),  # a mark: no range
        ],
    )
    tables["GC_RECORD"] = (
        ("startNs", "endNs", "globalTid"),
        [(captures.ns(220.0), captures.ns(225.0), thread)],
    )
    loaded = load(captures.write_tables(tmp_path / "a.db", tables))
    assert (row(loaded, "my range").count, row(loaded, "my range").cpu_time_total) == (1, 10.0)
    assert row(loaded, "GC").cpu_time_total == 5.0


def test_strings_may_be_missing(tmp_path: Path) -> None:
    tables = captures.db_tables()
    columns, rows = tables["STRING_IDS"]
    tables["STRING_IDS"] = columns, [r for r in rows if r[1] != "aten::mm"]
    loaded = load(captures.write_tables(tmp_path / "a.db", tables))
    assert row(loaded, "c10d::allreduce_").self_device_time_total == captures.COMMUNICATION_US
