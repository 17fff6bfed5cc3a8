"""Merged ranks: nothing lost, nothing mixed up, one time base; and who is slow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_traces import linear_with_synthetic_ops
from trace_file_builder import BASE, DEVICE, MAIN, START, TraceFileBuilder, read_trace, training

from mindtorch_prof.export.chrome import export_chrome_trace
from mindtorch_prof.load import load
from mindtorch_prof.recorded_health import KEY as HEALTH_KEY
from mindtorch_prof.rewrite.merge import merge_traces
from mindtorch_prof.rewrite.slice import Selection, slice_trace
from mindtorch_prof.trace import Health
from mindtorch_prof.tree import tree

LINKS = ("External id", "correlation", "Python id", "Python parent id", "Ev Idx")


def merged(folder: Path, *traces: TraceFileBuilder) -> dict[str, Any]:
    paths = [trace.dump(folder / f"rank{i}.json") for i, trace in enumerate(traces)]
    merge_traces(paths, folder / "all.json")
    return read_trace(folder / "all.json")


def test_processes_that_collide_are_kept_apart_and_named_after_their_rank(tmp_path: Path) -> None:
    data = merged(tmp_path, training(2, rank=0), training(2, rank=1))
    names = {e["pid"]: e["args"]["name"] for e in data["traceEvents"] if e["name"] == "process_name"}
    assert [names[pid] for pid in sorted(names)] == ["rank 0", "rank 0: python", "rank 1", "rank 1: python"]
    ops = Counter(e["pid"] for e in data["traceEvents"] if e["name"] == "aten::relu")
    assert sorted(ops.values()) == [2, 2]
    kernels = Counter(e["pid"] for e in data["traceEvents"] if e["name"] == "gemm")
    assert sorted(kernels.values()) == [2, 2]
    assert [entry["rank"] for entry in data["merged"]] == [0, 1]
    assert "rank" not in data["distributedInfo"]


def test_the_first_file_stays_as_it_was_and_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first = training(2, rank=0)
    data = merged(tmp_path, first, training(2, rank=1))
    kept = [
        e for e in data["traceEvents"][: len(first.events)] if e["ph"] != "M" and isinstance(e["pid"], int)
    ]
    assert kept == [e for e in first.events if e["ph"] != "M" and isinstance(e["pid"], int)]
    before = (tmp_path / "all.json").read_bytes()
    merged(tmp_path, training(2, rank=0), training(2, rank=1))
    assert (tmp_path / "all.json").read_bytes() == before


def test_no_id_of_one_file_is_an_id_of_another_and_links_inside_a_file_hold(tmp_path: Path) -> None:
    data = merged(tmp_path, training(3, rank=0), training(3, rank=1), training(3, rank=2))
    seen: dict[str, dict[int, set[int]]] = {}
    rank_of = {pid: entry["rank"] for entry in data["merged"] for pid in entry["pids"]}
    for event in data["traceEvents"]:
        for key in LINKS:
            value = (event.get("args") or {}).get(key)
            if value is not None:
                seen.setdefault(key, {}).setdefault(value, set()).add(rank_of[event["pid"]])
        if event["ph"] in "sf":
            seen.setdefault("flow", {}).setdefault(event["id"], set()).add(rank_of[event["pid"]])
    assert all(len(ranks) == 1 for ids in seen.values() for ranks in ids.values())
    flows = Counter((e["id"], e["ph"]) for e in data["traceEvents"] if e["ph"] in "sf")
    correlations = {e["args"]["correlation"] for e in data["traceEvents"] if e.get("cat") == "kernel"}
    assert {number for number, _ in flows} == correlations
    assert set(flows.values()) == {1}


def test_the_same_device_of_two_ranks_is_two_devices_when_the_merged_file_is_opened(tmp_path: Path) -> None:
    merged(tmp_path, training(2, rank=0), training(2, rank=1))
    device = load(tmp_path / "all.json").trace.device
    assert len(set(device.device.tolist())) == 2
    assert Counter(device.device.tolist()).most_common()[0][1] == len(device) / 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge")


@settings(max_examples=20)
@given(shifts=st.lists(st.integers(0, 10**12), min_size=2, max_size=4))
def test_files_with_different_bases_keep_their_true_times(folder: Path, shifts: list[int]) -> None:
    traces = [training(1, rank=i) for i in range(len(shifts))]
    for trace, shift in zip(traces, shifts):
        trace.top["baseTimeNanoseconds"] = BASE - shift * 1000
        for event in trace.events:
            event["ts"] = event["ts"] + shift % 1000 / 8
    data = merged(folder, *traces)
    assert data["baseTimeNanoseconds"] == BASE - max(shifts) * 1000
    rank_of = {pid: entry["rank"] for entry in data["merged"] for pid in entry["pids"]}
    for event in data["traceEvents"]:
        if event["name"] == "aten::relu":
            shift = shifts[rank_of[event["pid"]]]
            true_ns = BASE - shift * 1000 + round((START + 46 + shift % 1000 / 8) * 1000)
            assert data["baseTimeNanoseconds"] + round(event["ts"] * 1000) == true_ns


def test_files_without_a_base_are_taken_by_the_epoch(tmp_path: Path) -> None:
    old = training(1)
    del old.top["baseTimeNanoseconds"]
    for event in old.events:
        event["ts"] = event["ts"] - START + 1_600_000_000_000_000
    data = merged(tmp_path, training(1), old)
    assert all(event["ts"] >= 0 for event in data["traceEvents"])
    times = sorted(
        data["baseTimeNanoseconds"] + round(e["ts"] * 1000)
        for e in data["traceEvents"]
        if e["name"] == "aten::relu"
    )
    assert times == [1_600_000_000_000_046_000, BASE + (START + 46) * 1000]


def test_averages_of_the_merged_file_are_the_sums_of_the_files(tmp_path: Path) -> None:
    merged(tmp_path, training(2, rank=0), training(3, rank=1, slow=1.5))
    parts = [load(str(tmp_path / f"rank{i}.json")).key_averages() for i in range(2)]
    whole = {row.key: row for row in load(str(tmp_path / "all.json")).key_averages()}
    for key in ("aten::addmm", "aten::linear", "AddmmBackward0", "aten::relu"):
        rows = [row for part in parts for row in part if row.key == key]
        assert whole[key].count == sum(row.count for row in rows)
        assert whole[key].self_cpu_time_total == pytest.approx(sum(row.self_cpu_time_total for row in rows))
        assert whole[key].self_device_time_total == pytest.approx(
            sum(row.self_device_time_total for row in rows)
        )


def test_a_rank_cut_out_of_a_merged_file_is_that_ranks_file(tmp_path: Path) -> None:
    merged(tmp_path, training(2, rank=0), training(3, rank=1))
    slice_trace(str(tmp_path / "all.json"), tmp_path / "one.json", Selection(ranks=(1,)))
    names = Counter(e["name"] for e in read_trace(tmp_path / "one.json")["traceEvents"] if e["ph"] == "X")
    whole = Counter(e["name"] for e in training(3).events if e["ph"] == "X")
    assert names == whole


def test_numbers_that_are_no_counters_are_kept_apart_too(tmp_path: Path) -> None:
    traces = []
    for rank in range(2):
        trace = training(1, rank=rank)
        for event in trace.events:
            if event.get("cat") == "ac2g":
                event["id"] = "0xabc"
            elif "correlation" in (event.get("args") or {}):
                event["args"]["correlation"] = 2**60
        traces.append(trace)
    data = merged(tmp_path, *traces)
    assert len({e["id"] for e in data["traceEvents"] if e["ph"] in "sf"}) == 2
    assert len({e["args"]["correlation"] for e in data["traceEvents"] if e.get("cat") == "kernel"}) == 2


def test_threads_of_different_ranks_have_different_numbers_and_streams_keep_theirs(tmp_path: Path) -> None:
    traces = [training(1, rank=rank) for rank in range(2)]
    for trace in traces:  # a stream that is first heard of by its place among others
        sort = {"ph": "M", "name": "thread_sort_index", "pid": DEVICE, "tid": 7, "ts": START}
        label = {"ph": "M", "name": "process_labels", "pid": DEVICE, "tid": 0, "ts": START}
        trace.events[:0] = [{**label, "args": {"labels": "GPU 0"}}, {**sort, "args": {"sort_index": 7}}]
    data = merged(tmp_path, *traces)
    assert len({e["tid"] for e in data["traceEvents"] if e["name"] == "aten::relu"}) == 2
    assert {e["tid"] for e in data["traceEvents"] if e["name"] == "gemm"} == {7}
    assert MAIN in {e["tid"] for e in data["traceEvents"] if e["name"] == "aten::relu"}
    assert DEVICE in {e["pid"] for e in data["traceEvents"] if e["name"] == "gemm"}


def test_merged_files_keep_their_synthetic_events_in_their_places(tmp_path: Path) -> None:
    trace = linear_with_synthetic_ops()
    for rank in (0, 1):
        of_rank = replace(trace.settings, pid=100 + rank, distributed={"rank": rank})
        export_chrome_trace(replace(trace, settings=of_rank, origin_ns=rank), tmp_path / f"{rank}.json")
    merge_traces([tmp_path / "0.json", tmp_path / "1.json"], tmp_path / "both.json")
    merged = load(tmp_path / "both.json", strict=True).trace
    assert trace.synthetic is not None
    assert merged.synthetic is not None
    assert merged.synthetic.tolist() == trace.synthetic.tolist() * 2
    assert tree(merged).self_memory.tolist() == tree(trace).self_memory.tolist() * 2


def test_merged_ranks_say_what_each_of_them_lacks(tmp_path: Path) -> None:
    first, second, third = (training(2, rank=rank) for rank in range(3))
    first.top[HEALTH_KEY] = {"dropped": 5}
    third.top[HEALTH_KEY] = {"dropped": 2, "notes": ["the program was killed"]}
    merged(tmp_path, first, second, third)
    assert load(tmp_path / "all.json").health == Health(dropped=7, notes=("rank 2: the program was killed",))
