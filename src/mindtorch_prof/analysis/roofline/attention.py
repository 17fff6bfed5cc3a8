"""Attention: inputs of scaled-dot-product, flash and memory-efficient attention, forward and backward, in; work out.

Forward two products, Q K^T and P V; backward five: fused kernels compute Q K^T again. Softmax and dropout are left out, being smaller
by the head size. A causal mask halves the products of equal lengths. Query, key, value and result are moved once forward; backward the
gradients of all four, and query, key and value. (The result is not counted backward: what is needed of it also follows from the rest.)
"""

from __future__ import annotations

from typing import NamedTuple

from .work import MATRIX, Call, Model, NotModelled, Tensor, Work, contiguous, moved

FORWARD, BACKWARD = "attention", "attention backward"
# how a causal mask of unequal lengths is aligned: to the first query and key (torch), or to the last ones (flash-attn)
NONE, TOP_LEFT, BOTTOM_RIGHT = range(3)


class _Sizes(NamedTuple):
    batch: int
    query_heads: int
    queries: int
    keys: int
    query_size: int  # of a head of query and key
    value_size: int


def _sizes(query: Tensor, key: Tensor, value: Tensor, heads_first: bool) -> _Sizes:
    """Of tensors (batch, heads, length, size), or (batch, length, heads, size)."""
    if not len(query.shape) == len(key.shape) == len(value.shape) >= 3:
        raise NotModelled("query, key and value do not have the dimensions that attention takes")
    heads, length = (-3, -2) if heads_first else (-2, -3)
    if len(query.shape) == 3:
        raise NotModelled("query, key and value have no batch, or no heads")
    batch = query.numel // max(query.shape[heads] * query.shape[length] * query.shape[-1], 1)
    if query.shape[-1] != key.shape[-1] or key.shape[length] != value.shape[length]:
        raise NotModelled("the shapes of query, key and value do not fit")
    return _Sizes(
        batch, query.shape[heads], query.shape[length], key.shape[length], query.shape[-1], value.shape[-1]
    )


def _pairs(queries: float, keys: float, causal: int) -> float:
    """Pairs of a query and a key that are not masked; half of them for equal lengths, as is usual."""
    if causal == NONE:
        return queries * keys
    shorter = min(queries, keys)
    if causal == TOP_LEFT:
        return shorter * shorter / 2 + (queries - shorter) * keys
    return shorter * shorter / 2 + shorter * (keys - shorter)


def _work(
    sizes: _Sizes,
    pairs: float,
    tensors: tuple[Tensor, Tensor, Tensor],
    result_shape: tuple[int, ...],
    backward: bool,
    mask: Tensor | None,
) -> Work:
    query, key, value = tensors
    per_pair = (
        3 * sizes.query_size + 2 * sizes.value_size if backward else sizes.query_size + sizes.value_size
    )
    flop = 2 * sizes.batch * sizes.query_heads * pairs * per_pair
    result = contiguous(result_shape, query.element)
    nbytes = moved(query, key, value, result, mask)
    if backward:
        nbytes += moved(*(contiguous(tensor.shape, tensor.element) for tensor in tensors))
    category = BACKWARD if backward else FORWARD
    return Work(int(flop), nbytes, category, MATRIX, query.element.dtype)


def _attention(call: Call, first: int, causal: int, heads_first: bool, mask: Tensor | None = None) -> Work:
    """first: place of the query; the gradient of the result stands before it in backward ops."""
    query, key, value = (call.tensor(first + place) for place in range(3))
    sizes = _sizes(query, key, value, heads_first)
    pairs = _pairs(sizes.queries, sizes.keys, causal)
    shape = (*query.shape[:-1], value.shape[-1])
    return _work(sizes, pairs, (query, key, value), shape, first > 0, mask)


