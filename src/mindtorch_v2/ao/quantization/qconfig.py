"""torch.ao.quantization.qconfig: how activations and weights are observed."""

from . import QConfig

__all__ = ["QConfig"]
