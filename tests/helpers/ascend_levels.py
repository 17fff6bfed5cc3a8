"""Captures of other levels and settings for tests: a capture of level 1 in, with what they lack or add, out.

What levels record, by the documentation of torch_npu's profiler and msprof: level 0 has no calls of AscendCL,
no metrics of AI cores, no basic information of operators (shapes, block dim), no tasks of collectives and no
tables made of these (communication.json, op_statistic, api_statistic); level 2 adds calls of the runtime.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Events: TypeAlias = "list[dict[str, Any]]"
OUTPUT = "ASCEND_PROFILER_OUTPUT"
_OF_LEVEL_1 = (
    "communication.json",
    "communication_matrix.json",
    "op_statistic.csv",
    "api_statistic.csv",
    "l2_cache.csv",
)
_BASIC = (
    "Step Id",
    "Model ID",
    "Task ID",
    "Stream ID",
    "Name",
    "Type",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
)


def copied(capture: Path, to: Path, level: str | None = None, **common: Any) -> Path:
    shutil.copytree(capture, to)
    for path in to.glob("profiler_info_*.json"):
        info = json.loads(path.read_text())
        info["config"]["common_config"].update(common)
        if level is not None:
            info["config"]["experimental_config"]["_profiler_level"] = level
        path.write_text(json.dumps(info))
    return to


def _edit_events(folder: Path, edit: Callable[[Events, dict[Any, str]], Events]) -> None:
    path = folder / OUTPUT / "trace_view.json"
    events = json.loads(path.read_text())
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    path.write_text(json.dumps(edit(events, processes)))


def _edit_db(folder: Path, *statements: str) -> None:
    (path,) = (folder / OUTPUT).glob("ascend_pytorch_profiler_*.db")
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def text_level0(capture: Path, to: Path) -> Path:
    folder = copied(capture, to, "Level0")
    for name in _OF_LEVEL_1:
        (folder / OUTPUT / name).unlink()
    path = folder / OUTPUT / "kernel_details.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _BASIC, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)

    def edit(events: Events, processes: dict[Any, str]) -> Events:
        planes = {
            (e["pid"], e["tid"])
            for e in events
            if e["name"] == "thread_name" and e["args"]["name"].startswith("Plane")
        }
        return [
            e
            for e in events
            if (e["pid"], e.get("tid")) not in planes
            and not (processes.get(e["pid"]) == "CANN" and e["name"].startswith("AscendCL@"))
        ]

    _edit_events(folder, edit)
    return folder


def text_level2(capture: Path, to: Path) -> Path:
    folder = copied(capture, to, "Level2")

    def edit(events: Events, processes: dict[Any, str]) -> Events:
        calls = [e for e in events if processes.get(e["pid"]) == "CANN" and e["ph"] == "X"]
        added = [
            {
                **call,
                "name": "Runtime@KernelLaunch",
                "ts": f"{call['ts']}",
                "dur": call["dur"] / 2,
                "args": {
                    "Thread Id": call["tid"],
                    "Mode": "KernelLaunch",
                    "level": "runtime",
                    "id": "KernelLaunch",
                },
            }
            for call in calls
        ]
        return events + added

    _edit_events(folder, edit)
    (folder / OUTPUT / "data_preprocess.csv").write_text("Timestamp(us),Node,Compute_time(us)\n")
    return folder


def text_device_alone(capture: Path, to: Path) -> Path:
    """activities=[NPU]: no events of the framework; CANN and the hardware are there."""
    folder = copied(capture, to, activities=["ProfilerActivity.NPU"], record_shapes=False, with_stack=False)
    (folder / OUTPUT / "operator_details.csv").unlink()

    def edit(events: Events, processes: dict[Any, str]) -> Events:
        return [
            e
            for e in events
            if (e["name"] == "process_name" and e["args"]["name"] != "Python")
            or (
                processes.get(e["pid"]) != "Python"
                and e.get("cat") not in ("async_npu", "async_task_queue", "fwdbwd")
            )
        ]

    _edit_events(folder, edit)
    return folder


def text_plain(capture: Path, to: Path) -> Path:
    """Without shapes, stacks, modules and memory."""
    off = {"record_shapes": False, "with_stack": False, "with_modules": False, "profile_memory": False}
    folder = copied(capture, to, **off)
    for name in ("memory_record.csv", "operator_memory.csv", "npu_module_mem.csv"):
        (folder / OUTPUT / name).unlink()

    def edit(events: Events, processes: dict[Any, str]) -> Events:
        for event in events:
            for key in ("Input Dims", "Input type", "Call stack"):
                event.get("args", {}).pop(key, None)
        return [e for e in events if e.get("cat") != "python_function"]

    _edit_events(folder, edit)
    return folder


def db_level0(capture: Path, to: Path) -> Path:
    folder = copied(capture, to, "Level0")
    (folder / OUTPUT / "analysis.db").unlink()
    columns = (
        "inputFormats",
        "inputDataTypes",
        "inputShapes",
        "outputFormats",
        "outputDataTypes",
        "outputShapes",
    )
    _edit_db(
        folder,
        "DROP TABLE TASK_PMU_INFO",
        "DROP TABLE COMMUNICATION_TASK_INFO",
        "DELETE FROM CANN_API WHERE type = 20000",
        *(f"ALTER TABLE COMPUTE_TASK_INFO DROP COLUMN {column}" for column in columns),
    )
    return folder


def db_level2(capture: Path, to: Path) -> Path:
    folder = copied(capture, to, "Level2")
    _edit_db(
        folder,
        "INSERT INTO CANN_API (startNs, endNs, type, globalTid, connectionId, name) "
        "SELECT startNs, (startNs + endNs) / 2, 5000, globalTid, connectionId + 1000000, name "
        "FROM CANN_API WHERE type = 10000",
    )
    return folder


def db_plain(capture: Path, to: Path) -> Path:
    """Without shapes, stacks and memory."""
    folder = copied(
        capture, to, record_shapes=False, with_stack=False, with_modules=False, profile_memory=False
    )
    _edit_db(
        folder,
        "UPDATE PYTORCH_API SET inputDtypes = NULL, inputShapes = NULL, callchainId = NULL",
        "DELETE FROM PYTORCH_API WHERE type = (SELECT id FROM ENUM_API_TYPE WHERE name = 'trace')",
        *(
            f"DROP TABLE {name}"
            for name in ("PYTORCH_CALLCHAINS", "MEMORY_RECORD", "OP_MEMORY", "NPU_OP_MEM")
        ),
    )
    return folder


def db_device_alone(capture: Path, to: Path) -> Path:
    folder = copied(capture, to, activities=["ProfilerActivity.NPU"], record_shapes=False, with_stack=False)
    _edit_db(folder, "DROP TABLE PYTORCH_API", "DROP TABLE PYTORCH_CALLCHAINS")
    return folder


VARIANTS: dict[str, tuple[str, Callable[[Path, Path], Path]]] = {
    "text level 0": ("text", text_level0),
    "text level 2": ("text", text_level2),
    "text without shapes, stacks and memory": ("text", text_plain),
    "text of the device alone": ("text", text_device_alone),
    "db level 0": ("db", db_level0),
    "db level 2": ("db", db_level2),
    "db without shapes, stacks and memory": ("db", db_plain),
    "db of the device alone": ("db", db_device_alone),
}
