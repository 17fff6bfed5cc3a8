"""torch.ao: names around quantization. Quantized tensors do not exist here, so converting a model raises."""

from . import nn, quantization

__all__ = ["nn", "quantization"]
