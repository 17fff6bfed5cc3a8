"""The profiler's low and old doors, against what torch shows; and what sessions here have beyond torch's."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import pytest
import recorded_cases
from event_trees import tree_of

import mindtorch_v2 as torch
from mindtorch_v2._C import _profiler as low
from mindtorch_v2.profiler import ProfilerActivity, profile

CASES = recorded_cases.recorded("profiler_c_api_cases")

X = torch.ones(2, 3)


@pytest.mark.parametrize(("module", "case"), CASES)
def test_doors_show_what_torch_shows(module: str, case: str) -> None:
    recorded_cases.check(module, case)


@pytest.mark.parametrize(("module", "case"), CASES)
def test_doors_show_what_torch_shows_now(module: str, case: str, torch_reference: types.ModuleType) -> None:
    assert recorded_cases.show(module, case) == recorded_cases.show(module, case, torch_reference.__name__)


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


def _written(prof, path):
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"a": 1, "b": 2.5, "c": True, "d": "x"}, {"a": 1, "b": 2.5, "c": True, "d": "x"}),
        ({"names": ["x", "y"]}, {"names": ["x", "y"]}),
        ({"quoted": 'say "hi"'}, {"quoted": "None"}),
        ({"stream": 3}, {"stream": 3}),
        ({"stream": "three", "grid": [1, 2]}, {}),
        ({"nothing": None, "many": {"k": 1}, "pairs": (1, 2)}, {}),
    ],
)
def test_a_file_shows_the_keyword_values_that_torch_shows(given, shown, tmp_path):
    x = torch.ones(2)
    with profile(record_shapes=True) as prof:
        with torch._C._profiler._RecordFunctionFast("fast", [x], given):
            x.sin()
    (event,) = [e for e in _written(prof, tmp_path / "t.json") if e["name"] == "fast"]
    assert {name: value for name, value in event["args"].items() if name in given} == shown


def test_low_events_answer_what_only_devices_have():
    config = torch.autograd.ProfilerConfig(
        torch.autograd.ProfilerState.KINETO, True, False, False, False, False,
        torch._C._profiler._ExperimentalConfig(),
    )  # fmt: skip
    torch._C._autograd._enable_profiler(config, {ProfilerActivity.CPU})
    torch.ones(2).sin()
    event = torch._C._autograd._disable_profiler().events()[0]
    assert (event.cuda_elapsed_us(), event.privateuse1_elapsed_us()) == (-1, -1)
    assert (event.extra_meta(), event.is_hidden_event()) == ({}, False)


def test_tracebacks_are_gathered_and_read() -> None:
    (frames,) = low.symbolize_tracebacks([low.gather_traceback(python=True, script=False, cpp=False)])
    assert frames[0]["name"] == "test_tracebacks_are_gathered_and_read"
    assert frames[0]["filename"] == __file__
    assert low.symbolize_tracebacks([low.gather_traceback(python=False)]) == [[]]
    with pytest.raises(TypeError, match=r"cannot create 'torch\._C\._profiler\.CapturedTraceback' instances"):
        low.CapturedTraceback()


def test_switches_turn_links_and_concrete_lists_off(tmp_path: Path) -> None:
    def look() -> tuple[int, Any]:
        x = torch.ones(3, requires_grad=True)
        with profile(record_shapes=True) as prof:
            x.sum(0).backward()
        prof.export_chrome_trace(str(tmp_path / "t.json"))
        (event, *_) = [e for e in prof.events() if e.name == "aten::sum"]
        return (tmp_path / "t.json").read_text().count("fwdbwd") > 0, event.concrete_inputs[1]

    low._set_fwd_bwd_enabled_val(False)
    low._set_record_concrete_inputs_enabled_val(False)
    try:
        assert look() == (False, None)
    finally:
        low._set_fwd_bwd_enabled_val(True)
        low._set_record_concrete_inputs_enabled_val(True)
    assert look() == (True, [0])


def test_the_clock_is_the_events_own() -> None:
    converter = low._ApproximateClockToUnixTimeConverter()
    with profile() as prof:
        before = low._get_approximate_time()
        torch.ones(1)
        after = low._get_approximate_time()
    (event,) = tree_of(prof)
    slack = 50_000_000  # the clock of the system may be set between two looks
    assert converter.to_unix_ns(before) - slack <= event.start_time_ns <= event.end_time_ns
    assert event.end_time_ns <= converter.to_unix_ns(after) + slack
