"""torch.cpu.amp: old names, kept because programs still use them."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["autocast", "GradScaler"]
