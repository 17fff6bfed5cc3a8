"""Scaled dot-product attention: one fused kernel forward and backward, or plain ops where the kernel does not apply."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import LOW_FLOATS, NP_BOOL, float32
from ._children import UNKNOWN, Child, child, contiguous, dtype_number, empty, known, tensor, view_of
from ._namespace import functions as F
from ._where import where
from .pointwise import mul_scalar

if TYPE_CHECKING:
    from mindtorch_prof.settings import Settings

# The enabled back ends of attention; torch.backends.cuda and torch.nn.attention.sdpa_kernel switch them.
ALLOWED = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduced_math": False}


def _scores(query: np.ndarray, key: np.ndarray, is_causal: bool, mask: Any, scale: float) -> np.ndarray:
    scores = np.matmul(query * query.dtype.type(scale), key.swapaxes(-1, -2))
    if is_causal:
        rows, columns = scores.shape[-2:]
        scores += np.triu(np.full((rows, columns), -np.inf, scores.dtype), 1)
    if mask is not None:
        if mask.dtype is NP_BOOL:
            scores = where(mask, scores, scores.dtype.type(-np.inf))
        else:
            scores += mask
    return scores


def _wide(*arrays: Any) -> list[Any]:
    return [
        a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype in LOW_FLOATS else a for a in arrays
    ]


def _for_heads(query: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Keys or values repeated for each head of the query, where several heads share them."""
    heads = query.shape[1] // shared.shape[1]
    return shared if heads == 1 else np.repeat(shared, heads, axis=1)


