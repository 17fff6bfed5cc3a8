"""Flops: sizes of the inputs of an op in, torch's number of floating-point operations out.

Recordings, trace files and torch's `FlopCounterMode` count by these formulas. A multiplication with an addition counts as two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Pair = tuple[int, int]  # of the height and of the width


def elementwise_flops(elements: int) -> int:
    """Of `add` and `mul`: one for each element of the first operand, to whatever shape it is broadcast."""
    return elements


def mm_flops(left: Sequence[int], right: Sequence[int]) -> int:
    """Of `mm`, from the shapes of two matrices; of `addmm`, where torch does not count the addition."""
    # torch counts elements: it also shows a number for shapes that do not fit, of a product that then fails
    return 2 * prod(left) * prod(right) // max(left[-1], 1)


def bmm_flops(left: Sequence[int], right: Sequence[int]) -> int:
    """Of `bmm`, from the shapes of two batches of matrices; of `baddbmm`, where torch does not count the addition."""
    batch, rows, inner = left
    return 2 * batch * rows * inner * right[2]


def convolution_flops(
    batch: int, in_channels: int, out_channels: int, kernel: Sequence[int], positions: Sequence[int]
) -> int:
    """Of a convolution: at each of the positions each weight is multiplied once per image."""
    return 2 * batch * in_channels * out_channels * prod(kernel) * prod(positions)


def conv2d_flops(
    input: Sequence[int], weight: Sequence[int], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> int:
    """Of `conv2d`, from the shapes of a batch of images and of the weight."""
    batch, in_channels, height, width = input
    out_channels, _, kernel_height, kernel_width = weight
    kernel = kernel_height, kernel_width
    positions = [
        (size + 2 * pad - spacing * (taps - 1) - 1) // step + 1
        for size, taps, step, pad, spacing in zip((height, width), kernel, stride, padding, dilation)
    ]
    return convolution_flops(batch, in_channels, out_channels, kernel, positions) // groups
