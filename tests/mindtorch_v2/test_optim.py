"""Optimisers and schedulers take the paths torch was recorded to take, op by op, and say what it says."""

from __future__ import annotations

import json
from typing import Any

import fact_files
import numpy as np
import optim_runs as runs
import pytest
import recorded_cases

import mindtorch_v2 as torch

CASES = ("optim_cases", "optim_scheduler_cases")


RECORDED = fact_files.read("optim.json.gz")

# Relative errors of a few roundings each step.
TOLERANCE = {"float64": 1e-8, "bfloat16": 1e-2}


def close(found: Any, expected: Any, tolerance: float = 2e-5) -> bool:
    """Whether two nested lists hold the same numbers."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(close(f, e, tolerance) for f, e in zip(found, expected))
    return bool(np.isclose(found, expected, rtol=tolerance, atol=tolerance * 0.1, equal_nan=True))


def same_state(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two described state dicts have the same keys in the same order, dtypes and numbers."""
    if isinstance(expected, dict):
        if found.keys() != expected.keys():
            return False
        if "tensor" in expected:
            same_dtype = found["tensor"] == expected["tensor"]
            return same_dtype and close(found["values"], expected["values"], tolerance)
        return all(same_state(found[key], expected[key], tolerance) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            same_state(f, e, tolerance) for f, e in zip(found, expected)
        )
    if isinstance(expected, float):
        return close(found, expected, tolerance)
    return bool(found == expected and type(found) is type(expected))


@pytest.mark.parametrize("expression", runs.OPTIMIZERS)
def test_an_optimizer_takes_the_path_torch_takes(expression: str) -> None:
    row = runs.OPTIMIZERS[expression]
    expected, tolerance = RECORDED["optimizers"][expression], TOLERANCE.get(row.get("dtype"), 2e-5)
    found = runs.trajectory(torch, expression, row)
    for step, (params, wanted) in enumerate(zip(found["path"], expected["path"], strict=True)):
        assert close(params, wanted, tolerance), f"after step {step}"
    assert same_state(json.loads(json.dumps(found["state"])), expected["state"], tolerance)


@pytest.mark.parametrize(
    "expression", [e for e in runs.OPTIMIZERS if "continued" in RECORDED["optimizers"][e]]
)
def test_an_optimizer_goes_on_from_a_state_dict_of_torch(expression: str) -> None:
    row = runs.OPTIMIZERS[expression]
    expected = RECORDED["optimizers"][expression]
    found = runs.continued(torch, expression, row, expected["path"][-1], expected["state"])
    assert close(found, expected["continued"], TOLERANCE.get(row.get("dtype"), 2e-5))


@pytest.mark.parametrize("expression", [e for e in runs.OPTIMIZERS if "ops" in RECORDED["optimizers"][e]])
def test_a_step_shows_the_ops_torch_shows(expression: str) -> None:
    row = runs.OPTIMIZERS[expression]
    ps = runs.parameters(torch, row)
    optimizer = runs.make(torch, expression, ps)
    for step, expected in enumerate(RECORDED["optimizers"][expression]["ops"]):
        runs.set_gradients(torch, ps, row, step)
        assert _ops_of(optimizer.step)[1:] == expected


def _ops_of(call: Any) -> list[str]:
    """The annotations and outermost ops that a call shows while something records."""
    with torch.profiler.profile() as prof:
        call()
    events = sorted(prof.as_recorded().events(), key=lambda event: event.time_range.start)
    outermost = [
        event
        for event in events
        if event.cpu_parent is None or event.cpu_parent.name.startswith("Optimizer.")
    ]
    return [event.name for event in outermost]


def test_steps_and_zeroing_are_annotated_with_the_name_of_the_class() -> None:
    class Mine(torch.optim.SGD):
        pass

    param = torch.ones(2, requires_grad=True)
    param.grad = torch.ones(2)
    optimizer = Mine([param])
    assert _ops_of(optimizer.step) == ["Optimizer.step#Mine.step", "aten::add_"]
    assert _ops_of(lambda: optimizer.zero_grad(False)) == [
        "Optimizer.zero_grad#Mine.zero_grad",
        "aten::zero_",
    ]


