"""Tensors of the meta device from other tensors."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch


class MetaConverter:
    """Converts tensors to the meta device."""

    def meta_tensor(self, t: Any, *args: Any, **kwargs: Any) -> Any:
        """A tensor of the same shape, strides and type without data."""
        return torch.empty_strided(
            tuple(t.shape), t.stride(), dtype=t.dtype, device="meta", requires_grad=t.requires_grad
        )
