"""Summaries: what took the time and what looks wrong, on at most 60 lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest

from mindtorch_prof.analysis.device_breakdown import device_breakdown
from mindtorch_prof.analysis.summary import summary, summary_text
from mindtorch_prof.load import load


def test_the_summary_is_short_and_says_what_took_the_time(three_steps: Any) -> None:
    data = summary(three_steps)
    assert data["steps"]["p50_us"] == pytest.approx(100)
    assert data["recorded"]["device_events"] == 6
    assert data["kernels"][0]["name"] == "ampere_sgemm"
    assert data["categories"][0]["category"] == "matmul"
    assert any("the device is idle" in text for text in data["looks_wrong"])
    for markdown in (False, True):
        assert len(summary_text(data, markdown=markdown).splitlines()) <= 60


def test_the_summary_tells_of_a_slow_first_step(tmp_path: Path) -> None:
    events = [
        documents.event(f"ProfilerStep#{i}", 1000.0 * i, 500 if i == 0 else 50, "user_annotation")
        for i in range(4)
    ]
    data = summary(load(documents.write(tmp_path / "t.json", events)))
    assert data["looks_wrong"][0].startswith("step 0 takes 10.0 × the median")


def test_the_summary_of_nothing_is_a_page_too(tmp_path: Path) -> None:
    data = summary(load(documents.write(tmp_path / "t.json", [])))
    assert "the trace has no events" in summary_text(data)


def test_one_step_is_told_in_one_line(tmp_path: Path) -> None:
    events = [
        documents.event("ProfilerStep#6", 0.0, 50, "user_annotation"),
        documents.event("aten::add", 10.0, 20),
    ]
    text = summary_text(summary(load(documents.write(tmp_path / "t.json", events))))
    assert "  step 6: 50.000us; 1 event, CPU busy 40.0%\n" in text
    assert "median" not in text


def test_several_devices_are_told_as_several(tmp_path: Path) -> None:
    work = [
        documents.event("k", start, length, "kernel", 7, device=number, stream=7)
        for number in (0, 1)
        for start, length in ((10.0, 30), (60.0, 10))
    ]
    text = summary_text(summary(load(documents.write(tmp_path / "t.json", work))))
    assert "; 2 devices busy 66.7% of their 120.000us together\n" in text


def test_shares_of_several_processes_are_those_of_one_in_the_mean() -> None:
    events = [
        {**documents.event(name, start, length, cat), "pid": pid, "tid": pid}
        for pid in (1, 2, 3)
        for name, start, length, cat in (
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0.0, 20, "user_annotation"),
            ("aten::item", 20.0, 10, "cpu_op"),
            ("aten::_local_scalar_dense", 21.0, 8, "cpu_op"),
            ("Optimizer.step#SGD.step", 30.0, 50, "user_annotation"),
            ("aten::add", 30.0, 70, "cpu_op"),
        )
    ]
    waits, loads, updates = summary(documents.load_document(documents.document(events)))["looks_wrong"]
    assert "reads values back for 10% of the time (in the mean of 3" in waits
    assert waits.endswith("processes), mostly in aten::_local_scalar_dense")
    assert loads == "loading data takes 20% of the time (in the mean of 3 processes)"
    assert updates == "the optimizer takes 50% of the time (in the mean of 3 processes)"


def test_what_runs_at_the_same_time_on_several_threads_counts_once() -> None:
    events = [documents.event("cudaStreamSynchronize", 0.0, 60, "cuda_runtime", tid=tid) for tid in (1, 2, 3)]
    events.append(documents.event("aten::add", 0.0, 100))
    (sentence,) = summary(documents.load_document(documents.document(events)))["looks_wrong"]
    assert "reads values back for 60% of the time, mostly in cudaStreamSynchronize" in sentence


def test_a_host_that_is_done_while_its_device_works_is_not_said_to_wait_or_load(ecosystem: Path) -> None:
    found = summary(load(ecosystem / "graphs/vllm_piecewise/graph_execution.json.gz"))
    assert found["times"]["cpu_busy_share"] < 0.1  # but the device is busy for half of the span
    assert found["looks_wrong"] == []


@pytest.mark.parametrize(
    ("busy", "said"),
    [(40.0, "neither an op nor a kernel runs for 57% of the time"), (60.0, "")],
)
def test_time_without_ops_and_kernels_is_told(busy: float, said: str) -> None:
    events = [
        documents.event("aten::add", 0.0, 2),
        documents.kernel("k", 10.0, busy),
        documents.event("aten::add", 98.0, 1),
        documents.event("last", 99.0, 1, "user_annotation"),
    ]
    (sentence, *_) = [*summary(documents.load_document(documents.document(events)))["looks_wrong"], ""]
    assert sentence.startswith(said)
    assert bool(sentence) == bool(said)


def test_the_idle_time_of_a_device_that_did_something_is_not_rounded_to_all_of_it(ecosystem: Path) -> None:
    found = summary(load(ecosystem / "critical_path/simple_add.json.gz"))
    assert found["looks_wrong"][0] == (
        "the device is idle for 99.7% of the time between its first and its last event"
    )


def test_work_that_was_launched_before_the_recording_is_told_apart(ecosystem: Path) -> None:
    recording = load(ecosystem / "traces" / "mi300_resnet_ddp_act_checkpoint.json.gz")
    (device,) = device_breakdown(recording)
    text = summary_text(summary(recording))
    assert device.launched_before_events == 968
    assert "device busy 99.5% of its 56.518ms, without the 968 events launched before the recording\n" in text


def _memory_change(at: float, nbytes: int, address: int, total: int, device: int = -1) -> dict[str, Any]:
    args = {"Bytes": nbytes, "Addr": address, "Total Allocated": total}
    where = {"Device Id": device, "Device Type": 0 if device < 0 else 1}
    return {
        **documents.event("[memory]", at, 0, "cpu_instant_event"),
        "ph": "i",
        "s": "t",
        "args": {**args, **where},
    }


def test_memory_that_grows_is_told_of_each_device_by_itself(tmp_path: Path) -> None:
    steps = [documents.event(f"ProfilerStep#{i}", 100.0 * i, 90, "user_annotation") for i in range(4)]
    growing = [
        _memory_change(100.0 * i + 10, 2048, 50 + i, 5000 + 2048 * (i + 1), device=0) for i in range(4)
    ]
    # the CPU's memory is the last to change in some steps, and stays the same
    steady = [
        _memory_change(100.0 * i + at, nbytes, 7, max(nbytes, 0))
        for i in range(0, 4, 2)
        for at, nbytes in ((20, 64), (30, -64))
    ]
    data = summary(load(documents.write(tmp_path / "t.json", [*steps, *growing, *steady])))
    assert [text for text in data["looks_wrong"] if "grows" in text] == [
        "memory of device 0 grows in every step, by 2.00 KB per step: possibly a leak"
    ]


def test_the_peak_of_the_cpu_does_not_count_memory_of_earlier_recordings_of_the_process(
    tmp_path: Path,
) -> None:
    # torch's total goes on from recording to recording, and misses frees between them
    changes = [
        _memory_change(10.0, 1000, 1, 51_000),
        _memory_change(20.0, 500, 2, 51_500),
        _memory_change(30.0, -800, 9, 50_700),  # allocated before
        _memory_change(40.0, -1000, 1, 49_700),
    ]
    (memory,) = summary(load(documents.write(tmp_path / "t.json", changes)))["memory"]["devices"]
    assert (memory["peak_bytes"], memory["end_bytes"]) == (1500, 500)
