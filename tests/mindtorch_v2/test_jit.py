"""torch.jit: functions and modules run as they are, and are neither saved nor loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


def test_forked_functions_are_seen():
    def inner(x):
        with torch.profiler.record_function("inner"):
            return x * 2

    with profile() as prof:
        torch.jit._wait(torch.jit._fork(inner, torch.ones(2)))
    assert [e.name for e in prof.events()].count("inner") == 1


@pytest.mark.usefixtures("eager_warnings_forgotten")
def test_scripted_and_traced_modules_are_the_modules_themselves() -> None:
    model = torch.nn.Linear(2, 2).eval()
    with pytest.warns(UserWarning, match="runs eagerly"):
        same = (torch.jit.script(model), torch.jit.trace(model, torch.ones(1, 2)), torch.jit.freeze(model))
    assert all(made is model for made in same)
    assert not isinstance(model, torch.jit.ScriptModule)
    with pytest.raises(RuntimeError, match="nothing is compiled"):
        torch.jit.save(model, "model.pt")


def test_a_torchscript_file_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "script.pt"
    archive.write_bytes(b"")
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.jit.load(archive)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_tracing_calls_the_function_once_with_the_examples() -> None:
    torch.manual_seed(0)
    first, second = torch.rand(2), torch.rand(2)
    torch.manual_seed(0)
    calls: list[torch.Tensor] = []

    def noisy(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x + torch.rand(2)

    traced = torch.jit.trace(noisy, torch.zeros(2))  # draws the first numbers, as torch's tracing does
    assert [x.tolist() for x in calls] == [[0.0, 0.0]]
    assert torch.equal(traced(torch.zeros(2)), second)
    assert not torch.equal(first, second)


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_tracing_a_module_updates_its_buffers() -> None:
    norm = torch.nn.BatchNorm1d(2)
    torch.jit.trace_module(norm, {"forward": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})
    assert norm.num_batches_tracked.item() == 1
    keywords = {"x": torch.ones(1)}
    assert torch.jit.trace(lambda x: x + 1, example_kwarg_inputs=keywords)(**keywords).item() == 2.0
