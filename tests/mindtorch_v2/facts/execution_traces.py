"""Programs whose execution traces are compared with torch's: their nodes, without numbers that differ from run to run.

`python execution_traces.py` (with real torch) records torch's side to execution_traces.json.gz.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any


def annotations(torch: Any) -> Any:
    """Spans, with and without arguments, and an op inside."""
    x = torch.ones(2, 3)

    def run() -> None:
        with torch.profiler.record_function("outer"):
            with torch.profiler.record_function("inner", "some args"):
                torch.neg(x)
        handle = torch.autograd._record_function_with_args_enter("by hand", x, 3, 2.5, "s", [x], (1, 2), None)
        torch.autograd._record_function_with_args_exit(handle)

    return run


def values(torch: Any) -> Any:
    """Every kind of value that an op takes or gives."""
    x, i = torch.ones(2, 3), torch.tensor([1, 0])
    generator = torch.Generator()

    def run() -> None:
        torch.zeros(2, dtype=torch.int64)
        torch.full((2,), float("inf"))
        torch.full((1,), 1 + 2j)
        torch.randn(2, generator=generator)
        torch.nn.functional.gelu(x, approximate="tanh")
        torch.cat([x, x], 1)
        torch.max(x, 0)
        x.split(1)
        x.unbind()
        torch.stack([x, x])
        x[0]
        x[:, 1:2]
        x.transpose(0, 1)
        x.to(torch.float64)
        torch.equal(x, x)
        torch.index_select(x, 0, i)
        x.view(-1)
        x.expand(2, 2, 3)
        x.argmax()
        x.softmax(1)
        torch.ones(1, dtype=torch.bfloat16)
        torch.ones(1, dtype=torch.float16)
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.bool, torch.complex64):
            torch.empty(1, dtype=dtype)
        x.clone().add_(x)
        torch.native_layer_norm(x, [3], None, None, 1e-5)

    return run


def backward(torch: Any) -> Any:
    """A backward pass: engine, nodes, accumulation."""
    x = torch.ones(2, 3, requires_grad=True)
    w = torch.ones(4, 3, requires_grad=True)

    def run() -> None:
        torch.nn.functional.linear(x, w).relu().sum().backward()

    return run


def function(torch: Any) -> Any:
    """A Function of one's own."""
    x = torch.ones(2, requires_grad=True)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, factor: int) -> Any:
            return torch.mul(a, a)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.neg(g), None

    def run() -> None:
        Twice.apply(x, 2).sum().backward()

    return run


def threads(torch: Any) -> Any:
    """Other threads, one of which runs the backward pass of this one's work."""
    x = torch.ones(2, requires_grad=True)

    def run() -> None:
        y = torch.neg(x).sum()
        with torch.profiler.record_function("waiting"):
            worker = threading.Thread(target=y.backward)
            worker.start()
            worker.join()
        worker = threading.Thread(target=lambda: torch.neg(x.detach()))
        worker.start()
        worker.join()

    return run


def training(torch: Any) -> Any:
    """Steps of an optimizer on data of a loader."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 3)), batch_size=2)

    def run() -> None:
        for (batch,) in data:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()

    return run


CASES = {f.__name__: f for f in (annotations, values, backward, function, threads, training)}

# what torch's kernels do inside themselves, and what only its engine's copies show
ARTEFACTS = {
    "aten::resolve_conj",
    "aten::resolve_neg",
    "detach",
    "detach_",
    "aten::_to_copy",
    "aten::result_type",
}

RANDOM = {"aten::item", "aten::_local_scalar_dense"}  # the seed of a loader


def observe(torch: Any, run: Any) -> dict[str, Any]:
    """The execution trace of a call, as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        observer = torch.profiler.ExecutionTraceObserver().register_callback(path)
        observer.start()
        run()
        observer.stop()
        observer.unregister_callback()
        return json.loads(Path(path).read_text())


def essence(trace: dict[str, Any]) -> list[list[Any]]:
    """Nodes in the order in which they began: name, parents' names, what went in and out without numbers of tensors, attributes."""
    by_id = {node["id"]: node for node in trace["nodes"]}
    first: dict[int, int] = {}  # sequence numbers go on from trace to trace, by thread
    for node in trace["nodes"]:
        thread, number = _sequence(node)
        if number >= 0:
            first[thread] = min(number, first.get(thread, number))
    made = []
    for node in sorted(trace["nodes"], key=lambda node: node["id"]):
        attributes = {entry["name"]: entry["value"] for entry in node["attrs"]}
        thread, number = _sequence(node)
        above, parents = node, []
        while above["ctrl_deps"] != above["id"]:
            above = by_id[above["ctrl_deps"]]
            parents.append(above["name"])
        made.append(
            [
                node["name"],
                parents,
                _shown(node["inputs"]),
                [] if node["name"] in RANDOM else _shown(node["outputs"]),
                [number - first[thread] if number >= 0 else -1, attributes["scope"], attributes["op_schema"]],
                [bool(attributes[name]) for name in ("rf_id", "fw_parent", "tid", "fw_tid")],
            ]
        )
    return made


def _sequence(node: dict[str, Any]) -> tuple[int, int]:
    """The thread that counts a node's sequence number, and the number."""
    attributes = {entry["name"]: entry["value"] for entry in node["attrs"]}
    return attributes["fw_tid"] or attributes["tid"], attributes["seq_id"]


def _shown(side: dict[str, list[Any]]) -> list[Any]:
    return [
        [_plain(value, kind), shape, kind, strides]
        for value, shape, kind, strides in zip(side["values"], side["shapes"], side["types"], side["strides"])
    ]


def _plain(value: Any, kind: str) -> Any:
    """A value without the numbers of tensors and memory."""
    if kind.startswith("Tensor("):
        return value[2:]
    if isinstance(value, list) and value and isinstance(value[0], list):
        return [item[2:] for item in value]
    return value


if __name__ == "__main__":
    import torch

    here = Path(__file__).parent
    facts = {name: essence(observe(torch, make(torch))) for name, make in CASES.items()}
    text = json.dumps({"torch": torch.__version__, "traces": facts})
    (here / "execution_traces.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    sys.stdout.write(f"{ {name: len(nodes) for name, nodes in facts.items()} }\n")
