"""flex_attention: against attention written out, and block lists recorded from torch 2.13."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn.attention import flex_attention as flex
from mindtorch_v2.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def heads(batch: int = 2, count: int = 2, length: int = 6, **options: Any) -> torch.Tensor:
    return torch.randn(batch, count, length, 4, dtype=torch.float64, **options)


def written_out(q: Any, k: Any, v: Any, bias: Any) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + bias, -1) @ v


def test_without_functions_it_is_plain_attention() -> None:
    q, k, v = heads(), heads(), heads()
    torch.testing.assert_close(flex_attention(q, k, v), written_out(q, k, v, 0.0))
    torch.testing.assert_close(flex_attention(q, k, v, scale=0.25), written_out(q * 0.5, k, v, 0.0))


def test_a_score_function_sees_the_indices_of_its_score() -> None:
    q, k, v = heads(), heads(), heads()
    bias = torch.randn(2, 2, 6, 6, dtype=torch.float64)
    result = flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + bias[b, h, i, j])
    torch.testing.assert_close(result, written_out(q, k, v, bias))


def test_a_block_mask_hides_scores() -> None:
    q, k, v = heads(), heads(), heads()
    mask = create_block_mask(causal, None, None, 6, 6, BLOCK_SIZE=4)
    hidden = torch.zeros(6, 6, dtype=torch.float64).masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf)
    torch.testing.assert_close(flex_attention(q, k, v, block_mask=mask), written_out(q, k, v, hidden))


def test_rows_without_a_visible_score_are_zero_and_have_zero_gradients() -> None:
    q, k, v = (heads(requires_grad=True) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: (i > 2) & (i >= j), None, None, 6, 6)
    result, aux = flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
    assert result[:, :, :3].abs().sum() == 0
    assert torch.isneginf(aux.lse[:, :, :3]).all()
    assert aux.max_scores is None
    result.sum().backward()
    assert q.grad[:, :, :3].abs().sum() == 0
    assert torch.isfinite(k.grad).all()


def test_gradients_reach_queries_keys_values_and_what_the_score_function_reads() -> None:
    bias = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    inputs = [heads(1, 2, 3, requires_grad=True) for _ in range(3)]
    mask = create_block_mask(causal, None, None, 3, 3)

    def attention(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: torch.tanh(s) + bias[i, j], mask)

    assert torch.autograd.gradcheck(attention, (*inputs, bias))


def test_groups_of_queries_share_keys_and_values() -> None:
    q, k, v = heads(count=4), heads(), heads()
    repeated = written_out(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), 0.0)
    torch.testing.assert_close(flex_attention(q, k, v, enable_gqa=True), repeated)
    with pytest.raises(ValueError, match=r"got Hq=4 and Hkv=2\. Try setting enable_gqa=True"):
        flex_attention(q, k, v)


def test_return_lse_gives_the_log_of_the_sum_and_warns() -> None:
    q, k, v = heads(), heads(), heads()
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        _, lse = flex_attention(q, k, v, return_lse=True)
    scores = q @ k.transpose(-2, -1) / 2
    torch.testing.assert_close(lse, torch.logsumexp(scores, -1))
    aux = flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))[1]
    torch.testing.assert_close(aux.max_scores, scores.amax(-1))


def test_low_precision_is_computed_in_float32_and_returned_in_its_own_type() -> None:
    q, k, v = (heads().bfloat16() for _ in range(3))
    result = flex_attention(q, k, v)
    assert result.dtype is torch.bfloat16
    torch.testing.assert_close(
        result.float(), written_out(q.float(), k.float(), v.float(), 0.0), rtol=0.02, atol=0.02
    )


def test_the_lists_of_a_causal_mask_are_those_of_torch() -> None:
    mask = create_block_mask(causal, None, None, 8, 8, BLOCK_SIZE=4)
    assert mask.shape == (1, 1, 8, 8)
    assert mask.sparsity() == 25.0
    assert mask.kv_num_blocks.tolist() == [[[1, 1]]]
    assert mask.kv_indices.tolist() == [[[[0, 1], [1, 0]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1]]]
    assert mask.full_kv_indices.tolist() == [[[[0, 1], [0, 1]]]]
    assert mask.q_num_blocks.tolist() == [[[1, 1]]]
    assert mask.full_q_num_blocks.tolist() == [[[1, 0]]]
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert str(mask) == "BlockMask(shape=(1, 1, 8, 8), sparsity=25.00%, \n(0, 0)\n██  \n████\n)"
    assert "mask_mod=causal" in repr(mask)
    assert mask.as_tuple()[:2] == (8, 8)
    assert mask.to("cpu").shape == mask.shape


def test_a_part_of_a_block_mask_keeps_its_lists_but_not_its_function() -> None:
    mask = create_block_mask(causal, 2, 2, 512, 512)
    assert mask[1].shape == (1, 2, 512, 512)
    assert mask[:, -1].shape == (2, 1, 512, 512)
    assert mask[:, :, 0].to_dense().tolist() == [[[[1, 0, 0, 0]]] * 2] * 2
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        mask[0].mask_mod(*[torch.zeros(1)] * 4)
    assert mask._adjust(200, 130).to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]


def test_a_mask_of_another_length_is_refused() -> None:
    mask = create_block_mask(causal, None, None, 8, 8)
    q = heads(length=6)
    with pytest.raises(ValueError, match="created for a larger length than you're using it for"):
        flex_attention(q, q, q, block_mask=mask)
    with pytest.raises(ValueError, match="created for a smaller length"):
        flex_attention(heads(length=9), heads(length=9), heads(length=9), block_mask=mask)


def test_masks_are_combined() -> None:
    def first(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return kv == 0

    def mask_of(mod: Any) -> list:
        return create_mask(mod, None, None, 3, 3)[0, 0].int().tolist()

    assert mask_of(and_masks(causal, first)) == [[1, 0, 0]] * 3
    assert mask_of(or_masks(causal, lambda b, h, q, kv: kv == 2)) == [[1, 0, 1], [1, 1, 1], [1, 1, 1]]
    assert mask_of(noop_mask) == [[1, 1, 1]] * 3
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        and_masks(causal, 3)  # type: ignore[arg-type]


def test_a_mask_of_a_score_function_is_where_scores_are_finite() -> None:
    def scores(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return torch.where(q >= kv, score, -math.inf)

    assert create_mask(scores, None, None, 2, 2)[0, 0].tolist() == [[True, False], [True, True]]
    with pytest.raises(AssertionError, match="requires a mask_mod function"):
        create_block_mask(scores, None, None, 2, 2)


def test_a_block_mask_is_built_from_lists() -> None:
    lists = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    mask = BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=(2, 4))
    assert mask.seq_lengths == (4, 8)
    assert mask.to_dense().tolist() == [[[[0, 1], [1, 1]]]]
    assert mask.q_num_blocks.tolist() == [[[1, 2]]]
    assert mask.mask_mod is noop_mask
    assert flex._create_empty_block_mask(heads(), heads()).sparsity() < 0
