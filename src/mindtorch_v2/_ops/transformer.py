"""The one-op paths of attention and encoder layers in inference, decomposed as torch decomposes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mindtorch_prof.inputs import ELEMENT_TYPES

from .. import _dispatch
from .._dispatch import composite, op
from .._dtype import LOW_FLOATS
from ._children import Child, child, tensor
from ._namespace import functions as F


@op(
    "aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) "
    "-> (Tensor, Tensor, Tensor)",
    expose="function",
)
def _transform_bias_rescale_qkv(
    qkv: np.ndarray, qkv_bias: np.ndarray, num_heads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    batch, length, width = qkv.shape
    if qkv_bias.shape != (width,) or width % (3 * num_heads):
        raise RuntimeError(
            f"expected qkv_bias of {width} elements for {num_heads} heads, got {list(qkv_bias.shape)}"
        )
    head = width // 3 // num_heads
    parts = (qkv + qkv_bias).reshape(batch, length, 3, num_heads, head).transpose(2, 0, 3, 1, 4)
    q, k, v = (np.ascontiguousarray(part) for part in parts)
    q *= np.asarray(1.0 / math.sqrt(head), q.dtype)
    return q, k, v


@_transform_bias_rescale_qkv.children
def _(qkv: Any, qkv_bias: Any, num_heads: int) -> list[Child]:
    batch, length, width = qkv.shape
    rest = (num_heads, length, width // 3 // num_heads)
    parts = tensor((3 * batch, *rest), qkv)
    dtype = ELEMENT_TYPES[qkv.type].number
    return [
        child("aten::empty.memory_format", (3, batch, *rest), dtype, 0, allocates=True),
        child("aten::view", tensor((3, batch, *rest), qkv), parts.shape),
        *[_rows_of(parts, batch * part, batch) for part in range(3)],
    ]


def _rows_of(x: Any, start: int, count: int) -> Child:
    rows = child("aten::slice.Tensor", x, 0, start, start + count, 1)
    return child("aten::narrow", x, 0, start, count, children=[rows])


def _full_mask(self: np.ndarray, mask: np.ndarray, mask_type: int | None) -> np.ndarray:
    """The mask in the shape of self: 0 is (L, L), 1 is (B, L) of padded keys, 2 has every dimension."""
    if mask_type == 0 and mask.ndim == 2:
        mask = mask[None, None]
    elif mask_type == 1 and mask.ndim == 2:
        mask = mask[:, None, None]
    return np.broadcast_to(mask, self.shape)


@op(
    "aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    expose="function",
)
def _masked_softmax(self: np.ndarray, mask: np.ndarray, dim: int | None, mask_type: int | None) -> np.ndarray:
    if mask.dtype != np.bool_:
        raise RuntimeError("Mask should be a boolean tensor")
    axis = self.ndim - 1 if dim is None else dim
    wide = self.astype(np.float32) if self.dtype in LOW_FLOATS else self.copy()
    wide[_full_mask(self, mask, mask_type)] = -np.inf
    # A row that is masked throughout is NaN, as in torch.
    np.subtract(wide, np.maximum.reduce(wide, axis=axis, keepdims=True), wide)
    np.exp(wide, wide)
    np.true_divide(wide, np.add.reduce(wide, axis=axis, keepdims=True), wide)
    return wide if wide.dtype is self.dtype else wide.astype(self.dtype)


@_masked_softmax.children
def _(self: Any, *_: Any) -> list[Child]:
    return [child("aten::empty_like", self, allocates=True)]


@op(
    "aten::_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
    expose="no",
)
def _masked_softmax_backward(
    grad_output: np.ndarray, output: np.ndarray, mask: np.ndarray, dim: int | None
) -> np.ndarray:
    axis = output.ndim - 1 if dim is None else dim
    product = grad_output * output
    return product - output * np.add.reduce(product, axis=axis, keepdims=True)


_masked_softmax.derivative(self=lambda g, out, mask, dim: F._masked_softmax_backward(g, out, mask, dim))


@op(
    "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
    "bool use_gelu=False) -> Tensor",
    on="tensors",
    expose="function",
)
def _addmm_activation(
    self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Any:
    arrays = [operand._array for operand in (self, mat1, mat2)]
    product = _dispatch.wrap(F.addmm.op.kernel(*arrays, beta, alpha))
    return F.gelu_(product) if use_gelu else F.relu_(product)


def _into(aten_name: str) -> Any:
    """The form of an op that writes its result to a tensor, the last argument."""
    source = _dispatch.OPS[aten_name.removeprefix("aten::")]
    arguments = source.text[source.text.index("(") + 1 : source.text.rindex(") ->")]

    def write(*arguments: Any) -> Any:
        *given, out = arguments
        out._array[...] = source.kernel(*[getattr(value, "_array", value) for value in given])
        return out

    return op(
        f"{aten_name}.out({arguments}, *, Tensor out) -> Tensor(a!)",
        expose="no",
        on="tensors",
        nondifferentiable=True,
        flops=source.flops and (lambda *arguments: source.flops(*arguments[:-1])),
    )(write)


_softmax_into, _bmm_into = _into("aten::_softmax"), _into("aten::bmm")


# Composite and not a leaf op, because weights that were not requested are None.
@composite(
    "aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
    "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, "
    "bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    expose="function",
)
def _native_multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    if mask is not None and mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if query.dim() != 3:
        raise RuntimeError(f"expected 3-D `query`, got {query.dim()}-D tensor")
    if query.shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.shape[2]}")
    if qkv_weight.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")
    batch, length, _ = query.shape
    head = embed_dim // num_head
    if query is key and key is value:
        projected = F.mm(query.reshape(-1, embed_dim), qkv_weight.t())
    else:
        sides = zip((query, key, value), qkv_weight.chunk(3))
        projected = F.cat([F.mm(side.reshape(-1, embed_dim), weight.t()) for side, weight in sides], 1)
    projected = F._unsafe_view(projected, (batch, length, 3 * embed_dim))
    q, k, v = F._transform_bias_rescale_qkv(projected, qkv_bias, num_head)
    rows = (batch * num_head, length, head)
    scores = F.bmm(q.view(rows), k.view(rows).transpose(-2, -1)).view(batch, num_head, length, length)
    # Memory is reused, since there are no gradients: that of the scores by their softmax, that of the queries by the result.
    reused = not scores._array_missing
    if mask is not None:
        weights = F._masked_softmax(scores, mask.to(bool), 3, mask_type)
    else:
        weights = _softmax_into(scores, 3, False, out=scores) if reused else F._softmax(scores, 3, False)
    factors = [weights.view(batch * num_head, length, length), v.reshape(rows)]
    attended = _bmm_into(*factors, out=q.view(rows)) if reused else F.bmm(*factors)
    merged = attended.view(batch, num_head, length, head).permute(0, 2, 1, 3).contiguous()
    merged = merged.view(batch, length, embed_dim).view(batch * length, embed_dim)
    output = F.addmm(proj_bias, merged, proj_weight.t())
    output = output.view(batch, length, embed_dim)
    if not need_weights:
        return output, None
    if average_attn_weights:
        weights = F.div_(weights.sum(1), num_head)
    return output, weights


@op(
    "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, "
    "Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
    "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, "
    "int? mask_type=None) -> Tensor",
    on="tensors",
    expose="function",
)
def _transformer_encoder_layer_fwd(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    shape = (embed_dim,)
    x = F.layer_norm(src, shape, norm_weight_1, norm_bias_1, eps) if norm_first else src
    attention = (embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
    x = F.add_(F._native_multi_head_attention(x, x, x, *attention, mask, False, True, mask_type)[0], src)
    if not norm_first:
        x = F.layer_norm(x, shape, norm_weight_1, norm_bias_1, eps)
    before = x
    if norm_first:
        x = F.layer_norm(x, shape, norm_weight_2, norm_bias_2, eps)
    hidden = F._addmm_activation(ffn_bias_1, x.view(-1, embed_dim), ffn_weight_1.t(), use_gelu=use_gelu)
    hidden = hidden.view(*src.shape[:2], -1).view(-1, hidden.shape[-1])
    x = F.addmm(ffn_bias_2, hidden, ffn_weight_2.t()).view(src.shape)
    x = F.add_(x, before)
    return x if norm_first else F.layer_norm(x, shape, norm_weight_2, norm_bias_2, eps)
