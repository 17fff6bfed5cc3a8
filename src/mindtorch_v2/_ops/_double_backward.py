"""Second derivatives of backward ops with a kernel of their own, by differentiating the same expression in tensor ops."""

from __future__ import annotations

from typing import Any

from .. import _dispatch
from ._namespace import functions as F


def zeros_of(g: Any) -> Any:
    """The gradient of a backward op by an input whose values it does not depend on; `g` has that input's shape."""
    return F.zeros(g.shape, dtype=g.dtype)


def through(g: Any, expression: Any, *inputs: Any) -> tuple:
    """The gradients of `expression(*inputs)`, weighted by `g`, with respect to each input. An expression of several results gives a
    tuple, and `g` is one of weights, which may be None."""
    from ..autograd import grad

    state, enabled = _dispatch.grad_state, _dispatch.grad_state.enabled
    state.enabled = True
    try:
        own = [x if enabled and x._rg else x.detach().requires_grad_() for x in inputs]
        output = expression(*own)
        pairs = zip(output, g) if isinstance(output, tuple) else [(output, g)]
        weighted = [(y, weight) for y, weight in pairs if weight is not None and y._rg]
        if not weighted:
            return (None,) * len(own)
        outputs, weights = zip(*weighted)
        return grad(outputs, own, weights, create_graph=enabled, allow_unused=True)
    finally:
        state.enabled = enabled
