"""Links between forward ops and backward nodes, as events show them."""

from __future__ import annotations

import mindtorch_v2 as torch
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
