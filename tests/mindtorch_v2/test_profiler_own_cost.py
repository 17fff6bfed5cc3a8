"""The recorder measures its own cost, and nothing of that is seen in the program or in its recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _recording_hooks as hooks
from mindtorch_v2._graph import grad_state
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import core, own_cost, python_core
from mindtorch_v2.profiler.record.recorder import Config, Recorder

FLAGS: tuple[dict[str, bool], ...] = (
    {},
    {"record_shapes": True},
    {"profile_memory": True},
    {"with_stack": True},
    {"with_modules": True},
    {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
)


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a new process."""
    monkeypatch.setattr(own_cost, "_measured", {})
    yield
    assert hooks.active_hooks() == {}


def work() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_a_recording_says_what_it_added(flags: dict[str, bool]) -> None:
    with profile(**flags) as prof:
        work()
    added = prof.overhead()
    assert added is not None
    assert added.per_event_ns > 0
    assert added.n_events == len(prof.as_recorded().trace)
    assert added.total_ns == added.per_event_ns * added.n_events
    cost = next(iter(own_cost._measured.values()))
    assert min(cost) >= 0
    assert (cost.call_ns > 0) == ("with_stack" in flags or "with_modules" in flags)


def test_it_is_measured_once_per_kind_of_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    measure = own_cost._measure
    monkeypatch.setattr(own_cost, "_measure", lambda config: calls.append(config) or measure(config))
    for flags in ({}, {}, {"record_shapes": True}, {}, {"record_shapes": True}):
        with profile(**flags):
            work()
    assert [config.record_shapes for config in calls] == [False, True]


def test_the_program_does_not_see_the_measurement() -> None:
    torch.manual_seed(3)
    torch.rand(1)
    before = torch.get_rng_state(), grad_state.seq, grad_state.enabled
    with torch.no_grad(), profile(record_shapes=True, profile_memory=True) as prof:
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (grad_state.seq, grad_state.enabled) == before[1:]
    assert prof.events() == []
    assert len(prof.profiler._results.trace.memory) == 0  # type: ignore[union-attr]


class SeesOps(torch.overrides.TorchFunctionMode):
    seen = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SeesOps.seen += 1
        return function(*args, **(kwargs or {}))


def test_nothing_is_measured_while_others_see_ops_or_change_them() -> None:
    with SeesOps(), profile() as prof:
        pass
    assert SeesOps.seen == 0
    assert prof.overhead() is None
    pack = lambda tensor: tensor
    with torch.autograd.graph.saved_tensors_hooks(pack, pack), profile() as prof:
        pass
    assert prof.overhead() is None
    with torch.inference_mode(), profile() as prof:
        pass
    assert prof.overhead() is None
    with profile(), profile(record_shapes=True) as inner:
        work()
    assert inner.overhead() is None


def test_what_the_core_measured_in_the_program_replaces_what_it_measured_before() -> None:
    before = own_cost.OwnCost(300.0, 900.0, 200.0, 100.0, 400.0, 120.0)
    samples = {"op": np.array([150, 250]), "range": np.array([500]), "call": np.array([50, 90])}
    assert before.in_program(samples, 0.0) == (400.0, 1000.0, 220.0, 200.0, 500.0, 140.0)
    # operators have no Python function in between
    assert before.in_program(samples, 1.0).op_ns == 200.0
    assert before.in_program({}, 0.0) == before


def test_samples_during_which_another_program_ran_do_not_count() -> None:
    before = own_cost.OwnCost(300.0, 0.0, 0.0, 100.0)
    assert before.in_program({"op": np.array([200, 3_000_000])}, 0.0).op_ns == 400.0


@pytest.mark.skipif(core.core is python_core, reason="the Python core does not measure itself")
def test_the_compiled_core_measures_some_of_the_events() -> None:
    recorder = Recorder(Config(with_stack=True))
    recorder.start()
    for _ in range(200):
        work()
    recorder.stop()
    samples = recorder.core.cost_samples()
    n_events, n_calls = recorder.core.n_rows(), recorder.core.n_calls()
    recorder.release()
    assert {kind: len(ns) > 0 for kind, ns in samples.items()} == {"op": True, "range": True, "call": True}
    assert len(samples["op"]) + len(samples["range"]) < n_events / 10
    assert len(samples["call"]) < n_calls / 5
    assert all((ns >= 0).all() for ns in samples.values())
