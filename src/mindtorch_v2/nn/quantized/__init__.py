"""torch.nn.quantized: the old name of torch.ao.nn.quantized."""

from ...ao.nn.quantized import FloatFunctional

__all__ = ["FloatFunctional"]
