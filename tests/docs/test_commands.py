"""The pages in docs/commands: every command shown in them runs, and every sub-command has a page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fleet_jobs import GLOO, make_job

from mindtorch_prof import cli

PAGES = Path(__file__).parents[2] / "docs" / "commands"
SOURCE = Path(__file__).parents[2] / "src"
TRAIN = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
options = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
points, labels = torch.randn(64, 8), torch.arange(64) % 2
for epoch in range(options.epochs):
    for part in range(4):
        loss = nn.functional.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}  loss {loss.item():.3f}")
"""
RECORDING = """run --record-shapes --profile-memory --with-stack --with-modules --with-flops --schedule 0,1,3
-o trace.json.gz --quiet train.py"""


def commands(page: Path) -> list[str]:
    """The lines after `$ ` in a page's console blocks."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def process(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell, `mindtorch-prof` being this package's."""
    here = f"{shlex.quote(sys.executable)} -m mindtorch_prof"
    text = re.sub(r"^mindtorch-prof|(?<=\| )mindtorch-prof", here, command)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        text, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages speak of."""
    path = tmp_path_factory.mktemp("docs")
    (path / "train.py").write_text(TRAIN)
    done = process("mindtorch-prof " + " ".join(RECORDING.split()), path)
    assert done.returncode == 0, done.stderr
    for name in ("before.json.gz", "after.json.gz"):
        shutil.copy(path / "trace.json.gz", path / name)
    make_job(path / "run", GLOO, 4, 5, "host:1:3000:forward")
    return path


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_every_command_of_a_page_runs(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    lines = commands(page)
    assert lines, "a page without an example"
    for line in lines:
        command, _, expected = line.partition("  # exit ")
        words = shlex.split(command)
        if words[0] != "mindtorch-prof":
            continue
        if words[1] in {"run", "--version"} or "|" in words or ">" in words:
            done = process(command, folder)
            assert done.returncode == int(expected or 0), (command, done.stderr)
        else:
            assert cli.main(words[1:]) == int(expected or 0), (command, capsys.readouterr().err)


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_has_a_page(name: str) -> None:
    assert (PAGES / f"{name}.md").exists()
