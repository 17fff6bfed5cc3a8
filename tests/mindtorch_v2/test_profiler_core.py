"""The compiled core and its plain Python twin: the same program gives the same recording."""

from __future__ import annotations

import gc
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from forked import ends_well
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_cores import CORES, compiled, use

import mindtorch_v2 as torch
from mindtorch_prof.trace import OP
from mindtorch_v2 import _dispatch, _recording_hooks
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.record import functions, python_core

needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled core was not built or not chosen")
# Under a profile function in Python, Python 3.10 stores the locals of frames in dicts. What is deleted
# between two calls is freed at the second one, in the order in which the variables stand in the function.
FREES_LATE = sys.version_info < (3, 11)
EVERYTHING = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_flops": True,
    "with_modules": True,
}


def described(trace: Any) -> dict[str, Any]:
    """All that a recording says, except times, addresses and ids."""
    first_sequence = min((s for s in trace.sequence.tolist() if s >= 0), default=0)
    frames = trace.frames
    # of the recording thread: the Python core of older Pythons cannot trace others that run already
    first, last = (np.searchsorted(frames.thread, trace.settings.thread, side) for side in ("left", "right"))
    return {
        "names": [trace.names[name] for name in trace.name.tolist()],
        "kinds": trace.kind.tolist(),
        "scopes": trace.scope.tolist(),
        "sequences": [s - first_sequence if s >= 0 else -1 for s in trace.sequence.tolist()],
        "inputs": [None if i < 0 else pickle.dumps(trace.input_table[i]) for i in trace.inputs.tolist()],
        "flops": trace.flops.tolist(),
        "stacks": [None if s < 0 else trace.stacks[s] for s in trace.stack.tolist()],
        "memory": in_any_order_of_frees(trace.memory.nbytes.tolist())
        if FREES_LATE
        else trace.memory.nbytes.tolist(),
        "calls": [frames.names[name] for name in frames.name[first:last].tolist()],
        "callers": [parent - first if parent >= 0 else -1 for parent in frames.parent[first:last].tolist()],
        "lines": None if frames.line is None else frames.line[first:last].tolist(),
        "tensors": same_or_other(trace.tensor_ids.tensor.tolist()),
        "unfinished": trace.health.unfinished,
    }


def in_any_order_of_frees(nbytes: list[int]) -> list[int]:
    """Sizes of allocations and frees, the frees between two allocations sorted."""
    runs = groupby(nbytes, key=lambda size: size < 0)
    return [size for is_free, run in runs for size in (sorted(run) if is_free else run)]


