"""Ops that are called often see their calls themselves: what is recorded is what their probes recorded."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dispatch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import probes, recorder, seal
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

MODES = {
    "default": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
}


@pytest.fixture(scope="module")
def elsewhere() -> bool:
    """Whether these tests ran in a process of their own: where somebody answers ops, none sees its calls."""
    if not any(op.bodies for op in _dispatch.BY_UID):
        return False
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", __file__]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    return True


@pytest.fixture(autouse=True)
def _everything_is_called_often(monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> Iterator[None]:
    if elsewhere:
        pytest.skip("passed in a process of its own")
    monkeypatch.setattr(seal, "HOT_CALLS", 1)
    monkeypatch.setattr(recorder, "_FULLY_TRACED_OPS", 1)
    yield
    recorder.hot_ops.clear()


def work() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    w = torch.ones(4, 2, requires_grad=True)
    y = (x @ w).relu().add(1).mul_(2) + x[:, :2]
    torch.cat([y, y], dim=1).sum(dim=1).mean().backward()
    x.max(dim=1), x.sort(), torch.stack([x, x]), x.t() * 2.5, 3 - x, x.softmax(-1)
    torch.nn.functional.linear(x, w.detach().t()), x.to(torch.float64), torch.ones(3), x.clone().zero_()
    torch.add(x, x, alpha=2, out=torch.empty(3, 4)), x.sum(axis=0), x.std(), x > 2, x.view(-1)[2:5]
    with pytest.raises(RuntimeError):
        x @ x
    with pytest.raises(TypeError):
        x + "a"


def looks(prof: Any) -> list[tuple]:
    first = min((e.sequence_nr for e in prof.events() if e.sequence_nr >= 0), default=0)
    return [
        (
            e.name,
            e.cpu_parent and e.cpu_parent.name,
            e.input_shapes,
            e.concrete_inputs,
            e.flops,
            e.cpu_memory_usage,
            e.stack[:2],
            e.sequence_nr - first if e.sequence_nr >= 0 else -1,
        )
        for e in prof.events()
        if e.name != "[memory]"  # ends of what an earlier recording saw taken
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_recording_is_the_same_when_ops_see_their_calls_themselves(mode: str) -> None:
    found = []
    for _ in range(3):
        with profile(**MODES[mode]) as prof:  # type: ignore[arg-type]
            torch.ones(1)  # the first op of a recording with stacks leaves calls to the stacks
            work()
        found.append(looks(prof))
    add = _dispatch.OPS["add.Tensor"]
    assert add in recorder.hot_ops
    assert any(name.startswith("p_probe_list_") for name in add.operator.__code__.co_names)
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_recordings_of_different_kinds_may_follow_and_hold_one_another() -> None:
    for mode in (*MODES, *reversed(MODES)):
        with profile(**MODES[mode]) as outer:  # type: ignore[arg-type]
            work()
            with profile(record_shapes=True) as inner:
                work()
            work()
        assert [e.name for e in inner.events()].count("aten::std") == 1
        assert [e.name for e in outer.events()].count("aten::std") == 2


def test_other_threads_are_not_recorded() -> None:
    for _ in range(2):
        with profile() as prof:
            torch.ones(2) + 1
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert [e.name for e in prof.events()].count("aten::add") == 1


def test_nothing_is_recorded_after_the_stop_and_while_paused() -> None:
    with profile():
        work()
    with profile() as prof:
        work()
        prof.pause()
        work()
        prof.resume()
    work()
    assert [e.name for e in prof.events()].count("aten::std") == 1


def test_ops_that_give_several_results_or_write_keep_their_probes_way_with_memory() -> None:
    assert not probes._has_single_return(["return (t0, t1)"])
    assert not probes._has_single_return(["if t is not None: return t", "return t"])
    assert probes._has_single_return(["except E: return recover(OP)", "return t"])


def test_who_answers_ops_is_asked_all_the_same() -> None:
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    x = torch.ones(2)
    with profile():
        x + x
    with profile() as prof:
        x + x
        with Seen():
            x + x
        x + x
    assert names == ["aten.add.Tensor"]
    assert [e.name for e in prof.events()].count("aten::add") >= 3
    with profile(), Seen():
        x + x
    assert names == ["aten.add.Tensor"] * 2
