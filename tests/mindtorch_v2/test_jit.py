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
def test_tracing_does_not_run_the_function() -> None:
    called: list[int] = []
    traced = torch.jit.trace(called.append, (torch.ones(1),))
    assert called == []
    traced(3)
    assert called == [3]