def same_or_other(ids: list[int]) -> list[int]:
    """Ids as small numbers in the order of their first use."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(number, len(numbers)) for number in ids]


def recorded(module: Any, program: Callable[[], Any], **options: Any) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        use(monkeypatch, module)
        torch.manual_seed(0)
        gc.collect()
        gc.disable()  # callbacks of the collector are calls too
        try:
            with profile(**options) as prof:
                program()
        finally:
            gc.enable()
        return described(prof.profiler._results.trace)


def inner(x: Any) -> Any:
    return x * 2 + len(x.shape)


def train() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        with record_function("forward"):
            loss = model(torch.ones(5, 3)).square().mean()
        loss.backward()
        optimizer.step()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return inner(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return inner(gradient)


def users_functions() -> None:
    x = torch.ones(3, requires_grad=True)
    y = Doubled.apply(x)
    y.register_hook(inner)
    with torch.autograd.graph.saved_tensors_hooks(inner, inner):
        z = y.exp()
    z.sum().backward()


def memory() -> None:
    x = torch.ones(4, 4)
    kept = x.numpy()
    del x
    y = torch.ones(2)
    y.resize_(100)
    y.untyped_storage().resize_(10)
    first, second = torch.ones(6).reshape(2, 3).split(1)
    torch.ones(3).max(0)
    torch.linalg.qr(torch.ones(3, 3))
    del kept, first, second, y


def failures() -> None:
    x = torch.ones(2, 2)
    for call in (lambda: x @ torch.ones(3), lambda: x + "text", lambda: x.sum(7), lambda: 1 / 0):
        try:
            with record_function("tried"):
                call()
        except Exception:
            inner(x)


def arguments() -> None:
    x = torch.ones(2, 3)
    torch.cat([x, x], 1)
    torch.full((2,), float("nan"))
    torch.add(x, 1, alpha=2.5)
    torch.zeros(2, dtype=torch.int64, device="cpu")
    torch.einsum("ij,kj->ik", x, x)
    torch.nn.functional.pad(x, (1, 1), mode="constant", value=-0.0)
    x.to(torch.float64).to("cpu")
    torch.ones(2, device="meta") + 1
    x.to_sparse().sum()
    x[0, torch.tensor([1, 2])] = True
    torch.where(x > 0, 1, 2.0)
    torch.sum(x, np.int64(0))
    torch.ones(10**0) * (1 << 70)


def ranges() -> None:
    outer = record_function("outer")
    outer.__enter__()
    other = record_function("other", "argument")
    other.__enter__()
    outer.__exit__(None, None, None)  # in another order than they began
    torch.ones(1)
    other.__exit__(None, None, None)
    record_function("never ended").__enter__()


def generators() -> None:
    def numbers() -> Iterator[Any]:
        for i in range(3):
            yield torch.ones(i) + 1

    for _ in numbers():
        inner(torch.ones(1))
    list(map(inner, numbers()))


PROGRAMS = [train, users_functions, memory, failures, arguments, ranges, generators]


@needs_compiled
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("options", [{}, *({name: True} for name in EVERYTHING), EVERYTHING], ids=" ".join)
def test_both_cores_record_the_same(program: Callable[[], None], options: dict[str, bool]) -> None:
    program()
    by_twin, by_compiled = (recorded(module, program, **options) for module in (python_core, compiled))
    for part, value in by_twin.items():
        assert by_compiled[part] == value, part


steps = st.lists(
    st.sampled_from(["add", "view", "inplace", "drop", "range", "call", "raise", "backward", "numpy"]),
    max_size=25,
)


@needs_compiled
@given(steps)
@settings(max_examples=40)
def test_both_cores_record_the_same_of_any_program(program: list[str]) -> None:
    def run() -> None:
        tensors, arrays = [torch.ones(2, 3, requires_grad=True) * 1], []
        for step in program:
            x = tensors[-1]
            if step == "add":
                tensors.append(x + x)
            elif step == "view":
                tensors.append(x.reshape(-1).reshape(2, 3))
            elif step == "inplace":
                tensors.append(x.clone().mul_(2))
            elif step == "drop":
                del tensors[1:]
            elif step == "range":
                with record_function("range"):
                    tensors.append(inner(x))
            elif step == "call":
                inner(x)
            elif step == "raise":
                with pytest.raises(RuntimeError):
                    x @ x
            elif step == "backward":
                x.sum().backward(retain_graph=True)
            else:
                arrays.append(x.detach().numpy())

    by_twin, by_compiled = (recorded(module, run, **EVERYTHING) for module in (python_core, compiled))
    assert by_compiled == by_twin


# --------------------------------------------------------------------------------- what both must do


def _allocated_so_far(prof: Any) -> int:
    recorder = prof.profiler._recorder
    recorder.logs.add(recorder.hand_over())
    return int(recorder.logs.joined("memory")[:, 1].sum())


def test_memory_that_a_numpy_array_shares_is_not_freed_with_its_tensor(each_core: Any) -> None:
    with profile(profile_memory=True) as prof:
        x = torch.ones(100)
        array = x.numpy()
        del x
        alive = _allocated_so_far(prof)
        del array
        at_the_end = _allocated_so_far(prof)
    assert (alive, at_the_end) == (400, 0)


def test_a_thread_that_only_waits_does_not_disturb_the_stacks_of_others(each_core: Any) -> None:
    may_end = threading.Event()
    waiting = threading.Thread(target=may_end.wait)
    waiting.start()

    def outer() -> None:
        for _ in range(5):
            torch.ones(3)

    with profile(with_stack=True) as prof:
        outer()
    may_end.set()
    waiting.join()
    trace = prof.as_recorded().trace
    callers = [trace.stacks[stack][0].rpartition(": ")[2] for stack in trace.stack.tolist()]
    assert callers == ["outer"] * 5


@contextmanager
def profile_function_set_in(thread: str) -> Iterator[None]:
    """A profile function of somebody else, in this thread or in another one that runs."""
    ready, end = threading.Event(), threading.Event()

    def other() -> None:
        sys.setprofile(lambda *_: None)
        ready.set()
        end.wait(300)

    helper = threading.Thread(target=other)
    if thread == "this":
        sys.setprofile(lambda *_: None)
    elif thread == "another":
        helper.start()
        ready.wait(300)
    try:
        yield
    finally:
        sys.setprofile(None)
        end.set()
        if thread == "another":
            helper.join()


@pytest.mark.parametrize("thread", ["this", "another"])
def test_a_profile_function_that_was_set_before_leaves_the_recorded_calls_as_they_are(
    thread: str, each_core: Any
) -> None:
    recordings = []
    for where in ("none", thread):
        with profile_function_set_in(where):
            recordings.append(recorded(each_core, generators, with_stack=True))
    assert recordings[1] == recordings[0]
    stacks = [stack for stack in recordings[1]["stacks"] if stack]
    assert stacks
    assert all(any(call.endswith(": recorded") for call in stack) for stack in stacks)


def test_a_stop_while_another_thread_is_in_an_op_leaves_no_profile_function(each_core: Any) -> None:
    begin, inside, end = (threading.Event() for _ in range(3))
    left: list[Any] = []

    def other() -> None:
        begin.wait(300)
        len(())  # traced from here on
        prof.profiler._recorder.core.call_untraced(wait)
        left.append(sys.getprofile())

    def wait() -> None:
        inside.set()
        end.wait(300)

    thread = threading.Thread(target=other)
    thread.start()
    with profile(with_stack=True) as prof:
        begin.set()
        inside.wait(300)
    if sys.version_info >= (3, 12):  # whose events would stay on, and make every call slower
        left.append(any(tools >> 6 & 1 for tools in sys.monitoring._all_events().values()) or None)
    end.set()
    thread.join()
    assert set(left) == {None}


def test_a_thread_with_the_identity_of_an_ended_one_has_its_own_grad_mode(each_core: Any) -> None:
    def work() -> None:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()

    config = _ExperimentalConfig(profile_all_threads=True)
    with profile(experimental_config=config) as prof:
        for _ in range(5):  # one after the other: they get the same identity
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    trace = prof.profiler._results.trace
    inside = [
        trace.names[n] == "aten::mul" and d >= 0 for n, d in zip(trace.name.tolist(), trace.sequence.tolist())
    ]
    assert sum(inside) == 5  # those of the forward pass, not those of the backward pass


def test_another_allocator_of_numpy_is_left_in_place(run_python: Any) -> None:
    code = """
