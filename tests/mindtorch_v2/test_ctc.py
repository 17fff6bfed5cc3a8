"""ctc_loss gives torch's losses, gradients and errors. Facts: `python facts/record_expressions.py ctc`."""

from __future__ import annotations

import gzip
import importlib
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))
expressions = importlib.import_module("expression_rows")
RECORDED = json.loads(gzip.decompress((FACTS / "ctc_facts.json.gz").read_bytes()))
TOLERANCE = {"torch.float64": 1e-11, "torch.float32": 2e-6}


def agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list), found
        for mine, theirs in zip(found, wanted, strict=True):
            agree(mine, theirs)
        return
    if "values" not in wanted or "values" not in found:
        assert found == wanted
        return
    for what in ("shape", "stride", "dtype", "grad_fn"):
        assert found[what] == wanted[what], what
    mine, theirs = (np.asarray(eval(x["values"], {"nan": np.nan, "inf": np.inf})) for x in (found, wanted))
    np.testing.assert_allclose(mine, theirs, rtol=TOLERANCE[wanted["dtype"]], atol=TOLERANCE[wanted["dtype"]])


@pytest.mark.parametrize(
    ("setup", "line", "fact"),
    [
        pytest.param(setup, line, fact, id=f"{number}-{line[:60]}")
        for number, ((setup, line), fact) in enumerate(zip(expressions.rows("ctc"), RECORDED, strict=True))
    ],
)
def test_ctc_loss_gives_what_torch_gives(setup: str, line: str, fact: Any) -> None:
    agree(expressions.run(torch, setup, line), fact)


def test_the_loss_is_that_of_all_alignments_counted_one_by_one() -> None:
    steps, labels, target = 5, 3, [1, 2]
    log_probs = torch.from_numpy(np.random.RandomState(0).randn(steps, 1, labels)).log_softmax(2)
    total = 0.0
    for path in itertools.product(range(labels), repeat=steps):
        merged = [label for label, _ in itertools.groupby(path) if label != 0]
        if merged == target:
            total += float(np.exp(sum(log_probs[t, 0, label].item() for t, label in enumerate(path))))
    found = F.ctc_loss(log_probs, torch.tensor([target]), (steps,), (2,), reduction="sum")
    assert found.item() == pytest.approx(-np.log(total), rel=1e-12)


def test_a_second_derivative_is_refused_when_it_is_asked_for() -> None:
    x = torch.zeros(4, 1, 3, requires_grad=True)
    loss = F.ctc_loss(x, torch.tensor([[1, 2]]), (4,), (2,))
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for aten::_ctc_loss_backward is not implemented"):
        first.sum().backward()
