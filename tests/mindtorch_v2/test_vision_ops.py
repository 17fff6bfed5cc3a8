"""torchvision's ops in Python, against loops over their definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mindtorch_v2 as torch

ops = torch.ops.torchvision
BOXES = torch.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 1.0, 10.0, 10.0], [20.0, 20.0, 30.0, 30.0]])


def test_nms_keeps_the_best_of_overlapping_boxes() -> None:
    scores = torch.tensor([0.5, 0.9, 0.7])
    assert ops.nms(BOXES, scores, 0.5).tolist() == [1, 2]
    assert ops.nms(BOXES, scores, 0.9).tolist() == [1, 2, 0]
    assert ops.nms(BOXES[:0], scores[:0], 0.5).tolist() == []
    with pytest.raises(RuntimeError, match="same number of elements"):
        ops.nms(BOXES, scores[:2], 0.5)


def at(image: Any, y: float, x: float) -> float:
    """The bilinear value of one channel at a position, as roi_align's definition has it."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    upper = image[top, left] * (1 - dx) + image[top, right] * dx
    lower = image[bottom, left] * (1 - dx) + image[bottom, right] * dx
    return float(upper * (1 - dy) + lower * dy)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [2, -1])
def test_roi_align_is_the_mean_of_bilinear_samples(aligned: bool, ratio: int) -> None:
    torch.manual_seed(0)
    images = torch.randn(2, 2, 7, 9, dtype=torch.float64)
    rois = torch.tensor([[0, 1.0, 2.0, 12.0, 9.0], [1, -3.0, 0.0, 20.0, 15.0]], dtype=torch.float64)
    result = ops.roi_align(images, rois, 0.5, 2, 3, ratio, aligned)
    for k, roi in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (value * 0.5 - 0.5 * aligned for value in roi[1:])
        width, height = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1), max(y2 - y1, 1))
        bin_h, bin_w = height / 2, width / 3
        down, across = (ratio, ratio) if ratio > 0 else (math.ceil(bin_h), math.ceil(bin_w))
        for c in range(2):
            for i in range(2):
                for j in range(3):
                    samples = [
                        at(
                            images[int(roi[0]), c],
                            y1 + i * bin_h + (a + 0.5) * bin_h / down,
                            x1 + j * bin_w + (b + 0.5) * bin_w / across,
                        )
                        for a in range(down)
                        for b in range(across)
                    ]
                    assert result[k, c, i, j].item() == pytest.approx(sum(samples) / len(samples))


ROIS = torch.tensor([[0, 0.6, 0.7, 4.1, 5.2], [0, 2.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
POOLS = {
    "roi_align": lambda x: ops.roi_align(x, ROIS, 1.0, 2, 2, 2, True),
    "ps_roi_align": lambda x: ops.ps_roi_align(x, ROIS, 1.0, 2, 2, 2)[0],
    "roi_pool": lambda x: ops.roi_pool(x, ROIS, 1.0, 2, 2)[0],
    "ps_roi_pool": lambda x: ops.ps_roi_pool(x, ROIS, 1.0, 2, 2)[0],
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_has_the_gradient_of_its_values(name: str) -> None:
    torch.manual_seed(1)
    images = torch.randn(1, 4, 6, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(POOLS[name], (images,))


def test_the_gradient_ops_give_what_autograd_gives() -> None:
    torch.manual_seed(1)
    images = torch.randn(1, 4, 6, 6, dtype=torch.float64, requires_grad=True)
    grad = torch.randn(2, 4, 2, 2, dtype=torch.float64)
    expected = torch.autograd.grad(POOLS["roi_align"](images), images, grad)[0]
    torch.testing.assert_close(ops._roi_align_backward(grad, ROIS, 1.0, 2, 2, 1, 4, 6, 6, 2, True), expected)
    pooled, argmax = ops.roi_pool(images, ROIS, 1.0, 2, 2)
    expected = torch.autograd.grad(pooled, images, grad)[0]
    torch.testing.assert_close(ops._roi_pool_backward(grad, ROIS, argmax, 1.0, 2, 2, 1, 4, 6, 6), expected)


def test_roi_pool_takes_the_largest_value_of_each_bin() -> None:
    image = torch.arange(36.0).view(1, 1, 6, 6)
    pooled, argmax = ops.roi_pool(image, torch.tensor([[0, 0.0, 0.0, 3.0, 3.0]]), 1.0, 2, 2)
    assert pooled.flatten().tolist() == argmax.flatten().tolist() == [7.0, 9.0, 19.0, 21.0]
    outside, nowhere = ops.roi_pool(image, torch.tensor([[0, 9.0, 9.0, 12.0, 12.0]]), 1.0, 1, 1)
    assert (outside.item(), nowhere.item()) == (0.0, -1)


def deformable(
    input: Any, weight: Any, offset: Any, mask: Any, bias: Any, groups: int, use_mask: bool
) -> Any:
    return ops.deform_conv2d(input, weight, offset, mask, bias, 1, 2, 1, 0, 1, 1, groups, 1, use_mask)


def test_a_deformable_convolution_without_offsets_is_a_convolution() -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 4, 5, 6), torch.randn(6, 2, 3, 2), torch.randn(6)
    expected = torch.nn.functional.conv2d(x, w, b, (1, 2), (1, 0), groups=2)
    offset = torch.zeros(2, 12, *expected.shape[2:])
    result = deformable(x, w, offset, torch.zeros(2, 1), b, 2, False)
    torch.testing.assert_close(result, expected)
    half = torch.full((2, 6, *expected.shape[2:]), 0.5)
    scaled = deformable(x, w, offset, half, b, 2, True)
    torch.testing.assert_close(scaled - b.view(-1, 1, 1), (expected - b.view(-1, 1, 1)) / 2)
    moved = deformable(x, w, offset + 1.0, half, b, 2, False)
    shifted = torch.nn.functional.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
    torch.testing.assert_close(
        moved[:, :, 1:], torch.nn.functional.conv2d(shifted, w, b, (1, 2), (1, 0), groups=2)[:, :, 1:]
    )


def test_a_deformable_convolution_has_gradients_of_all_its_inputs() -> None:
    torch.manual_seed(0)
    options = {"dtype": torch.float64, "requires_grad": True}
    inputs = [
        torch.randn(1, 2, 4, 4, **options),
        torch.randn(2, 2, 2, 2, **options),
        torch.rand(1, 8, 5, 2, dtype=torch.float64).mul(0.4).add(0.2).requires_grad_(),
        torch.rand(1, 4, 5, 2, **options),
        torch.randn(2, **options),
    ]
    assert torch.autograd.gradcheck(lambda *t: deformable(*t, 1, True), inputs)
    with pytest.raises(RuntimeError, match=r"offset\.shape is not valid"):
        deformable(*inputs[:2], inputs[2][:, :4], *inputs[3:], 1, True)


def test_an_op_without_arguments_can_be_called() -> None:
    assert torch.ops.torchvision._cuda_version() == -1
