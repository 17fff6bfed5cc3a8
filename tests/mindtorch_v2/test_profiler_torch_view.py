"""What a profile shows of ordinary calls: names, nesting, shapes, values, sequence numbers, all as torch's.

The facts are recorded with `python facts/record_profile_trees.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fact_files
import profile_snippets
import pytest
import recorded_cases
import registry_calls

import mindtorch_v2 as torch
from mindtorch_prof import load
from mindtorch_prof.load.spill import read_spill, spill_folders
from mindtorch_prof.settings import Settings
from mindtorch_prof.synthetic_rows import as_recorded
from mindtorch_prof.trace import Trace
from mindtorch_v2 import _dispatch
from mindtorch_v2.profiler import torch_view

RECORDED = {name: fact_files.read(file) for name, file in profile_snippets.FILES.items()}
IN_FULL = {name: fact_files.read(file) for name, file in profile_snippets.FILES_IN_FULL.items()}

# deprecated names, attention without batch_first
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """The facts are recorded with one thread, on which the kernels that torch takes depend."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.mark.parametrize(
    ("name", "row"),
    [pytest.param(name, row, id=f"{name} {row[:90]}") for name, rows in RECORDED.items() for row in rows],
)
def test_a_profile_shows_what_torch_shows(name: str, row: str) -> None:
    setup, code = row.split(" ;; ")
    values = name == "profile_value"
    ours, torchs = profile_snippets.profiled(torch, setup, code), RECORDED[name][row]
    assert profile_snippets.compared(ours, values) == profile_snippets.compared(torchs, values)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("row", [row for rows in IN_FULL.values() for row in rows])
def test_a_profile_shows_what_torchs_kernels_cast_allocate_and_view(row: str) -> None:
    setup, code = row.split(" ;; ")
    torchs = next(rows[row] for rows in IN_FULL.values() if row in rows)
    assert profile_snippets.in_full(
        profile_snippets.profiled(torch, setup, code)
    ) == profile_snippets.in_full(torchs)


@pytest.mark.parametrize(("name", "recorded"), [*RECORDED.items(), *IN_FULL.items()])
def test_every_row_is_recorded(name: str, recorded: dict[str, Any]) -> None:
    assert [f"{setup} ;; {code}" for setup, code in profile_snippets.rows(name)] == list(recorded)


def test_an_op_that_writes_is_not_mistaken_for_one_of_its_name_that_makes() -> None:
    x, y = torch.tensor([0.5, -1.0], requires_grad=True), torch.tensor([1.0, -1.0])
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    with torch.profiler.profile():
        torch.nn.functional.soft_margin_loss(x, y).backward()
        assert torch.linalg.det(a).item() == pytest.approx(5)


def test_a_profile_shows_how_much_memory_is_cleared() -> None:
    shown = {}
    for name, x in {
        "small": torch.ones(32767), "large": torch.ones(32768), "empty": torch.ones(0),
        "column": torch.ones(4, 4)[:, 1], "transposed": torch.ones(4, 4).t(),
    }.items():  # fmt: skip
        with torch.profiler.profile(record_shapes=True) as prof:
            x.zero_()
        shown[name] = "aten::fill_" in [e.name for e in prof.events()]
        assert not x.any()
        assert x._version == 1
    assert shown == {"small": False, "large": True, "empty": True, "column": True, "transposed": False}


def test_attention_chooses_the_kernel_torch_chooses() -> None:
    def kernel(q: Any, **options: Any) -> str:
        with torch.profiler.profile() as prof:
            torch.nn.functional.scaled_dot_product_attention(q, q, q, **options)
        return "flash" if any("flash" in e.name for e in prof.events()) else "math"

    q = torch.ones(2, 2, 6, 4)
    shapes = {(6, 6): "flash", (2, 6, 6): "math", (2, 1, 6, 6): "flash", (1, 6, 6): "math"}
    assert {shape: kernel(q, attn_mask=torch.zeros(shape)) for shape in shapes} == shapes
    assert kernel(q.transpose(1, 2)) == "flash"
    assert kernel(q.transpose(2, 3)) == "math"
    mask = torch.zeros(6, 6).fill_diagonal_(-1.0)
    low = torch.nn.functional.scaled_dot_product_attention(*[q.bfloat16()] * 3, attn_mask=mask)
    assert low.dtype is torch.bfloat16


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"kernel_size": 4, "stride": 2, "padding": 1}, (2, 4, 9, 8)),
        ({"kernel_size": 3, "stride": 2, "groups": 2}, (2, 4, 6, 7)),
        ({"kernel_size": 3, "padding": 2, "dilation": 2}, (2, 4, 6, 7)),
    ],
)
def test_a_second_derivative_shows_the_convolutions_that_it_is_made_of(options: dict, shape: tuple) -> None:
    conv, x = torch.nn.Conv2d(4, 8, **options), torch.ones(shape, requires_grad=True)
    with torch.profiler.profile() as prof:
        (g,) = torch.autograd.grad(conv(x).pow(2).sum(), x, create_graph=True)
        g.pow(2).sum().backward(inputs=list(conv.parameters()))
    inside = [e.name for e in prof.events() if e.cpu_parent and "double_backward" in e.cpu_parent.name]
    assert inside.count("aten::convolution") == 1 + options.get("groups", 1)


