"""Live recordings: profiles of real torch, and stand-ins made from files, give what the loaded file gives."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_kineto
import numpy as np
import pytest
from fact_files import FACTS

import mindtorch_v2
from mindtorch_prof import TraceError, from_torch, load
from mindtorch_prof.analysis.summary import summary
from mindtorch_prof.load.live_torch import LiveRecording
from mindtorch_prof.trace import Trace

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}


def live(path: Path, **settings: Any) -> Any:
    return from_torch(fake_kineto.profile(fake_kineto.results_of(fake_kineto.read(path)), **settings))


def assert_same_trace(mine: Trace, theirs: Trace) -> None:
    """Rows, times, links and inputs are the same; scopes and totals of memory are not in every file."""
    assert [mine.names[n] for n in mine.name] == [theirs.names[n] for n in theirs.name]
    shift = theirs.origin_ns - mine.origin_ns
    assert (
        np.abs(mine.start_ns - theirs.start_ns - shift).max(initial=0) <= 1
    )  # floats of microseconds in the file
    for column in ("kind", "sequence", "external"):
        assert np.array_equal(getattr(mine, column), getattr(theirs, column)), column
    for column in ("kind", "device", "stream", "correlation", "launch", "op"):
        assert np.array_equal(getattr(mine.device, column), getattr(theirs.device, column)), column
    assert mine.memory.nbytes.tolist() == theirs.memory.nbytes.tolist()
    assert [mine.frames.names[n] for n in mine.frames.name] == [
        theirs.frames.names[n] for n in theirs.frames.name
    ]
    assert mine.frames.parent.tolist() == theirs.frames.parent.tolist()


@pytest.mark.parametrize("name", ["h100_qwen_infer_stack_memory", "nvidia_ddp_train_nccl"])
def test_a_gpu_recording_is_the_trace_that_its_file_gives(ecosystem: Path, name: str) -> None:
    path = ecosystem / "traces" / f"{name}.json.gz"
    recording = live(path, use_device="cuda", **ALL)
    loaded = load(path, progress=False)
    assert_same_trace(recording.trace, loaded.trace)
    assert recording.trace.settings.device == "cuda"
    extra = [
        dict(recording.trace.device.extra_table[i])
        for i in recording.trace.device.extra[:50].tolist()
        if i >= 0
    ]
    assert extra == [
        dict(loaded.trace.device.extra_table[i]) for i in loaded.trace.device.extra[:50].tolist() if i >= 0
    ]


def test_a_cpu_recording_is_the_trace_that_its_file_gives() -> None:
    path = FACTS / "torch_trace.json.gz"
    recording, loaded = live(path, **ALL), load(path)
    assert_same_trace(recording.trace, loaded.trace)
    inputs = [recording.trace.input_table[i].document() for i in recording.trace.inputs.tolist() if i >= 0]
    assert inputs == [loaded.trace.input_table[i].document() for i in loaded.trace.inputs.tolist() if i >= 0]
    assert inputs


def test_an_empty_recording_has_no_events() -> None:
    recording = from_torch(fake_kineto.profile(fake_kineto.FakeResults([], 5)))
    assert isinstance(recording, LiveRecording)
    assert len(recording.trace) == 0
    assert len(recording.events()) == 0
    assert recording.key_averages().table() == ""


def test_what_cannot_be_read_goes_through_a_file_with_one_sentence(tmp_path: Path) -> None:
    document = fake_kineto.read(FACTS / "torch_trace.json.gz")
    results = fake_kineto.results_of(document)
    with pytest.warns(UserWarning, match="trace_only=True.*saved to a temporary file"):
        recording = from_torch(fake_kineto.profile(results, trace_only=True))
    assert len(recording.trace) == len(load(FACTS / "torch_trace.json.gz").trace)
    assert recording.trace.settings.source == ""


def test_a_field_that_torch_no_longer_has_goes_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    results = fake_kineto.results_of(fake_kineto.read(FACTS / "torch_trace.json.gz"))
    monkeypatch.delattr(fake_kineto.FakeEvent, "start_ns")
    with pytest.warns(UserWarning, match=r"has no start_ns\(\)"):
        recording = from_torch(fake_kineto.profile(results))
    assert len(recording.trace) > 100


def test_what_is_no_finished_profile_is_refused() -> None:
    with pytest.raises(TraceError, match="after it was stopped"):
        from_torch(fake_kineto.profile(None))
    with pytest.raises(TypeError, match="SimpleNamespace"):
        from_torch(SimpleNamespace(x=1))


def test_a_profile_of_the_library_gives_its_own_trace() -> None:
    with mindtorch_v2.profiler.profile() as prof:
        mindtorch_v2.ones(2) + 1
    assert {row.key for row in from_torch(prof).key_averages()} == {row.key for row in prof.key_averages()}


def test_an_exported_live_recording_opens_as_the_same_trace(tmp_path: Path) -> None:
    recording = live(FACTS / "torch_trace.json.gz", **ALL)
    recording.export_chrome_trace(tmp_path / "out.json")
    assert_same_trace(load(tmp_path / "out.json").trace, recording.trace)


# ------------------------------------------------------------------------------------------------ real torch


def trained(torch: ModuleType, **settings: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as prof:
        for _ in range(3):
            with torch.profiler.record_function("a step"):
                model(torch.ones(4, 8)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
    return prof


@pytest.mark.parametrize("settings", [{}, ALL, {**ALL, "with_flops": False}])
def test_real_torch_prints_the_same_table(torch_reference: ModuleType, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof = trained(torch_reference, **settings)
        recording = from_torch(prof)
        for how in ({}, {"group_by_input_shape": True}, {"group_by_stack_n": 2}):
            mine, theirs = recording.key_averages(**how), prof.key_averages(**how)
            assert mine.table(sort_by="self_cpu_time_total") == theirs.table(sort_by="self_cpu_time_total")
            assert [(r.key, r.count, r.flops, r.cpu_memory_usage) for r in mine] == [
                (r.key, r.count, r.flops, r.cpu_memory_usage) for r in theirs
            ]


def test_the_trace_of_real_torch_is_the_one_of_its_file(torch_reference: ModuleType, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof = trained(torch_reference, **ALL)
    recording = from_torch(prof)
    assert recording.trace.memory.address.all()
    prof.export_chrome_trace(str(tmp_path / "live.json"))
    loaded = load(tmp_path / "live.json")
    assert_same_trace(recording.trace, loaded.trace)
    assert recording.trace.memory.address.tolist() == loaded.trace.memory.address.tolist()
    assert recording.trace.flops.tolist() == loaded.trace.flops.tolist()
    assert recording.trace.stack.tolist() == loaded.trace.stack.tolist()
    mine, theirs = summary(recording), summary(loaded)
    assert [row["name"] for row in mine["ops"]] == [row["name"] for row in theirs["ops"]]
    recording.export_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
