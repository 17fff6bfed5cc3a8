"""Multi-head attention of nn.functional: projections, masks, heads; torch's sequence of aten ops."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import mindtorch_v2 as torch

from .._ops import functions as ops

if TYPE_CHECKING:
    from mindtorch_v2 import Tensor
    from mindtorch_v2 import dtype as DType


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> tuple[Tensor, ...]:
    """q, k and v projected by the three thirds of one weight; tensors that are identical share one product."""
    size = q.size(-1)
    if k is v:
        if q is k:
            return _split_packed(ops.linear(q, w, b), 3, size)
        w_q, w_kv = w.split([size, size * 2])
        b_q, b_kv = (None, None) if b is None else b.split([size, size * 2])
        return (ops.linear(q, w_q, b_q), *_split_packed(ops.linear(k, w_kv, b_kv), 2, size))
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    return ops.linear(q, w_q, b_q), ops.linear(k, w_k, b_k), ops.linear(v, w_v, b_v)


def _split_packed(projected: Tensor, parts: int, size: int) -> tuple[Tensor, ...]:
    projected = projected.unflatten(-1, (parts, size)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return tuple(projected[i] for i in range(parts))


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v projected by separate weights."""
    size, k_size, v_size = q.size(-1), k.size(-1), v.size(-1)
    expected_shapes = {
        "query weights": (w_q, (size, size)),
        "key weights": (w_k, (size, k_size)),
        "value weights": (w_v, (size, v_size)),
        "query bias": (b_q, (size,)),
        "key bias": (b_k, (size,)),
        "value bias": (b_v, (size,)),
    }
    for name, (tensor, shape) in expected_shapes.items():
        if tensor is not None and tensor.shape != shape:
            raise AssertionError(f"expecting {name} shape of {shape}, but got {tensor.shape}")
    return ops.linear(q, w_q, b_q), ops.linear(k, w_k, b_k), ops.linear(v, w_v, b_v)


