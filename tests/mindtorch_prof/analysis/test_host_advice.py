"""Rules about the host: programs with a costly habit get the advice for it, with evidence and time."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import kineto_documents as documents
import pytest
from device_program import DeviceProgram, codes, one
from recording_cores import use

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.record import python_core

ALL: dict[str, Any] = {"with_stack": True, "record_shapes": True}


def test_a_loop_over_rows_is_found_with_its_place() -> None:
    x = torch.ones(50, 50)
    with profile(**ALL) as prof:
        for i in range(30):
            x[i].sum()
    advice = one(prof, "indexing_loop")
    assert advice.count == 1
    assert "30 iterations" in advice.message
    assert 0 < advice.share <= 1
    (row,) = advice.evidence
    assert row["name"] == "aten::select"
    assert "test_a_loop_over_rows_is_found_with_its_place" in row["where"]
    events = [e for e in prof.events() if e.activity_type != "python_function"]
    total = sum(e.cpu_time_total for e in events if e.cpu_parent not in events)
    assert 0.5 * total < advice.at_stake_us <= total + 1
    assert row["total_us"] == advice.at_stake_us


def test_few_rows_are_no_loop() -> None:
    x = torch.ones(50, 50)
    with profile(**ALL) as prof:
        for i in range(9):
            x[i].sum()
    assert "indexing_loop" not in codes(prof)


def test_synchronous_loading_is_found() -> None:
    loader = torch.utils.data.DataLoader(torch.ones(40, 10), batch_size=10)
    with profile() as prof:
        for batch in loader:
            batch.sum()
    advice = one(prof, "loader_wait")
    assert advice.count == 5  # and the one that finds nothing left
    assert "num_workers" in advice.advice
    assert advice.evidence[0]["name"] == "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize("stacks", [False, True])
def test_zeroed_gradients_are_found_in_optimizers_and_modules(stacks: bool) -> None:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    with profile(with_stack=stacks) as prof:
        optimizer.zero_grad(set_to_none=False)
        model.zero_grad(set_to_none=False)
    assert one(prof, "zeroed_gradients").count == (4 if stacks else 2)
    with profile(with_stack=stacks) as prof:
        optimizer.zero_grad()
    assert "zeroed_gradients" not in codes(prof)


def test_a_bias_before_a_batch_norm_is_found() -> None:
    image = torch.ones(1, 3, 8, 8)
    for bias, expected in ((True, 1), (False, 0)):
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3, bias=bias), torch.nn.BatchNorm2d(3))
        with profile(**ALL) as prof:
            model(image)
        assert codes(prof).count("bias_before_norm") == expected
    apart = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), torch.nn.ReLU(), torch.nn.BatchNorm2d(3))
    with profile(**ALL) as prof:
        apart(image)
    assert "bias_before_norm" not in codes(prof)


def test_thousands_of_tiny_ops_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2)
    ticks = itertools.count(1_000_000, 1_000)
    monkeypatch.setattr(python_core, "clock", lambda: next(ticks))
    use(monkeypatch, python_core)  # the compiled core has no clock that can be replaced
    with profile() as prof:
        for _ in range(1000):
            x.add(x)
    advice = one(prof, "tiny_ops")
    assert 500 <= advice.count <= 1000
    assert advice.evidence[0]["name"] == "aten::add"


def test_an_optimizer_of_torch_that_goes_one_by_one_is_found(tmp_path: Path) -> None:
    step = documents.event("Optimizer.step#Adam.step", 0.0, 1000.0, "user_annotation")
    ops = [documents.event("aten::add_", 10.0 * i, 5.0) for i in range(1, 31)]
    advice = one(load(documents.write(tmp_path / "a.json", [step, *ops])), "single_tensor_optimizer")
    assert (advice.count, advice.at_stake_us) == (1, 1000.0)
    together = [*ops, documents.event("aten::_foreach_add_", 900.0, 5.0)]
    assert codes(load(documents.write(tmp_path / "b.json", [step, *together]))) == []


@pytest.mark.parametrize(
    ("optimizer", "kernel", "expected"),
    [
        ("Adam", "elementwise_kernel", True),
        ("Adam", "void multi_tensor_apply_kernel<TensorListMetadata<4>>", False),  # Apex, and torch's foreach
        ("FusedAdam", "elementwise_kernel", False),
    ],
)
def test_optimizers_that_update_many_parameters_at_once_are_left_alone(
    optimizer: str, kernel: str, expected: bool, tmp_path: Path
) -> None:
    program = DeviceProgram()
    program.op(f"Optimizer.step#{optimizer}.step", 0, 1000, "user_annotation")
    for number in range(30):
        program.kernel("aten::add_", 10.0 * number + 5, 10.0 * number + 10, 3, kernel)
    assert ("single_tensor_optimizer" in codes(program.load(tmp_path))) is expected


def test_collectives_of_gloo_are_found_where_no_op_runs_meanwhile(tmp_path: Path) -> None:
    events = [
        documents.event("aten::mm", 0, 100),
        documents.event("gloo:all_reduce", 50, 150, "user_annotation", tid=9),
        documents.event("aten::add", 220, 30),
    ]
    advice = one(load(documents.write(tmp_path / "t.json", events)), "exposed_communication")
    assert (advice.count, advice.at_stake_us) == (1, 100.0)
