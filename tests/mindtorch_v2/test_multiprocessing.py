"""Processes: started and watched, and memory that they share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_writes_to_shared_memory() -> None:
    model = torch.nn.Linear(2, 2)
    view, alias = model.weight.detach().view(-1), model.weight.data
    before = view.tolist()
    model.share_memory()
    assert model.weight.is_shared()
    assert view.tolist() == before
    pid = os.fork()
    if not pid:
        with torch.no_grad():
            model.weight.fill_(7.0)
        os._exit(0)
    os.waitpid(pid, 0)
    assert model.weight.tolist() == [[7.0, 7.0], [7.0, 7.0]]
    assert view.tolist() == [7.0] * 4
    assert alias.tolist() == model.weight.tolist()


def test_shared_memory_stays_as_it_was_for_work_in_this_process() -> None:
    x = torch.arange(6.0).view(2, 3).t().share_memory_()
    assert x.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    x.add_(1)
    assert (x + x).sum().item() == 42.0
    assert torch.empty(0).share_memory_().is_shared()


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
    subprocess.run([sys.executable, program, tmp_path], check=True, timeout=600)
    assert {p.name for p in tmp_path.iterdir()} >= {"0", "1"}
