"""torch.cpu.amp: deprecated names that programs still use."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["autocast", "GradScaler"]
