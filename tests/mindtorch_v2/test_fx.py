"""torch.fx: traced programs, generated code and changed graphs, against torch."""

from __future__ import annotations

import pytest
import recorded_cases

import mindtorch_v2 as torch
from mindtorch_v2 import fx


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("fx_cases"))
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    recorded_cases.check(module, case)


def test_stack_traces_name_the_lines_of_the_traced_program_only() -> None:
    class Recording(fx.Tracer):
        record_stack_traces = True

    def program(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    node = next(n for n in Recording().trace(program).nodes if n.op == "call_function")
    assert node.stack_trace.count("File ") == 1
    assert __file__ in node.stack_trace
    assert "return x + 1" in node.stack_trace


def test_gradients_flow_through_a_graph_module() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    traced = fx.symbolic_trace(module)
    x = torch.ones(2, 3)
    module(x).sum().backward()
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    traced(x).sum().backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(traced.parameters(), expected))


def test_tracing_leaves_modules_and_functions_as_they_were() -> None:
    before = (torch.nn.Module.__call__, torch.nn.Module.__getattr__)
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: x or -x)
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__) == before


def test_an_imported_fx_costs_functions_nothing_until_a_program_is_traced() -> None:
    import subprocess
    import sys

    program = (
        "import mindtorch_v2 as torch, mindtorch_v2.fx as fx\n"
        "from mindtorch_v2 import _overrides\n"
        "assert not _overrides.process_state.functions_guarded\n"
        "fx.symbolic_trace(lambda x: x + 1)\n"
        "assert _overrides.process_state.functions_guarded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_container_of_this_library_is_traced_without_annotations_of_its_source() -> None:
    code = fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU())).code
    assert code.strip().split("\n")[:2] == ["def forward(self, input):", "    input_1 = input"]


def test_types_that_name_the_same_forward_reference_are_written() -> None:
    from typing import ForwardRef

    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    x.type, y.type = dict[str, ForwardRef("Any")], dict[str, ForwardRef("Any")]
    graph.output((x, y))
    code = torch.fx.GraphModule(torch.nn.Module(), graph).code
    assert code.count("dict[str,ForwardRef_Any_]") == 2
