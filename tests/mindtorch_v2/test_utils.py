"""torch.utils besides data: hooks, trees, checkpoints, DLPack, benchmark, and what refuses."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import benchmark
from mindtorch_v2.utils.checkpoint import checkpoint

FACTS = Path(__file__).parent / "facts"
RECORDED = {
    name: json.loads((FACTS / f"{name}.json").read_text()) for name in ("utils_cases", "checkpoint_cases")
}


def _load(name: str) -> Any:
    if str(FACTS) not in sys.path:
        sys.path.insert(0, str(FACTS))
    return importlib.import_module(name)


@pytest.mark.parametrize(("module", "case"), [(m, c) for m, cases in RECORDED.items() for c in cases])
def test_a_case_shows_what_torch_showed(module: str, case: str) -> None:
    runner = _load("case_runner")
    function = runner.cases(_load(module))[case]
    assert runner.run(function, "mindtorch_v2") == RECORDED[module][case]


def test_the_warning_of_a_backward_hook_points_at_the_call_of_backward() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    out = layer(torch.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="Full backward hook is firing") as caught:
        out.backward()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_keeps_nothing_of_what_it_computes(use_reentrant: bool) -> None:
    between: list[Any] = []

    def function(x: Any) -> Any:
        y = x.exp()
        between.append(weakref.ref(y))
        return y.sin()

    out = checkpoint(function, torch.ones(4, requires_grad=True), use_reentrant=use_reentrant)
    gc.collect()
    assert [reference() for reference in between] == [None]
    out.sum().backward()
    gc.collect()
    assert [reference() for reference in between] == [None, None]


def test_an_outer_checkpoint_drops_the_inputs_of_an_inner_one() -> None:
    between: list[Any] = []

    def outer(x: Any) -> Any:
        y = x * 2
        between.append(weakref.ref(y))
        return checkpoint(lambda y: y.exp().sin(), y, use_reentrant=False)

    x = torch.ones(4, requires_grad=True)
    out = checkpoint(outer, x, use_reentrant=False)
    gc.collect()
    assert between[0]() is None
    out.sum().backward()
    expected = torch.ones(4, requires_grad=True)
    (expected * 2).exp().sin().sum().backward()
    assert torch.equal(x.grad, expected.grad)


def test_checkpoints_repeat_autocast() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        y = x @ x
        seen.append(y.dtype)
        return y

    x = torch.ones(2, 2, requires_grad=True)
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        out = checkpoint(function, x, use_reentrant=False, early_stop=False)
    out.sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_an_input_changed_in_place_after_a_checkpoint_is_found_out() -> None:
    x = torch.ones(2, requires_grad=True).clone()
    out = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_debug_lists_the_ops_of_both_runs() -> None:
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        return (x.sin() if len(runs) == 1 else x).cos()

    out = checkpoint(function, torch.ones(2, requires_grad=True), use_reentrant=False, debug=True)
    with pytest.raises(RuntimeError, match="different number of tensors") as caught:
        out.sum().backward()
    first, again = str(caught.value).split("Operators that ran in the ")[1:]
    assert first.split() == ["original", "forward:", "aten::sin([2])", "aten::cos([2])"]
    assert again.split() == ["recomputation:", "aten::cos([2])"]


def test_a_statement_is_measured() -> None:
    timer = benchmark.Timer("torch.add(x, 1)", "x = torch.ones(2)", num_threads=1, label="add")
    once = timer.timeit(5)
    assert (once.number_per_run, len(once.raw_times), once.label) == (5, 1, "add")
    seen: list[int] = []
    many = timer.blocked_autorange(lambda number, taken: seen.append(number), min_run_time=0.01)
    assert seen == [many.number_per_run] * len(many.raw_times)
    assert sum(many.raw_times) >= 0.01
    adaptive = timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.02)
    assert adaptive.median > 0
    assert benchmark.Timer("own", globals={"own": 1}).timeit(1).number_per_run == 1
    assert benchmark.Timer("\n    for i in range(3):\n        pass\n").timeit(1).stmt.startswith("for")


def test_what_needs_a_compiler_refuses() -> None:
    with pytest.raises(NotImplementedError, match="no compiler"):
        benchmark.Timer("x + y;", language="c++")
    with pytest.raises(NotImplementedError, match="valgrind"):
        benchmark.Timer("x").collect_callgrind()


def test_downloads_refuse() -> None:
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.utils.model_zoo.load_url("https://example.org/model.pth")


def test_the_environment_is_reported() -> None:
    from mindtorch_v2.utils import collect_env

    report = collect_env.get_pretty_env_info()
    assert f"MindTorch version: {torch.version.__version__}" in report
    assert "Is CUDA available: False" in report
    assert "[pip3] numpy==" in report


def test_tensorboard_is_asked_for_when_it_is_missing() -> None:
    if importlib.util.find_spec("tensorboard") is not None:
        pytest.skip("tensorboard is installed")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'mindtorch_v2\[tensorboard\]'"):
        importlib.import_module("mindtorch_v2.utils.tensorboard")


def test_tensorboard_files_can_be_read_back(tmp_path: Path) -> None:
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_file_loader", reason="runs with the extra `tensorboard`"
    )
    from mindtorch_v2.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor(2.5), 3)
        writer.add_text("note", "hello", 4)
        writer.add_histogram("weights", torch.arange(10.0), 5)
        with pytest.raises(AttributeError, match="this library writes scalar"):
            writer.add_graph(None)
    (path,) = tmp_path.iterdir()
    events = [event for event in loader.EventFileLoader(str(path)).Load() if event.summary.value]
    assert [(event.step, event.summary.value[0].tag) for event in events] == [
        (3, "loss"),
        (4, "note/text_summary"),
        (5, "weights"),
    ]


def test_parts_of_utils_are_there_without_being_imported() -> None:
    program = (
        "import mindtorch_v2 as torch, sys; assert 'mindtorch_v2.utils.data' not in sys.modules; "
        "torch.utils.data.DataLoader, torch.utils.checkpoint.checkpoint, torch.utils.hooks.BackwardHook; "
        "torch.utils._pytree.tree_map, torch.utils.dlpack.from_dlpack"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)
    assert {"data", "hooks"} <= set(dir(torch.utils))
    with pytest.raises(AttributeError):
        torch.utils.nothing  # noqa: B018
