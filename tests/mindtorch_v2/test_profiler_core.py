"""The compiled core and its plain Python twin: the same program gives the same recording."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch
from mindtorch_v2._C._profiler import _ExperimentalConfig
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.record import core, python_core

compiled = None if core.core is python_core else core.core
needs_compiled = pytest.mark.skipif(compiled is None, reason="the compiled core was not built or not chosen")
CORES = [python_core] if compiled is None else [python_core, compiled]
EVERYTHING = {
    "record_shapes": True,
    "profile_memory": True,
    "with_stack": True,
    "with_flops": True,
    "with_modules": True,
}


@pytest.fixture(params=CORES, ids=lambda module: module.NAME)
def each_core(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    use(monkeypatch, request.param)
    return request.param


def use(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    for name in ("Core", "observe", "allocation_id", "alive"):
        monkeypatch.setattr(core, name, getattr(module, name))
    monkeypatch.setattr(core, "core", module)
    module.load_library()


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
        "memory": trace.memory.nbytes.tolist(),
        "calls": [frames.names[name] for name in frames.name[first:last].tolist()],
        "callers": [parent - first if parent >= 0 else -1 for parent in frames.parent[first:last].tolist()],
        "lines": None if frames.line is None else frames.line[first:last].tolist(),
        "tensors": same_or_other(trace.tensor_ids.tensor.tolist()),
        "unfinished": trace.health.unfinished,
    }


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
@settings(max_examples=40, deadline=None)
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


def test_memory_that_a_numpy_array_shares_is_not_freed_with_its_tensor(each_core: Any) -> None:
    with profile(profile_memory=True) as prof:
        x = torch.ones(100)
        array = x.numpy()
        del x
        alive = prof.profiler._recorder.core.memory_rows()[:, 1].sum()
        del array
        at_the_end = prof.profiler._recorder.core.memory_rows()[:, 1].sum()
    assert (alive, at_the_end) == (400, 0)


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
        pytest.skip("not built")
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
