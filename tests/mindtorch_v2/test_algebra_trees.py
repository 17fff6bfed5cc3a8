"""What a profile shows of linear algebra, transforms, order, statistics and sparse tensors: recorded."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))

import algebra_snippets  # noqa: E402
import profile_snippets  # noqa: E402

RECORDED = json.loads(gzip.decompress((FACTS / "algebra_trees.json.gz").read_bytes()))

pytestmark = pytest.mark.filterwarnings("ignore")  # of names that torch calls deprecated


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: line[:90])
def test_a_profile_shows_what_torch_shows(line: str) -> None:
    setup, code = line.split(" ;; ")
    assert profile_snippets.shown(torch, setup, code) == RECORDED[line]


def test_every_snippet_is_recorded() -> None:
    assert [f"{setup} ;; {code}" for setup, code in algebra_snippets.rows()] == list(RECORDED)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)


def test_results_and_gradients_are_the_same_while_a_profiler_watches() -> None:
    rows = algebra_snippets.rows()
    for setup, code in [row for row in rows if "backward" in row[1]] + rows[::4]:
        alone = algebra_snippets.left_behind(torch, setup, code, recorded=False)
        watched = algebra_snippets.left_behind(torch, setup, code, recorded=True)
        assert len(alone) == len(watched), code
        assert all(_same(a, b) for a, b in zip(alone, watched)), code


def test_an_op_that_writes_is_not_mistaken_for_one_of_its_name_that_makes() -> None:
    x, y = torch.tensor([0.5, -1.0], requires_grad=True), torch.tensor([1.0, -1.0])
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    with torch.profiler.profile():
        torch.nn.functional.soft_margin_loss(x, y).backward()
        assert torch.linalg.det(a).item() == pytest.approx(5)
