"""Causal masks for attention between sequences of different lengths."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """Alignment of the diagonal: it starts at the first key, or ends at the last one."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A lower triangular mask; attention replaces it by `is_causal=True` where possible."""

    # a name outside this package, whose own classes have no `__torch_function__` overrides
    __module__ = "torch.nn.attention.bias"
    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    @staticmethod
    def __new__(cls: Any, variant: Any, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                stacklevel=3,
            )
        offset = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        mask = torch.tril(torch.ones(seq_len_q, seq_len_kv, dtype=torch.bool), diagonal=offset)
        return Tensor._make_subclass(cls, mask)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def __repr__(self, **options: Any) -> str:
        return repr(self._plain())

    def _plain(self) -> Tensor:
        return self.as_subclass(Tensor)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return _attend(func, *args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


def _attend(
    attention: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: CausalBias,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    first = attn_mask.seq_len_q == attn_mask.seq_len_kv or attn_mask.variant == CausalVariant.UPPER_LEFT
    mask = None if first else attn_mask._plain()
    return attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout_p,
        is_causal=first,
        scale=scale,
        enable_gqa=enable_gqa,
    )


def causal_upper_left(*size: int) -> CausalBias:
    """Query i attends to keys 0 to i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The last query attends to all keys, the one before it to one key less."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
