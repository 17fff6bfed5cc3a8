"""Nodes without an op: one that drops the gradient, and one that raises when it is differentiated."""

from __future__ import annotations

from typing import Any

from .._graph import Node, attach, edge, grad_state


class _UndefinedGradBackward(Node):
    """Passes no gradient on."""

    def name(self) -> str:
        return "UndefinedGradBackward"

    def apply(self, *grads: Any) -> tuple:
        return (None,) * len(self.next)


class _ErrorNode(Node):
    """Raises when a gradient reaches it."""

    message = ""

    def name(self) -> str:
        return "Error"

    def apply(self, *grads: Any) -> tuple:
        raise RuntimeError(self.message)


def _alias_with_node(tensor: Any, node: Node) -> Any:
    """An alias of `tensor` whose `grad_fn` is `node`."""
    alias = tensor.detach()
    node.next = (edge(tensor),)
    node.shapes, node.dtypes = tensor._array.shape, tensor._array.dtype
    node.seq, grad_state.seq = grad_state.seq, grad_state.seq + 1
    attach(alias, node)
    return alias


class UndefinedGrad:
    """`UndefinedGrad()(tensor)`: the same values; the gradient that reaches them is dropped."""

    def __call__(self, tensor: Any) -> Any:
        return _alias_with_node(tensor, _UndefinedGradBackward())


class DelayedError:
    """`DelayedError(message, n)(*tensors)`: the same values; differentiating them raises `message`."""

    def __init__(self, message: str, num_inputs: int = 1) -> None:
        self.message = message

    def __call__(self, *tensors: Any) -> Any:
        made = []
        for tensor in tensors:
            node = _ErrorNode()
            node.message = self.message
            made.append(_alias_with_node(tensor, node))
        return made[0] if len(made) == 1 else tuple(made)


__all__ = ["DelayedError", "UndefinedGrad"]
