"""Sessions: when a profile records, what it calls, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, _hooks
from mindtorch_v2.autograd import profiler as old
from mindtorch_v2.profiler import (
    KinetoStepTracker,
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    itt,
    profile,
    record_function,
    schedule,
    session,
)

FACTS = Path(__file__).with_name("facts")
X = torch.ones(2)


def names(prof: Any) -> list[str]:
    return [e.name for e in prof.events()]


# -------------------------------------------------------------------------------- schedules


def test_every_schedule_goes_as_in_torch() -> None:
    spec = importlib.util.spec_from_file_location("schedule_cases", FACTS / "schedule_cases.py")
    assert spec is not None
    assert spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    recorded = json.loads(gzip.decompress((FACTS / "profiler_schedules.json.gz").read_bytes()))["outcomes"]
    made = cases.make_cases()
    assert len(made) == len(recorded)
    different = [case for case, there in zip(made, recorded) if cases.outcome(torch, case) != there]
    assert different == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"wait": -1, "warmup": 0, "active": 1}, "Got wait=-1 "),
        ({"wait": 0, "warmup": 0, "active": 0}, "active=0 "),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(arguments: dict[str, int], text: str) -> None:
    with pytest.raises(AssertionError, match=r"Invalid profiler schedule arguments\. .*" + text):
        schedule(**arguments)


def test_a_schedule_refuses_negative_steps() -> None:
    with pytest.raises(AssertionError, match=r"Step must be non-negative\. Got -1\."):
        schedule(wait=0, warmup=1, active=1)(-1)


def test_a_schedule_prints_what_each_step_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    schedule(wait=1, warmup=1, active=2, repeat=1).explain(7)
    told = "step 0: NONE\nstep 1: WARMUP\nstep 2: RECORD\nstep 3: RECORD_AND_SAVE\nsteps 4-6: NONE\n"
    assert capsys.readouterr().out == told


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


# -------------------------------------------------------------------------------- the older face


def test_the_older_profile_answers_as_torchs() -> None:
    with old.profile(record_shapes=True) as prof:
        X + X
    assert [e.name for e in prof.function_events] == ["aten::add"]
    assert prof.self_cpu_time_total == prof.function_events.self_cpu_time_total > 0
    assert prof.total_average().key == "Total"
    assert prof.key_averages(group_by_input_shape=True)[0].input_shapes == [[2], [2], []]
    assert str(prof) == prof.table() == prof.function_events.table()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()


def test_the_older_profile_unstarted_and_disabled_is_harmless() -> None:
    prof = old.profile()
    assert repr(prof) == str(prof) == "<unfinished torch.autograd.profile>"
    assert prof.table() == ""
    assert prof.self_cpu_time_total == 0
    with old.profile(enabled=False) as nothing:
        X + X
    assert nothing is None


def test_emitters_let_the_block_run() -> None:
    for emit in (old.emit_nvtx, old.emit_itt):
        with emit():
            X + X
        assert emit(enabled=False).__enter__() is None


def test_itt_ranges_are_recorded_like_annotations() -> None:
    with profile() as prof:
        with itt.range("step {}", 3):
            itt.mark("here")
    assert names(prof) == ["step 3", "here"]


def test_nvprof_files_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match=r"run\.nvvp: nvprof databases are not read"):
        old.load_nvprof("run.nvvp")


def test_enforce_unique_refuses_a_key_seen_before() -> None:
    unique = old.EnforceUnique()
    unique.see(1, 2)
    with pytest.raises(RuntimeError, match=r"duplicate key: \(1, 2\)"):
        unique.see(1, 2)


def test_steps_are_counted_by_the_furthest_requester(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KinetoStepTracker, "_current_step", 0)
    monkeypatch.setattr(KinetoStepTracker, "_step_dict", {})
    KinetoStepTracker.init_step_count("a")
    assert [KinetoStepTracker.increment_step(name) for name in "abb"] == [1, 2, 3]
    assert KinetoStepTracker.erase_step_count("a")
    assert not KinetoStepTracker.erase_step_count("a")
    assert KinetoStepTracker.current_step() == 3


# -------------------------------------------------------------------------------- annotations


def test_record_function_as_context_decorator_and_by_hand() -> None:
    @record_function("decorated")
    def add() -> Any:
        return X + X

    with profile() as prof:
        add()
        span = record_function("by hand")
        span.__enter__()
        X * X
        span.__exit__(None, None, None)
    assert [(e.name, e.cpu_parent and e.cpu_parent.name) for e in prof.events()] == [
        ("decorated", None),
        ("aten::add", "decorated"),
        ("by hand", None),
        ("aten::mul", "by hand"),
    ]
    assert add.__name__ == "add"
    assert [e.is_user_annotation for e in prof.events()] == [True, False, True, False]
    assert prof.events()[0].scope == torch._C._profiler.RecordScope.USER_SCOPE.value


def test_spans_of_tasks_that_take_turns_keep_their_times() -> None:
    async def task(name: str) -> None:
        with record_function(name):
            await asyncio.sleep(0)
            X + X
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(task("one"), task("two"))

    with profile() as prof:
        asyncio.run(both())
    assert {"one", "two"} <= set(names(prof))
    assert all(e.self_cpu_time_total >= 0 for e in prof.events())


def test_a_span_that_began_before_the_profile_is_not_part_of_it() -> None:
    span = record_function("early")
    span.__enter__()
    with profile() as prof:
        X + X
        span.__exit__(None, None, None)
    assert names(prof) == ["aten::add"]


def test_a_span_may_end_after_the_profile() -> None:
    prof = profile()
    prof.start()
    with record_function("late"):
        X + X
        prof.stop()
    assert names(prof) == ["late", "aten::add"]


def test_actions_have_torchs_numbers() -> None:
    assert [a.value for a in ProfilerAction] == [0, 1, 2, 3, 4]
