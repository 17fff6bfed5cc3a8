"""functorch.einops: `rearrange`."""

from ...func._rearrange import rearrange

__all__ = ["rearrange"]