def _packed(call: Call, first: int, starts: tuple[int, int], longest: tuple[int, int], causal: int) -> Work:
    """Sequences one after the other in (length, heads, size). Their lengths are not in the file: one has the greatest length, the others
    are taken for equal, which is the least that the work can be.

    starts: places of the tensors with the starts of the sequences; longest: places of the greatest lengths."""
    query, key, value = (call.tensor(first + place) for place in range(3))
    if len(query.shape) == 4 and query.shape[0] == 1:
        query, key, value = (
            tensor._replace(shape=tensor.shape[1:], strides=None) for tensor in (query, key, value)
        )
    if len(query.shape) != 3 or query.shape[-1] != key.shape[-1]:
        raise NotModelled("query, key and value do not have the dimensions that packed attention takes")
    count = call.tensor(starts[0]).numel - 1
    queries, keys = call.number(longest[0]), call.number(longest[1])
    pairs = _pairs(queries, keys, causal)
    if count > 1:
        other_queries = max(query.shape[0] - queries, 0) / (count - 1)
        other_keys = max(key.shape[0] - keys, 0) / (count - 1)
        pairs += (count - 1) * _pairs(other_queries, other_keys, causal)
    sizes = _Sizes(1, query.shape[1], query.shape[0], key.shape[0], query.shape[2], value.shape[2])
    shape = (*query.shape[:-1], value.shape[-1])
    return _work(sizes, pairs, (query, key, value), shape, first > 0, None)


def scaled_dot_product(call: Call) -> Work:
    """query, key, value, mask, dropout, is_causal, ..."""
    return _attention(call, 0, TOP_LEFT if call.flag(5) else NONE, True, call.optional(3))


def flash(call: Call) -> Work:
    """query, key, value, dropout, is_causal, ..."""
    return _attention(call, 0, TOP_LEFT if call.flag(4) else NONE, True)


def efficient(call: Call) -> Work:
    """query, key, value, mask, whether log-sum-exp is computed, dropout, is_causal, ..."""
    return _attention(call, 0, TOP_LEFT if call.flag(6) else NONE, True, call.optional(3))


def flash_backward(call: Call) -> Work:
    """gradient, query, key, value, result, log-sum-exp, starts of both, longest of both, dropout, is_causal, ..."""
    return _attention(call, 1, TOP_LEFT if call.flag(11) else NONE, True)


def efficient_backward(call: Call) -> Work:
    """gradient, query, key, value, mask, result, log-sum-exp, seed, offset, dropout, gradient mask, is_causal, ..."""
    return _attention(call, 1, TOP_LEFT if call.flag(11) else NONE, True, call.optional(4))


def cudnn_backward(call: Call) -> Work:
    """gradient, query, key, value, result, log-sum-exp, seed, offset, mask, starts of both, longest of both, dropout, is_causal, ..."""
    return _attention(call, 1, TOP_LEFT if call.flag(14) else NONE, True, call.optional(8))


def inner_flash(call: Call) -> Work:
    """query, key, value, starts of both, longest of both, dropout, is_causal, ..."""
    causal = BOTTOM_RIGHT if call.flag(8) else NONE
    if call.optional(3) is not None:
        return _packed(call, 0, (3, 4), (5, 6), causal)
    return _attention(call, 0, causal, False)


def inner_flash_backward(call: Call) -> Work:
    """gradient, query, key, value, result, log-sum-exp, starts of both, longest of both, dropout, is_causal, ..."""
    causal = BOTTOM_RIGHT if call.flag(11) else NONE
    starts = call.optional(6)
    if starts is not None and starts.numel:
        return _packed(call, 1, (6, 7), (8, 9), causal)
    return _attention(call, 1, causal, False)


def inner_efficient(call: Call) -> Work:
    """query, key, value, mask, starts of both, longest of both, dropout, kind of mask (0: none, 1: top left, 2: bottom right), ..."""
    if call.optional(4) is not None:
        return _packed(call, 0, (4, 5), (6, 7), call.number(9))
    return _attention(call, 0, call.number(9), False, call.optional(3))


