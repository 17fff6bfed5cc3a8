"""Autograd functions behind layers that torch also builds from Python: CrossMapLRN2d."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor


def _window_sum(values: Tensor, first: int, last: int) -> Tensor:
    """For each channel c the sum over the channels c + first to c + last that exist."""
    channels = values.size(1)
    total = torch.zeros_like(values)
    for shift in range(max(first, 1 - channels), min(last, channels - 1) + 1):
        if shift < 0:
            total[:, -shift:] += values[:, :shift]
        else:
            total[:, : channels - shift] += values[:, shift:]
    return total


class CrossMapLRN2d(torch.autograd.Function):
    """input / (k + alpha / size * sum of squares over neighbouring channels) ** beta.

    As torch computes it: the first channel's square stays in the sum of every later channel, and the
    gradient's window reaches further back than forward.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> Tensor:
        """The normalised input."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        radius = (size - 1) // 2
        square = input.pow(2)
        scale = _window_sum(square, -radius, radius)
        scale[:, radius + 1 :] += square[:, :1]
        scale.mul_(alpha / size).add_(k)
        output = scale.pow(-beta).mul_(input)
        ctx.save_for_backward(input, output, scale)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of the input; the other arguments have none."""
        input, output, scale = ctx.saved_tensors
        back = int(ctx.size - (ctx.size - 1) / 2)
        ratio = _window_sum(grad_output * output / scale, -back, ctx.size - 1 - back)
        factor = 2 * ctx.alpha * ctx.beta / ctx.size
        return grad_output * scale.pow(-ctx.beta) - factor * input * ratio, None, None, None, None
