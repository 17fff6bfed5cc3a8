"""Categories of memory by lifetime: where memory was allocated and how long it lived tell what it is for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import make_memory, make_trace

from mindtorch_prof.allocations import lifetimes
from mindtorch_prof.analysis.memory_by_lifetime import categories_by_lifetime, changes_by_lifetime
from mindtorch_prof.inputs import Inputs, TensorInput
from mindtorch_prof.torch_api.memory_categories import CATEGORY_INDEX, Action
from mindtorch_prof.trace import ANNOTATION, ENGINE, NODE, OP, Trace
from mindtorch_prof.tree import tree

NAMES = ["UNKNOWN" if category is None else category.name for category in CATEGORY_INDEX]
STEP = (
    ("aten::rand", 0, 10),  # a factory: autograd does not see it
    ("aten::mm", 20, 30, 1, OP, 7),
    ("autograd::engine::evaluate_function: MmBackward0", 40, 60, 1, ENGINE, 7),
    ("MmBackward0", 41, 59, 1, NODE, 7),
    ("Optimizer.step#SGD.step", 70, 90, 1, ANNOTATION),
    ("aten::add_", 71, 80),
)


def step(*changes: tuple[int, int, int]) -> Trace:
    return make_trace(*STEP, memory=make_memory(*changes))


def category(trace: Trace) -> list[str]:
    born, died = lifetimes(trace.memory.address, trace.memory.nbytes)
    return [NAMES[number] for number in categories_by_lifetime(trace, tree(trace), born, died).tolist()]


@pytest.mark.parametrize(
    ("allocated", "freed", "expected"),
    [
        (5, 100, "INPUT"),
        (25, 100, "ACTIVATION"),
        (25, 28, "TEMPORARY"),
        (50, 100, "GRADIENT"),
        (50, 55, "AUTOGRAD_DETAIL"),
        (75, 100, "OPTIMIZER_STATE"),
        (75, 78, "TEMPORARY"),
        (65, 100, "UNKNOWN"),
    ],
)
def test_place_and_lifetime_tell_what_memory_is_for(allocated: int, freed: int, expected: str) -> None:
    assert category(step((allocated, 64, 1), (freed, -64, 1))) == [expected]


def test_memory_that_is_never_freed_outlasts_everything() -> None:
    assert category(step((50, 64, 1), (75, 32, 2))) == ["GRADIENT", "OPTIMIZER_STATE"]


def test_memory_of_modules_is_known_by_its_address() -> None:
    trace = step((5, 64, 1), (6, 32, 2))
    memory = replace(trace.memory, of_modules=((1, 64, False), (2, 32, True)))
    assert category(replace(trace, memory=memory)) == ["PARAMETER", "GRADIENT"]


def test_an_address_that_is_used_again_is_freed_by_the_next_free_only() -> None:
    memory = make_memory((1, 8, 5), (2, -8, 5), (3, 16, 5), (4, -16, 5), (5, 4, 6))
    born, died = lifetimes(memory.address, memory.nbytes)
    assert born.tolist() == [0, 2, 4]
    assert died.tolist() == [1, 3, -1]


def test_an_allocation_that_is_followed_by_another_of_its_address_has_no_free() -> None:
    memory = make_memory((1, 8, 5), (3, 16, 5))
    assert [column.tolist() for column in lifetimes(memory.address, memory.nbytes)] == [[0, 1], [-1, -1]]


def test_changes_add_up_to_the_memory_that_is_alive() -> None:
    trace = step((5, 64, 1), (25, 32, 2), (95, -64, 1))
    changes = changes_by_lifetime(trace, tree(trace))
    assert [change[1:3] for change in changes] == [
        (Action.CREATE.value, 64),
        (Action.CREATE.value, 32),
        (Action.DESTROY.value, -64),
    ]
    assert sum(change[2] for change in changes) == int(np.sum(trace.memory.nbytes))
    assert changes[0][3] == changes[2][3]


def test_results_of_ops_in_a_recording_without_backward_are_activations() -> None:
    """Of inference, no op has a backward node: what an op computes from tensors is no input."""
    trace = make_trace(
        ("aten::ones", 0, 10),
        ("aten::mm", 20, 30),
        ("aten::add", 40, 50),
        memory=make_memory((5, 64, 1), (25, 64, 2), (45, 64, 3)),
    )
    no_tensors, two_tensors = Inputs([2]), Inputs([TensorInput((2, 2), (2, 1), "float")] * 2)
    trace = replace(trace, inputs=np.array([0, 1, -1], np.int32), input_table=(no_tensors, two_tensors))
    assert category(trace) == ["INPUT", "ACTIVATION", "UNKNOWN"]