@pytest.mark.parametrize("expression", runs.LBFGS)
def test_lbfgs_takes_the_path_torch_takes(expression: str) -> None:
    expected = RECORDED["lbfgs"][expression]
    found = runs.minimised(torch, expression, runs.LBFGS[expression])
    assert close(found["losses"], expected["losses"], 1e-6)
    assert close(found["params"], expected["params"], 1e-5)
    assert found["calls"] == expected["calls"]


@pytest.mark.parametrize("name", RECORDED["schedules"])
def test_a_scheduler_sets_the_rates_torch_sets(name: str) -> None:
    expression, optimizer = name.split(" | ")
    tolerance = 1e-6 if "tensor" in optimizer else 1e-14
    assert close(runs.schedule(torch, expression, optimizer), RECORDED["schedules"][name], tolerance)


@pytest.mark.parametrize("expression", RECORDED["epochs"])
def test_a_scheduler_goes_to_a_given_epoch_as_torch_does(expression: str) -> None:
    found = runs.schedule(torch, expression, runs.SCHEDULER_OPTIMIZERS[0], epochs=True)
    assert close(found, RECORDED["epochs"][expression], 1e-14)


@pytest.mark.parametrize("expression", runs.PLATEAUS)
def test_a_plateau_lowers_the_rate_when_torch_does(expression: str) -> None:
    assert runs.plateau(torch, expression) == RECORDED["plateaus"][expression]


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded(*CASES))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_an_update_writes_into_the_parameters_memory() -> None:
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        param = torch.ones(3, 4, requires_grad=True)
        view, version = param.detach().numpy(), param._version
        param.grad = torch.ones(3, 4)
        getattr(torch.optim, name)([param], lr=0.1).step()
        assert (view == param.detach().numpy()).all()
        assert (view != 1).all()
        assert param._version > version


def test_a_changed_parameter_that_backward_needs_is_noticed() -> None:
    weight = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    loss = (weight * other).sum()
    weight.grad = torch.ones(2)
    torch.optim.Adam([weight]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_parameter_that_is_a_view_or_transposed_is_updated_in_place() -> None:
    base = torch.zeros(4, 3)
    param = base.t().requires_grad_()
    for name, options in (("Adam", {}), ("SGD", {"momentum": 0.9, "weight_decay": 0.1}), ("AdamW", {})):
        plain = param.detach().clone().contiguous().requires_grad_()
        for tensor in (param, plain):
            tensor.grad = torch.arange(12.0).reshape(3, 4)
            getattr(torch.optim, name)([tensor], lr=0.1, **options).step()
        assert torch.equal(param.detach(), plain.detach())
        assert torch.equal(base, plain.detach().t())


def test_an_optimizer_of_an_empty_parameter_does_nothing() -> None:
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        param = torch.zeros(0, 3, requires_grad=True)
        param.grad = torch.zeros(0, 3)
        getattr(torch.optim, name)([param], lr=0.1).step()
        assert param.shape == (0, 3)


FOREACH = (
    "SGD",
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "Adamax",
    "NAdam",
    "RAdam",
    "ASGD",
    "Adadelta",
    "Rprop",
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # RAdam divides by zero, as torch does
@pytest.mark.parametrize("name", FOREACH)
def test_foreach_updates_whole_lists_to_the_same_values(name: str, op_names: Any) -> None:
    paths, shown = [], []
    for foreach in (False, True):
        params = [torch.arange(1.0, size + 1).sin().requires_grad_() for size in (2, 3)]
        optimizer = getattr(torch.optim, name)(params, lr=0.1, foreach=foreach)
        for step in range(3):
            for param in params:
                param.grad = (param.detach() * (step + 1)).cos()
            shown.append(op_names(optimizer.step))
        paths.append([param.tolist() for param in params])
    assert paths[1] == [pytest.approx(values, rel=1e-6) for values in paths[0]]
    plain, listed = shown[0], shown[-1]
    assert not [op for op in plain if op.startswith("_foreach")]
    assert [op for op in listed if op.startswith("_foreach")] != []


def test_a_profile_of_foreach_shows_one_op_for_all_parameters(op_names: Any) -> None:
    params = [torch.ones(size, requires_grad=True) for size in (2, 3)]
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer = torch.optim.SGD(params, lr=0.1, foreach=True)
    assert op_names(optimizer.step) == ["Optimizer.step#SGD.step", "_foreach_add_", "add_", "add_"]
