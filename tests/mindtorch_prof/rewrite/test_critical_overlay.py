"""The overlay of a critical path: the same trace, with marks and arrows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from trace_file_builder import TraceFileBuilder, read_trace, training

from mindtorch_prof.analysis.critical_path import critical_path
from mindtorch_prof.load import load
from mindtorch_prof.rewrite.critical_overlay import CATEGORY, write_overlay
from mindtorch_prof.torch_api.results import Results


def overlay(source: str | Path, out: Path, **how: Any) -> list[dict[str, Any]]:
    loaded = load(source)
    write_overlay(source, loaded, critical_path(loaded, **how), out)
    return read_trace(out)["traceEvents"]


def without_marks(event: dict[str, Any]) -> dict[str, Any]:
    if "args" not in event:
        return event
    return {**event, "args": {k: v for k, v in event["args"].items() if k not in ("critical", "critical_us")}}


def synchronised(path: Path) -> str:
    """An op that launches a kernel, and a call that waits for it."""
    trace = TraceFileBuilder()
    op = trace.op("aten::item", 0, 60)
    trace.launch(op, 5, 10, 40)
    trace.slice("cuda_runtime", "cudaDeviceSynchronize", 12, 42, trace.pid, trace.pid, {"correlation": 9999})
    trace.op("aten::add", 70, 5, tid=4300)
    return trace.close(80).dump(path)


def test_every_event_of_the_file_stays(tmp_path: Path) -> None:
    source = training().dump(tmp_path / "trace.json")
    before = read_trace(source)["traceEvents"]
    after = overlay(source, tmp_path / "out.json")
    assert [without_marks(event) for event in after[: len(before)]] == before
    assert {(event["ph"], event["cat"]) for event in after[len(before) :]} <= {
        ("s", CATEGORY),
        ("f", CATEGORY),
    }


def test_events_on_the_path_are_marked_with_their_time_on_it(tmp_path: Path) -> None:
    events = overlay(synchronised(tmp_path / "trace.json"), tmp_path / "out.json")
    marked = {e["name"]: e["args"]["critical_us"] for e in events if e.get("args", {}).get("critical") == 1}
    # 5 us before the launch, then the kernel; the call returns 4 us after its end; 6 us of the op are left
    assert marked == {"aten::item": 11.0, "gemm": 40.0, "cudaDeviceSynchronize": 4.0}


def test_arrows_lead_from_the_launch_to_the_kernel_and_back_to_the_host(tmp_path: Path) -> None:
    events = overlay(synchronised(tmp_path / "trace.json"), tmp_path / "out.json")
    arrows = [e for e in events if e.get("cat") == CATEGORY]
    slices = [e for e in events if e["ph"] == "X" and e.get("cat") != "Trace"]

    def around(arrow: dict[str, Any]) -> str:
        """The innermost slice around an end of an arrow, as Perfetto finds it."""
        inside = [
            s
            for s in slices
            if (s["pid"], s["tid"]) == (arrow["pid"], arrow["tid"])
            and s["ts"] <= arrow["ts"] < s["ts"] + s["dur"]
        ]
        return str(max(inside, key=lambda s: s["ts"])["name"])

    ends: dict[int, list[str]] = {}
    for arrow in sorted(arrows, key=lambda e: (e["id"], e["ph"] != "s")):
        ends.setdefault(arrow["id"], []).append(around(arrow))
    assert list(ends.values()) == [["cudaLaunchKernel", "gemm"], ["gemm", "cudaDeviceSynchronize"]]
    used = {e["id"] for e in events if e["ph"] in "sf" and e.get("cat") != CATEGORY}
    assert not used & set(ends)


def test_an_overlay_is_read_as_the_same_trace(tmp_path: Path) -> None:
    source = training().dump(tmp_path / "trace.json.gz")
    overlay(source, tmp_path / "out.json.gz")
    a, b = load(source).trace, load(tmp_path / "out.json.gz").trace
    assert (len(a), len(a.device), a.health.line()) == (len(b), len(b.device), b.health.line())
    assert a.start_ns.tolist() == b.start_ns.tolist()


def test_a_recording_that_is_no_file_is_written_whole(recorded_training: Results, tmp_path: Path) -> None:
    marked = write_overlay(None, recorded_training, critical_path(recorded_training), tmp_path / "out.json")
    assert marked > 10
    events = read_trace(tmp_path / "out.json")["traceEvents"]
    assert sum(event.get("args", {}).get("critical") == 1 for event in events) > 10


def test_a_file_of_begins_and_ends_is_marked(tmp_path: Path) -> None:
    rows = [
        {"ph": "B", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 9},
    ]
    source = documents.write(tmp_path / "trace.json", rows)
    events = overlay(source, tmp_path / "out.json")
    assert events[0]["args"] == {"critical": 1, "critical_us": 4.0}


@pytest.mark.parametrize("name", ["critical_path/alexnet.json.gz", "traces/nvidia_ddp_train_nccl.json.gz"])
def test_the_schema_check_of_the_ecosystem_accepts_an_overlay(
    name: str, ecosystem: Path, tmp_path: Path
) -> None:
    overlay(ecosystem / name, tmp_path / "out.json.gz")
    check = [sys.executable, str(ecosystem / "check_trace.py"), str(tmp_path / "out.json.gz"), "--schema"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout


def test_a_native_file_and_phases_that_are_lists_are_taken(tmp_path: Path) -> None:
    events = [documents.event("aten::add", 10 * i, 5) for i in range(5)]
    events.append({"ph": ["X"], "name": "x", "ts": 0, "pid": 1, "tid": 1})
    events.append({"ph": "s", "id": [1], "name": "x", "ts": 0, "pid": 1, "tid": 1})
    plain = documents.write(tmp_path / "plain.json", events)
    loaded = load(plain)
    loaded.save(tmp_path / "t.mtrace")
    for source in (plain, tmp_path / "t.mtrace"):
        marked = write_overlay(source, loaded, critical_path(loaded), tmp_path / "out.json")
        assert marked == 5
        assert len(load(tmp_path / "out.json").trace) == 5
