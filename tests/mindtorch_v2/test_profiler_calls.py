"""Every Python and C call, where a recording asks for them by name."""

from __future__ import annotations

import gc
import json
import sys
import threading
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.calls import Calls, _matched
from mindtorch_v2.profiler.stacks import Stacks


def traced(**options):
    words = {"custom_profiler_config": "python_calls", **options}
    return profile(with_stack=True, experimental_config=_ExperimentalConfig(**words))


def calls(prof):
    """(name, depth) of each call, without file and line."""
    frames = prof.profiler._results.trace.frames
    depth: list[int] = []
    for parent in frames.parent.tolist():
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    names = [frames.names[n].rpartition("): ")[2] for n in frames.name.tolist()]
    return list(zip(names, depth))


def below(prof, name):
    """The calls inside the first call of a function, with depths counted from it."""
    found = calls(prof)
    at = next(i for i, (other, _) in enumerate(found) if other == name)
    base, inside = found[at][1], []
    for other, depth in found[at + 1 :]:
        if depth <= base:
            break
        inside.append((other, depth - base))
    return inside


def plain():
    return None


def test_a_call_without_ops_is_there_when_all_calls_are_asked_for():
    def outer():
        plain()
        plain()

    with traced() as prof:
        outer()
    assert below(prof, "outer") == [("plain", 1), ("plain", 1)]


def test_only_calls_with_ops_are_there_when_they_are_not_asked_for():
    with profile(with_stack=True) as prof:
        plain()
    assert "plain" not in [name for name, _ in calls(prof)]


def test_a_call_into_c_is_shown_with_its_owner_and_without_an_address():
    def outer():
        len(())
        [].append(1)

    with traced() as prof:
        outer()
    assert below(prof, "outer") == [
        ("<built-in function len>", 1),
        ("<built-in method append of list object>", 1),
    ]


def test_a_call_that_ends_with_an_exception_ends_there():
    def fails():
        raise KeyError

    def outer():
        with pytest.raises(KeyError):
            fails()
        plain()

    with traced() as prof:
        outer()
    inside = below(prof, "outer")
    assert inside[-1] == ("plain", 1)
    assert ("fails", 1) in inside


def test_each_turn_of_a_generator_is_a_call_of_its_own():
    def numbers():
        yield 1
        yield 2

    def outer():
        for _ in numbers():
            plain()

    with traced() as prof:
        outer()
    assert [name for name, _ in below(prof, "outer")] == ["numbers", "plain", "numbers", "plain", "numbers"]


def test_calls_under_way_at_the_start_last_from_the_start_until_they_return():
    def test():
        prof = traced()
        prof.start()
        return prof

    prof = test()
    plain()
    prof.stop()
    frames = prof.profiler._results.trace.frames
    start, end = prof.profiler._results.trace.window_ns
    rows = [i for i, n in enumerate(frames.name.tolist()) if frames.names[n].endswith(": test")]
    assert frames.start_ns[rows[0]] == start
    assert start < frames.end_ns[rows[0]] < end


def test_what_ops_do_inside_is_not_shown_but_what_they_call_back_is():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def outer():
        Double.apply(torch.ones(2, requires_grad=True)).sum().backward()

    with traced() as prof:
        outer()
    names = [name for name, _ in below(prof, "outer")]
    assert {"forward", "backward"} <= set(names)
    assert not [name for name in names if name in ("probe", "run", "parse", "build")]


def test_modules_calls_are_named_after_the_module():
    model = torch.nn.Linear(2, 2)
    with traced() as prof:
        model(torch.ones(1, 2))
    assert "nn.Module: Linear_0" in [name for name, _ in calls(prof)]


def test_threads_started_later_are_seen_when_all_threads_are_asked_for():
    def other():
        plain()

    with traced(profile_all_threads=True) as prof:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert below(prof, "other") == [("plain", 1)]


def test_no_profile_function_is_left_behind():
    with traced(profile_all_threads=True):
        plain()
    assert sys.getprofile() is None
    assert threading.getprofile() is None


def test_a_profile_function_that_somebody_else_set_stays_and_a_warning_says_so():
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    try:
        with pytest.warns(UserWarning, match="another profile function is set"), traced():
            plain()
        still = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert still is not None
    assert seen


def test_collections_are_events_when_asked_for():
    config = _ExperimentalConfig(record_python_gc_info=True)
    with profile(with_stack=True, experimental_config=config) as prof:
        torch.ones(1)
        gc.collect()
    assert "Python GC" in [name for name, _ in calls(prof)]
    assert not [hook for hook in gc.callbacks if "Collections" in repr(hook)]


def test_a_trace_file_nests_all_calls(tmp_path):
    with traced() as prof:
        plain()
        torch.ones(2) + 1
    path = tmp_path / "t.json"
    prof.export_chrome_trace(str(path))
    spans = [
        (e["ts"], e["ts"] + e["dur"], e["name"])
        for e in json.loads(path.read_bytes())["traceEvents"]
        if e.get("cat") == "python_function"
    ]
    assert any(name.endswith(": plain") for *_, name in spans)
    for start, end, _ in spans:
        for other, other_end, _ in spans:
            assert not start < other < end < other_end


programs = st.recursive(st.just(()), lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=30)


@given(programs)
@settings(max_examples=60, deadline=None)
def test_any_nesting_of_calls_comes_out_as_it_went_in(program):
    import numpy as np

    rows: list[int] = []
    expected: list[tuple[int, int]] = []  # start, end
    time = 0

    def run(node):
        nonlocal time
        place = len(expected)
        expected.append((0, 0))
        time += 1
        start = time
        rows.extend((7, start))
        for child in node:
            run(child)
        time += 1
        rows.extend((0, time))
        expected[place] = (start, time)

    rows.extend((0, 0))  # leaving what was never entered
    run(program)
    number, start, end, parent = _matched(np.array(rows, np.int64).reshape(-1, 2), 10**6)
    assert list(zip(start.tolist(), end.tolist())) == expected
    assert set(number.tolist()) == {7}
    for row, above in enumerate(parent.tolist()):
        if above >= 0:
            assert expected[above][0] < expected[row][0] < expected[row][1] < expected[above][1]


def test_calls_that_never_return_end_with_the_recording():
    import numpy as np

    _, start, end, parent = _matched(np.array([[1, 5], [2, 6], [0, 8]], np.int64), 100)
    assert (start.tolist(), end.tolist(), parent.tolist()) == ([5, 6], [100, 8], [-1, 0])


def test_a_tracer_that_saw_nothing_gives_no_calls():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Calls(Stacks(), all_threads=False).frames(0)) == 0
