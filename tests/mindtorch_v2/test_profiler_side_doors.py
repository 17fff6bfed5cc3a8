"""The profiler's low and old doors, against what torch shows; and what sessions here have beyond torch's."""

from __future__ import annotations

import importlib.util
import json
import threading
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._C import _profiler as low
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function, schedule

FACTS = Path(__file__).parent / "facts"
X = torch.ones(2, 3)


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, FACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner, cases = _load("case_runner"), _load("profiler_door_cases")
RECORDED = json.loads((FACTS / "profiler_door_cases.json").read_text())


@pytest.mark.parametrize("case", list(RECORDED))
def test_doors_show_what_torch_shows(case: str) -> None:
    assert runner.run(runner.cases(cases)[case], "mindtorch_v2") == RECORDED[case]


@pytest.mark.parametrize("case", list(RECORDED))
def test_doors_show_what_torch_shows_now(case: str, torch_reference: types.ModuleType) -> None:
    case_ = runner.cases(cases)[case]
    assert runner.run(case_, "mindtorch_v2") == runner.run(case_, torch_reference.__name__)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((3,), "The name passed to RecordFunctionFast must be a string"),
        (("n", 3), "input_values must be a list or tuple"),
        (("n", [], 3), "keyword_values must be dict"),
    ],
)
def test_a_quick_span_refuses_what_would_end_torchs_process(arguments: tuple, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        low._RecordFunctionFast(*arguments)


def test_a_tensor_among_keyword_values_is_told_and_shown_as_null() -> None:
    with profile(record_shapes=True) as prof:
        span = low._RecordFunctionFast("span", [X], {"t": X, "k": 1})
        with pytest.warns(UserWarning, match="Unable to infer type of value for keyword: t"):
            span.__enter__()
        span.__exit__(None, None, None)
    assert prof.events()[0].kwinputs == {"t": "NULL", "k": 1}


# -------------------------------------------------------------------------------- beyond torch


def loop(steps: int, **settings: int) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profile(schedule=schedule(**settings)) as prof:
            for _ in range(steps):
                torch.neg(X)
                prof.step()
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("steps", "settings", "text"),
    [
        (1, {"wait": 3, "warmup": 1, "active": 2}, "1 step; the schedule needs 6 before the first trace"),
        (0, {"wait": 1, "warmup": 1, "active": 1}, "0 steps; the schedule needs 3 before the first trace"),
        (4, {"wait": 3, "warmup": 3, "active": 2}, "4 steps; the schedule needs 8 before the first trace"),
        (3, {"wait": 1, "warmup": 1, "active": 1, "skip_first": 10}, "3 steps; the schedule needs 13 before"),
    ],
)
def test_a_schedule_that_ended_too_early_says_so_in_one_sentence(
    steps: int, settings: dict[str, int], text: str
) -> None:
    (told,) = loop(steps, **settings)
    assert told.startswith(f"profile ended after {text}")
    assert told.endswith("nothing was recorded")


def test_a_schedule_that_recorded_is_silent() -> None:
    assert loop(4, wait=1, warmup=1, active=1, repeat=1) == []
    assert loop(5, wait=3, warmup=1, active=4) == []


def test_a_program_that_fails_hears_its_own_error_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError):
            with profile(schedule=schedule(wait=3, warmup=1, active=1)):
                raise KeyError


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
    assert export.result(timeout=60) == str(tmp_path / "t.json")
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
    assert first.startswith("peak memory: 2.00 MiB, ")
    assert first.endswith("in aten::neg")
    assert second.startswith("still allocated at the end: 1.00 MiB; total allocated: 2.")
    assert [row.split() for row in rows] == [
        ["1.00", "MiB", "1", "x", "aten::empty"],
        ["1.00", "MiB", "1", "x", "aten::neg"],
    ]


def test_a_memory_summary_needs_memory() -> None:
    with profile() as prof:
        torch.neg(X)
    with pytest.raises(ValueError, match="profile_memory=True"):
        prof.memory_summary()
    with profile(profile_memory=True) as prof:
        pass
    assert prof.memory_summary() == "no memory was allocated"
