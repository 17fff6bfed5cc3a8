"""torch.jit._get_trace_graph beside what torch shows."""

from __future__ import annotations

import pytest
import recorded_cases

import mindtorch_v2 as torch


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("jit_graph_cases"))
def test_a_graph_has_the_nodes_that_torch_traces(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_the_text_of_a_graph_names_inputs_nodes_and_results() -> None:
    graph, _ = torch.jit._get_trace_graph(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    assert str(graph).splitlines() == [
        "graph(%input.1 : Float(1, 2, strides=[2, 1], device=cpu),",
        "      %weight : Float(3, 2, strides=[2, 1], device=cpu),",
        "      %bias : Float(3, strides=[1], device=cpu)):",
        "  %3 : Float(1, 3, strides=[3, 1], device=cpu) = aten::linear(%input.1, %weight, %bias)",
        "  return (%3)",
    ]


def test_tracing_ends_when_the_traced_call_fails() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.jit._get_trace_graph(torch.nn.Linear(2, 3), (torch.ones(1, 5),))
    assert torch._C._get_tracing_state() is None
    with pytest.raises(NotImplementedError, match="return_inputs is not supported"):
        torch.jit._get_trace_graph(torch.nn.Linear(2, 3), (torch.ones(1, 2),), return_inputs=True)
