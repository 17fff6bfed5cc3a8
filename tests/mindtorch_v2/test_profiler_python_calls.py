"""Every Python and C call, of a recording with stacks."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_prof.sealing.python_calls import matched
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import core

REACHES_RUNNING_THREADS = core.core.REACHES_RUNNING_THREADS


def traced(**options):
    words = options
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


def test_a_call_without_ops_is_there():
    def outer():
        plain()
        plain()

    with traced() as prof:
        outer()
    assert below(prof, "outer") == [("plain", 1), ("plain", 1)]


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


def test_a_profile_function_that_somebody_else_set_goes_on_seeing_every_call():
    seen = []

    def theirs(frame, event, argument):
        if frame.f_code is plain.__code__:
            seen.append(event)

    sys.setprofile(theirs)
    try:
        with traced() as prof:
            plain()
        still = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert still is theirs
    assert seen == ["call", "return"]
    assert "plain" in [name for name, _ in calls(prof)]


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
@settings(max_examples=60)
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
    log = np.array(rows, np.int64).reshape(-1, 2)
    began, ended, parent, innermost = matched(log[:, 0] != 0)
    assert list(zip(log[began, 1].tolist(), log[ended, 1].tolist())) == expected
    for row, call in enumerate(innermost.tolist()):  # after `row` rows
        inside = [c for c, (b, e) in enumerate(zip(began.tolist(), ended.tolist())) if b < row <= e]
        assert call == max(inside, default=-1)
    for row, above in enumerate(parent.tolist()):
        if above >= 0:
            assert expected[above][0] < expected[row][0] < expected[row][1] < expected[above][1]


def loop(times, between=None):
    x = torch.ones(2)
    for _ in range(times):
        x = x + 1
        if between is not None:
            between()
    return x


def test_calls_without_ops_are_there_however_many_ops_came_before():
    with traced() as prof:
        loop(100, plain)
        loop(5000)
        loop(100, plain)
        plain()
    names = [name for name, _ in calls(prof)]
    assert names.count("plain") == 201
    assert names.count("loop") == 3


def test_a_call_with_many_ops_is_one_call():
    def inner():
        loop(2000)
        torch.ones(1)

    def outer():
        inner()
        inner()

    with traced() as prof:
        outer()
    frames = prof.profiler._results.trace.frames
    names = [name for name, _ in calls(prof)]
    assert below(prof, "outer") == [("inner", 1), ("loop", 2), ("inner", 1), ("loop", 2)]
    ops = prof.profiler._results.trace
    first = names.index("loop")
    inside = (ops.start_ns >= frames.start_ns[first]) & (ops.end_ns <= frames.end_ns[first])
    assert inside.sum() >= 2000


def test_generators_with_many_ops_keep_what_they_call():
    def numbers():
        yield loop(2000)
        yield loop(10)

    def outer():
        return list(numbers())

    with traced() as prof:
        outer()
    names = [name for name, _ in below(prof, "outer")]
    assert names.count("loop") == 2
    assert "numbers" in names


@pytest.mark.skipif(not REACHES_RUNNING_THREADS, reason="the Python core of Python 3.10 and 3.11 cannot")
def test_calls_of_threads_that_ran_before_are_seen_and_those_of_later_ones_are_not():
    go, done, end = threading.Event(), threading.Event(), threading.Event()
    running = threading.Barrier(3, timeout=300)

    def earlier():
        running.wait()
        go.wait(300)
        plain()
        done.set()
        end.wait(300)

    def waiting():
        running.wait()
        end.wait(300)

    def later():
        plain()

    threads = [threading.Thread(target=earlier), threading.Thread(target=waiting)]
    for thread in threads:
        thread.start()
    running.wait()
    with traced() as prof:
        go.set()
        done.wait(300)
        thread = threading.Thread(target=later)
        thread.start()
        thread.join()
    end.set()
    for thread in threads:
        thread.join()
    names = [name for name, _ in calls(prof)]
    assert ("plain", 1) in below(prof, "earlier")
    assert "waiting" in names
    assert "later" not in names


@pytest.mark.skipif(not REACHES_RUNNING_THREADS, reason="the Python core of Python 3.10 and 3.11 cannot")
def test_a_thread_that_was_in_a_c_function_when_a_recording_began_stays_in_its_caller():
    go, done, end, lock = threading.Event(), threading.Event(), threading.Event(), threading.Lock()
    running = threading.Barrier(2, timeout=30)

    def earlier():
        running.wait()
        go.wait(30)
        lock.acquire()
        plain()
        done.set()
        end.wait(30)

    thread = threading.Thread(target=earlier, daemon=True)
    thread.start()
    running.wait()
    with lock:
        with (
            traced()
        ):  # from Python 3.12 on, the function that was called during one recording returns during the next
            go.set()
            time.sleep(0.05)
        prof = traced()
        prof.start()
    done.wait(30)
    prof.stop()
    end.set()
    thread.join()
    assert ("plain", 1) in below(prof, "earlier")


def test_other_threads_may_be_busy_while_recordings_begin_and_end():
    stop = threading.Event()

    def descend(n):
        return n and descend(n - 1)

    def busy():
        x = torch.ones(2)
        while not stop.is_set():
            descend(5)
            x = x + 1
            with pytest.raises(KeyError):
                raise KeyError

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with traced() as prof:
                descend(3)
                torch.ones(2) + 1
            frames = prof.profiler._results.trace.frames
            inner = frames.parent >= 0
            assert (frames.start_ns[inner] >= frames.start_ns[frames.parent[inner]]).all()
            assert (frames.end_ns[inner] <= frames.end_ns[frames.parent[inner]]).all()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_no_other_thread_keeps_a_profile_function():
    found: list = []
    ask, asked, end = threading.Event(), threading.Event(), threading.Event()

    def other():
        ask.wait(300)
        found.append(sys.getprofile())
        asked.set()
        end.wait(300)

    thread = threading.Thread(target=other)
    thread.start()
    with traced():
        plain()
    ask.set()
    asked.wait(300)
    end.set()
    thread.join()
    assert found == [None]


def test_a_profile_function_of_another_thread_that_somebody_else_set_stays():
    found: list = []
    ready, ask = threading.Event(), threading.Event()

    def theirs(frame, event, argument):
        return None

    def other():
        sys.setprofile(theirs)
        ready.set()
        ask.wait(300)
        found.append(sys.getprofile())
        sys.setprofile(None)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(300)
    with traced():
        plain()
    ask.set()
    thread.join()
    assert found == [theirs]


def refuses(call, *arguments):
    with pytest.raises((TypeError, RuntimeError)):
        call(*arguments)


WORK = [
    lambda x: x + x,
    lambda x: refuses(lambda: x + "a"),
    lambda x: refuses(x.softmax),
    lambda x: refuses(lambda: x @ torch.ones(5, 5)),
    lambda x: torch.add(x, x, out=torch.empty(2, 2)),
    lambda x: x.sum(axis=0),
    lambda x: torch.add(x, 1, alpha=torch.tensor(2)),
    lambda x: (x * torch.ones(2, 2, requires_grad=True)).sum().backward(),
    lambda x: [x.max(), x[0], x.tolist(), repr(x), x.sort(), torch.einsum("ij,kj->ik", x, x)],
    torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()),
    lambda x: next(iter(torch.utils.data.DataLoader([1, 2]))),
]


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("all_threads", [False, True])
def test_whatever_an_op_does_its_caller_is_still_under_way_after_it(work, all_threads):
    def outer(x):
        plain()
        work(x)
        plain()
        work(x)
        plain()

    with traced(profile_all_threads=all_threads) as prof:
        outer(torch.ones(2, 2))
    assert [depth for name, depth in below(prof, "outer") if name == "plain"] == [1, 1, 1]


@pytest.mark.parametrize("work", WORK)
def test_ops_that_ask_overrides_first_leave_calls_where_they_are(work):
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    def outer(x):
        for value in (x, x.as_subclass(Asked)):
            plain()
            work(value)
        plain()

    with traced() as prof:
        outer(torch.ones(2, 2))
    assert [depth for name, depth in below(prof, "outer") if name == "plain"] == [1, 1, 1]


def test_an_observer_beside_it_leaves_calls_where_they_are(tmp_path):
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "et.json"))

    def outer():
        torch.ones(2) + 1
        plain()
        torch.ones(2) + 1
        plain()

    with profile(with_stack=True, execution_trace_observer=observer) as prof:
        outer()
    assert [row for row in below(prof, "outer") if row[0] == "plain"] == [("plain", 1)] * 2


def test_hooks_of_a_backward_pass_are_calls_of_the_user():
    def hook(gradient):
        plain()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(hook)
    with traced() as prof:
        (x * 2).sum().backward()
    assert below(prof, "hook") == [("plain", 1)]


def test_kernels_of_custom_ops_are_calls_of_the_user():
    @torch.library.custom_op("test_calls::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        plain()
        return x * 2

    with traced() as prof:
        doubled(torch.ones(2))
    assert ("plain", 1) in below(prof, "doubled")


def test_what_answers_ops_is_a_call_of_the_user():
    from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            plain()
            return func(*args, **(kwargs or {}))

    def outer():
        with Seen():
            torch.ones(2) + 1
        plain()

    with traced() as prof:
        outer()
    found = below(prof, "outer")
    assert [name for name, _ in found].count("__torch_dispatch__") >= 2
    at = [name for name, _ in found].index("__torch_dispatch__")
    assert found[at + 1] == ("plain", found[at][1] + 1)
    assert found[-1] == ("plain", 1)


def test_recordings_inside_one_another_have_their_own_calls():
    def first():
        plain()

    def second():
        plain()

    with traced() as outside:
        first()
        with traced() as inside:
            second()
        first()
    assert [name for name, _ in calls(inside)].count("second") == 1
    assert "first" not in [name for name, _ in calls(inside)]
    assert [name for name, _ in calls(outside)].count("first") == 2


def test_a_call_tells_the_line_that_it_was_made_on():
    def outer():
        plain()
        len(())

    with traced() as prof:
        outer()
    first = outer.__code__.co_firstlineno
    waiting = list(prof.profiler.kineto_results.experimental_event_tree())
    lines = {}
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if hasattr(event.extra_fields, "caller") and event.extra_fields.caller.function_name == "outer":
            lines[event.name.rpartition("): ")[2]] = event.extra_fields.caller.line_number
    assert lines == {"plain": first + 1, "<built-in function len>": first + 2}


def test_a_call_made_through_c_tells_the_line_of_the_python_code():
    def outer():
        return list(map(str.upper, filter(bool, map(shout, ["a"]))))

    def shout(text):
        return text + "!"

    with traced() as prof:
        outer()
    frames = prof.profiler._results.trace.frames
    row = [name for name, _ in calls(prof)].index("shout")
    assert frames.line[row] == outer.__code__.co_firstlineno + 1
