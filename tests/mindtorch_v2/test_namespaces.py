"""Namespaces around the core: what they answer, refuse and warn of, against what torch's CPU build shows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _compile, _dispatch

FACTS = Path(__file__).parent / "facts"


def _load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, FACTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = _load("case_runner")
CASES = [
    (name, case)
    for name in ("namespace_cases", "amp_cases")
    for case in json.loads((FACTS / f"{name}.json").read_text())
]


@pytest.mark.parametrize(("module", "case"), CASES, ids=[case for _, case in CASES])
def test_namespaces_show_what_torch_shows(module: str, case: str) -> None:
    expected = json.loads((FACTS / f"{module}.json").read_text())[case]
    assert runner.run(runner.cases(_load(module))[case], "mindtorch_v2") == expected


@pytest.fixture
def _warnings_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compile, "_warned", set())


EAGER: dict[str, Any] = {
    "torch.compile": torch.compile,
    "torch.compile, with arguments": lambda f: torch.compile(fullgraph=True)(f),  # noqa: PLW0108 - warns now
    "torch.compile, with a mode": lambda f: torch.compile(f, mode="reduce-overhead", backend="inductor"),
    "torch.compiler.compile": torch.compiler.compile,
    "torch.jit.script": torch.jit.script,
    "torch.jit.trace": lambda f: torch.jit.trace(f, (torch.ones(1),)),
    "torch._dynamo.optimize": lambda f: torch._dynamo.optimize("eager")(f),  # noqa: PLW0108 - warns now
}


@pytest.mark.usefixtures("_warnings_forgotten")
@pytest.mark.parametrize("form", EAGER)
def test_compiling_runs_the_function_eagerly_and_warns_once(form: str) -> None:
    with pytest.warns(UserWarning, match="runs eagerly") as caught:
        compiled = EAGER[form](lambda x: x + 1)
    assert len(caught) == 1
    assert compiled(torch.ones(1)).item() == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EAGER[form](lambda x: x)


@pytest.mark.usefixtures("_warnings_forgotten")
def test_a_compiled_module_is_wrapped_as_torch_wraps_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
    with pytest.warns(UserWarning, match="runs eagerly"):
        compiled = torch.compile(model)
    x = torch.ones(1, 2)
    assert type(compiled).__name__ == "OptimizedModule"
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert len(list(compiled.parameters())) == 2
    compiled.eval()
    assert not model.training
    assert torch.equal(compiled(x), model(x))
    compiled.note = "set on the module itself"
    assert model.note == "set on the module itself"
    assert len(compiled) == 2
    model.train()
    assert compiled.training


@pytest.mark.usefixtures("_warnings_forgotten")
def test_scripted_and_traced_modules_are_the_modules_themselves() -> None:
    model = torch.nn.Linear(2, 2).eval()
    with pytest.warns(UserWarning, match="runs eagerly"):
        same = (torch.jit.script(model), torch.jit.trace(model, torch.ones(1, 2)), torch.jit.freeze(model))
    assert all(made is model for made in same)
    assert not isinstance(model, torch.jit.ScriptModule)
    with pytest.raises(RuntimeError, match="nothing is compiled"):
        torch.jit.save(model, "model.pt")


def test_what_needs_a_captured_graph_or_a_download_is_refused(tmp_path: Path) -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match="captures no graph"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1, 1),), tmp_path / "model.onnx")
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.hub.load("owner/repository", "model")
    with pytest.raises(RuntimeError, match="downloads nothing"):
        torch.hub.load_state_dict_from_url("https://example.org/w.pth", model_dir=str(tmp_path))
    archive = tmp_path / "script.pt"
    archive.write_bytes(b"")
    with pytest.raises(RuntimeError, match="TorchScript"):
        torch.jit.load(archive)


def test_a_checkpoint_that_is_already_in_the_hub_folder_is_loaded(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "w.pth")
    loaded = torch.hub.load_state_dict_from_url("https://example.org/w.pth", model_dir=str(tmp_path))
    assert torch.equal(loaded["w"], torch.ones(2))


def test_distributed_says_that_it_is_not_available() -> None:
    assert torch.distributed.is_available() is False
    with pytest.raises(RuntimeError, match="one process"):
        torch.distributed.init_process_group("gloo")


def test_the_dispatcher_is_not_asked_to_cast_when_autocast_is_off() -> None:
    assert _dispatch.autocast is None
    with torch.autocast("cpu"):
        assert _dispatch.autocast is not None
    assert _dispatch.autocast is None


def test_the_same_autocast_object_can_be_entered_twice() -> None:
    block = torch.autocast("cpu")
    with block, block:
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_an_optimizer_that_unscales_itself_is_given_the_scale() -> None:
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None) -> Any:
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    seen: list[tuple[float, float]] = []
    p = torch.ones(2, requires_grad=True)
    optimizer = Own([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert seen == [(8.0, 0.0)]
    assert p.grad.tolist() == [8.0, 8.0]
    assert not hasattr(optimizer, "grad_scale")


def test_the_configuration_names_the_libraries_underneath() -> None:
    text = torch.__config__.show()
    assert f"mindtorch_v2 {torch.version.__version__}" in text
    assert "NumPy" in text
    assert "at::get_num_threads()" in torch.__config__.parallel_info()


SPAWN = """
import os, sys
import mindtorch_v2.multiprocessing as mp

def ok(i, path): open(f"{path}/{i}", "w").close()
def bad(i): raise ValueError(f"boom {i}")
def leave(i): os._exit(3)

if __name__ == "__main__":
    assert mp.spawn(ok, args=(sys.argv[1],), nprocs=2) is None
    for function, kind, text in (
        (bad, mp.ProcessRaisedException, "boom 0"),
        (leave, mp.ProcessExitedException, "process 0 terminated with exit code 3"),
    ):
        try:
            mp.start_processes(function, nprocs=1, start_method="fork")
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(function)
"""


def test_spawned_processes_run_and_their_failures_are_raised(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SPAWN)
    subprocess.run([sys.executable, program, tmp_path], check=True, timeout=60)
    assert {p.name for p in tmp_path.iterdir()} >= {"0", "1"}
