"""Modes and classes that answer ops (`__torch_dispatch__`), gradients above them, against what torch shows.

In a process of their own: the first of them puts guards in front of every op, for good.
"""

from __future__ import annotations

import json
import types
from typing import Any

import pytest
import recorded_cases
from fact_files import FACTS

RECORDED = recorded_cases.facts("dispatch_cases")


@pytest.fixture(scope="module")
def shown(run_python: Any) -> dict[str, list[str]]:
    return json.loads(run_python(recorded_cases.program("dispatch_cases"), FACTS))


@pytest.mark.parametrize("case", list(RECORDED))
def test_answers_show_what_torch_shows(case: str, shown: dict[str, list[str]]) -> None:
    assert shown[case] == RECORDED[case]


def test_torch_still_shows_what_was_recorded(run_python: Any, torch_reference: types.ModuleType) -> None:
    program = recorded_cases.program("dispatch_cases", torch_reference.__name__)
    assert json.loads(run_python(program, FACTS)) == RECORDED


def test_plain_tensors_are_what_they_were_once_nobody_answers_any_more(run_python: Any) -> None:
    before, after, seen = json.loads(
        run_python("""
        import gc, json
        import mindtorch_v2 as torch
        from mindtorch_v2 import _dispatch, _graph
        from mindtorch_v2.utils._python_dispatch import BaseTorchDispatchMode

        def train():
            torch.manual_seed(0)
            x = torch.randn(3, 4, requires_grad=True)
            (x.exp() * x + x[0]).relu_().sum().backward()
            return x.grad.tolist()

        before = train()
        with BaseTorchDispatchMode():
            seen = [train() == before]
        gc.collect()
        seen += [_dispatch.recorder is None, _graph.Switches.asked is None]
        print(json.dumps([before, train(), seen]))
    """)
    )
    assert before == after
    assert seen == [True, True, True]


TABLE = """\
Module                           FLOP    % Total
---------------------------  --------  ---------
Net                          305.952K    100.00%
- aten.convolution           138.816K     45.37%
- aten.addmm                   0.032K      0.01%
- aten.mm                      0.064K      0.02%
- aten.convolution_backward  167.040K     54.60%
Net.body                      84.672K     27.67%
- aten.convolution            28.224K      9.22%
- aten.convolution_backward   56.448K     18.45%
Net.conv                     221.184K     72.29%
- aten.convolution           110.592K     36.15%
- aten.convolution_backward  110.592K     36.15%
Net.head                       0.096K      0.03%
- aten.addmm                   0.032K      0.01%
- aten.mm                      0.064K      0.02%"""


def test_a_flop_counter_prints_torchs_table(run_python: Any) -> None:
    printed = json.loads(
        run_python("""
        import contextlib, io, json
        import mindtorch_v2 as torch
        from mindtorch_v2 import nn
        from mindtorch_v2.utils.flop_counter import FlopCounterMode

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 4, 3, padding=1)
                self.body = nn.Sequential(nn.Conv2d(4, 4, 3, stride=2), nn.BatchNorm2d(4))
                self.head = nn.Linear(4, 2)
            def forward(self, x):
                return self.head(self.body(torch.relu(self.conv(x))).mean((2, 3)))

        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            with FlopCounterMode() as counter:
                Net()(torch.randn(2, 3, 16, 16)).sum().backward()
            with FlopCounterMode(display=False) as nothing:
                pass
            print(nothing.get_table())
        print(json.dumps(out.getvalue()))
    """)
    )
    empty = "Module      FLOP    % Total\n--------  ------  ---------\nGlobal         0         0%"
    assert printed == f"{TABLE}\n{empty}\n"
