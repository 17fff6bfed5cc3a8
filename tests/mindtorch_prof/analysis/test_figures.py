"""Figures: each is computed once: `summary`, `doctor`, `query`, `show` and the report agree on any trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from fact_files import FACTS
from html_report import blocks

from mindtorch_prof import load
from mindtorch_prof.analysis.device_usage import ALL_STREAMS, device_usage
from mindtorch_prof.analysis.figures import figures, figures_table, span

TRACES = ("traces", "ranks", "critical_path", "graphs")


def trace_files() -> list[Path]:
    """The traces at hand: those recorded with this package's tests, and those in shared/ecosystem."""
    folders = [parent / "shared" / "ecosystem" for parent in Path(__file__).resolve().parents]
    shared = next((folder for folder in folders if folder.is_dir()), None)
    files = [FACTS / "torch_trace.json.gz"]
    if shared is not None:
        files += sorted(path for name in TRACES for path in (shared / name).rglob("*.json.gz"))
    return [path for path in files if _is_trace(path)]


def _is_trace(path: Path) -> bool:
    return not any(word in path.name for word in ("execution_trace", "memory.raw"))


@pytest.mark.parametrize("path", trace_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_display_shows_the_same_figures(
    path: Path, printed: Callable[..., str], tmp_path: Path
) -> None:
    pytest.importorskip("duckdb", reason="runs with the extra `sql`")
    loaded = load(path)
    known = figures(loaded)
    file = str(path)

    # summary
    summary = json.loads(printed("summary", file, "--format", "json"))
    assert summary["recorded"]["events"] == known.events
    assert summary["recorded"]["device_events"] == known.device_events
    assert summary["recorded"]["threads"] == known.threads
    assert summary["recorded"]["steps"] == known.steps
    for name, value in summary["times"].items():
        assert value == getattr(known, name), name
    for part, memory in zip((summary["memory"] or {"devices": []})["devices"], known.memory, strict=True):
        assert part == {key: getattr(memory, key) for key in part}

    # doctor
    unhealthy = any(row["severity"] != "info" for row in summary["health"])
    doctor = json.loads(printed("doctor", file, "--format", "json", code=int(unhealthy)))
    for name in ("events", "device_events", "device_without_op_share"):
        assert doctor[name] == getattr(known, name)
    alone = [row["count"] for row in doctor["rows"] if row["code"] == "device_alone"]
    assert sum(alone) == known.device_events_without_op

    # query
    def ask(sql: str) -> Any:
        return json.loads(printed("query", file, sql, "--format", "json"))["rows"]

    (row,) = ask("select count(*) as n, min(start_us) as first, max(end_us) as last from events")
    assert row["n"] == known.events
    (work,) = ask(
        "select count(*) as n, sum(duration_us) as us, min(start_us) as first, max(end_us) as last, "
        "sum(case when row is null then duration_us else 0 end) as unlinked "
        "from device where kind in ('kernel', 'memcpy', 'memset')"
    )
    assert work["n"] == known.device_events
    assert (work["us"] or 0) == pytest.approx(known.device_work_us)
    # the rest is linked to a launch, or to an annotation around it, and to no op
    assert (work["unlinked"] or 0) <= known.device_without_op_us + 1e-3
    devices = json.loads(printed("device", file, "--format", "json"))["devices"]
    assert sum(device["without_op_us"] for device in devices) == pytest.approx(known.device_without_op_us)
    assert sum(device["busy_us"] for device in devices) == pytest.approx(known.device_busy_us)
    ends = [(part["first"], part["last"]) for part in (row, work) if part["n"]]
    assert max(last for _, last in ends) - min(first for first, _ in ends) == pytest.approx(known.span_us)
    peaks = {
        row["device"]: row["peak"]
        for row in ask("select device, max(total_bytes) as peak from memory group by device")
    }
    assert sorted(peaks.values()) == sorted(memory.peak_bytes for memory in known.memory)
    asked = ask("select figure, device, value from figures")
    assert {row["figure"]: row["value"] for row in asked if not row["device"]}["span_us"] == known.span_us

    # show, and the averages of query, which are the same rows
    show = json.loads(printed("show", file, "--format", "json", "--top", "0", "--sort-by", "none"))["rows"]
    averages = ask("select name, count, self_cpu_time_total from averages")
    assert len(show) == len(averages)
    assert sum(row["count"] for row in show) == sum(row["count"] for row in averages)
    assert sum(row["self_cpu_time_total"] for row in show) == pytest.approx(
        sum(row["self_cpu_time_total"] for row in averages)
    )
    by_kind = json.loads(
        printed("show", file, "--format", "json", "--group-by", "category", "--no-name", "--top", "0")
    )
    on_device = sum(row.get("self_device_time_total") or 0 for row in by_kind["rows"])
    assert on_device == pytest.approx(known.device_work_us)

    # the report
    printed("report", file, "-o", str(tmp_path / "r.html"))
    page = blocks(tmp_path / "r.html")
    values, columns = page["summary-0"]
    assert values["span_ns"] == round(known.span_us * 1000)
    assert values["complete"] is not unhealthy
    assert [finding["message"] for finding in values["health"]] == [
        row["message"] for row in summary["health"]
    ]
    assert values["looks_wrong"] == summary["looks_wrong"]
    report = values["figures"]
    for name, value in vars(known).items():
        if isinstance(value, (int, float)):
            assert report[name] == value, name
    shares = {share["label"]: dict(share["parts"]) for share in values["shares"]}
    for device in known.devices:
        parts = shares[device.label]
        assert sum(parts.values()) == pytest.approx(device.span_us * 1000, abs=2)
        assert parts["Idle"] == pytest.approx(device.idle_us * 1000, abs=1)
    assert sum(shares["CPU"].values()) == values["span_ns"]
    assert columns["name.self_ns"].sum() == pytest.approx(known.self_cpu_us * 1000)
    for device, memory in zip(
        page["memory-0"][0]["devices"] if known.memory else (), known.memory, strict=True
    ):
        assert device["peak"] == memory.peak_bytes
        assert device["still_allocated"] == memory.end_bytes


@pytest.mark.parametrize("path", trace_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_busy_share_is_that_of_device_usage(path: Path) -> None:
    loaded = load(path)
    known = figures(loaded)
    usages = [usage for usage in device_usage(loaded.trace) if usage.stream == ALL_STREAMS]
    assert [device.busy_share for device in known.devices] == pytest.approx(
        [usage.utilisation for usage in usages]
    )
    assert known.device_busy_us == pytest.approx(sum(usage.busy_us for usage in usages))
    assert 0 <= known.device_busy_share <= 1


def test_marks_of_the_recording_are_no_part_of_a_span(tmp_path: Path) -> None:
    mark: dict[str, Any] = {"ph": "i", "pid": 1, "tid": 1, "s": "g", "name": "Record Window End", "ts": 9000}
    whole = documents.event("PyTorch Profiler (0)", 0, 9000, "Trace", tid="PyTorch Profiler")
    events = [whole, *documents.training_step(1, 1000.0), mark]
    loaded = load(documents.write(tmp_path / "t.json", events))
    start, end = span(loaded.trace)
    assert (end - start) / 1000 == pytest.approx(figures(loaded).span_us)
    assert figures(loaded).span_us < 200
    assert figures(loaded).device_span_us < 200


def test_the_peak_of_one_device_is_not_added_to_that_of_another(ecosystem: Path) -> None:
    known = figures(load(ecosystem / "traces" / "v100_resnet50_train_2021.pt.trace.json.gz"))
    assert {memory.label: (memory.peak_bytes, memory.end_bytes) for memory in known.memory} == {
        "CPU": (57_803_264, 19_267_840),
        "GPU 0": (2_791_636_480, 0),
    }
    assert known.peak is not None
    assert known.peak.label == "GPU 0"


def test_figures_are_rows_too(three_steps: Any) -> None:
    rows = {(row["figure"], row["device"]): row for row in figures_table(three_steps).rows()}
    known = figures(three_steps)
    assert rows["events", ""]["value"] == known.events
    assert rows["busy_share", "GPU 0"] == {
        "figure": "busy_share",
        "device": "GPU 0",
        "value": known.devices[0].busy_share,
        "unit": "share",
    }
