"""Gradients by differences: a function of float64 tensors in, its derivatives of first and second order checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

STEP = 1e-6


def _outputs(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def _weighted(function: Callable, inputs: list, weights: list[np.ndarray]) -> float:
    with torch.no_grad():
        outputs = _outputs(function(*inputs))
    return sum(float((y.detach().numpy() * w).sum()) for y, w in zip(outputs, weights))


def _differences(function: Callable, inputs: list, weights: list[np.ndarray]) -> list[np.ndarray]:
    found = []
    for x in inputs:
        array = x.detach().numpy()
        slope = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            before = array[place]
            array[place] = before + STEP
            above = _weighted(function, inputs, weights)
            array[place] = before - STEP
            below = _weighted(function, inputs, weights)
            array[place] = before
            slope[place] = (above - below) / (2 * STEP)
        found.append(slope)
    return found


def _gradients(function: Callable, inputs: list, weights: list, create_graph: bool = False) -> list:
    outputs = [(y, w) for y, w in zip(_outputs(function(*inputs)), weights) if y.requires_grad]
    return list(
        torch.autograd.grad(
            [y for y, _ in outputs],
            inputs,
            [w for _, w in outputs],
            create_graph=create_graph,
            allow_unused=True,
        )
    )


def _compare(found: list, wanted: list[np.ndarray], tolerance: float) -> None:
    for gradient, slope in zip(found, wanted):
        array = np.zeros_like(slope) if gradient is None else gradient.detach().numpy()
        assert array.shape == slope.shape
        np.testing.assert_allclose(array, slope, atol=tolerance, rtol=tolerance * 10)


def check(function: Callable, *shapes: tuple[int, ...]) -> None:
    """Assert that the first and second derivatives of `function` at random inputs are what differences give."""
    random = np.random.RandomState(0)
    inputs = [torch.tensor(np.asarray(random.randn(*shape))).requires_grad_() for shape in shapes]
    weights = [random.randn(*y.shape) for y in _outputs(function(*inputs))]
    tensors = [torch.tensor(np.asarray(w)).requires_grad_() for w in weights]
    _compare(_gradients(function, inputs, tensors), _differences(function, inputs, weights), 1e-5)

    def gradient(*given: Any) -> list:
        with torch.enable_grad():
            found = _gradients(
                function, list(given[: len(inputs)]), list(given[len(inputs) :]), create_graph=True
            )
        return [g for g in found if g is not None]

    everything = [*inputs, *tensors]
    second = [random.randn(*y.shape) for y in gradient(*everything)]
    found = _gradients(gradient, everything, [torch.tensor(np.asarray(w)) for w in second])
    _compare(found, _differences(gradient, everything, second), 1e-4)
