"""What a profile shows of optimisers on lists, layers, losses and attention. Recorded from torch."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

FACTS = Path(__file__).parent / "facts"
sys.path.insert(0, str(FACTS))

import layer_snippets  # noqa: E402
import profile_snippets  # noqa: E402

RECORDED = json.loads(gzip.decompress((FACTS / "layer_trees.json.gz").read_bytes()))

pytestmark = pytest.mark.filterwarnings("ignore")  # of attention without batch_first


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: line[:90])
def test_a_profile_shows_what_torch_shows(line: str) -> None:
    setup, code = line.split(" ;; ")
    try:
        assert profile_snippets.shown(torch, setup, code) == RECORDED[line]
    finally:
        torch.set_grad_enabled(True)


def test_every_snippet_is_recorded() -> None:
    assert [f"{setup} ;; {code}" for setup, code in layer_snippets.rows()] == list(RECORDED)


EXPRESSIONS = {
    "bag of sums": "F.embedding_bag(i, x, o, mode='sum', padding_idx=1)",
    "bag of means": "F.embedding_bag(i, x, o, mode='mean')",
    "bag of maxima": "F.embedding_bag(i, x, o, mode='max')",
    "distances": "torch.cdist(x, x * 2, p=3.0)",
    "many distances": "torch.cdist(x.repeat(6, 1), x * 2)",
    "distances within": "F.pdist(x)",
    "one class": "F.multi_margin_loss(x, i[:5] % 4, p=2)",
    "labels": "F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1]] * 5))",
    "smooth margin": "F.soft_margin_loss(x, x.detach().sign())",
    "attention": "F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)",
    "bilinear": "F.bilinear(x, x * 2, torch.ones(2, 4, 4))",
    "normed weight": "torch._weight_norm(x, torch.ones(5, 1), 0)",
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=list(EXPRESSIONS))
def test_results_and_gradients_are_the_same_while_a_profiler_watches(expression: str) -> None:
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        x = (torch.arange(20.0).reshape(5, 4).sin() * 2).requires_grad_()
        names = {"x": x, "i": torch.tensor([0, 3, 1, 4, 2, 2]), "o": torch.tensor([0, 2, 5]), "torch": torch}
        made = eval(expression, {**names, "F": torch.nn.functional})
        (made * torch.arange(1.0, made.numel() + 1).reshape(made.shape)).sum().backward()
        return made.detach(), x.grad

    plain = run()
    with torch.profiler.profile(record_shapes=True, profile_memory=True):
        watched = run()
    torch.testing.assert_close(watched, plain)