def _from_heads(gradient: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """The gradient of keys or values that several heads share: summed over those heads."""
    heads = gradient.shape[1] // shared.shape[1]
    if heads == 1:
        return gradient
    batch, _, length, width = gradient.shape
    return gradient.reshape(batch, shared.shape[1], heads, length, width).sum(2)


@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    expose="no",
    node="ScaledDotProductFlashAttentionForCpuBackward0",
    outputs=1,
)
def flash(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: Any,
) -> Any:
    q, k, v, mask = _wide(query, key, value, attn_mask)
    k, v = _for_heads(q, k), _for_heads(q, v)
    weights = _scores(q, k, is_causal, mask, 1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    top = np.maximum.reduce(weights, axis=-1, keepdims=True)
    top = where(np.isneginf(top), weights.dtype.type(0), top)
    np.subtract(weights, top, weights)
    np.exp(weights, weights)
    total = np.add.reduce(weights, axis=-1, keepdims=True)
    logs = (np.log(total) + top)[..., 0]
    np.true_divide(weights, where(total == 0, weights.dtype.type(1), total), weights)
    out = np.matmul(weights, v)
    if not query.flags.c_contiguous:  # laid out like the query
        like = np.empty_like(query, out.dtype)
        like[...] = out
        out = like
    return out.astype(query.dtype, copy=False), logs


@flash.backward("query", "key", "value")
def _(
    grads: Any,
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: Any,
    output: Any,
    logsumexp: Any,
) -> Any:
    if _dispatch.grad_state.enabled:
        return _open_gradients(grads[0], query, key, value, is_causal, attn_mask, scale)
    return flash_backward(
        grads[0], query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


def _mask_of_heads(query: Any, key: Any, attn_mask: Any) -> list[Child]:
    """The mask of a fused kernel, spread over batch and heads."""
    if attn_mask is None or attn_mask is UNKNOWN:
        return []
    shape = (1, 1, *attn_mask.shape)[-4:]
    viewed = tensor(shape, attn_mask)
    return [
        child("aten::view", attn_mask, shape),
        child("aten::expand", viewed, (*query.shape[:2], query.shape[2], key.shape[2])),
    ]


def _heads_last(x: Any) -> Child:
    """Heads and positions swapped, as the kernel reads and writes them."""
    return child("aten::transpose.int", x, 1, 2)


@flash.children
def _(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: Any,
    is_causal: Any,
    attn_mask: Any,
    scale: Any,
    *,
    settings: Settings,
) -> list[Child]:
    known(query)
    if len(query.shape) != 4:
        return []
    batch, n_heads, length, width = query.shape
    dtype = dtype_number(query)
    sums = tensor((batch, length, n_heads), query)
    output = tensor((batch, length, n_heads, width), query)
    return [
        child("aten::empty_like", query, dtype, 0),
        _heads_last(query),
        empty(sums.shape, dtype),
        *[_heads_last(x) for x in (query, key, value)],
        *_mask_of_heads(query, key, attn_mask),
        *_workspaces(settings.num_threads, dtype, 2),
        _heads_last(output),
        _heads_last(sums),
    ]


def _workspaces(n_threads: int, dtype: Any, count: int) -> list[Child]:
    """What each thread computes in; the sizes are the kernel's own."""
    return [empty((n_threads, 0), dtype, allocates=False)] * count


@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
    "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    expose="no",
    nondifferentiable=True,
)
def flash_backward(
    grad_out: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    out: np.ndarray,
    logsumexp: np.ndarray,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Any,
    scale: Any,
) -> Any:
    g, q, k, v, o, mask = _wide(grad_out, query, key, value, out, attn_mask)
    k, v = _for_heads(q, k), _for_heads(q, v)
    factor = q.dtype.type(1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    weights = np.exp(_scores(q, k, is_causal, mask, factor) - logsumexp[..., None])
    weights = np.nan_to_num(weights, copy=False, nan=0.0)
    to_value = np.matmul(weights.swapaxes(-1, -2), g)
    slope = np.matmul(g, v.swapaxes(-1, -2))
    np.subtract(slope, np.add.reduce(g * o, axis=-1, keepdims=True), slope)
    np.multiply(slope, weights, slope)
    np.multiply(slope, factor, slope)
    to_query, to_key = np.matmul(slope, k), np.matmul(slope.swapaxes(-1, -2), q)
    to_key, to_value = _from_heads(to_key, key), _from_heads(to_value, value)
    # laid out as (batch, length, heads, width), as torch's kernel returns them, so that later ops can make views
    gradients = (np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2) for a in (to_query, to_key, to_value))
    return tuple(a.astype(query.dtype, copy=False) for a in gradients)


@flash_backward.children
def _(
    grad_out: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    dropout_p: Any,
    is_causal: Any,
    attn_mask: Any,
    scale: Any,
    *,
    settings: Settings,
) -> list[Child]:
    known(query, key)
    if len(query.shape) != 4:
        return []
    dtype = dtype_number(query)
    swapped = [tensor([x.shape[d] for d in (0, 2, 1, 3)], x) for x in (query, key, value)]
    seen = view_of(grad_out, lambda array: array.swapaxes(1, 2))
    return [
        *[_heads_last(x) for x in (grad_out, query, key, value, out, logsumexp)],
        *[child("aten::zeros", x.shape, dtype, 0) for x in swapped],
        *contiguous(seen),
        *_mask_of_heads(query, key, attn_mask),
        *_workspaces(settings.num_threads, dtype, 3),
        *[_heads_last(x) for x in swapped],
    ]


def _open_gradients(
    g: Any, query: Any, key: Any, value: Any, is_causal: bool, attn_mask: Any, scale: Any
) -> tuple:
    """The gradients by differentiable ops, for second derivatives."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    heads = query.shape[1] // key.shape[1]
    if heads > 1:
        key, value = (x.repeat_interleave(heads, 1) for x in (key, value))
        to_query, *per_head = _open_gradients(g, query, key, value, is_causal, attn_mask, scale)
        return (to_query, *[x.unflatten(1, (-1, heads)).sum(2) for x in per_head])
    weights = F.softmax(_plain_scores(query, key, is_causal, attn_mask, factor), -1)
    slope = F.matmul(g, value.transpose(-2, -1))
    slope = weights * (slope - (slope * weights).sum(-1, True)) * factor
    return (
        F.matmul(slope, key),
        F.matmul(slope.transpose(-2, -1), query),
        F.matmul(weights.transpose(-2, -1), g),
    )


def _plain_scores(query: Any, key: Any, is_causal: bool, mask: Any, factor: float) -> Any:
    made = F.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        made = made + _causal(query.shape[-2], key.shape[-2], query.dtype)
    if mask is not None:
        made = F.masked_fill(made, F.logical_not(mask), -math.inf) if mask.dtype._rank == 0 else made + mask
    return made


def _causal(rows: int, columns: int, dtype: Any) -> Any:
    return _dispatch.wrap(np.triu(np.full((rows, columns), -np.inf, np.float32), 1).astype(dtype._np))


@composite(
    "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
    expose="function",
)
def attention_math(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    dropout_mask: Any,
    scale: Any,
    enable_gqa: bool,
) -> Any:
    """Attention by plain ops; the factor is split between query and key, as torch does for precision."""
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else abs(scale))
    sign = -1.0 if scale is not None and scale < 0 else 1.0
    query = mul_scalar(query, factor * sign)
    if is_causal:
        attn_mask = F.tril(ones((query.shape[-2], key.shape[-2]), dtype=_dispatch._dtype.bool_))
    attn_mask = _added(attn_mask, query)
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    weights = F.matmul(query, mul_scalar(F.transpose(key, -2, -1), factor))
    if attn_mask is not None:
        weights = F.add_(weights, attn_mask)
    weights = F._safe_softmax(weights, -1)
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p, True)
    output = F.matmul(F.to(weights, value.dtype), value)
    return F.to(output, value.dtype), weights


# Composite where the user's `ones` is one kernel: called by torch's own code, its `fill_` is above autograd.
@composite(
    "aten::ones.composite(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    expose="no",
)
def ones(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    return F.fill_(F.empty(size, dtype=dtype), 1)


def _added(attn_mask: Any, query: Any) -> Any:
    """A boolean mask as the tensor that is added to the scores: 0 where attention is allowed, else -inf."""
    if attn_mask is None or attn_mask.dtype._rank:
        return attn_mask
    return _dispatch.OPS["where.ScalarSelf"].entry(
        attn_mask, 0.0, F.scalar_tensor(-math.inf, dtype=query.dtype)
    )


@op("aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", expose="no", on="tensors",
    node="SafeSoftmaxBackward0")  # fmt: skip
def _safe_softmax(self: Any, dim: int, dtype: Any) -> Any:
    """softmax that gives 0 for a row in which all elements are -inf."""
    weights = F.softmax(self, dim, dtype)
    empty = F.all(F.isneginf(self), dim, True)
    return _where_into(empty, F.scalar_tensor(0.0, dtype=weights.dtype), weights, out=weights)


@op(
    "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor out) -> Tensor(a!)",
    expose="no",
    on="tensors",
    nondifferentiable=True,
)
def _where_into(condition: Any, self: Any, other: Any, out: Any) -> Any:
    """`where` for an `out` that is `other`."""
    if condition._array.any():
        np.copyto(out._array, self._array, where=condition._array)
    return out


_safe_softmax.derivative(
    self=lambda g, out, dim, self_dtype: F._softmax_backward_data(g, out, dim, self_dtype)
)


def _check(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {_short(query)} key.dtype: {_short(key)} and "
            f"value.dtype: {_short(value)} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.ndim} key.dim: {key.ndim} and "
            f"value.dim: {value.ndim} instead."
        )
    if (
        attn_mask is not None
        and attn_mask.dtype._rank
        and attn_mask.dtype is not query.dtype
        and attn_mask.dtype is not float32
    ):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {_short(attn_mask)} and  query.dtype: "
            f"{_short(query)} instead."
        )


def _short(tensor: Any) -> str:
    return {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16"}.get(
        tensor.dtype._name, tensor.dtype._name
    )


@composite(
    "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    expose="no",
)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    dropout_p: float,
    is_causal: bool,
    scale: Any,
    enable_gqa: bool,
) -> Any:
    if attn_mask is not None and not isinstance(attn_mask, _dispatch.Tensor):
        kind = type(attn_mask).__name__
        raise TypeError(
            f"scaled_dot_product_attention(): argument 'attn_mask' (position 4) must be Tensor, not {kind}"
        )
    _check(query, key, value, attn_mask, is_causal)
    fused = (
        query.ndim == key.ndim == value.ndim == 4
        and dropout_p == 0.0
        and query.shape[-1] == value.shape[-1]
        and query.shape[0] == key.shape[0] == value.shape[0]
        and key.shape[1] == value.shape[1]
        and (query.shape[1] == key.shape[1] or (enable_gqa and not query.shape[1] % key.shape[1]))
        and (attn_mask is None or (attn_mask.ndim in (2, 4) and not attn_mask._rg))
        and not query._array_missing
        and all(x._array.strides[-1] == x._array.itemsize for x in (query, key, value))
        and 0 not in query.shape
        and 0 not in key.shape
    )
    if not ALLOWED["flash"] and not ALLOWED["math"]:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. "
            "This is likely due to turning off both the math kernel and the fused kernels."
        )
    if attn_mask is not None:
        attn_mask = _added(attn_mask, query)
    if fused and ALLOWED["flash"]:
        return flash(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
    if not ALLOWED["math"]:
        raise RuntimeError("No available kernel.  Aborting execution.")
    return attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]
