"""torch.jit._get_trace_graph: the ops of one call, their shapes, constants and scopes."""

from __future__ import annotations

from typing import Any

_SIZES = (
    "aten::size",
    "aten::Int",
    "aten::ScalarImplicit",
)  # arithmetic of sizes, which are plain numbers here


def _rows(graph: Any) -> list[Any]:
    rows = []
    for node in graph.nodes():
        kind = node.kind()
        if kind.startswith("prim::") or kind in _SIZES:
            continue
        shapes = [v.type().sizes() if v.isCompleteTensor() else None for v in node.inputs()]
        outputs = [v.type().sizes() for v in node.outputs() if v.isCompleteTensor()]
        rows.append((kind, node.scopeName(), shapes, outputs))
    return rows


def a_convolutional_network(torch: Any, show: Any) -> None:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(8, 4, 2), nn.GELU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(4, 3),
    ).eval()  # fmt: skip
    graph, out = torch.jit._get_trace_graph(model, (torch.rand(1, 3, 16, 16),))
    show(tuple(out.shape))
    for row in _rows(graph):
        show(row)
    convolution = next(node for node in graph.nodes() if node.kind() == "aten::_convolution")
    show([v.toIValue() for v in list(convolution.inputs())[6:]])
    show([v.toIValue() for v in next(iter(list(convolution.inputs())[3:4])).node().inputs()])


def operators_views_and_lists(torch: Any, show: Any) -> None:
    def call(x: Any, y: Any) -> Any:
        product = torch.einsum("bij,bjk->bik", x, y).softmax(-1) @ y.transpose(1, 2)
        left, right = product.chunk(2, 1)
        changed = torch.cat([left, right], 2).add_(1)
        return changed.mean(), torch.nn.functional.interpolate(x[None], scale_factor=2.0, mode="nearest")

    class Call(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return call(x, y)

    graph, _ = torch.jit._get_trace_graph(Call(), (torch.rand(2, 4, 4), torch.rand(2, 4, 4)))
    for row in _rows(graph):
        show(row)
    einsum = next(node for node in graph.nodes() if node.kind() == "aten::einsum")
    equation, operands = list(einsum.inputs())[:2]
    show(equation.toIValue(), operands.node().kind(), [v.type().sizes() for v in operands.node().inputs()])


def scopes_are_those_that_hooks_push(torch: Any, show: Any) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(3, 2))
    )
    for name, module in model.named_modules():
        module.register_forward_pre_hook(
            lambda m, i, name=name: torch._C._get_tracing_state().push_scope(name)
        )
        module.register_forward_hook(lambda m, i, o: torch._C._get_tracing_state().pop_scope())
    show(torch._C._get_tracing_state(), torch.jit.is_tracing())
    graph, _ = torch.jit._get_trace_graph(model, (torch.rand(2, 4),))
    for row in _rows(graph):
        show(row)
    show(torch._C._get_tracing_state(), torch.jit.is_tracing())
