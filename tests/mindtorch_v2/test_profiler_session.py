"""Sessions: when a profile records, what it calls, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch
from mindtorch_v2 import _recording_hooks as _hooks
from mindtorch_v2.profiler import (
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    profile,
    record_function,
    schedule,
    session,
)

X = torch.ones(2)


def names(prof: Any) -> list[str]:
    return [e.name for e in prof.events()]


# -------------------------------------------------------------------------------- cycles


def test_each_cycle_starts_empty_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_warned", set())
    prof = profile()
    prof.start()
    X + X
    prof.stop()
    with pytest.warns(UserWarning, match="Profiler clears events at the end of each cycle"):
        prof.start()
    X * X
    prof.stop()
    assert names(prof) == ["aten::mul"]


def test_acc_events_keeps_the_events_of_all_cycles() -> None:
    prof = profile(acc_events=True)
    for _ in range(3):
        prof.start()
        X + X
        prof.stop()
    assert names(prof) == ["aten::add"] * 3
    assert prof.key_averages()[0].count == 3


# -------------------------------------------------------------------------------- life


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda p: p.stop(), "Profiler must be initialized before stopping trace"),
        (lambda p: p.start_trace(), "Profiler must be initialized before starting trace"),
        (lambda p: p.events(), "Profiler must be initialized before accessing events"),
        (lambda p: p.key_averages(), "Profiler must be initialized before getting key averages"),
        (lambda p: p.export_chrome_trace("x"), "Profiler must be initialized before exporting chrome trace"),
    ],
)
@pytest.mark.parametrize("kind", [profile, _KinetoProfile])
def test_what_needs_a_recording_says_so(kind: Any, ask: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        ask(kind())


def test_there_are_no_events_while_it_records() -> None:
    with profile() as prof:
        X + X
        assert len(prof.events()) == 0
    assert len(prof.events()) == 1


def test_prepare_start_and_stop_by_hand() -> None:
    prof = _KinetoProfile()
    prof.prepare_trace()
    X + X
    prof.start_trace()
    X * X
    prof.stop_trace()
    X - X
    assert names(prof) == ["aten::mul"]


def fail_inside(prof: profile) -> None:
    with prof, record_function("outer"):
        X + X
        raise KeyError("the user's own")


def test_an_exception_leaves_nothing_on_and_is_not_hidden() -> None:
    prof = profile()
    with pytest.raises(KeyError, match="the user's own"):
        fail_inside(prof)
    assert _dispatch.recorder is None
    assert not torch.autograd._profiler_enabled()
    assert names(prof) == ["outer", "aten::add"]


def test_a_second_profiler_records_its_own_window_and_the_first_goes_on_after_it() -> None:
    with profile() as outer:
        X - X
        with profile() as inner:
            X + X
        X * X
    assert names(inner) == ["aten::add"]
    assert names(outer) == ["aten::sub", "aten::mul"]
    assert "in which another profiler recorded" in outer.key_averages().table()
    assert "Incomplete" not in inner.key_averages().table()


def test_profilers_may_end_in_any_order() -> None:
    first, second = profile(), profile()
    first.start()
    X - X
    second.start()
    X + X
    first.stop()
    X * X
    second.stop()
    assert names(first) == ["aten::sub"]
    assert names(second) == ["aten::add", "aten::mul"]


def test_it_can_be_stopped_from_another_thread() -> None:
    prof = profile()
    prof.start()
    X + X
    thread = threading.Thread(target=prof.stop)
    thread.start()
    thread.join()
    X * X
    assert names(prof) == ["aten::add"]


def test_other_threads_are_recorded_only_on_request() -> None:
    def work() -> None:
        with record_function("elsewhere"):
            X * X

    every = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    seen = []
    for config in (None, every):
        with profile(experimental_config=config) as prof:
            X + X
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        seen.append(sorted(names(prof)))
    assert seen[0] == ["aten::add"]
    assert seen[1] == sorted(["aten::add", *["elsewhere", "aten::mul"] * 3])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork_the_child_is_off_and_the_parent_unharmed() -> None:
    with profile() as prof:
        X + X
        child = os.fork()
        if child == 0:
            off = not _hooks.active_hooks()
            X * X
            os._exit(0 if off else 1)
        assert os.waitpid(child, 0)[1] == 0
        X - X
    assert names(prof) == ["aten::add", "aten::sub"]


def test_collection_can_be_switched_off_and_on() -> None:
    prof = profile()
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    prof.start()
    X + X
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
    X * X
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    X / 2
    prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
    X - X
    prof.stop()
    assert names(prof) == ["aten::add", "aten::mul", "aten::sub"]


def test_switching_collection_of_something_else_is_refused_as_in_torch() -> None:
    with profile() as prof:
        with pytest.raises(TypeError, match="ProfilerActivity, got 'CPU'"):
            prof.toggle_collection_dynamic(False, ["CPU"])  # type: ignore[list-item]
        X + X
    assert names(prof) == ["aten::add"]


# -------------------------------------------------------------------------------- settings


def test_a_missing_device_is_said_and_the_cpu_recorded() -> None:
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            X + X
    assert names(prof) == ["aten::add"]


def test_activities_must_leave_something_to_record() -> None:
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])
    with pytest.raises(TypeError, match="Expected ProfilerActivity or dict, got <class 'int'>"):
        profile(activities=[3])  # type: ignore[list-item]
    with pytest.warns(UserWarning, match="XPU is not available"):
        with pytest.raises(AssertionError, match="No activities specified for the profiler"):
            profile(activities=[ProfilerActivity.XPU]).start()


def test_trace_ids_come_from_the_callback_or_are_random() -> None:
    prof = profile(custom_trace_id_callback=lambda: "abc")
    assert prof.get_trace_id() is None
    with prof:
        assert prof.get_trace_id() == "abc"
    prof.set_custom_trace_id_callback(lambda: "later")
    assert prof.get_trace_id() == "abc"
    with profile() as other:
        made = other.get_trace_id()
    assert made is not None
    assert len(made) == 32


def test_metadata_must_be_json() -> None:
    with pytest.raises(ValueError, match="metadata 'a' is no JSON"):
        profile().add_metadata_json("a", "{broken")


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_an_observer_is_told_when_recording_starts_and_stops() -> None:
    told = []

    class Observer:
        def start(self) -> None:
            told.append("start")

        def stop(self) -> None:
            told.append("stop")

        def cleanup(self) -> None:
            told.append("cleanup")

    with profile(execution_trace_observer=Observer(), schedule=schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(4):
            prof.step()
    assert told == ["start", "stop", "start", "stop", "cleanup"]


def test_trace_only_sessions_have_no_events() -> None:
    config = torch._C._profiler._ExperimentalConfig(trace_only=True)
    with profile(experimental_config=config) as prof:
        X + X
    with pytest.raises(RuntimeError, match=r"events\(\) is not available when trace_only=True"):
        prof.events()


# -------------------------------------------------------------------------------- results


def _written(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def test_no_two_recordings_of_a_process_share_a_number_of_an_event(tmp_path):
    seen: set[int] = set()
    for _ in range(3):
        with profile() as prof:
            torch.ones(2).sin()
        numbers = [event.correlation_id() for event in prof.profiler.kineto_results.events()]
        assert numbers == [event.id for event in prof.events()]
        written = [e for e in _written(prof, tmp_path / "t.json") if e.get("cat") == "cpu_op"]
        assert [e["args"]["External id"] for e in written] == numbers
        assert [e["args"]["Ev Idx"] for e in written] == list(range(len(numbers)))
        roots = prof.profiler.kineto_results.experimental_event_tree()
        assert {root.correlation_id for root in roots} <= set(numbers)
        assert not seen & set(numbers)
        seen |= set(numbers)


def test_the_recorded_window_ends_after_what_it_shows_in_floating_point_too(tmp_path):
    for _ in range(5):
        with profile() as prof:
            torch.ones(2).sin()
        events = _written(prof, tmp_path / "t.json")
        whole = next(e for e in events if e["name"] == "PyTorch Profiler (0)")
        assert whole["ts"] + whole["dur"] <= events[-1]["ts"]


def test_events_are_made_when_they_are_asked_for_and_counted_then():
    with profile() as prof:
        torch.ones(2).sin()
    stats = prof._stats()
    assert (stats.number_of_events, stats.function_events_build_tree_call_duration_us) == (0, 0)
    assert len(prof.events()) == stats.number_of_events > 0
    assert stats.function_events_build_tree_call_duration_us > 0


def test_what_records_takes_metadata_from_anywhere(tmp_path):
    torch.autograd._add_metadata_json("nobody", "1")  # nothing records: it is lost
    with profile() as prof:
        torch.autograd._add_metadata_json("run", '{"a": [1]}')
    path = tmp_path / "t.json"
    prof.export_chrome_trace(str(path))
    document = json.loads(path.read_text())
    assert document["run"] == {"a": [1]}
    assert "nobody" not in document


def test_metadata_of_events_is_shown_where_it_is_asked_for():
    config = torch._C._profiler._ExperimentalConfig(expose_kineto_event_metadata=True)
    with profile(experimental_config=config) as prof:
        torch.add(1, 5)
    (event,) = prof.events()
    with pytest.warns(FutureWarning, match="event_metadata"):
        assert event.metadata_json == '"Ev Idx": 0'


def on_a_thread(run: Any, name: str) -> None:
    worker = threading.Thread(target=run, name=name)
    worker.start()
    worker.join()


def test_a_session_that_saw_ops_on_other_threads_alone_names_them() -> None:
    with pytest.warns(UserWarning, match="no op was recorded: .* ops ran only on 'my worker'") as caught:
        with profile() as prof:
            on_a_thread(lambda: torch.neg(X), "my worker")
    assert len(caught) == 1
    assert list(prof.events()) == []


def test_a_session_that_saw_ops_of_its_own_too_is_silent() -> None:
    with profile() as prof:
        on_a_thread(lambda: torch.neg(X), "my worker")
        torch.abs(X)
    assert prof.events()[0].name == "aten::abs"
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as prof:
        on_a_thread(lambda: torch.neg(X), "my worker")
    assert [e.name for e in prof.events()] == ["aten::neg"]


def test_a_paused_session_sees_nothing() -> None:
    prof = profile()
    prof.pause()
    with prof:
        torch.neg(X)
        prof.pause()
        torch.abs(X)
        with record_function("unseen"):
            pass
        prof.resume()
        torch.sin(X)
    assert [e.name for e in prof.events()] == ["aten::neg", "aten::sin"]


def test_a_trace_is_written_in_the_background(tmp_path: Path) -> None:
    with profile() as prof:
        torch.neg(X)
    export = prof.export_in_background(str(tmp_path / "t.json"))
    assert export.result(timeout=600) == str(tmp_path / "t.json")
    assert export.done()
    prof.export_chrome_trace(str(tmp_path / "now.json"))
    there, now = (json.loads((tmp_path / name).read_text())["traceEvents"] for name in ("t.json", "now.json"))
    assert there == now


def test_an_export_that_fails_in_the_background_tells_whoever_waits(tmp_path: Path) -> None:
    with profile() as prof:
        torch.neg(X)
    export = prof.export_in_background(str(tmp_path / "no" / "t.json"))
    with pytest.raises(OSError, match="no"):
        export.result()
    assert "failed" in repr(export)


def test_a_memory_summary_says_when_memory_was_highest_and_who_held_it() -> None:
    with profile(profile_memory=True) as prof:
        kept = torch.ones(256, 1024)
        gone = torch.neg(kept)
        del gone
        torch.abs(kept[:1])
    first, second, _, *rows = prof.memory_summary().splitlines()
    assert first.startswith("peak memory: 2.00 MB, ")
    assert first.endswith("in aten::neg")
    assert second.startswith("still allocated at the end: 1.00 MB; total allocated: 2.")
    assert [row.split() for row in rows] == [
        ["1.00", "MB", "1", "x", "aten::empty"],
        ["1.00", "MB", "1", "x", "aten::neg"],
    ]


def test_a_memory_summary_needs_memory() -> None:
    with profile() as prof:
        torch.neg(X)
    with pytest.raises(ValueError, match="profile_memory=True"):
        prof.memory_summary()
    with profile(profile_memory=True) as prof:
        pass
    assert prof.memory_summary() == "no memory was allocated"