def inner_efficient_backward(call: Call) -> Work:
    """gradient, query, key, value, mask, result, starts of both, longest of both, log-sum-exp, dropout, seed, offset, kind of mask, ..."""
    starts = call.optional(6)
    if starts is not None and starts.numel:
        return _packed(call, 1, (6, 7), (8, 9), call.number(14))
    return _attention(call, 1, call.number(14), False, call.optional(4))


def library_flash(call: Call) -> Work:
    """flash-attn: query, key, value, dropout, scale, causal, ..."""
    return _attention(call, 0, BOTTOM_RIGHT if call.first_flag(3) else NONE, False)


def library_flash_backward(call: Call) -> Work:
    """flash-attn: gradient, query, key, value, result, log-sum-exp, gradients of all three, dropout, scale, causal, ..."""
    return _attention(call, 1, BOTTOM_RIGHT if call.first_flag(6) else NONE, False)


def library_packed(call: Call) -> Work:
    """flash-attn: query, key, value, starts of both, longest of both, dropout, scale, causal, ..."""
    return _packed(call, 0, (3, 4), (5, 6), BOTTOM_RIGHT if call.first_flag(7) else NONE)


def library_packed_backward(call: Call) -> Work:
    """flash-attn: gradient, query, key, value, result, log-sum-exp, gradients of all three, starts of both, longest of both, ..."""
    return _packed(call, 1, (9, 10), (11, 12), BOTTOM_RIGHT if call.first_flag(13) else NONE)


def packed_with_two_flags(call: Call) -> Work:
    """aiter: query, key, value, starts of both, longest of both, shortest query, dropout, scale, ..., whether results are zeroed, causal, ..."""
    return _packed(call, 0, (3, 4), (5, 6), BOTTOM_RIGHT if call.first_flag(7, skipped=1) else NONE)


def packed_with_two_flags_backward(call: Call) -> Work:
    """aiter: gradient, query, key, value, result, log-sum-exp, starts of both, longest of both, dropout, scale, whether results are zeroed,
    causal, ..."""
    return _packed(call, 1, (6, 7), (8, 9), BOTTOM_RIGHT if call.first_flag(10, skipped=1) else NONE)


MODELS: dict[str, Model] = {
    "aten::scaled_dot_product_attention": scaled_dot_product,
    "aten::_scaled_dot_product_attention_math": scaled_dot_product,
    "aten::_scaled_dot_product_fused_attention_overrideable": scaled_dot_product,
    "aten::_scaled_dot_product_flash_attention": flash,
    "aten::_scaled_dot_product_flash_attention_for_cpu": flash,
    "aten::_scaled_dot_product_efficient_attention": efficient,
    "aten::_scaled_dot_product_cudnn_attention": efficient,
    "aten::_scaled_dot_product_flash_attention_backward": flash_backward,
    "aten::_scaled_dot_product_efficient_attention_backward": efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention_backward": cudnn_backward,
    "aten::_flash_attention_forward": inner_flash,
    "aten::_flash_attention_backward": inner_flash_backward,
    "aten::_efficient_attention_forward": inner_efficient,
    "aten::_efficient_attention_backward": inner_efficient_backward,
    "flash_attn::_flash_attn_forward": library_flash,
    "flash_attn::_flash_attn_backward": library_flash_backward,
    "flash_attn::_flash_attn_varlen_forward": library_packed,
    "flash_attn::_flash_attn_varlen_backward": library_packed_backward,
    "FlashAttnFunc": library_flash,
    "FlashAttnVarlenFunc": library_packed,
    "aiter::mha_fwd": library_flash,
    "aiter::mha_bwd": library_flash_backward,
    "aiter::fmha_v3_fwd": library_flash,
    "aiter::fmha_v3_bwd": library_flash_backward,
    "aiter::mha_varlen_fwd": packed_with_two_flags,
    "aiter::mha_varlen_bwd": packed_with_two_flags_backward,
    "aiter::fmha_v3_varlen_fwd": packed_with_two_flags,
    "aiter::fmha_v3_varlen_bwd": packed_with_two_flags_backward,
}