def _mha_shape_check(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Whether the inputs have a batch dimension; raises if they do not agree."""
    ndim = query.dim()
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    batched = ndim == 3
    label = "batched (3-D)" if batched else "unbatched (2-D)"
    if key.dim() != ndim or value.dim() != ndim:
        raise AssertionError(
            f"For {label} `query`, expected `key` and `value` to be {ndim}-D "
            f"but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != ndim - 1:
        raise AssertionError(
            f"For {label} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {label} `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
                f"but found {attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected_shape = (num_heads, query.shape[0], key.shape[0])
            if attn_mask.shape != expected_shape:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected_shape} but got {attn_mask.shape}"
                )
    return batched


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: DType | None,
    other_name: str,
    target_type: DType,
    check_other: bool = True,
) -> Tensor | None:
    """A boolean mask as numbers to add: minus infinity where it is True."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != torch.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. "
            "Use same type for both instead.",
            stacklevel=1,
        )
    if is_float:
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> DType | None:
    if input is None:
        return None
    if isinstance(input, torch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    if key_padding_mask.shape[0] != bsz:
        raise AssertionError(
            f"Expected key_padded_mask.shape[0] to be {bsz}, but got {key_padding_mask.shape[0]}"
        )
    if key_padding_mask.shape[1] != src_len:
        raise AssertionError(
            f"Expected key_padded_mask.shape[1] to be {src_len}, but got {key_padding_mask.shape[1]}"
        )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads over (length, batch, features): the output and, on request, the weights."""
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, bsz, embed_dim = query.shape
    src_len = key.shape[0]
    if key_padding_mask is not None:
        _check_key_padding_mask(key_padding_mask, src_len, bsz)
        key_padding_mask = _canonical_mask(
            key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        # The attention op makes the causal mask itself.
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    q, k, v = _project_inputs(
        query,
        key,
        value,
        in_proj_weight,
        in_proj_bias,
        (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None,
    )
    if attn_mask is not None:
        attn_mask = _with_three_dims(attn_mask, tgt_len, src_len, bsz * num_heads)
    if bias_k is not None or bias_v is not None:
        if bias_k is None:
            raise AssertionError("bias_k is None but bias_v is set")
        if bias_v is None:
            raise AssertionError("bias_k is set but bias_v is None")
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, bsz, 1)])
        v = torch.cat([v, bias_v.repeat(1, bsz, 1)])
        attn_mask, key_padding_mask = _pad_for_added_key(attn_mask), _pad_for_added_key(key_padding_mask)
    heads = bsz * num_heads
    q = q.view(tgt_len, heads, head_dim).transpose(0, 1)
    k = _split_heads(k, static_k, "static_k", heads, head_dim)
    v = _split_heads(v, static_v, "static_v", heads, head_dim)
    if add_zero_attn:
        shape = (heads, 1, head_dim)
        k = torch.cat([k, torch.zeros(shape, dtype=k.dtype, device=k.device)], dim=1)
        v = torch.cat([v, torch.zeros(shape, dtype=v.dtype, device=v.device)], dim=1)
        attn_mask, key_padding_mask = _pad_for_added_key(attn_mask), _pad_for_added_key(key_padding_mask)
    src_len = k.size(1)
    if key_padding_mask is not None:
        padding = (
            key_padding_mask.view(bsz, 1, 1, src_len).expand(-1, num_heads, -1, -1).reshape(heads, 1, src_len)
        )
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    if need_weights:
        output, weights = _attention_with_weights(q, k, v, attn_mask, dropout_p, is_causal)
        output = output.transpose(0, 1).reshape(tgt_len * bsz, embed_dim)
        output = ops.linear(output, out_proj_weight, out_proj_bias)
        output = output.view(tgt_len, bsz, output.size(1))
        weights = weights.view(bsz, num_heads, tgt_len, src_len)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        return (output, weights) if batched else (output.squeeze(1), weights.squeeze(0))
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(bsz, num_heads, -1, src_len)
    q = q.view(bsz, num_heads, tgt_len, head_dim)
    k = k.view(bsz, num_heads, src_len, head_dim)
    v = v.view(bsz, num_heads, src_len, head_dim)
    output = ops.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
    output = output.permute(2, 0, 1, 3).reshape(bsz * tgt_len, embed_dim)
    output = ops.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(tgt_len, bsz, output.size(1))
    return (output, None) if batched else (output.squeeze(1), None)


def _project_inputs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    packed: Tensor | None,
    bias: Tensor | None,
    separate: tuple[Tensor | None, Tensor | None, Tensor | None] | None,
) -> tuple[Tensor, ...]:
    if separate is None:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if packed is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, packed, bias)
    if key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    for name, weight in zip("qkv", separate, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    b_q, b_k, b_v = (None, None, None) if bias is None else bias.chunk(3)
    w_q, w_k, w_v = separate
    return _in_projection(query, key, value, w_q, w_k, w_v, b_q, b_k, b_v)  # type: ignore[arg-type]


def _with_three_dims(attn_mask: Tensor, tgt_len: int, src_len: int, heads: int) -> Tensor:
    ndim = attn_mask.dim()
    if ndim == 2:
        expected_shape: tuple[int, ...] = (tgt_len, src_len)
    elif ndim == 3:
        expected_shape = (heads, tgt_len, src_len)
    else:
        raise RuntimeError(f"attn_mask's dimension {ndim} is not supported")
    if attn_mask.shape != expected_shape:
        raise RuntimeError(
            f"The shape of the {ndim}D attn_mask is {attn_mask.shape}, but should be {expected_shape}."
        )
    return attn_mask.unsqueeze(0) if ndim == 2 else attn_mask


def _pad_for_added_key(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else ops.pad(mask, (0, 1))


def _split_heads(projected: Tensor, static: Tensor | None, name: str, heads: int, head_dim: int) -> Tensor:
    if static is None:
        return projected.view(projected.shape[0], heads, head_dim).transpose(0, 1)
    if static.size(0) != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {static.size(0)}")
    if static.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {static.size(2)}")
    return static


def _attention_with_weights(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool
) -> tuple[Tensor, Tensor]:
    if is_causal and attn_mask is None:
        raise AssertionError("FIXME: is_causal not implemented for need_weights")
    scaled = q * math.sqrt(1.0 / float(q.shape[-1]))
    if attn_mask is not None:
        scores = ops.baddbmm(attn_mask, scaled, k.transpose(-2, -1))
    else:
        scores = ops.bmm(scaled, k.transpose(-2, -1))
    weights = ops.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    return ops.bmm(weights, v), weights
