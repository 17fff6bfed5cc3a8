"""Observers of execution traces: what they record and when, what they say of themselves, the environment."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch
from mindtorch_v2._C import _profiler as low
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, schedule
from mindtorch_v2.profiler.execution_trace import PROCESS, THREAD

X = torch.ones(2, 3)


def observe(path: Path, run: Any) -> dict[str, Any]:
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    run()
    observer.stop()
    observer.unregister_callback()
    return json.loads(path.read_text())


def names(trace: dict[str, Any]) -> list[str]:
    return [n["name"] for n in trace["nodes"] if n["name"] not in (THREAD, PROCESS)]


def test_only_what_happens_inside_the_window_is_written(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    torch.neg(X)
    observer.start()
    torch.abs(X)
    observer.stop()
    torch.neg(X)
    observer.start()
    torch.sin(X)
    observer.stop()
    torch.neg(X)
    observer.unregister_callback()
    torch.neg(X)
    trace = json.loads((tmp_path / "t.json").read_text())
    assert [n for n in names(trace) if n in ("aten::neg", "aten::abs", "aten::sin")] == [
        "aten::abs",
        "aten::sin",
    ]


def test_an_observer_says_where_it_stands(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver()
    path = str(tmp_path / "t.json")
    assert (observer.is_registered, observer.is_running(), observer.get_output_file_path()) == (
        False,
        False,
        None,
    )
    observer.start()
    observer.stop()
    observer.cleanup()
    assert observer.register_callback(path) is observer
    assert observer.register_callback(str(tmp_path / "other.json")) is observer
    assert (observer.is_registered, observer.is_running(), observer.get_output_file_path()) == (
        True,
        False,
        path,
    )
    observer.start()
    assert observer.is_running()
    observer.cleanup()
    assert (observer.is_registered, observer.is_running(), observer.get_output_file_path()) == (
        False,
        False,
        path,
    )
    assert os.listdir(tmp_path) == ["t.json"]


def test_a_profile_records_the_active_steps_of_its_schedule(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    with profile(
        execution_trace_observer=observer, schedule=schedule(wait=1, warmup=1, active=1, repeat=1)
    ) as prof:
        for _ in range(5):
            torch.neg(X)
            prof.step()
    assert names(json.loads((tmp_path / "t.json").read_text())) == ["aten::neg", "ProfilerStep#2"]


@pytest.mark.parametrize("flags", [{}, {"record_shapes": True, "profile_memory": True, "with_stack": True}])
def test_a_profile_records_the_same_with_an_observer_as_without(
    tmp_path: Path, flags: dict[str, bool]
) -> None:
    def outer_event(event: Any) -> str | None:
        parent = event.cpu_parent
        while parent is not None and parent.activity_type == "python_function":
            parent = parent.cpu_parent
        return parent and parent.name

    def recorded(observer: Any) -> list[Any]:
        x = torch.ones(2, 3, requires_grad=True)
        with profile(execution_trace_observer=observer, **flags) as prof:
            with record_function("span"):
                (x * 2).sum().backward()
        return [
            (e.name, e.input_shapes, outer_event(e), e.self_cpu_memory_usage, e.stack)
            for e in prof.as_recorded().events()
            if e.activity_type != "python_function"
        ]

    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    observed = recorded(observer)
    plain = recorded(None)
    assert [row[:4] for row in observed] == [row[:4] for row in plain]
    assert [[f.partition("(")[0] for f in row[4]] for row in observed] == [
        [f.partition("(")[0] for f in row[4]] for row in plain
    ]
    seen = Counter(names(json.loads((tmp_path / "t.json").read_text())))
    assert all(seen[row[0]] for row in plain)


def test_two_observers_write_two_files(tmp_path: Path) -> None:
    first = ExecutionTraceObserver().register_callback(str(tmp_path / "first.json"))
    second = ExecutionTraceObserver().register_callback(str(tmp_path / "second.json"))
    first.start()
    torch.neg(X)
    second.start()
    torch.sin(X)
    first.stop()
    torch.cos(X)
    second.stop()
    for observer in (first, second):
        observer.unregister_callback()
    assert names(json.loads((tmp_path / "first.json").read_text())) == ["aten::neg", "aten::sin"]
    assert names(json.loads((tmp_path / "second.json").read_text())) == ["aten::sin", "aten::cos"]


def test_the_low_functions_mean_one_observer_for_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    assert low._add_execution_trace_observer(path)
    assert not low._add_execution_trace_observer(path)
    low._enable_execution_trace_observer()
    torch.neg(X)
    low._disable_execution_trace_observer()
    torch.abs(X)
    low._remove_execution_trace_observer()
    low._remove_execution_trace_observer()
    assert names(json.loads((tmp_path / "t.json").read_text())) == ["aten::neg"]


def test_a_profile_beside_an_execution_trace_sees_the_optimizer(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()

    def profiled() -> list[str]:
        with profile(with_stack=True, record_shapes=True, profile_memory=True) as prof:
            optimizer.step()
        return [owner.class_name for owner in prof.profiler._results.trace.tensor_ids.owners]

    expected = profiled()
    seen: list[str] = []
    observe(tmp_path / "t.json", lambda: seen.extend(profiled()))
    assert "Adam" in expected
    assert seen == expected


def test_nothing_is_left_in_the_dispatcher(tmp_path: Path) -> None:
    observe(tmp_path / "t.json", lambda: torch.neg(X))
    assert (_dispatch.recorder, _dispatch.ranges) == (None, None)


def test_a_folder_that_is_not_there_is_told_and_nothing_is_recorded(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match="cannot be written; expected a file in a folder that can be written to"
    ):
        observer = ExecutionTraceObserver().register_callback(str(tmp_path / "no" / "t.json"))
    assert not observer.is_registered
    observer.start()
    assert _dispatch.recorder is None


def test_an_observer_that_is_forgotten_writes_its_file(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    observer.start()
    torch.neg(X)
    del observer
    gc.collect()
    assert names(json.loads((tmp_path / "t.json").read_text())) == ["aten::neg"]
    assert _dispatch.recorder is None


def test_the_environment_asks_for_a_trace_with_ranges_and_integers(run_python: Any, tmp_path: Path) -> None:
    program = """
        import json, os, sys
        import mindtorch_v2 as torch
        x = torch.tensor([3, 9, -2])
        with torch.profiler.profile() as prof:
            torch.neg(x)
        observer = prof.execution_trace_observer
        folder = observer.get_resources_dir()
        nodes = json.load(open(observer.get_output_file_path()))["nodes"]
        node = next(n for n in nodes if n["name"] == "aten::neg")
        data = os.path.join(folder, f"nid_{node['id']}_tid_0.dat")
        ranges = [e["value"] for e in node["attrs"] if e["name"] == "tensor_range"]
        path, content = observer.get_output_file_path(), list(open(data, "rb").read())
        json.dump([path, folder, ranges, content], sys.stdout)
    """
    name = "ENABLE_PYTORCH_EXECUTION_TRACE"
    printed = run_python(
        program,
        TMPDIR=str(tmp_path),
        **{name: "1", name + "_EXTRAS": "1", name + "_SAVE_INTEGRAL_TENSOR_RANGE": "1",
           name + "_SAVE_INTEGRAL_TENSOR_DATA": "aten::neg,aten::index"},
    )  # fmt: skip
    path, folder, ranges, data = json.loads(printed)
    assert path.endswith(".et.json")
    assert folder == path.removesuffix(".json") + "_resources"
    assert ranges == ['{"0":[-2,9]}']
    assert data == list(b"".join(n.to_bytes(8, "little", signed=True) for n in (3, 9, -2)))


def test_the_environment_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "true", ""):
        monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", value)
        assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None


def test_resources_stand_beside_the_trace(tmp_path: Path) -> None:
    find = ExecutionTraceObserver.get_resources_dir_for_et_path
    path = str(tmp_path / "a.json")
    assert find(path) is None
    assert find(path, create_dir=True) == find(path) == str(tmp_path / "a_resources")
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "b.json"))
    assert observer.get_resources_dir(can_create=True) is None
    observer.set_extra_resource_collection(True)
    assert observer.get_resources_dir() == str(tmp_path / "b_resources")
    observer.cleanup()


def test_a_recording_that_fails_to_start_stops_its_observer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "t.json"))
    prof = profile(execution_trace_observer=observer)
    monkeypatch.setattr("mindtorch_v2.profiler.recording.profile._start_trace", _fail)
    with pytest.raises(OSError, match="no"):
        prof.start()
    assert not observer.is_running()
    observer.unregister_callback()


def _fail(self: Any) -> None:
    raise OSError("no")