def test_the_rules_for_children_accept_what_the_ops_accept() -> None:
    failures, n_checked = {}, 0
    for op in [op for op in _dispatch.BY_UID if op.children_rule is not None]:
        make = registry_calls.accepted_arguments(op)  # None for ops that the rows above call
        if make is None:
            continue
        with torch.profiler.profile(record_shapes=True) as prof:
            _dispatch.record(op, *make())
        trace = prof.as_recorded().trace
        row = [trace.names[name] for name in trace.name.tolist()].index(op.qualified_name)
        n_checked += 1
        try:
            torch_view.synthetic_ops(op, trace.input_table[trace.inputs[row]].arguments, trace.settings)
        except Exception as error:
            failures[op.full_name] = repr(error)
    assert failures == {}
    assert n_checked > 100


@pytest.mark.parametrize(("module", "case"), recorded_cases.recorded("convolution_kernel_cases"))
def test_a_convolution_shows_the_kernel_that_torch_takes(module: str, case: str) -> None:
    recorded_cases.check(module, case)


@pytest.fixture
def process_state() -> Iterator[None]:
    n_threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    yield
    torch.set_num_threads(n_threads)
    torch.set_default_dtype(dtype)


def _shown(trace: Trace) -> list[tuple[str, str]]:
    return [
        (trace.names[name], repr(trace.input_table[i].arguments)) for name, i in zip(trace.name, trace.inputs)
    ]


@pytest.mark.usefixtures("process_state")
@pytest.mark.parametrize(
    ("recorded_with", "kernel"), [(1, "aten::thnn_conv2d"), (2, "aten::mkldnn_convolution")]
)
def test_what_is_shown_depends_on_the_process_when_it_was_recorded_not_when_it_is_read(
    recorded_with: int, kernel: str, tmp_path: Path
) -> None:
    convolution, image = torch.nn.Conv2d(3, 4, 1), torch.zeros(2, 3, 5, 5)
    torch.set_num_threads(recorded_with)
    torch.set_default_dtype(torch.float64)
    with torch.profiler.profile(record_shapes=True, spill_dir=tmp_path) as prof:
        convolution(image)
        (
            torch.zeros(3),
            torch.ones(3),
            torch.full((3,), 0.5),
            torch.rand(3),
            torch.eye(3),
            torch.linspace(0, 1, 3),
        )
    torch.set_num_threads(3 - recorded_with)
    torch.set_default_dtype(torch.float32)
    trace = prof.profiler._results.trace
    shown = _shown(trace)
    assert kernel in dict(shown)
    of_the_default_dtype = [
        inputs for name, inputs in shown if name in ("aten::zero_", "aten::fill_", "aten::uniform_")
    ]
    assert len(of_the_default_dtype) == 5
    assert all("'double'" in inputs for inputs in of_the_default_dtype)

    prof.export_chrome_trace(tmp_path / "trace.json")
    prof.save(tmp_path / "trace.mtrace")
    (folder,) = spill_folders(tmp_path)
    for read in (
        load(tmp_path / "trace.json").trace,
        load(tmp_path / "trace.mtrace").trace,
        read_spill(folder),
    ):
        assert (read.settings.num_threads, read.settings.default_dtype) == (recorded_with, "float64")
        assert _shown(torch_view.torch_view(as_recorded(read))) == shown


@pytest.mark.usefixtures("process_state")
def test_rules_for_children_read_nothing_that_a_program_can_change() -> None:
    def evaluated() -> dict[str, Any]:
        settings = Settings(num_threads=1, default_dtype="float32")
        return {
            op.full_name: [
                each._replace(inputs=each.inputs.arguments)
                for each in torch_view.synthetic_ops(op, arguments, settings)
            ]
            for op, arguments in described
        }

    described = []
    for op in [op for op in _dispatch.BY_UID if op.children_rule is not None]:
        make = registry_calls.accepted_arguments(op)
        if make is not None:
            with torch.profiler.profile(record_shapes=True) as prof:
                _dispatch.record(op, *make())
            trace = prof.as_recorded().trace
            row = [trace.names[name] for name in trace.name.tolist()].index(op.qualified_name)
            described.append((op, trace.input_table[trace.inputs[row]].arguments))
    torch.set_num_threads(1)
    expected = evaluated()
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        assert evaluated() == expected
