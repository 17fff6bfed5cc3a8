"""Memory by category: which way decides, and what both ways agree on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import mindtorch_v2 as torch
from mindtorch_prof.allocations import lifetimes
from mindtorch_prof.analysis import memory_breakdown
from mindtorch_prof.torch_api.memory_categories import CATEGORY_INDEX, Action
from mindtorch_prof.torch_api.results import Results
from mindtorch_prof.trace import TensorIds
from mindtorch_v2.profiler import profile

NAMES = [None if category is None else category.name for category in CATEGORY_INDEX]


@pytest.fixture(scope="module")
def trained() -> Results:
    """One training step, in which tensors were told apart."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        loss = model(torch.randn(3, 4)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return Results(prof.profiler._results.trace)


def allocated(results: Results) -> Counter[tuple[str | None, int]]:
    """How often memory of a category and size was allocated."""
    memory = results.trace.memory
    born, died = lifetimes(memory.address, memory.nbytes)
    numbers = memory_breakdown.memory_categories(results, born, died)
    return Counter(zip([NAMES[number] for number in numbers.tolist()], memory.nbytes[born].tolist()))


def test_both_ways_say_the_same_of_a_plain_training_step(trained: Results) -> None:
    untold = Results(replace(trained.trace, tensor_ids=TensorIds.none()))
    assert trained.memory_profile is not None
    assert untold.memory_profile is None
    assert allocated(trained) == allocated(untold)
    assert {category for category, _ in allocated(untold)} == {
        "INPUT",
        "ACTIVATION",
        "GRADIENT",
        "AUTOGRAD_DETAIL",
        "OPTIMIZER_STATE",
    }


def test_reports_of_long_recordings_go_by_lifetime(trained: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Results(trained.trace)
    monkeypatch.setattr(memory_breakdown, "_MOST_EVENTS", len(trained.trace) - 1)
    allocated(recording)
    assert "memory_profile" not in vars(recording)
    monkeypatch.setattr(memory_breakdown, "_MOST_EVENTS", len(trained.trace))
    allocated(recording)
    assert "memory_profile" in vars(recording)


def test_changes_add_up_to_what_is_allocated_at_the_end(trained: Results) -> None:
    for results in (trained, Results(replace(trained.trace, tensor_ids=TensorIds.none()))):
        changes = memory_breakdown.memory_changes(results)
        taken = [change for change in changes if change[1] != Action.PREEXISTING.value]
        assert sum(nbytes for _, _, nbytes, _ in taken) == int(results.trace.memory.nbytes.sum())
        assert [change[0] for change in changes] == sorted(change[0] for change in changes)
