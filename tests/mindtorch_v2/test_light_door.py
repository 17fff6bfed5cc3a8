"""The light door: reading traces loads no tensors, and whoever asks for them later gets the whole package."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = "{'mindtorch_v2._tensor', 'mindtorch_v2._dispatch', 'scipy', 'torch', 'pandas'} & set(sys.modules)"

READING = [
    "show trace.json",
    "show trace.json --group-by module,step,category --format json",
    "tree trace.json",
    "summary trace.json",
    "doctor trace.json",
    "stacks trace.json",
    "convert trace.json --to csv -o out.csv",
    "convert trace.json --to speedscope -o out.speedscope.json",
    "convert trace.json --to chrome -o out.json",
    "query trace.json --tables",
    "explain",
]


def python(code: str, folder: Path) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("light")
    with profile(record_shapes=True, profile_memory=True) as prof:
        torch.ones(3) + 1
    prof.export_chrome_trace(str(made / "trace.json"))
    return made


def test_commands_that_read_traces_load_no_tensors(folder: Path) -> None:
    code = f"""
import contextlib, io, sys
from mindtorch_prof import main
for line in {READING!r}:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        words = line.split()
        assert main(words) == 0, words
    assert not {HEAVY}, (words, {HEAVY})
print(len(out.getvalue()) > 0)
"""
    assert python(code, folder) == "True\n"


def test_load_needs_no_tensors_and_the_package_is_whole_afterwards(folder: Path) -> None:
    code = f"""
import sys
import mindtorch_prof
trace = mindtorch_prof.load("trace.json")
trace.key_averages().table(), trace.events(), trace.health
assert not {HEAVY}, {HEAVY}
import mindtorch_v2 as torch
light = sys.modules["mindtorch_v2"]
assert "Tensor" not in vars(light)
print((torch.ones(2) + 1).tolist(), torch is light, torch.nn.Linear(2, 1)(torch.ones(1, 2)).shape == (1, 1))
print(type(mindtorch_prof.load("trace.json")) is type(trace), torch.profiler.schedule.__name__)
"""
    assert python(code, folder) == "[2.0, 2.0] True True\nTrue schedule\n"


@pytest.mark.parametrize(
    "first",
    [
        "import mindtorch_v2.nn as nn; nn.Linear(1, 1)",
        "from mindtorch_v2._graph import grad_state",
        "from mindtorch_v2.profiler import profile\nwith profile() as p: pass",
        "import mindtorch_v2; mindtorch_v2.as_torch(); import torch.nn.functional as F",
    ],
)
def test_whatever_is_imported_first_comes_from_one_package(first: str, folder: Path) -> None:
    code = f"""
import mindtorch_prof, sys
{first}
import mindtorch_v2 as torch, mindtorch_v2.nn, mindtorch_v2._graph
assert torch.nn is sys.modules["mindtorch_v2.nn"] and torch._graph is sys.modules["mindtorch_v2._graph"]
ours = [(name, m) for name, m in sys.modules.items() if name.startswith("mindtorch_v2")]
assert all(m.__spec__ is not None and m.__spec__.name == name for name, m in ours)
x = torch.ones(2, requires_grad=True)
(x * 2).sum().backward()
print(x.grad.tolist())
"""
    assert python(code, folder) == "[2.0, 2.0]\n"


def test_names_of_the_profiler_mean_what_torch_means_after_its_modules_were_imported() -> None:
    for name in ("load", "schedule", "analysis.summary", "analysis.doctor"):
        importlib.import_module(f"mindtorch_v2.profiler.{name}")
    assert callable(torch.profiler.schedule)
    assert (
        torch.profiler.schedule(wait=0, warmup=1, active=1)(1)
        is torch.profiler.ProfilerAction.RECORD_AND_SAVE
    )
    assert callable(torch.profiler.load)
    assert {"profile", "schedule", "load", "itt", "record_function"} <= set(dir(torch.profiler))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.profiler.nothing  # noqa: B018