import numpy as np
from numpy._core.multiarray import get_handler_name
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
before = get_handler_name()
with profile(profile_memory=True) as prof:
    x = torch.ones(3) + 1
assert get_handler_name() == before, get_handler_name()
y = np.ones(10)
assert get_handler_name(y) == before
print("fine")
"""
    assert run_python(code).strip() == "fine"


@pytest.mark.parametrize("choice", ["python", "c"])
def test_the_environment_chooses_the_core(choice: str, run_python: Any) -> None:
    if choice == "c" and compiled is None:
        pytest.skip("runs where the compiled core was built and is not refused by MINDTORCH_CORE")
    code = "from mindtorch_v2.profiler.record import core; print(core.NAME)"
    assert run_python(code, MINDTORCH_CORE=choice).strip() == choice


def test_a_thousand_recordings_leave_no_memory_behind(run_python: Any) -> None:
    code = """
import gc, resource, sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

def record(times):
    for _ in range(times):
        with profile(record_shapes=True, profile_memory=True, with_stack=True):
            (torch.ones(3, requires_grad=True) * 2).sum().backward()

record(100)
gc.collect()
objects, memory = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
record(300)
gc.collect()
print(len(gc.get_objects()) - objects, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
"""
    objects, kilobytes = map(int, run_python(code).split())
    assert objects < 100
    assert kilobytes < 8_000


def test_an_extension_that_is_missing_is_named_where_it_is_insisted_on(tmp_path: Any) -> None:
    code = "import mindtorch_prof.core as c; c.compiled('mindtorch_v2.profiler.record._not_built')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MINDTORCH_CORE": "c"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_not_built was not built" in done.stderr


# --------------------------------------------------------------------------------- hostile programs


@pytest.fixture(scope="module")
def call_op() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Calls a function from inside an op."""
    pending: list[Callable[[], Any]] = []

    def kernel(x: Any) -> Any:
        pending.pop()()
        return x * 2

    def call(function: Callable[[], Any]) -> Any:
        pending.append(function)
        return torch.ops.mindtorch_test_hostile.call(torch.ones(2))

    library = torch.library.Library("mindtorch_test_hostile", "DEF")
    library.define("call(Tensor x) -> Tensor")
    library.impl("call", kernel, "CPU")
    yield call
    library._destroy()


def array_property(on_read: Callable[[Any], None]) -> property:
    """`_array` of a tensor subclass: each read of it runs code."""

    def read(tensor: Any) -> Any:
        on_read(tensor)
        return vars(tensor)["_array"]

    def write(tensor: Any, array: Any) -> None:
        vars(tensor)["_array"] = array

    return property(read, write)


def names_of(prof: Any) -> list[str]:
    return [event.name for event in prof.events()]


@pytest.mark.parametrize("options", [{}, EVERYTHING], ids=["default", "everything"])
def test_an_op_may_stop_and_drop_its_recording(each_core: Any, call_op: Any, options: Any) -> None:
    profs = [profile(**options)]
    profs[0].start()

    def stop() -> None:
        profs.pop().stop()
        gc.collect()

    assert call_op(stop).tolist() == [2, 2]
    with profile(**options) as prof:
        torch.ones(1)
    assert "aten::ones" in names_of(prof)


def test_an_op_may_start_another_recording_which_outlives_it(each_core: Any, call_op: Any) -> None:
    outer, inner_ = profile(**EVERYTHING), profile(**EVERYTHING)
    outer.start()
    call_op(inner_.start)
    inner(torch.ones(1))
    outer.stop()
    inner(torch.ones(1))
    inner_.stop()
    assert names_of(inner_).count("aten::mul") == 3
    assert any("inner" in name for name in names_of(inner_))


def test_an_op_that_stops_its_recording_and_raises_ends_as_without_one(each_core: Any, call_op: Any) -> None:
    prof = profile(**EVERYTHING)
    prof.start()

    def stop_and_raise() -> None:
        prof.stop()
        raise KeyError("from the kernel")

    with pytest.raises(KeyError, match="from the kernel"):
        call_op(stop_and_raise)
    assert sys.getprofile() is None


def test_ops_may_begin_recordings_inside_one_another(each_core: Any, call_op: Any) -> None:
    def record(depth: int) -> None:
        with profile(**EVERYTHING):
            if depth:
                call_op(lambda: record(depth - 1))
            else:
                gc.collect()

    with profile(**EVERYTHING) as prof:
        record(20)
        torch.ones(1)
    assert "aten::ones" in names_of(prof)


@pytest.mark.parametrize("change", ["clear", "grow"])
def test_a_list_that_changes_while_it_is_described(each_core: Any, change: str) -> None:
    tensors: list[Any] = []
    n_reads = 0

    def on_read(tensor: Any) -> None:
        nonlocal n_reads
        n_reads += 1
        if n_reads == 2 and change == "clear":
            tensors.clear()
        elif n_reads < 50 and change == "grow":
            tensors.append(torch.ones(2))
        gc.collect()

    Hostile = type("Hostile", (torch.Tensor,), {"_array": array_property(on_read)})
    with profile(**EVERYTHING) as prof:
        tensors += [torch.ones(2).as_subclass(Hostile) for _ in range(3)]
        n_reads = 0
        try:
            torch.cat(tensors)
        except (RuntimeError, ValueError, IndexError):
            pass  # as without a recording: the list is empty when the kernel looks
        recorder = prof.profiler._recorder.core
        recorder.exit(recorder.enter("range", 0, -1, 0, (tensors, tensors)))
        assert torch.ones(1).item() == 1


def test_a_list_of_results_that_changes_while_memory_is_recorded(each_core: Any) -> None:
    results: list[Any] = []

    def on_read(tensor: Any) -> None:
        results.clear()

    Hostile = type("Hostile", (torch.Tensor,), {"_array": array_property(on_read)})
    op = _dispatch.OPS["split.Tensor"]
    with profile(profile_memory=True):
        fake = types.SimpleNamespace(run=lambda: results, uid=op.uid, allocates=1, describe=lambda: ())
        results += [torch.ones(2).as_subclass(Hostile) for _ in range(3)]
        record = each_core.Probe(fake) if hasattr(each_core, "Probe") else each_core.probe_of(fake)
        assert record() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_the_recorder_works_reaches_the_program(each_core: Any, error: Any) -> None:
    is_armed = False

    def on_read(tensor: Any) -> None:
        if is_armed:
            raise error

    Hostile = type("Hostile", (torch.Tensor,), {"_array": array_property(on_read)})
    x = torch.ones(2).as_subclass(Hostile)
    with profile(**EVERYTHING) as prof:
        is_armed = True
        with pytest.raises(error):
            prof.profiler._recorder.core.enter("range", 0, -1, 0, (x,))
        with pytest.raises(error):
            torch.add(x, 1)
        is_armed = False
        torch.ones(1)
    assert "aten::ones" in names_of(prof)


def test_what_a_signal_handler_raises_while_the_recorder_works_reaches_the_program(
    each_core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_armed = False

    def handle(number: int, frame: Any) -> None:
        raise TimeoutError("the program's")

    def on_read(tensor: Any) -> None:
        if is_armed:
            signal.raise_signal(signal.SIGINT)

    Hostile = type("Hostile", (torch.Tensor,), {"_array": array_property(on_read)})
    x = torch.ones(2).as_subclass(Hostile)
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    before = signal.signal(signal.SIGINT, handle)
    try:
        with profile(**EVERYTHING) as prof:
            is_armed = True
            with pytest.raises(TimeoutError, match="the program's"):
                prof.profiler._recorder.core.enter("range", 0, -1, 0, (x,))
            is_armed = False
            torch.ones(1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not reported
    assert "aten::ones" in names_of(prof)


def test_an_error_of_the_recorder_is_none_of_the_program(
    each_core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    results: list[float] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def fail(*arguments: Any) -> int:
        raise OSError("of the recorder")

    with profile(**EVERYTHING) as prof:
        recorder = prof.profiler._recorder
        with monkeypatch.context() as failing:
            for name in ("inputs_of", "tensor_allocated", "note_foreign_thread"):
                failing.setattr(recorder, name, fail)
            failing.setattr(recorder.functions, "number_of_code", fail)
            assert inner(torch.full((3,), 2.0)).tolist() == [5, 5, 5]
            foreign = threading.Thread(target=lambda: results.append(torch.ones(1).item()))
            foreign.start()
            foreign.join()
    assert results == [1]
    assert {str(each.exc_value) for each in reported} == {"of the recorder"}


def test_code_that_is_compiled_again_and_again_keeps_its_name(each_core: Any) -> None:
    names = []
    with profile(with_stack=True) as prof:
        for i in range(400):  # equal code objects take turns with others at the same addresses
            names.append(f"function_{0 if i % 2 else i}")
            scope: dict[str, Any] = {}
            exec(compile(f"def {names[-1]}(x):\n    return x", "compiled.py", "exec"), scope)
            scope[names[-1]](1)
            del scope
    frames = prof.profiler._results.trace.frames
    shown = [frames.names[name] for name in frames.name.tolist() if ": function_" in frames.names[name]]
    assert [name.split(": ")[1] for name in shown] == names


def test_equal_code_of_two_files_has_two_names(each_core: Any) -> None:
    scopes: list[dict[str, Any]] = [{}, {}]
    for scope, path in zip(scopes, ("first.py", "second.py")):
        exec(compile("def function(x):\n    return x + 1", path, "exec"), scope)
    with profile(with_stack=True) as prof:
        for scope in scopes:
            scope["function"](torch.ones(1))
    frames = prof.profiler._results.trace.frames
    names = [frames.names[n] for n in frames.name.tolist()]
    assert [name for name in names if "function" in name and name.startswith(("first", "second"))] == [
        "first.py(1): function",
        "second.py(1): function",
    ]


def test_memory_whose_resizing_fails_is_still_allocated(each_core: Any) -> None:
    with profile(profile_memory=True) as prof:
        x = torch.ones(100)
        array = x.numpy()
        while isinstance(array.base, np.ndarray):
            array = array.base
        # the plain core watches arrays by weak references, and NumPy resizes no array that has one
        with pytest.raises((MemoryError, ValueError)):
            array.resize(1 << 58, refcheck=False)
        alive = _allocated_so_far(prof)
        del x, array
        at_the_end = _allocated_so_far(prof)
    assert (alive, at_the_end) == (400, 0)


def test_the_collector_may_run_at_each_allocation(each_core: Any) -> None:
    class Cycle:
        def __init__(self) -> None:
            self.own, self.tensor = self, torch.ones(3)

        def __del__(self) -> None:
            self.tensor + 1

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        with profile(**EVERYTHING) as prof:
            for _ in range(30):
                Cycle()
                torch.ones(2, requires_grad=True).exp().sum().backward()
    finally:
        gc.set_threshold(*thresholds)
    assert names_of(prof).count("aten::exp") == 30


def test_a_finalizer_may_stop_the_recording_while_a_call_is_logged(each_core: Any) -> None:
    class Stop:
        def __init__(self, prof: Any) -> None:
            self.own, self.prof = self, prof

        def __del__(self) -> None:
            if self.prof.profiler is not None and self.prof.profiler._recorder is not None:
                self.prof.stop()

    thresholds = gc.get_threshold()
    for n_calls in range(12):
        prof = profile(**EVERYTHING)
        prof.start()
        Stop(prof)
        del prof
        gc.set_threshold(1, 1, 1)
        try:
            for _ in range(n_calls):
                exec("(lambda x: [x])(1)")
        finally:
            gc.set_threshold(*thresholds)
        gc.collect()
    assert torch.ones(1).item() == 1


def test_another_profile_function_may_stop_the_recording(each_core: Any) -> None:
    profs: list[Any] = []

    def other(frame: Any, event: str, argument: Any) -> None:
        if profs and event == "call" and frame.f_code is inner.__code__:
            sys.setprofile(None)
            profs.pop().stop()
            gc.collect()

    sys.setprofile(other)
    try:
        profs.append(profile(with_stack=True))
        profs[0].start()
        result = inner(torch.ones(1))
    finally:
        sys.setprofile(None)
    assert result.item() == 3
    assert not profs


def test_threads_run_ops_while_recordings_come_and_go(each_core: Any) -> None:
    is_over = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not is_over.is_set():
                threads = [threading.Thread(target=inner, args=(torch.ones(1),)) for _ in range(2)]
                for thread in threads:
                    thread.start()
                inner(torch.ones(2, requires_grad=True)).sum().backward()
                for thread in threads:
                    thread.join()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    config = _ExperimentalConfig(profile_all_threads=True)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(15):
            with profile(experimental_config=config, **EVERYTHING):
                for _ in range(3):
                    inner(torch.ones(3))
            gc.collect()
    finally:
        sys.setswitchinterval(interval)
        is_over.set()
        for worker in workers:
            worker.join()
    assert errors == []


def test_ops_at_the_recursion_limit_raise_recursion_error_only(each_core: Any) -> None:
    def descend(x: Any) -> Any:
        return descend(x + 1)

    with profile(record_shapes=True, profile_memory=True) as prof:
        with pytest.raises(RecursionError):
            descend(torch.ones(1))
        torch.ones(1)
    assert "aten::add" in names_of(prof)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("choice", [module.NAME for module in CORES])
def test_a_fork_inside_an_op_leaves_both_processes_working(choice: str, run_python: Any) -> None:
    code = """
import os, sys, warnings
warnings.simplefilter("ignore")
import mindtorch_v2 as torch
from mindtorch_v2 import _recording_hooks as hooks
from mindtorch_v2.profiler import profile

child = None
library = torch.library.Library("forking", "DEF")
library.define("fork(Tensor x) -> Tensor")

def kernel(x):
    global child
    child = os.fork()
    return x + 1

library.impl("fork", kernel, "CPU")
options = dict(record_shapes=True, profile_memory=True, with_stack=True)
with profile(**options) as prof:
    x = torch.ops.forking.fork(torch.ones(2))
    if child == 0:
        assert not hooks.active_hooks(), hooks.active_hooks()
        del x
        with profile(**options) as inner:
            torch.ones(1).exp()
        assert "aten::exp" in [event.name for event in inner.events()]
        sys.stdout.flush()
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
names = [event.name for event in prof.events()]
print("forking::fork" in names, "aten::add" in names)
"""
    assert run_python(code, MINDTORCH_CORE=choice).split() == ["True", "True"]


def test_an_error_of_a_signal_handler_is_raised_although_the_recorder_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def handle(number: int, frame: Any) -> None:
        raise TimeoutError("the program's")

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        for _ in range(1000):
            pass

    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    before = signal.signal(signal.SIGINT, handle)
    try:
        with pytest.raises(TimeoutError, match="the program's"):
            python_core._reporting(interrupted)
        assert python_core._reporting(lambda: 1 // 0, otherwise=-1) == -1
    finally:
        signal.signal(signal.SIGINT, before)
    assert [type(each.exc_value) for each in reported] == [ZeroDivisionError]


def test_an_interrupt_while_the_plain_core_describes_an_op_does_not_end_tracing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, python_core)
    ones, exp = torch.ones(1), _dispatch.OPS["exp"]

    def interrupted(*arguments: Any) -> tuple:
        raise KeyboardInterrupt

    with profile(record_shapes=True, with_stack=True) as prof:
        with monkeypatch.context() as interrupting:
            interrupting.setitem(exp.__dict__, "describe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                torch.exp(ones)
        inner(ones)
    frames = prof.profiler._results.trace.frames
    assert any(frames.names[name].endswith(": inner") for name in frames.name.tolist())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.parametrize("choice", [module.NAME for module in CORES])
def test_a_signal_handler_may_record_on_its_own(choice: str, run_python: Any) -> None:
    code = """
import signal
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

n_handled = 0
options = dict(record_shapes=True, profile_memory=True, with_stack=True)

def handle(number, frame):
    global n_handled
    n_handled += 1
    with profile(**options):
        torch.ones(1) + 1
    if n_handled < 30:
        signal.setitimer(signal.ITIMER_REAL, 0.001)

signal.signal(signal.SIGALRM, handle)
with profile(**options) as prof:
    n = 0
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while n_handled < 30:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
        n += 1
print([event.name for event in prof.events()].count("aten::mul") >= 2 * n - 60)
"""
    assert run_python(code, MINDTORCH_CORE=choice).strip() == "True"


@pytest.mark.parametrize("choice", [module.NAME for module in CORES])
def test_a_process_may_end_while_it_records(choice: str, run_python: Any) -> None:
    code = """
import sys, threading, time
import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch, _recording_hooks
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile

class Late:
    def __init__(self):
        self.own, self.tensor = self, torch.ones(4)
    def __del__(self):
        self.tensor + 1

def work():
    while True:
        torch.ones(2) + 1

config = _ExperimentalConfig(profile_all_threads=True)
prof = profile(record_shapes=True, profile_memory=True, with_stack=True, experimental_config=config)
prof.start()
kept = [Late(), torch.ones(100)]
sys.kept_tensor = torch.ones(5)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
print("end")
"""
    assert run_python(code, MINDTORCH_CORE=choice).strip() == "end"


@needs_compiled
def test_the_compiled_core_refuses_to_work_in_another_interpreter(run_python: Any) -> None:
    code = """
import importlib, warnings
warnings.simplefilter("ignore")
import mindtorch_v2.profiler.record._core
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
program = '''
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("mindtorch_v2.profiler.record._core", PATH)
spec = importlib.util.spec_from_loader("mindtorch_v2.profiler.record._core", loader)
try:
    importlib.util.module_from_spec(spec)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError:
    pass
else:
    raise SystemError("imported")
'''.replace("PATH", repr(mindtorch_v2.profiler.record._core.__file__))
error = interpreters.run_string(interpreters.create(), program)
print(error)
"""
    assert run_python(code).strip() == "None"


@needs_compiled
def test_a_core_without_a_recording_cannot_be_made() -> None:
    assert compiled is not None
    with pytest.raises(TypeError):
        compiled.Core.__new__(compiled.Core)
    with pytest.raises(AttributeError):
        compiled.Core(object())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older interpreters instrument no code")
@pytest.mark.parametrize("choice", [module.NAME for module in CORES])
def test_a_recording_stopped_inside_an_op_leaves_no_code_instrumented(choice: str, run_python: Any) -> None:
    code = """
import dis
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

library = torch.library.Library("stopping", "DEF")
library.define("stop(Tensor x) -> Tensor")

def kernel(x):
    prof.stop()
    return x + 1

def function(x):
    return x

library.impl("stop", kernel, "CPU")
prof = profile(with_stack=True)
prof.start()
function(1)
torch.ops.stopping.stop(torch.ones(1))
function(1)
names = [instruction.opname for instruction in dis.get_instructions(function, adaptive=True)]
print([name for name in names if name.startswith("INSTRUMENTED")])
"""
    assert run_python(code, MINDTORCH_CORE=choice).strip() == "[]"


def test_numbers_fit_their_names_when_an_append_is_interrupted_by_another() -> None:
    class Interrupted(list):  # type: ignore[type-arg]
        def append(self, item: Any) -> None:
            super().append(item)
            super().append(object())  # what another thread, or a finalizer, appends right after

    items: list[Any] = Interrupted()
    names = [(f"name {i}",) for i in range(5)]
    assert [items[functions.append_numbered(items, name)] for name in names] == names


def test_the_first_call_of_a_thread_may_come_after_the_recording_was_released(each_core: Any) -> None:
    with profile(with_stack=True) as prof:
        recorder = prof.profiler._recorder
    recorder.release()
    recorder.silent_threads.add(threading.get_ident())
    recorder.thread_begins_calls(sys._getframe())
    assert recorder.core is None
    assert threading.get_ident() not in recorder.silent_threads


@contextmanager
def overdue_turn() -> Iterator[Any]:
    """The core of this recording, while a thread that takes rows has waited too long for its turn."""
    recording_core = _recording_hooks.active_recording().core
    is_overdue, ends = threading.Event(), threading.Event()

    def wait_for_turn() -> None:
        recording_core.set_turn(0)
        is_overdue.set()
        ends.wait()  # else another thread might get its identity

    waiting = threading.Thread(target=wait_for_turn)
    waiting.start()
    is_overdue.wait()
    try:
        yield recording_core
    finally:
        ends.set()
        waiting.join()
        recording_core.set_turn(None)


def run_op() -> None:
    torch.ones(2)


def run_range() -> None:
    with record_function("range"):
        pass


def run_op_of_a_thread_that_is_not_recorded() -> None:
    thread = threading.Thread(target=run_op)
    thread.start()
    thread.join()


def run_call() -> None:
    len("")


EVENTS = [run_op, run_range, run_call, run_op_of_a_thread_that_is_not_recorded]


@pytest.mark.parametrize("run_event", EVENTS)
def test_who_records_gives_way_to_the_thread_that_takes_rows_once_in_its_turn(
    each_core: Any, run_event: Callable[[], None]
) -> None:
    with profile(with_stack=run_event is run_call):
        run_op()
        with overdue_turn() as recording_core:
            run_event()
            run_event()
            n_waits, waited_ns = recording_core.waits()
    assert n_waits == 1
    assert waited_ns > 0


def test_giving_way_ends_with_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, python_core)
    monkeypatch.setattr(python_core, "_LONGEST_WAIT_S", 1000.0)

    def take_turns() -> None:
        recording_core.set_turn(0)
        is_overdue.set()
        has_waited.wait(0.05)
        recording_core.set_turn(None)

    is_overdue, has_waited = threading.Event(), threading.Event()
    with profile():
        recording_core = _recording_hooks.active_recording().core
        other = threading.Thread(target=take_turns)
        other.start()
        is_overdue.wait()
        run_op()  # does not return otherwise
        has_waited.set()
        other.join()


def test_the_thread_that_takes_rows_does_not_wait_for_itself(each_core: Any) -> None:
    with profile():
        recording_core = _recording_hooks.active_recording().core
        recording_core.set_turn(0)
        torch.ones(2)
        assert recording_core.waits() == (0, 0)
        recording_core.set_turn(None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_a_thread_that_it_does_not_have(each_core: Any) -> None:
    with profile(), overdue_turn() as recording_core:
        child = os.fork()
        if not child:
            torch.ones(2)
            os._exit(recording_core.waits()[0])
    assert ends_well(child)


def test_the_health_line_says_that_the_program_was_held_up(each_core: Any) -> None:
    with profile() as prof:
        with overdue_turn():
            torch.ones(2)
    health = prof.profiler._results.trace.health
    assert re.fullmatch(
        r"the program was held up once, for \d+ ms in all, so that its recording could be written",
        health.line(),
    )
    assert health  # nothing is missing


def test_who_records_waits_in_each_turn_and_again_while_too_much_waits_to_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, python_core)
    monkeypatch.setattr(python_core, "_MOST_UNTAKEN", 0)
    monkeypatch.setattr(python_core, "_LONGEST_WAIT_IF_FULL_S", 0.001)
    monkeypatch.setattr(python_core, "_LONGEST_WAIT_S", 0)
    with profile(), overdue_turn() as recording_core:
        for n_waits in range(1, 4):
            torch.ones(2)
            assert recording_core.waits()[0] == n_waits


def test_memory_is_allocated_inside_the_op_that_allocates_it(each_core: Any) -> None:
    x = torch.ones(8)
    with profile(profile_memory=True) as prof:
        kept = [x + 1, *torch._foreach_add([x] * 40, 1), x.exp()]  # one result, many, one
    trace = prof.profiler._results.trace
    allocated = trace.memory.time_ns[trace.memory.nbytes > 0]
    ops = trace.kind == OP
    inside = [int(((trace.start_ns[ops] < t) & (t < trace.end_ns[ops])).sum()) for t in allocated.tolist()]
    assert len(set(allocated.tolist())) == len(kept) == 42
    assert min(inside) >= 1
