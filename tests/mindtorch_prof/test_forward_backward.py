"""Links between forward ops and backward nodes."""

from __future__ import annotations

import numpy as np
from trace_builder import make_trace

import mindtorch_v2 as torch
from mindtorch_prof.forward_backward import forward_backward
from mindtorch_prof.settings import Settings
from mindtorch_prof.trace import NODE, OP
from mindtorch_v2.profiler import ProfilerActivity, profile


def linked() -> list[tuple[str, int, int, bool]]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with profile(activities=[ProfilerActivity.CPU]) as p:
        model(torch.ones(2, 3)).sum().backward()
    return [(e.name, e.flow_id, e.flow_type, e.flow_start) for e in p.events() if e.flow_id]


def test_links_are_numbered_in_the_order_of_the_backward_pass() -> None:
    # recorded from torch 2.13
    assert linked() == [
        ("aten::t", 6, 1, True),
        ("aten::addmm", 5, 1, True),
        ("aten::relu", 4, 1, True),
        ("aten::t", 3, 1, True),
        ("aten::addmm", 2, 1, True),
        ("aten::sum", 1, 1, True),
        ("SumBackward0", 1, 1, False),
        ("AddmmBackward0", 2, 1, False),
        ("TBackward0", 3, 1, False),
        ("ReluBackward0", 4, 1, False),
        ("AddmmBackward0", 5, 1, False),
        ("TBackward0", 6, 1, False),
    ]


def test_an_event_without_a_link_says_so() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as p:
        torch.ones(2) + 1
    assert {(e.flow_id, e.flow_type, e.flow_start) for e in p.events()} == {(0, 0, False)}


def test_a_node_belongs_to_the_last_forward_op_of_its_number() -> None:
    trace = make_trace(
        ("aten::linear", 0, 100, 1, OP, 3),
        ("aten::addmm", 10, 90, 1, OP, 3),
        ("AddmmBackward0", 200, 210, 1, NODE, 3),
        ("NobodysBackward0", 400, 410, 1, NODE, 7),
    )
    forward, backward = forward_backward(trace)
    assert (forward.tolist(), backward.tolist()) == ([1], [2])


def test_sequence_numbers_may_be_as_large_as_a_column_holds() -> None:
    largest = 2**63 - 1
    trace = make_trace(
        ("aten::mm", 0, 10, 1, OP, largest),
        ("aten::mul", 20, 30, 1, OP, 0),
        ("MmBackward0", 40, 50, 1, NODE, largest),
    )
    forward, backward = forward_backward(trace)
    assert (forward.tolist(), backward.tolist()) == ([0], [2])


def test_an_op_that_begins_after_a_node_is_not_its_forward_op() -> None:
    trace = make_trace(("MmBackward0", 0, 10, 1, NODE, 3), ("aten::mm", 20, 30, 1, OP, 3))
    assert len(forward_backward(trace)[0]) == 0


def test_numbers_are_counted_by_thread() -> None:
    trace = make_trace(
        ("aten::mm", 0, 10, 1, OP, 0),
        ("aten::mul", 0, 10, 2, OP, 0),
        ("MmBackward0", 20, 30, 3, NODE, 0),
        ("MulBackward0", 40, 50, 3, NODE, 0),
        forward_thread=np.array([0, 0, 1, 2]),
    )
    forward, backward = forward_backward(trace)
    assert list(zip(forward.tolist(), backward.tolist())) == [(0, 2), (1, 3)]


def test_a_trace_whose_links_are_switched_off_has_none() -> None:
    rows = (("aten::mm", 0, 10, 1, OP, 0), ("MmBackward0", 20, 30, 1, NODE, 0))
    assert len(forward_backward(make_trace(*rows))[0]) == 1
    off = make_trace(*rows, settings=Settings(forward_backward_links=False))
    assert len(forward_backward(off)[0]) == 0
