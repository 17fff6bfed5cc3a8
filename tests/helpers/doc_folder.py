"""The files that examples of the documentation use: a folder in, filled with a program and its recordings."""

from __future__ import annotations

import shutil
from pathlib import Path

from doc_pages import RECORDED, ROOT, run_command
from fleet_jobs import GLOO, make_job

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
RECORD = (
    "mindtorch-prof run --record-shapes --profile-memory --with-stack --with-modules --with-flops "
    "--schedule 0,1,3 -o trace.json.gz --quiet train.py"
)
BASELINE = "mindtorch-prof check trace.json.gz --write-baseline baseline.json"
COPIES = ("before", "after", "rank0", "rank1", "run1", "run2", "run3", "run4", "run5")


def record_examples(folder: Path) -> None:
    """Write the program, record it, and copy the recording to the other names that pages use."""
    (folder / "train.py").write_text(TRAIN)
    (folder / "somebody_elses_model.py").write_text("import torch\nmodel = torch.nn.Linear(2, 2)\n")
    for command in (RECORD, BASELINE):
        code, output = run_command(command, folder)
        assert code == 0, output
    for name in COPIES:
        shutil.copy(folder / "trace.json.gz", folder / f"{name}.json.gz")
    make_job(folder / "run", GLOO, 4, 5, "host:1:3000:forward")


def ecosystem() -> Path | None:
    """The folder of traces that others recorded: shared/ecosystem beside the checkout."""
    folders = (parent / "shared" / "ecosystem" for parent in ROOT.parents)
    return next((folder for folder in folders if folder.is_dir()), None)


def link_recorded(folder: Path) -> None:
    """Give the traces that others recorded the names that pages use for them, where they are at hand."""
    found = ecosystem()
    for name, path in RECORDED.items() if found is not None else ():
        (folder / name).symlink_to(found / path)
