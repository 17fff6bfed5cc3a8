"""Forward-mode differentiation: tensors with tangents in, results with tangents out.

A tangent is computed on demand, by differentiating a backward pass with respect to the gradient put into it.
So everything that depends on a dual tensor takes part in autograd until the level is closed, and disabling
gradients inside a level is an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import mindtorch_v2 as torch

from .._graph import AccumulateGrad, Node, attach, edge, grad_state
from . import engine
from .grad_mode import _GradContext

__all__ = [
    "UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level",
]  # fmt: skip


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent; None if it has no tangent."""

    primal: torch.Tensor
    tangent: torch.Tensor | None


class _Dual(Node):
    """The node at which a tensor got its tangent."""

    tangent: Any

    def name(self) -> str:
        return "torch::autograd::Identity"

    def apply(self, *grads: Any) -> tuple:
        return grads


class _Level:
    """The dual tensors of the level that is open on a thread; freed with it."""

    def __init__(self) -> None:
        self.nodes: list[_Dual] = []


def enter_dual_level() -> int:
    """Open a level in which tensors may have tangents; returns its number."""
    if grad_state.dual_level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    grad_state.dual_level = _Level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level; its tangents are dropped."""
    if grad_state.dual_level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    grad_state.dual_level = None


class dual_level(_GradContext):
    """A level as a context manager."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> torch.Tensor:
    """A view of `tensor` that has `tangent`."""
    if grad_state.dual_level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
            f"is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if isinstance(tensor.grad_fn, _Dual):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    node = _Dual()
    node.next = (edge(tensor),)
    node.seq, grad_state.seq = grad_state.seq, grad_state.seq + 1
    node.shapes, node.dtypes = tensor._array.shape, tensor._array.dtype
    node.tangent = tangent
    grad_state.dual_level.nodes.append(node)
    dual = tensor.detach()
    attach(dual, node)
    return dual


def unpack_dual(tensor: torch.Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, and the tangent."""
    open_level = grad_state.dual_level
    if open_level is None or not tensor.requires_grad or tensor.grad_fn is None:
        return UnpackedDualTensor(tensor, None)
    reachable = engine.reachable_nodes(tensor.grad_fn)
    nodes = [node for node in open_level.nodes if node in reachable]
    recorded = any(isinstance(node, AccumulateGrad) for node in reachable)
    primal = tensor.view_as(tensor) if recorded else tensor.detach()
    if not nodes:
        return UnpackedDualTensor(primal, None)
    with torch.enable_grad():
        seed = torch.zeros_like(tensor.detach(), requires_grad=True)
        captures = engine.Captures([(node, 0) for node in nodes])
        engine.run([(tensor.grad_fn, tensor.output_nr, seed)], True, True, captures)
        pairs = [
            (g, n.tangent) for g, n in zip(captures.gradients, nodes) if g is not None and g.requires_grad
        ]
        create_graph = recorded or any(t.requires_grad for _, t in pairs)
        if not pairs:
            return UnpackedDualTensor(primal, torch.zeros_like(primal))
        vjps, tangents = zip(*pairs)
        (tangent,) = torch.autograd.grad(vjps, seed, tangents, create_graph=create_graph, allow_unused=True)
    return UnpackedDualTensor(primal, torch.zeros_like(primal) if tangent is None else tangent)


class _set_fwd_grad_enabled:
    """Accepted for compatibility: tangents follow from the graph, which is never cut here."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        pass


def jacobian_columns(func: Any, inputs: tuple, number: int) -> list[np.ndarray]:
    """For gradcheck: the Jacobian of each output with respect to one real input, one tangent per element."""
    primal = inputs[number].detach()
    rows: list[list] = []
    unit = torch.zeros_like(primal, memory_format=torch.contiguous_format)
    flat = unit._array.reshape(-1)
    for element in range(flat.size):
        flat[element] = 1
        with dual_level():
            dual = make_dual(primal, unit.clone())
            outputs = func(*[dual if index == number else x for index, x in enumerate(inputs)])
            tangents = [
                unpack_dual(o) for o in (outputs if isinstance(outputs, (tuple, list)) else (outputs,))
            ]
        flat[element] = 0
        rows.append(
            [np.zeros(p.numel()) if t is None else t.detach()._array.reshape(-1) for p, t in tangents]
        )
    return [np.stack(column) for column in zip(*rows)]
