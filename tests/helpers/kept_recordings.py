"""What tests of recordings that are kept share: programs to record, and what is in their traces."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch
from mindtorch_prof.load.spill import read_spill, spill_folders
from mindtorch_prof.trace import Trace
from mindtorch_v2.profiler import record_function

FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
EVERYTHING = dict.fromkeys(FLAGS, True)


def spilled(folder: Path) -> Trace:
    (recording,) = spill_folders(folder)
    return read_spill(recording)


def names(trace: Trace) -> list[str]:
    return [trace.names[n] for n in trace.name.tolist()]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.inner(x)) * 2


def step(net: Any, optimizer: Any) -> None:
    with record_function("step"):
        net(torch.rand(2, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def work(kind: str) -> None:
    x = torch.ones(3, requires_grad=True)
    if kind == "train":
        net = Net()
        step(net, torch.optim.SGD(net.parameters(), lr=0.1))
    elif kind == "factories":
        torch.zeros(2, 2).new_full((2,), 3.0)
        torch.full((2,), 1.0)
    elif kind == "gradient":
        (x * 2 / 3).sum().backward()
    elif kind == "memory":
        y = torch.ones(10)
        y.resize_(20)
        y.data_ptr()
    elif kind == "views":
        x.detach()[1:].view(-1).add_(1)
    elif kind == "collect":
        gc.collect()
    elif kind == "wait":
        time.sleep(0.006)


KINDS = ("train", "factories", "gradient", "memory", "views", "collect", "wait")
